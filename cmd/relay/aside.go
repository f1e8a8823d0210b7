package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// asideMarker is a marker and the bucket that it was found in.
type asideMarker struct {
	bucket int
	store.Marker
}

// aside is what is set aside in all buckets.
type aside struct {
	markers    []asideMarker // ascending by bucket; topics before keys within each
	unreadable []error       // why further markers cannot be read, one each
	strays     []strayKey    // once they were looked for; ascending by bucket
}

// strayKey is a key with rows in a bucket that are set aside, and no marker.
type strayKey struct {
	bucket int
	keyID  string
}

// inBuckets runs a function for every bucket, several at once.
func inBuckets(ctx context.Context, s *settings.Settings, each func(ctx context.Context, bucket int) error) error {
	return eachBucket(ctx, s, s.Relay.BucketCount, each)
}

// eachBucket runs a function for so many buckets, several at once.
func eachBucket(ctx context.Context, s *settings.Settings, count int, each func(ctx context.Context, bucket int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.Relay.MaxConcurrency)
	for bucket := range count {
		group.Go(func() error { return each(ctx, bucket) })
	}
	return group.Wait()
}

// readAside reads the fleet, for its clock, and the markers of all buckets, for a command
// that may go on to change what it has found. The error is advised.
func (a *app) readAside(ctx context.Context, s *settings.Settings) (*store.Client, picture.Fleet, aside, error) {
	client, f, err := a.readFleet(ctx, s)
	if err != nil {
		return nil, f, aside{}, err
	}
	found, err := asideOf(ctx, client, s)
	return client, f, found, advised(err, s)
}

// asideOf reads the markers of all buckets.
func asideOf(ctx context.Context, client *store.Client, s *settings.Settings) (aside, error) {
	found := make([]aside, s.Relay.BucketCount)
	err := inBuckets(ctx, s, func(ctx context.Context, bucket int) (err error) {
		found[bucket], err = readMarkers(ctx, client, bucket)
		return err
	})
	var all aside
	for _, one := range found {
		all.add(one)
	}
	return all, err
}

// add takes in what is set aside of one more bucket.
func (a *aside) add(bucket aside) {
	a.markers = append(a.markers, bucket.markers...)
	a.unreadable = append(a.unreadable, bucket.unreadable...)
}

func readMarkers(ctx context.Context, client *store.Client, bucket int) (aside, error) {
	var found aside
	for r := (store.ReadMarkers{Bucket: bucket}); ; {
		reply := client.Do(ctx, r)
		if reply.Class != store.Done {
			return found, fmt.Errorf("read what is set aside of bucket %d: %w", bucket, reply.Err)
		}
		page := reply.Result.(store.MarkersPage)
		for _, m := range page.Markers {
			found.markers = append(found.markers, asideMarker{bucket, m})
		}
		found.unreadable = append(found.unreadable, page.Unreadable...)
		if r.After = page.Next; r.After == "" {
			return found, nil
		}
	}
}

// ofTopic are the markers of a topic as a whole.
func (a aside) ofTopic(topic string) []asideMarker {
	return slices.DeleteFunc(slices.Clone(a.markers), func(m asideMarker) bool { return m.KeyID != "" || m.Topic != topic })
}

// topicPause is one pause of a topic, in as many buckets as it has been asked for.
type topicPause struct {
	topic, text string
	buckets     []int // ascending
}

// pausedTopics are the topics whose pause is on, in the order of the first bucket of
// each. One that is being delivered again is paused no more.
func (a aside) pausedTopics(now store.Ticks) (found []topicPause) {
	type pause struct{ topic, text string }
	var alike sharing[pause]
	for _, m := range a.markers {
		if m.KeyID == "" && m.PausedUntil > now && m.RetryAt == 0 {
			alike.add(pause{m.Topic, pauseText(m.PausedUntil, m.PausedBy, m.Reason)}, m.bucket)
		}
	}
	for _, one := range alike.keys {
		found = append(found, topicPause{one.topic, one.text, alike.buckets[one]})
	}
	return found
}

// findStrays looks for rows without a marker: a read for each key that is set aside, and
// one for each bucket.
func (a *aside) findStrays(ctx context.Context, client *store.Client, s *settings.Settings) error {
	found := make([][]string, s.Relay.BucketCount)
	err := inBuckets(ctx, s, func(ctx context.Context, bucket int) (err error) {
		var markers []store.Marker
		for _, m := range a.markers {
			if m.bucket == bucket {
				markers = append(markers, m.Marker)
			}
		}
		found[bucket], err = picture.Strays(ctx, client, bucket, 0, markers)
		return err
	})
	for bucket, keyIDs := range found {
		for _, keyID := range keyIDs {
			a.strays = append(a.strays, strayKey{bucket, keyID})
		}
	}
	return err
}

// unreadableFault says at the end of a command that some markers were passed over.
func (a aside) unreadableFault() error {
	if len(a.unreadable) == 0 {
		return nil
	}
	return fmt.Errorf("%s cannot be read, the first: %w", counted(len(a.unreadable), "marker"), a.unreadable[0])
}

// asideRow is a row that is set aside, readable or not.
type asideRow struct {
	sequence int64
	row      outbox.Row // if it can be read
	fault    error      // why it cannot; nil when it can
}

// readAsideRows reads the rows of a key from after a number on, at most limit. More
// tells that there are others behind them.
func readAsideRows(ctx context.Context, client *store.Client, bucket int, keyID string, after int64, limit int) (rows []asideRow, more bool, err error) {
	for {
		// One row beyond the limit tells whether there are more.
		reply := client.Do(ctx, store.FetchParked{Bucket: bucket, KeyID: keyID, After: after, Limit: limit + 1 - len(rows)})
		if reply.Class != store.Done {
			return rows, false, fmt.Errorf("read the rows of key %s in bucket %d: %w", keyID, bucket, reply.Err)
		}
		page := reply.Result.(store.Fetched)
		for _, row := range page.Rows {
			rows, after = append(rows, asideRow{sequence: row.Sequence, row: row}), row.Sequence
		}
		if page.Malformed != nil {
			if after, err = sequenceOfFault(page.Malformed); err != nil {
				return rows, false, err
			}
			rows = append(rows, asideRow{sequence: after, fault: page.Malformed})
		}
		if len(rows) > limit {
			return rows[:limit], true, nil
		}
		if page.Malformed == nil && (!page.More || len(page.Rows) == 0) {
			return rows, false, nil
		}
	}
}

// sequenceOfFault is the number of a row that is set aside and cannot be read. What
// stands among such rows and has no number is the error itself.
func sequenceOfFault(fault error) (int64, error) {
	var item *outbox.ItemError
	if !errors.As(fault, &item) {
		return 0, fault
	}
	_, sequence, err := outbox.ParseParkedRow(item.SortKey)
	if err != nil {
		return 0, fault
	}
	return sequence, nil
}

// client makes the client of a command that reads and changes what is in the table.
func (a *app) client(ctx context.Context, s *settings.Settings) (*store.Client, error) {
	dynamo, err := a.reach(ctx, s)
	if err != nil {
		return nil, err
	}
	return store.NewClient(s.Schema(), dynamo.messages, dynamo.coordination), nil
}

// checkBucket refuses a bucket that the outbox does not have.
func checkBucket(s *settings.Settings, bucket int) error {
	if bucket >= s.Relay.BucketCount {
		return usageErrorf("--bucket %d: the outbox has the buckets 0 to %d (bucket-count %d)",
			bucket, s.Relay.BucketCount-1, s.Relay.BucketCount)
	}
	return nil
}
