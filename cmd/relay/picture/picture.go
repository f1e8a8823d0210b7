package picture

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bucketbrigade/relay/store"
)

// Table is a picture of a table at an instant. It is a value: nothing changes it once
// it is taken.
type Table struct {
	Fleet
	Buckets []Bucket // each at its number
	Cost    Cost
	// Patience is for how long it is usual that a message waits: a lease's duration,
	// within which a bucket finds its next owner whatever happens to the last one.
	Patience time.Duration
}

// Bucket is what a bucket holds.
type Bucket struct {
	Lease Lease
	// Head is the first message that waits.
	Head store.HeadRead
	// HeadFault is why relays cannot read the first message, and so stop there; nil
	// when they can. It is looked for only once the message has waited for long.
	HeadFault error
	// Oldest is how long the first message has waited; 0 when there is none, and when
	// its time cannot be read.
	Oldest         time.Duration
	Pending        int
	PendingIsLimit bool // more may wait
	// Markers are what is set aside, topics first.
	Markers []store.Marker
	// UnreadableMarkers are why further markers cannot be read, one each.
	UnreadableMarkers []error
	ParkedRows        int
	ParkedIsLimit     bool // more keys or rows may be set aside
	// Strays are the ids of keys that have rows set aside and no marker (Strays); of a
	// bucket with many keys set aside only the first are looked at.
	Strays []string
	// Fault is why some of this is not known; nil when all of it is.
	Fault error
}

// Parked is how many keys, and how many topics as a whole, are set aside in the bucket.
func (b Bucket) Parked() (keys, topics int) {
	for _, m := range b.Markers {
		if m.KeyID == "" {
			topics++
		} else {
			keys++
		}
	}
	return keys, topics
}

// Totals is the sum of all buckets.
type Totals struct {
	Pending        int
	PendingIsLimit bool // more may wait
	Oldest         time.Duration
	ParkedKeys     int
	ParkedRows     int
	ParkedIsLimit  bool // more keys or rows may be set aside
}

// Totals adds up the buckets. What is not known of one counts as nothing, and as a
// limit that was met.
func (t Table) Totals() Totals {
	var sum Totals
	for _, b := range t.Buckets {
		keys, _ := b.Parked()
		sum.Pending += b.Pending
		sum.PendingIsLimit = sum.PendingIsLimit || b.PendingIsLimit || b.Fault != nil
		sum.Oldest = max(sum.Oldest, b.Oldest)
		sum.ParkedKeys += keys
		sum.ParkedRows += b.ParkedRows
		sum.ParkedIsLimit = sum.ParkedIsLimit || b.ParkedIsLimit || b.Fault != nil
	}
	return sum
}

// Fault is why some bucket could not be read, of the first that was tried; nil when all
// of them could.
func (t Table) Fault() error {
	for _, b := range t.Buckets {
		if b.Fault != nil && !errors.Is(b.Fault, ErrGivenUp) {
			return b.Fault
		}
	}
	return nil
}

// ErrGivenUp is the fault of buckets that were not looked at, since too many others
// could not be read: a table that throttles, or is gone, is not asked ten thousand
// times more.
var ErrGivenUp = errors.New("not read, since others could not be read")

// faultsAtMost is after how many faults the rest is given up, beyond those under way. A
// bucket that was given no answer in time is as good as that many: each further one would
// take as long again.
const faultsAtMost = 8

// Take reads the fleet, and then of each bucket, several at once: the first message;
// how many wait, where one does; what is set aside, and how many rows, where something
// is; and the first message as a whole, where it has waited for longer than is usual.
// An idle bucket takes two small reads.
//
// An error means that there is no picture, and wraps a sentinel of package store. A
// bucket that could not be read has its Fault, and the picture has the others.
func Take(ctx context.Context, table Asker, o Options) (Table, error) {
	m := &meter{table: table, spent: map[string]Spent{}}
	fleet, err := ReadFleet(ctx, m, o)
	if err != nil {
		return Table{}, err
	}
	t := Table{Fleet: fleet, Buckets: make([]Bucket, o.BucketCount), Patience: o.LeaseDuration}
	var faults atomic.Int64
	var group errgroup.Group
	group.SetLimit(o.Concurrency)
	for i := range t.Buckets {
		group.Go(func() error {
			b := &t.Buckets[i]
			b.Lease = fleet.Leases[i]
			if faults.Load() >= faultsAtMost {
				b.Fault = ErrGivenUp
				return nil
			}
			switch b.Fault = (look{table: m, options: o, at: fleet.At, bucket: i}).into(ctx, b); {
			case errors.Is(b.Fault, context.DeadlineExceeded):
				faults.Store(faultsAtMost) // it has taken long already
			case b.Fault != nil:
				faults.Add(1)
			}
			return nil
		})
	}
	_ = group.Wait() // each bucket has its own fault
	t.Cost = m.cost()
	return t, ctx.Err()
}

