package relay

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/store"
)

const (
	// sampleTimeout is after which one sample of the backlog sends nothing more.
	sampleTimeout = 5 * time.Second
	// sampleRequests is how many of its requests are under way at once: few enough
	// that messages do not notice.
	sampleRequests = 8
	// samplingBucket is the one whose owner samples, so that the cost does not grow
	// with the number of relays.
	samplingBucket = 0
)

// errSampleTime: the time of a sample is over.
var errSampleTime = fmt.Errorf("sample of the backlog: not done within %v", sampleTimeout)

// sampler measures what waits in all buckets, while the relay owns bucket 0. It is
// no actor: nothing depends on what it finds, and it must delay nobody. As an
// observer it learns of bucket 0.
type sampler struct {
	cfg     Config
	runtime *live // set when it runs
	samples atomic.Bool
	changed chan struct{}  // holds at most one token: samples has changed
	last    []bucketSample // the sample before, by bucket; only for run
}

func newSampler(cfg Config) *sampler {
	return &sampler{cfg: cfg, changed: make(chan struct{}, 1), last: make([]bucketSample, cfg.BucketCount)}
}

// Observe implements event.Observer.
func (s *sampler) Observe(e event.Envelope) {
	changed, ok := e.Event.(event.StateChanged)
	if !ok || changed.Bucket != samplingBucket || changed.Machine != "bucket" {
		return
	}
	holds := slices.Contains([]fsm.State{fsm.Owned, fsm.Blocked, fsm.Paused}, fsm.State(changed.To))
	if s.samples.Swap(holds) != holds {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

// run samples at once when bucket 0 becomes ours, then every MetricsInterval, until
// ctx ends.
func (s *sampler) run(ctx context.Context, runtime *live) {
	s.runtime = runtime
	ticker := time.NewTicker(s.cfg.MetricsInterval)
	defer ticker.Stop()
	known := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
			ticker.Reset(s.cfg.MetricsInterval)
		case <-ticker.C:
		}
		var sampled event.BacklogSampled
		var err error
		if s.samples.Load() {
			sampled, err = s.sample(ctx)
		}
		switch samples := s.samples.Load(); {
		case ctx.Err() != nil:
			return
		case samples && err != nil:
			s.runtime.Emit(event.BacklogUnknown{Err: err})
		case samples && sampled.Pending != nil: // else it is ours since a moment, and changed says so
			s.runtime.Emit(sampled)
		case !samples && known:
			s.runtime.Emit(event.BacklogUnknown{})
		}
		known = s.samples.Load() && err == nil
	}
}

// bucketSample is what was found of one bucket.
type bucketSample struct {
	head                store.HeadRead
	pending, keys, rows tally
}

// tally is a count of items.
type tally struct {
	items int
	ended bool // counted to the end, or to the limit
	more  bool // there may be more than were counted
}

// or is the count, or what stands in for it where it did not come to its end.
func (t tally) or(last tally) tally {
	if !t.ended {
		t.items = max(t.items, last.items)
	}
	return t
}

// sample reads the head of each bucket first, which is cheap and tells the age, and
// counts only where something waits. Where the count did not come to its end, since
// the time is over or the table has failed, the one before stands in for it: the
// age is known then, when it is needed most.
func (s *sampler) sample(ctx context.Context) (event.BacklogSampled, error) {
	began := s.runtime.Now()
	until := began.Add(min(sampleTimeout, s.cfg.MetricsInterval))
	ask := func(r store.Request) (any, error) {
		if s.runtime.Now().Until(until) <= 0 {
			return nil, errSampleTime
		}
		reply := s.runtime.roundTrip(r).Reply
		return reply.Result, reply.Err
	}
	buckets := make([]bucketSample, s.cfg.BucketCount)
	err := s.each(ctx, func(b int) error {
		result, err := ask(store.ReadHead{Bucket: b})
		if err == nil {
			buckets[b].head = result.(store.HeadRead)
		}
		return err
	})
	if err != nil {
		return event.BacklogSampled{}, err
	}
	_ = s.each(ctx, func(b int) error { return s.count(b, &buckets[b], ask) })
	now := s.runtime.Now()
	sampled := s.summed(buckets, now.Time())
	sampled.Took = now.Mono - began.Mono
	s.last = buckets
	return sampled, nil
}

// count counts what waits in one bucket and what is set aside. Rows without their key's
// marker, which somebody has deleted, are not looked for: that would cost a read of every
// bucket.
func (s *sampler) count(b int, into *bucketSample, ask asking) (err error) {
	if into.head.Waiting {
		if into.pending, err = s.pages(store.Count{Bucket: b, Of: store.Pending}, ask); err != nil {
			return err
		}
	}
	if into.keys, err = s.pages(store.Count{Bucket: b, Of: store.ParkedKeys}, ask); err != nil {
		return err
	}
	if into.keys.items == 0 {
		into.rows.ended = true
		return nil
	}
	into.rows, err = s.pages(store.Count{Bucket: b, Of: store.ParkedRows}, ask)
	return err
}

// asking is one round trip, unless the sample's time is over.
type asking func(store.Request) (any, error)

// pages counts page by page, up to PendingCountLimit.
func (s *sampler) pages(r store.Count, ask asking) (tally, error) {
	var t tally
	for {
		r.Limit = s.cfg.PendingCountLimit - t.items
		result, err := ask(r)
		if err != nil {
			return t, err
		}
		page := result.(store.ItemsCounted)
		t.items += page.Items
		if page.Next == "" || t.items >= s.cfg.PendingCountLimit {
			t.ended, t.more = true, page.Next != ""
			return t, nil
		}
		r.After = page.Next
	}
}

// each does something for all buckets, a few at a time, until one fails.
func (s *sampler) each(ctx context.Context, do func(bucket int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var workers sync.WaitGroup
	for range min(sampleRequests, s.cfg.BucketCount) {
		workers.Go(func() {
			for ctx.Err() == nil && failed.Load() == nil {
				b := int(next.Add(1)) - 1
				if b >= s.cfg.BucketCount {
					return
				}
				if err := do(b); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	workers.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// summed adds the buckets up, each with what stands in for what was not counted.
func (s *sampler) summed(buckets []bucketSample, now time.Time) event.BacklogSampled {
	sampled := event.BacklogSampled{Pending: make([]int, len(buckets))}
	for b := range buckets {
		bucket := &buckets[b]
		bucket.pending = bucket.pending.or(s.last[b].pending)
		bucket.keys, bucket.rows = bucket.keys.or(s.last[b].keys), bucket.rows.or(s.last[b].rows)
		if bucket.head.Waiting {
			bucket.pending.items = max(bucket.pending.items, 1) // it was there a moment ago
			if !bucket.pending.ended || bucket.pending.more {
				sampled.Limited++
			}
		} else {
			bucket.pending = tally{ended: true}
		}
		sampled.Pending[b] = bucket.pending.items
		sampled.Messages += bucket.pending.items
		if bucket.head.Created > 0 {
			sampled.Oldest = max(sampled.Oldest, now.Sub(bucket.head.Created.Time()))
		}
		sampled.ParkedKeys += bucket.keys.items
		sampled.ParkedRows += bucket.rows.items
	}
	return sampled
}
