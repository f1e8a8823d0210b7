package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// parkedList shows what is set aside in all buckets. It reads only.
type parkedList struct {
	app    *app
	output format
}

func newParkedList(a *app) *cobra.Command {
	c := &parkedList{app: a}
	return a.command(spec{
		use:   "list",
		short: "Shows the keys and topics that are set aside, in all buckets",
		long: "Shows the keys and topics that are set aside, in all buckets, with how many rows of each wait.\n" +
			"A key without rows that nobody retries goes by itself. Rows are counted up to 1,000, or to 4 MB.\n" +
			"Keys with rows but no marker, which no relay knows of, are shown too. What does not fit a line is\n" +
			"cut; it stands whole in the JSON.",
		example:   "  relay parked list --table orders",
		groups:    settings.Table,
		arguments: []settings.Argument{a.timeoutArgument(), outputArgument(&c.output)},
		run:       c.run,
	})
}

// Counting reads rows, which costs by their size.
const (
	countLimit = 1000
	countPages = 4 // of 1 MB
)

// parkedDocument is the JSON of the command.
type parkedDocument struct {
	Table       string                `json:"table"`
	BucketCount int                   `json:"bucketCount"`
	Keys        []parkedKeyDocument   `json:"keys"`
	Topics      []parkedTopicDocument `json:"topics"`
	Unreadable  []string              `json:"unreadable"` // markers
	// Strays are keys with rows that no marker stands for: no relay knows of them.
	Strays []strayDocument `json:"strays"`
}

type strayDocument struct {
	KeyID  string `json:"keyId"`
	Bucket int    `json:"bucket"`
}

type parkedKeyDocument struct {
	KeyID       string  `json:"keyId"`
	Bucket      int     `json:"bucket"`
	Topic       string  `json:"topic"`
	Reason      string  `json:"reason"`
	Attempts    int     `json:"attempts"`
	ParkedAt    string  `json:"parkedAt"`
	RetryAt     *string `json:"retryAt"` // null: not asked for
	Rows        int     `json:"rows"`
	RowsIsLimit bool    `json:"rowsIsLimit"` // there are more
}

// parkedTopicDocument is a topic that is set aside as a whole, the same way in these
// buckets.
type parkedTopicDocument struct {
	Topic    string  `json:"topic"`
	Buckets  []int   `json:"buckets"`
	Reason   string  `json:"reason"`
	ParkedAt string  `json:"parkedAt"`
	RetryAt  *string `json:"retryAt"`
	// Paused is the pause, on or just over, that the topic is set aside for; null: none.
	Paused *pauseDocument `json:"paused"`
}

func (c *parkedList) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	client, f, found, err := c.app.readAside(ctx, s)
	if err != nil {
		return err
	}
	c.app.tellBeyond(f, s)
	keys, err := countKeys(ctx, client, s, found)
	if err != nil {
		return advised(err, s)
	}
	if err := found.findStrays(ctx, client, s); err != nil {
		return advised(err, s)
	}
	topics := groupTopics(found)
	if c.output == formatJSON {
		err = printJSON(c.app.stdout, c.document(s, keys, topics, found))
	} else {
		c.print(s, keys, topics, found, f.Now())
	}
	return errors.Join(err, found.unreadableFault())
}

// asideKey is a key that is set aside, and how many rows it has.
type asideKey struct {
	asideMarker
	rows int
	more bool // beyond what was counted
}