// look is the look at one bucket.
type look struct {
	table   Asker
	options Options
	at      time.Time
	bucket  int
}

// into fills in what there is to see, the most telling first, up to the first fault.
func (l look) into(ctx context.Context, b *Bucket) error {
	head, err := Ask[store.HeadRead](ctx, l.table, store.ReadHead{Bucket: l.bucket})
	if err != nil {
		return err
	}
	if b.Head = head; head.Created > 0 {
		b.Oldest = max(0, l.at.Sub(head.Created.Time()))
	}
	if head.Waiting { // there is one at least, whatever comes of the rest
		b.Pending, b.PendingIsLimit = 1, true
	}
	if err := l.markers(ctx, b); err != nil {
		return err
	}
	if !head.Waiting {
		return nil
	}
	waiting, more, err := l.count(ctx, store.Pending)
	b.Pending, b.PendingIsLimit = max(waiting, 1), more
	if err != nil || (head.Created > 0 && b.Oldest <= l.options.LeaseDuration) {
		return err
	}
	first, err := Ask[store.Fetched](ctx, l.table, store.Fetch{Bucket: l.bucket, Limit: 1})
	b.HeadFault = first.Malformed
	return err
}

// strayKeys is how many keys of a bucket are looked at for one without a marker, since
// each takes a read.
const strayKeys = 20

// markers reads what is set aside, up to the limit, and counts its rows. That nothing is
// takes one small read.
func (l look) markers(ctx context.Context, b *Bucket) error {
	any, err := Ask[store.ItemsCounted](ctx, l.table, store.Count{Bucket: l.bucket, Of: store.Parked, Limit: 1})
	if err != nil || any.Items == 0 {
		return err
	}
	for r := (store.ReadMarkers{Bucket: l.bucket}); ; {
		page, err := Ask[store.MarkersPage](ctx, l.table, r)
		if err != nil {
			return err
		}
		b.Markers = append(b.Markers, page.Markers...)
		b.UnreadableMarkers = append(b.UnreadableMarkers, page.Unreadable...)
		if r.After = page.Next; r.After == "" {
			break
		}
		if b.ParkedIsLimit = len(b.Markers) >= l.options.CountLimit; b.ParkedIsLimit {
			break
		}
	}
	rows, more, err := l.count(ctx, store.ParkedRows)
	limited := b.ParkedIsLimit // not all markers are known
	if b.ParkedRows, b.ParkedIsLimit = rows, more || limited; err != nil || rows == 0 || limited {
		return err
	}
	b.Strays, err = Strays(ctx, l.table, l.bucket, strayKeys, b.Markers)
	return err
}

// count counts a part of the bucket, up to the limit. More tells that it did not come
// to the end.
func (l look) count(ctx context.Context, of store.Part) (items int, more bool, err error) {
	for r := (store.Count{Bucket: l.bucket, Of: of}); ; {
		r.Limit = l.options.CountLimit - items
		page, err := Ask[store.ItemsCounted](ctx, l.table, r)
		if err != nil {
			return items, true, err
		}
		items += page.Items
		switch r.After = page.Next; {
		case r.After == "":
			return items, false, nil
		case items >= l.options.CountLimit:
			return items, true, nil
		}
	}
}

// Ask sends a read and returns its result.
func Ask[T any](ctx context.Context, table Asker, r store.Request) (T, error) {
	reply := table.Do(ctx, r)
	result, _ := reply.Result.(T)
	if reply.Class != store.Done {
		return result, fmt.Errorf("bucket %d: %w", r.ConcernsBucket(), reply.Err)
	}
	return result, nil
}
