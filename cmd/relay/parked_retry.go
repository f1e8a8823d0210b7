package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// parkedRetry asks the owners of buckets to deliver what is set aside.
type parkedRetry struct {
	app     *app
	keyIDs  []string
	all     bool
	topic   string
	callOff bool
	consent consent
	output  format
}

func newParkedRetry(a *app) *cobra.Command {
	c := &parkedRetry{app: a}
	return a.command(spec{
		use:   "retry KEYID... | --all | --topic TOPIC",
		short: "Has keys that are set aside delivered, in order, before newer rows of theirs",
		long: "Has keys that are set aside delivered by the relays that own their buckets: the rows of each in\n" +
			"order, before newer ones. A row that is rejected again ends the retry, and nothing is lost. With\n" +
			"--all every key, except those of a topic that is set aside as a whole; with --topic such a topic.\n" +
			"Relays learn of it within a lease renew interval; relay parked list shows how far they are.\n" +
			"--call-off is the opposite: retries that are under way end, and what is left stays set aside.",
		example: "  relay parked retry --table orders 5d41402abc4b2a76b9719d911017c592\n" +
			"  relay parked retry --table orders --all --yes",
		groups: settings.Table,
		arguments: []settings.Argument{
			{Name: "all", Value: settings.Switch(&c.all), Doc: "every key that is set aside"},
			{Name: "topic", Value: settings.Text(&c.topic), Doc: "a topic that is set aside as a whole"},
			{Name: "call-off", Value: settings.Switch(&c.callOff), Doc: "call the retries off that are under way"},
			a.timeoutArgument(),
			outputArgument(&c.output),
		},
		consent: &c.consent,
		check:   c.check,
		run:     c.run,
	})
}

func (c *parkedRetry) check(positional []string, given func(string) bool) []settings.Fault {
	c.keyIDs = slices.Compact(slices.Sorted(slices.Values(positional)))
	forms := 0
	for _, isGiven := range []bool{len(positional) > 0, given("all"), given("topic")} {
		if isGiven {
			forms++
		}
	}
	faults := checkKeyIDs(c.keyIDs...)
	if forms != 1 {
		faults = append(faults, settings.Fault{Setting: "KEYID", Detail: ": give key ids, --all or --topic, one of the three"})
	}
	return faults
}

func (c *parkedRetry) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	client, f, found, err := c.app.readAside(ctx, s)
	if err != nil {
		return err
	}
	c.app.tellBeyond(f, s)
	if !c.callOff {
		if found, err = c.withStrays(ctx, client, s, found); err != nil {
			return advised(err, s)
		}
	}
	chosen, passedOver := c.choose(found)
	if c.topic != "" && len(chosen) == 0 {
		return errors.Join(fmt.Errorf("topic %s is not set aside as a whole", legible(c.topic)), found.unreadableFault())
	}
	if missing := c.without(chosen); len(missing) > 0 {
		return notSetAside(missing)
	}
	asked := c.change(chosen, passedOver, f.Now())
	if c.callOff {
		asked = c.callingOff(found, chosen, f.Now())
	}
	if err := c.app.carryOut(ctx, client, asked, c.consent, c.output); err != nil {
		return advised(err, s)
	}
	if len(c.keyIDs) > 0 {
		return nil
	}
	return found.unreadableFault() // one of them may be of the topic
}

// choose picks the markers to be retried. What --all leaves out are keys of topics that
// are set aside as a whole: delivering them would undo what somebody has paused.
func (c *parkedRetry) choose(found aside) (chosen []asideMarker, passedOver int) {
	type topicOfBucket struct {
		bucket int
		topic  string
	}
	whole := map[topicOfBucket]bool{}
	for _, m := range found.markers {
		at := topicOfBucket{m.bucket, m.Topic}
		switch {
		case c.topic != "":
			if m.KeyID == "" && m.Topic == c.topic {
				chosen = append(chosen, m)
			}
		case m.KeyID == "":
			whole[at] = true // topics come before the keys of their bucket
		case c.all && whole[at]:
			passedOver++
		case c.all || slices.Contains(c.keyIDs, m.KeyID):
			chosen = append(chosen, m)
		}
	}
	return chosen, passedOver
}

// withStrays adds keys that have rows and no marker to what is set aside: all of them, or
// those of the ids that were given. A key may have a marker in one bucket and be without
// one in another.
func (c *parkedRetry) withStrays(ctx context.Context, client *store.Client, s *settings.Settings, found aside) (aside, error) {
	looked := found.unmarked(c.keyIDs, s.Relay.BucketCount)
	if c.all {
		if err := found.findStrays(ctx, client, s); err != nil {
			return found, err
		}
		looked = found.strays
	}
	strays := make([][]asideMarker, s.Relay.BucketCount)
	err := inBuckets(ctx, s, func(ctx context.Context, bucket int) error {
		for _, stray := range looked {
			if stray.bucket != bucket {
				continue
			}
			marker, is, err := readStray(ctx, client, stray)
			if err != nil {
				return err
			}
			if is {
				strays[bucket] = append(strays[bucket], marker)
			}
		}
		return nil
	})
	found.markers = append(found.markers, slices.Concat(strays...)...)
	return found, err
}

