package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// bucketsBeyondAtMost is how many buckets are looked at beyond the bucket count.
const bucketsBeyondAtMost = 64

// sampledRows is how many rows of a bucket are looked at, the first ones: those that a
// relay comes to next. A page of 1 MB may have fewer.
const sampledRows = 100

// outboxChecks are about what waits, what is set aside, and the counters.
type outboxChecks struct {
	app       *app
	client    *store.Client
	settings  *settings.Settings
	sequences sequences

	buckets []bucketSeen // by number
	beyond  []int        // buckets from the bucket count on that have rows, ascending
	fault   error        // why some bucket could not be read
	uses    map[string]*topicUse
	now     store.Ticks // when all was read
	pauses  []pauseOfBuckets
}

// bucketSeen is what was found in one bucket.
type bucketSeen struct {
	rows      int                 // that were looked at
	more      bool                // there are others behind them
	oldest    store.Ticks         // the first row's creation; 0: none waits
	stamps    map[int]int64       // other bucket counts on rows, each with a row's number
	malformed error               // why a row blocks the bucket
	uses      map[string]topicUse // what the rows need of their topics
	aside     aside
	strays    []string // key ids with rows set aside, and no marker
	standing  standing
}

// topicUse is what rows need of their topic.
type topicUse struct {
	topic     string
	rows      int
	oldest    store.Ticks
	largest   int   // bytes, alone in a request
	partition int32 // the highest that a row names; -1: none does
	keyless   int
	// The row that is the largest, and where it is.
	bucket   int
	sequence int64
}

// with takes another use of the same topic in; that of no rows is any topic's.
func (u topicUse) with(other topicUse) topicUse {
	if u.rows == 0 {
		return other
	}
	merged := u
	if other.largest > u.largest {
		merged = other
	}
	merged.rows, merged.keyless = u.rows+other.rows, u.keyless+other.keyless
	merged.oldest, merged.partition = min(u.oldest, other.oldest), max(u.partition, other.partition)
	return merged
}

func (o *outboxChecks) gather(ctx context.Context) {
	o.buckets = make([]bucketSeen, o.settings.Relay.BucketCount)
	var merging sync.Mutex
	o.uses = map[string]*topicUse{}
	o.fault = inBuckets(ctx, o.settings, func(ctx context.Context, bucket int) error {
		seen, err := o.look(ctx, bucket)
		if err != nil {
			return err
		}
		o.buckets[bucket] = seen
		merging.Lock()
		defer merging.Unlock()
		for topic, use := range seen.uses {
			if o.uses[topic] == nil {
				o.uses[topic] = &topicUse{}
			}
			*o.uses[topic] = o.uses[topic].with(use)
		}
		return nil
	})
	o.now = store.Ticks(outbox.Ticks(o.app.now()))
	if o.fault == nil {
		o.beyond, o.fault = o.lookBeyond(ctx)
	}
}

// lookBeyond looks for rows in buckets that these settings do not have, up to twice as
// many, where a writer with another bucket count puts them. No relay comes to them.
func (o *outboxChecks) lookBeyond(ctx context.Context) ([]int, error) {
	count := o.settings.Relay.BucketCount
	waiting := make([]bool, min(count, bucketsBeyondAtMost))
	err := eachBucket(ctx, o.settings, len(waiting), func(ctx context.Context, i int) error {
		head, err := picture.Ask[store.HeadRead](ctx, o.client, store.ReadHead{Bucket: count + i})
		waiting[i] = head.Waiting
		return err
	})
	var beyond []int
	for i, is := range waiting {
		if is {
			beyond = append(beyond, count+i)
		}
	}
	return beyond, err
}

func (o *outboxChecks) look(ctx context.Context, bucket int) (seen bucketSeen, err error) {
	page, err := picture.Ask[store.Fetched](ctx, o.client, store.Fetch{Bucket: bucket, Limit: sampledRows})
	if err != nil {
		return seen, err
	}
	o.digest(&seen, bucket, page)
	if seen.aside, err = readMarkers(ctx, o.client, bucket); err != nil {
		return seen, err
	}
	var markers []store.Marker
	for _, m := range seen.aside.markers {
		markers = append(markers, m.Marker)
	}
	if seen.strays, err = picture.Strays(ctx, o.client, bucket, 0, markers); err != nil {
		return seen, err
	}
	seen.standing, err = o.sequences.read(ctx, bucket)
	return seen, err
}

