package main

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// messagePark sets aside one row with its key, or a whole topic.
type messagePark struct {
	app      *app
	bucket   int
	sequence int64
	topic    string
	reason   string
	consent  consent
	output   format

	ofTopic     bool // the topic was given, not a row
	reasonGiven bool
}

// operatorsReason is the reason when none is given.
const operatorsReason = "set aside by an operator"

// maxTopicBytes is what a topic's marker has for it in its sort key. Kafka's limit is 249.
const maxTopicBytes = 1024 - len(outbox.ParkedTopicSortKeyPrefix)

func newMessagePark(a *app) *cobra.Command {
	c := &messagePark{app: a, reason: operatorsReason}
	return a.command(spec{
		use:   "park --bucket N --sequence S | --topic TOPIC",
		short: "Sets aside a waiting row with all rows of its key, or a whole topic",
		long: "Sets aside a waiting row with all rows of its topic and key, those in front of it and those to\n" +
			"come too, so that their order is kept; other keys go on. A row without a key goes alone. With\n" +
			"--topic, all rows of a topic, in every bucket. The relays move the rows, within a lease renew\n" +
			"interval; a row that cannot be read is moved by this command. What is being retried is set aside\n" +
			"again: its retry is called off. relay parked shows what is set aside, and relay parked retry has\n" +
			"it delivered.",
		example: "  relay message park --table orders --bucket 3 --sequence 42 --reason 'customer 7 sends nonsense'\n" +
			"  relay message park --table orders --topic orders.plcaed --reason mistyped",
		groups: settings.Table,
		arguments: []settings.Argument{
			{Name: "bucket", Value: settings.Index(&c.bucket), Doc: "bucket of the row, from 0"},
			{Name: "sequence", Value: settings.Sequence(&c.sequence), Doc: "number of the row in its bucket"},
			{Name: "topic", Value: settings.Text(&c.topic), Doc: "topic to be set aside as a whole"},
			{Name: "reason", Value: settings.Text(&c.reason), Doc: "why; shown to whoever looks, so no content"},
			a.timeoutArgument(),
			outputArgument(&c.output),
		},
		consent: &c.consent,
		check:   c.check,
		run:     c.run,
	})
}

func (c *messagePark) check(positional []string, given func(string) bool) []settings.Fault {
	faults := noPositional(positional, given)
	c.ofTopic, c.reasonGiven = given("topic"), given("reason")
	ofRow := given("bucket") && given("sequence")
	partly := given("bucket") != given("sequence")
	if partly || c.ofTopic == ofRow {
		faults = append(faults, settings.Fault{Setting: "--bucket", Detail: ": give --bucket and --sequence of a row, or --topic"})
	}
	return faults
}

func (c *messagePark) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	if err := checkBucket(s, c.bucket); err != nil {
		return err
	}
	if err := checkNote("reason", c.reason); err != nil {
		return err
	}
	if c.ofTopic {
		if err := checkTopic(c.topic); err != nil {
			return err
		}
	}
	client, f, err := c.app.readFleet(ctx, s)
	if err != nil {
		return err
	}
	d, err := c.change(ctx, client, s, f)
	if err != nil {
		return advised(err, s)
	}
	return advised(c.app.carryOut(ctx, client, d, c.consent, c.output), s)
}

// checkTopic refuses a topic that no marker can stand for.
func checkTopic(topic string) error {
	if strings.TrimSpace(topic) == "" || len(topic) > maxTopicBytes || !utf8.ValidString(topic) {
		return usageErrorf("--topic %q: must not be blank, be UTF-8, and have %d bytes at most", topic, maxTopicBytes)
	}
	return nil
}

func (c *messagePark) change(ctx context.Context, client *store.Client, s *settings.Settings, f picture.Fleet) (change, error) {
	if c.ofTopic {
		c.app.tellBeyond(f, s)
		found, err := asideOf(ctx, client, s)
		if err != nil {
			return change{}, err
		}
		return c.topicChange(s, found, f.Now()), nil
	}
	reply := client.Do(ctx, store.ReadRow{Bucket: c.bucket, Sequence: c.sequence})
	if reply.Class != store.Done {
		return change{}, fmt.Errorf("read row %d of bucket %d: %w", c.sequence, c.bucket, reply.Err)
	}
	read := reply.Result.(store.RowRead)
	if read.Item == nil {
		return change{}, fmt.Errorf("bucket %d has no row %d that waits", c.bucket, c.sequence)
	}
	if stamp := read.Row.BucketCount; read.Malformed == nil && stamp != 0 && stamp != s.Relay.BucketCount {
		return change{}, c.foreign(read.Row, s)
	}
	found, err := readMarkers(ctx, client, c.bucket)
	if err != nil {
		return change{}, err
	}
	return c.rowChange(client.Schema(), read, found.ofBucket(c.bucket, f.Now())), nil
}