// unmarked are the keys with an id among some, in each bucket where it has no marker.
func (a aside) unmarked(keyIDs []string, bucketCount int) (keys []strayKey) {
	marked := map[strayKey]bool{}
	for _, m := range a.markers {
		marked[strayKey{m.bucket, m.KeyID}] = true
	}
	for bucket := range bucketCount {
		for _, id := range keyIDs {
			if key := (strayKey{bucket, id}); !marked[key] {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// readStray is the marker that a key without one is to have, at no time yet, or the one
// that was written since; is tells whether the key has rows at all.
func readStray(ctx context.Context, client *store.Client, key strayKey) (marker asideMarker, is bool, err error) {
	rows, _, err := readAsideRows(ctx, client, key.bucket, key.keyID, 0, 1)
	if err != nil || len(rows) == 0 {
		return marker, false, err
	}
	since, err := readMarkers(ctx, client, key.bucket)
	if err != nil {
		return marker, false, err
	}
	for _, m := range since.markers {
		if m.KeyID == key.keyID {
			return m, true, nil
		}
	}
	return asideMarker{key.bucket, store.Marker{KeyID: key.keyID, Topic: rows[0].row.Message.Topic}}, true, nil
}

// without are the key ids that were given and are not among what was chosen.
func (c *parkedRetry) without(chosen []asideMarker) []string {
	return slices.DeleteFunc(slices.Clone(c.keyIDs), func(id string) bool {
		return slices.ContainsFunc(chosen, func(m asideMarker) bool { return m.KeyID == id })
	})
}

func notSetAside(keyIDs []string) error {
	return fmt.Errorf("not set aside, so that nothing was asked for: %s", strings.Join(keyIDs, ", "))
}

// calledOffReason is the reason of a key that is not to be retried with its topic any more.
const calledOffReason = "its retry was called off"

// callingOff ends the retries of what was chosen, where they are under way, and then
// tells each owner.
func (c *parkedRetry) callingOff(found aside, chosen []asideMarker, at store.Ticks) change {
	var d change
	var buckets []int
	for _, m := range chosen {
		known := found.ofBucket(m.bucket, at)
		fact := known.fact(m.Marker)
		if fact == "" {
			continue
		}
		d.facts = append(d.facts, fmt.Sprintf("%s%s: its retry is under way, %s", markerText(m.Marker), inBucket(m.bucket), fact))
		d.requests = append(d.requests, callOff(m.bucket, m.Marker, at, calledOffReason, false))
		buckets = append(buckets, m.bucket)
	}
	d.question = fmt.Sprintf("call %s off; what is left stays set aside", countedRetries(len(buckets)))
	for _, bucket := range slices.Compact(buckets) {
		d.requests = append(d.requests, store.Ring{Bucket: bucket, At: at})
	}
	return d
}

func countedRetries(n int) string {
	if n == 1 {
		return "1 retry"
	}
	return fmt.Sprintf("%d retries", n)
}

// strayReason is the reason of a marker that was missing.
const strayReason = "its marker was missing"

// change asks for each retry first, and then tells each owner, once: an owner that is
// told before everything is written might look too early.
func (c *parkedRetry) change(chosen []asideMarker, passedOver int, at store.Ticks) change {
	d := change{question: fmt.Sprintf("have %s delivered", counted(len(chosen), "key"))}
	if c.topic != "" {
		d.question = fmt.Sprintf("have topic %s delivered again, in %s", legible(c.topic), counted(len(chosen), "bucket"))
	}
	if passedOver > 0 {
		d.facts = append(d.facts, fmt.Sprintf("not among them: %s of topics that are set aside as a whole, see --topic", counted(passedOver, "key")))
	}
	var buckets []int
	for _, m := range chosen {
		buckets = append(buckets, m.bucket)
		if m.ParkedAt == 0 { // a stray
			m.Reason, m.ParkedAt, m.RetryAt = strayReason, at, at
			d.facts = append(d.facts, fmt.Sprintf("%s%s: rows without a marker", markerText(m.Marker), inBucket(m.bucket)))
			d.requests = append(d.requests, store.SetAside{Bucket: m.bucket, Marker: m.Marker})
			continue
		}
		d.facts = append(d.facts, fmt.Sprintf("%s%s, set aside %s ago: %s", markerText(m.Marker), inBucket(m.bucket), ageText(at.Sub(m.ParkedAt)), legible(m.Reason)))
		d.requests = append(d.requests, store.AskRetry{Bucket: m.bucket, KeyID: m.KeyID, Topic: m.Topic, At: at})
	}
	slices.Sort(buckets)
	for _, bucket := range slices.Compact(buckets) {
		d.requests = append(d.requests, store.Ring{Bucket: bucket, At: at})
	}
	return d
}