// digest takes from rows what checks need, so that their content need not be kept.
func (o *outboxChecks) digest(seen *bucketSeen, bucket int, page store.Fetched) {
	seen.rows, seen.more, seen.malformed = len(page.Rows), page.More, page.Malformed
	seen.stamps, seen.uses = map[int]int64{}, map[string]topicUse{}
	c := o.settings.Relay
	sizes := publisher.Config{MessageIDHeader: c.MessageIDHeader, PositionHeaders: c.PositionHeaders}
	for i := range page.Rows {
		row := &page.Rows[i]
		created := store.Ticks(outbox.Ticks(row.Message.CreatedAt))
		if seen.oldest == 0 || created < seen.oldest {
			seen.oldest = created
		}
		if row.BucketCount != 0 && row.BucketCount != c.BucketCount {
			seen.stamps[row.BucketCount] = row.Sequence
		}
		use := topicUse{topic: row.Message.Topic, rows: 1, oldest: created, largest: sizes.RequestBytes(bucket, row),
			partition: -1, bucket: bucket, sequence: row.Sequence}
		if row.Message.Partition != nil {
			use.partition = *row.Message.Partition
		}
		if row.Message.Key == nil {
			use.keyless = 1
		}
		seen.uses[use.topic] = seen.uses[use.topic].with(use)
	}
}

// setAside is how many keys and topics are, as far as is known.
func (o *outboxChecks) setAside() int {
	n := 0
	for _, b := range o.buckets {
		n += len(b.aside.markers)
	}
	return n
}

// pausedTopics are the topics whose pause is on.
func (o *outboxChecks) pausedTopics(now store.Ticks) []topicPause {
	return o.aside().pausedTopics(now)
}

// ofTopic are the markers of a topic as a whole.
func (o *outboxChecks) ofTopic(topic string) []asideMarker { return o.aside().ofTopic(topic) }

// aside is what is set aside in all buckets.
func (o *outboxChecks) aside() (all aside) {
	for _, b := range o.buckets {
		all.add(b.aside)
	}
	return all
}

// topics are what waiting rows need, by the topics' names.
func (o *outboxChecks) topics() []topicUse {
	var uses []topicUse
	for _, topic := range slices.Sorted(maps.Keys(o.uses)) {
		uses = append(uses, *o.uses[topic])
	}
	return uses
}

func (o *outboxChecks) judge() []checkDocument {
	if o.fault != nil {
		return notLooked(bucketsCounted(o.settings), o.fault, checkBucketCount, checkRows, checkBacklog, checkParked, checkSequence)
	}
	found := append(o.stamps(), o.rows()...)
	if len(o.beyond) > 0 {
		found = append(found, failed(checkBucketCount, bucketsText(o.beyond),
			fmt.Sprintf("messages wait there, and the settings here have %s: some writer has another bucket-count", bucketsCounted(o.settings)),
			"no relay with these settings ever delivers them: give all writers and relays the same bucket-count; what waits there can be read with --bucket-count, relay message list, and be enqueued anew"))
	}
	found = append(found, o.backlog()...)
	found = append(found, o.parked()...)
	return append(found, o.counters()...)
}

// numbered are the buckets that something holds for.
func (o *outboxChecks) numbered(holds func(bucketSeen) bool) []int {
	var which []int
	for bucket, seen := range o.buckets {
		if holds(seen) {
			which = append(which, bucket)
		}
	}
	return which
}

// stamps: a row with another bucket count may be in the wrong bucket, so that nobody
// knows the order of its key. Relays stop at it.
func (o *outboxChecks) stamps() []checkDocument {
	rows := 0
	counts := map[int]bool{}
	for _, seen := range o.buckets {
		rows += seen.rows
		for count := range seen.stamps {
			counts[count] = true
		}
	}
	if len(counts) == 0 {
		return []checkDocument{passed(checkBucketCount, counted(rows, "waiting row"), fmt.Sprintf("none is stamped with another bucket count than %d", o.settings.Relay.BucketCount))}
	}
	var found []checkDocument
	for _, count := range slices.Sorted(maps.Keys(counts)) {
		buckets := o.numbered(func(seen bucketSeen) bool { return seen.stamps[count] != 0 })
		found = append(found, failed(checkBucketCount, bucketsText(buckets),
			fmt.Sprintf("rows were written with bucket count %d, the settings here say %d; one is row %d of bucket %d",
				count, o.settings.Relay.BucketCount, o.buckets[buckets[0]].stamps[count], buckets[0]),
			"relays stop with exit code 3 at such a row: give all writers and relays the bucket count that the table was begun with; it can be changed only while the outbox is empty; relay message park of that row says how to get past it if its writer was wrong"))
	}
	return found
}