// foreign refuses a row that was written for another bucket count. A marker would be of
// no use: owners stop at the row before they move it. Nor can the command move it, as it
// moves one that cannot be read: if it is these settings that are wrong, the relays
// publish such rows. What to do by hand depends on where the row belongs
// (docs/operations.md).
func (c *messagePark) foreign(row outbox.Row, s *settings.Settings) error {
	stamp, ours := row.BucketCount, s.Relay.BucketCount
	item := s.Schema().MessagesKey(c.bucket) + " " + outbox.SequenceSortKey(c.sequence)
	remedy := fmt.Sprintf("it is where it belongs: of the item\n    %s\n  set %s to %d", item, outbox.AttrBucketCount, ours)
	if right := row.Message.Bucket(ours); right != c.bucket {
		remedy = fmt.Sprintf("it belongs to bucket %d: keep what this shows of it,\n"+
			"    relay message list --bucket %d --limit 1000 --show-content --output json,\n"+
			"  delete the item %s,\n"+
			"  and enqueue the message anew: relay message enqueue", right, c.bucket, item)
	}
	return fmt.Errorf("row %d of bucket %d was written for %s, and the settings here say %d: relays with %d stop at it, and do not move it\n"+
		"  if the outbox has %s: give all relays, writers and this command --bucket-count %d\n"+
		"  if that writer was wrong: correct it, and then the row;\n"+
		"  %s",
		c.sequence, c.bucket, counted(stamp, "bucket"), ours, ours, counted(stamp, "bucket"), stamp, remedy)
}

// topicChange sets the topic aside in every bucket. Each owner is told as soon as its
// bucket is done.
func (c *messagePark) topicChange(s *settings.Settings, found aside, at store.Ticks) change {
	d := change{question: fmt.Sprintf("set aside all of topic %s, in %s", legible(c.topic), counted(s.Relay.BucketCount, "bucket"))}
	for bucket := range s.Relay.BucketCount {
		known := found.ofBucket(bucket, at)
		d.requests = append(d.requests,
			known.setAside(bucket, store.Marker{Topic: c.topic, Reason: c.reason, ParkedAt: at}, true),
			store.Ring{Bucket: bucket, At: at})
		seen, is := known.find("", c.topic)
		if !is {
			continue
		}
		if fact := known.fact(seen); fact != "" {
			d.facts = append(d.facts, fmt.Sprintf("bucket %d: its retry, %s, is called off", bucket, fact))
		} else if seen.PausedUntil != 0 {
			d.facts = append(d.facts, fmt.Sprintf("bucket %d: it is paused already, and stays so: %s", bucket, pauseText(seen.PausedUntil, seen.PausedBy, seen.Reason)))
		}
	}
	return d
}

// rowChange has the owner move a row that can be read, with all of its key: the owner
// alone knows what is on its way to the broker. Nobody but the command can move a row
// that cannot be read. Its key's marker is written before, and answered, as an owner's is:
// a transaction becomes visible in parts, and an owner that sees the row gone, and no
// marker yet, would let the key's next row pass (case M-08).
func (c *messagePark) rowChange(schema outbox.Schema, read store.RowRead, known retries) change {
	at := known.now
	marker := store.Marker{Reason: c.reason, ParkedAt: at}
	d := change{facts: rowFacts(c.bucket, asideRow{sequence: c.sequence, row: read.Row, fault: read.Malformed}, at)}
	var first store.Request
	if read.Malformed != nil {
		marker.KeyID, marker.Topic = schema.ParkedIdentity(read.Item)
		if _, is := known.find(marker.KeyID, ""); !is && marker.Topic != "" && read.Item[outbox.AttrKey] != nil {
			d.requests = []store.Request{store.SetAside{Bucket: c.bucket, Marker: marker}, store.Ring{Bucket: c.bucket, At: at}}
			at++ // another ring is heard
			marker.ParkedAt = at
		}
		first = store.MoveUnreadable{Bucket: c.bucket, Sequence: c.sequence, Item: read.Item, Marker: marker, Token: uuid.NewString()}
		d.question = fmt.Sprintf("move row %d, which cannot be read, aside under key %s", c.sequence, marker.KeyID)
	} else {
		m := &read.Row.Message
		marker.KeyID, marker.Topic = outbox.ParkedKeyID(m), m.Topic
		first = known.setAside(c.bucket, marker, c.reasonGiven)
		if seen, is := known.find(marker.KeyID, ""); is {
			if fact := known.fact(seen); fact != "" {
				d.facts = append(d.facts, fmt.Sprintf("the retry of its key, %s, is called off", fact))
			}
		}
		d.question = fmt.Sprintf("set aside all rows of %s", markerText(marker))
		if m.Key == nil {
			d.question = fmt.Sprintf("set aside row %d, which has no key, alone", c.sequence)
		}
	}
	d.requests = append(d.requests, first, store.Ring{Bucket: c.bucket, At: at})
	return d
}