func countKeys(ctx context.Context, client *store.Client, s *settings.Settings, found aside) ([]asideKey, error) {
	var keys []asideKey
	for _, m := range found.markers {
		if m.KeyID != "" {
			keys = append(keys, asideKey{asideMarker: m})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.Relay.MaxConcurrency)
	for i := range keys {
		group.Go(func() (err error) {
			keys[i].rows, keys[i].more, err = countRows(ctx, client, keys[i].bucket, keys[i].KeyID)
			return err
		})
	}
	return keys, group.Wait()
}

func countRows(ctx context.Context, client *store.Client, bucket int, keyID string) (rows int, more bool, err error) {
	r := store.CountParked{Bucket: bucket, KeyID: keyID}
	for range countPages {
		r.Limit = countLimit - rows
		reply := client.Do(ctx, r)
		if reply.Class != store.Done {
			return rows, false, fmt.Errorf("count the rows of key %s in bucket %d: %w", keyID, bucket, reply.Err)
		}
		page := reply.Result.(store.Counted)
		rows += page.Rows
		if page.Next == 0 {
			return rows, false, nil
		}
		if r.After = page.Next; rows >= countLimit {
			break
		}
	}
	return rows, true, nil
}

// asideTopic is a topic that is set aside the same way in some buckets.
type asideTopic struct {
	store.Marker
	buckets []int // ascending
}

// groupTopics puts together what one command set aside, in the order of its first bucket.
func groupTopics(found aside) []asideTopic {
	var topics []asideTopic
	for _, m := range found.markers {
		if m.KeyID != "" {
			continue
		}
		i := slices.IndexFunc(topics, func(t asideTopic) bool { return t.Marker == m.Marker })
		if i < 0 {
			i, topics = len(topics), append(topics, asideTopic{Marker: m.Marker})
		}
		topics[i].buckets = append(topics[i].buckets, m.bucket)
	}
	return topics
}

func (c *parkedList) document(s *settings.Settings, keys []asideKey, topics []asideTopic, found aside) parkedDocument {
	d := parkedDocument{Table: s.Relay.Table, BucketCount: s.Relay.BucketCount,
		Keys: []parkedKeyDocument{}, Topics: []parkedTopicDocument{}, Unreadable: []string{}, Strays: []strayDocument{}}
	for _, k := range keys {
		d.Keys = append(d.Keys, parkedKeyDocument{KeyID: k.KeyID, Bucket: k.bucket, Topic: k.Topic, Reason: k.Reason, Attempts: k.Attempts,
			ParkedAt: rfc3339(k.ParkedAt.Time()), RetryAt: timeOrNull(k.RetryAt), Rows: k.rows, RowsIsLimit: k.more})
	}
	for _, t := range topics {
		d.Topics = append(d.Topics, parkedTopicDocument{Topic: t.Topic, Buckets: t.buckets, Reason: t.Reason,
			ParkedAt: rfc3339(t.ParkedAt.Time()), RetryAt: timeOrNull(t.RetryAt), Paused: describePauseOf(t.PausedUntil, t.PausedBy, t.Reason)})
	}
	for _, stray := range found.strays {
		d.Strays = append(d.Strays, strayDocument{stray.keyID, stray.bucket})
	}
	for _, fault := range found.unreadable {
		d.Unreadable = append(d.Unreadable, fault.Error())
	}
	return d
}

// Topics are cut only where there is no room for reasons either: retry and resume need
// them whole.
var (
	asideKeyColumns = []column{
		{title: "KEY ID"}, {title: "BUCKET", right: true}, {title: "ROWS", right: true}, {title: "ATTEMPTS", right: true},
		{title: "SINCE", right: true}, {title: "RETRY", right: true}, {title: "TOPIC", stiff: true}, {title: "REASON", elastic: true},
	}
	asideTopicColumns = []column{
		{title: "TOPIC", stiff: true}, {title: "BUCKETS", right: true}, {title: "SINCE", right: true}, {title: "RETRY", right: true},
		{title: "REASON", elastic: true},
	}
	strayColumns = []column{{title: "KEY ID"}, {title: "BUCKET", right: true}, {title: "TO DELIVER ITS ROWS"}}
)

func (c *parkedList) print(s *settings.Settings, keys []asideKey, topics []asideTopic, found aside, now store.Ticks) {
	if len(keys)+len(topics)+len(found.strays) == 0 {
		if len(found.unreadable) > 0 { // what is set aside under them, nobody knows
			return
		}
		c.app.printFolded(fmt.Sprintf("table %s: nothing is set aside", s.Relay.Table))
		return
	}
	if len(topics) > 0 {
		c.app.printFolded(fmt.Sprintf("table %s: topics that are set aside as a whole", s.Relay.Table))
		var lines [][]string
		for _, t := range topics {
			lines = append(lines, []string{legible(t.Topic), fmt.Sprintf("%d of %d", len(t.buckets), s.Relay.BucketCount),
				ageText(now.Sub(t.ParkedAt)), retryText(t.retrySince(now), now), topicReason(t.Marker, now)})
		}
		c.app.printTable(asideTopicColumns, lines)
	}
	if len(keys) > 0 {
		c.app.printFolded(fmt.Sprintf("table %s: keys that are set aside", s.Relay.Table))
		var lines [][]string
		for _, k := range keys {
			rows := strconv.Itoa(k.rows)
			if k.more {
				rows += "+"
			}
			lines = append(lines, []string{k.KeyID, strconv.Itoa(k.bucket), rows, strconv.Itoa(k.Attempts),
				ageText(now.Sub(k.ParkedAt)), retryText(k.RetryAt, now), legible(k.Topic), legible(k.Reason)})
		}
		c.app.printTable(asideKeyColumns, lines)
	}
	if len(found.strays) > 0 {
		c.app.printFolded(fmt.Sprintf("table %s: keys with rows but no marker: relays do not know of them, and newer rows pass", s.Relay.Table))
		var lines [][]string
		for _, stray := range found.strays {
			lines = append(lines, []string{stray.keyID, strconv.Itoa(stray.bucket), "relay parked retry " + stray.keyID})
		}
		c.app.printTable(strayColumns, lines)
	}
}

// retrySince is since when the topic is being delivered again: for it was asked for, or its
// pause is over; 0 when it is not.
func (t asideTopic) retrySince(now store.Ticks) store.Ticks {
	since, _ := retries{now: now}.underWay(t.Marker)
	return since
}

// topicReason is why a topic is set aside, for people.
func topicReason(m store.Marker, now store.Ticks) string {
	switch {
	case pauseIsOver(m, now):
		return "was paused " + pauseText(m.PausedUntil, m.PausedBy, m.Reason)
	case m.PausedUntil != 0:
		return "paused " + pauseText(m.PausedUntil, m.PausedBy, m.Reason)
	}
	return legible(m.Reason)
}

// retryText is for how long a retry has been asked for.
func retryText(at, now store.Ticks) string {
	if at == 0 {
		return "-"
	}
	return ageText(now.Sub(at))
}