func (o *outboxChecks) rows() []checkDocument {
	all := o.numbered(func(bucketSeen) bool { return true })
	return eachOf(checkRows, "bucket", "each of the first rows can be read", all, func(bucket int) *checkDocument {
		seen := o.buckets[bucket]
		fault := cmp.Or(seen.malformed, seen.standing.odd)
		if fault == nil {
			return nil
		}
		advice := "repair the item; its bucket goes on by itself"
		var item *outbox.ItemError
		if errors.As(fault, &item) {
			if sequence, err := outbox.ParseSequence(item.SortKey); err != nil {
				advice = "no writer of ours puts such an item, and a sort key cannot be repaired: keep its attributes, delete it, and enqueue the message anew: relay message enqueue"
			} else {
				advice = fmt.Sprintf("repair the item, or set it aside: relay message park --bucket %d --sequence %d", bucket, sequence)
			}
		}
		document := failed(checkRows, bucketsText([]int{bucket}), "a row that cannot be read blocks it: "+fault.Error(), advice)
		return &document
	})
}

func (o *outboxChecks) parked() []checkDocument {
	all := o.aside()
	markers, unreadable := all.markers, all.unreadable
	var found []checkDocument
	if len(unreadable) > 0 {
		found = append(found, failed(checkParked, counted(len(unreadable), "marker"), "cannot be read, the first: "+unreadable[0].Error(),
			"repair the item, and do not delete it: as long as it cannot be read, nobody knows what is set aside"))
	}
	found = append(found, o.strays()...)
	if len(markers) == 0 && len(found) > 0 {
		return found
	}
	if len(markers) == 0 {
		return append(found, passed(checkParked, bucketsCounted(o.settings), "nothing is set aside"))
	}
	keys, topics, paused, oldest := 0, map[string]bool{}, true, markers[0]
	for _, m := range markers {
		if m.KeyID != "" {
			keys++
		} else {
			topics[m.Topic] = true
		}
		paused = paused && m.KeyID == "" && m.PausedUntil > o.now && m.RetryAt == 0
		if m.ParkedAt < oldest.ParkedAt {
			oldest = m
		}
	}
	said := fmt.Sprintf("set aside, the first for %s: %s", ageText(o.now.Sub(oldest.ParkedAt)), cmp.Or(legible(oldest.Reason), "no reason given"))
	advice := "their messages wait for a person: relay parked list; when the reason is gone, relay parked retry"
	if paused {
		advice = fmt.Sprintf("nothing here: each is paused, see %s", checkPauses)
	} else if again := o.retried(); again == len(markers) {
		said += "; all are being delivered again"
		advice = "nothing, unless that goes on for long: see the relays' logs for retry.rejected and publish.failed"
	} else if again > 0 {
		said += fmt.Sprintf("; %d being delivered again", again)
	}
	return append(found, warned(checkParked, asideCounted(keys, len(topics)), said, advice))
}

// asideCounted is how many keys and topics are set aside, of which there are some.
func asideCounted(keys, topics int) string {
	switch {
	case topics == 0:
		return counted(keys, "key")
	case keys == 0:
		return counted(topics, "topic")
	default:
		return counted(keys, "key") + " and " + counted(topics, "topic")
	}
}

// retried is how many markers stand for something that is being delivered again.
func (o *outboxChecks) retried() (n int) {
	for bucket, seen := range o.buckets {
		known := seen.aside.ofBucket(bucket, o.now)
		for _, m := range known.markers {
			if since, _ := known.underWay(m.Marker); since != 0 {
				n++
			}
		}
	}
	return n
}

// strays are rows set aside that no relay knows of.
func (o *outboxChecks) strays() (found []checkDocument) {
	for bucket, seen := range o.buckets {
		if len(seen.strays) > 0 {
			found = append(found, failed(checkParked, bucketsText([]int{bucket}),
				fmt.Sprintf("rows of %s are set aside without a marker, the first: %s; relays do not know of them, and newer rows of the key pass",
					counted(len(seen.strays), "key"), seen.strays[0]),
				"have them delivered: relay parked retry "+listedKeys(seen.strays)))
		}
	}
	return found
}

func (o *outboxChecks) counters() []checkDocument {
	all := o.numbered(func(bucketSeen) bool { return true })
	return eachOf(checkSequence, "bucket", "each counter is at or beyond its rows", all, func(bucket int) *checkDocument {
		if document := o.sequences.judge(o.buckets[bucket].standing); document.Status != statusOK {
			return &document
		}
		return nil
	})
}
