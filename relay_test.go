package relay_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	relay "github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// What a writer has committed arrives, in order per key, each message once and
// with its id as the last header; then the table is empty. Cancelling drains, and
// hands everything back.
func TestRunDelivers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		cfg := config(db, b)
		cfg.RelayID = "A"
		var keys []string
		for i := range 200 {
			keys = append(keys, fmt.Sprint("key-", i%20))
		}
		messages := enqueue(t, db, nil, keys...)
		r := run(t, cfg)
		records := b.take(t, len(messages))

		byKey := map[string][]string{}
		for i, id := range ids(records) {
			byKey[string(records[i].Key)] = append(byKey[string(records[i].Key)], id)
		}
		want := map[string][]string{}
		for _, m := range messages {
			want[string(m.Key)] = append(want[string(m.Key)], m.ID.String())
		}
		for key := range want {
			if !slices.Equal(byKey[key], want[key]) {
				t.Errorf("%s: delivered %v, committed %v", key, byKey[key], want[key])
			}
		}
		r.stop()
		if left := scan(db).rows; left != 0 || len(b.appended) != 0 {
			t.Errorf("%d rows are left, %d records came twice", left, len(b.appended))
		}
		wantHandedBack(t, db, "A")
	})
}

// The same in real time: nothing is left running.
func TestRunLeavesNothingRunning(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	db, b := newTable(t), newBroker()
	r := run(t, config(db, b))
	enqueue(t, db, nil, "a", "b", "c")
	b.take(t, 3)
	r.stop()
}

// A fenced relay publishes each bucket through a producer of its own, whose id names
// the table, and its record says its mode.
func TestFencedMode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		cfg := config(db, b)
		cfg.Mode, cfg.Region, cfg.RelayID = relay.ModeFenced, "eu-central-1", "A"
		r := run(t, cfg)
		enqueue(t, db, nil, "a", "b", "c")
		b.take(t, 3)
		synctest.Wait()
		if mode := r.Status().Mode; mode != relay.ModeFenced {
			t.Errorf("the status says %q", mode)
		}
		r.stop()
		if said := scan(db).mode; said != "fenced" {
			t.Errorf("the relay's record says %q", said)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.ids) != schema.BucketCount || !slices.Contains(b.ids, "outbox-eu-central-1-orders-OUTBOX-7") {
			t.Errorf("transactional ids %v, want one for each bucket", b.ids)
		}
		if left := scan(db).rows; left > 0 {
			t.Errorf("%d rows are left in the table", left)
		}
	})
}

// A relay runs once; the error says so, and the running one is not disturbed.
func TestRunTwice(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		r := run(t, config(db, b))
		synctest.Wait()
		if err := r.Run(t.Context()); err != relay.ErrStarted {
			t.Errorf("a second Run: got %v", err)
		}
		enqueue(t, db, nil, "k")
		b.take(t, 1)
		r.stop()
		if err := r.Run(t.Context()); err != relay.ErrStarted {
			t.Errorf("a Run after the end: got %v", err)
		}
	})
}

// A context that is cancelled at once: Run ends, and owns nothing.
func TestRunCancelledAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newTable(t)
		r := run(t, config(db, newBroker()))
		r.stop()
		if owners := scan(db).owners; len(owners) != 0 {
			t.Errorf("left behind: leases of %v", owners)
		}
	})
}

// Notify has a bucket looked at now, not at the next poll. Without it, the poll
// finds the message.
func TestNotify(t *testing.T) {
	for name, notified := range map[string]bool{"notified": true, "polled": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				db, b := newTable(t), newBroker()
				cfg := config(db, b)
				cfg.PollInterval = time.Hour
				claimed, observer := observed[event.BucketClaimed]()
				cfg.Observers = []event.Observer{observer}
				r := run(t, cfg)
				for range schema.BucketCount {
					receive(t, claimed)
				}
				synctest.Wait() // each has looked once, and found nothing

				var notify func(...int)
				if notified {
					notify = r.Notify
				}
				began := time.Now()
				enqueue(t, db, notify, "k")
				b.take(t, 1)
				waited := time.Since(began)
				if notified && waited > 0 || !notified && (waited < 29*time.Minute || waited > time.Hour) {
					t.Errorf("delivered after %v", waited)
				}
				r.stop()
			})
		})
	}
}

// Notify never blocks and never fails: before Run, after it, and for buckets that
// do not exist.
func TestNotifyAnytime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, err := relay.New(config(newTable(t), newBroker()))
		if err != nil {
			t.Fatal(err)
		}
		r.Notify(0)
		x := run(t, config(newTable(t), newBroker()))
		synctest.Wait()
		x.Notify(-1, 8, 1<<40)
		x.Notify()
		x.stop()
		x.Notify(1)
	})
}

// Status follows the relay's life, with its owned buckets, ascending.
func TestStatus(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		cfg := config(db, b)
		cfg.RelayID = "A"
		ready, observer := observed[event.RelayReady]()
		removed, removals := observed[event.BatchRemoved]()
		cfg.Observers = []event.Observer{observer, removals}
		r, err := relay.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if s := r.Status(); s.State != "new" || s.Ready() || s.Incarnation != "" || !s.Since.IsZero() || len(s.Buckets) != 0 {
			t.Errorf("before Run: %+v", s)
		}

		x := run(t, cfg)
		receive(t, ready)
		synctest.Wait()
		enqueue(t, db, x.Notify, "k")
		b.take(t, 1)
		bucket := receive(t, removed).Bucket
		synctest.Wait()
		s := x.Status()
		if s.Relay != "A" || s.State != "ready" || !s.Ready() || s.Incarnation == "" || s.Mode != relay.ModeOrdered {
			t.Errorf("while it runs: %+v", s)
		}
		if len(s.Buckets) != schema.BucketCount {
			t.Fatalf("owns %+v", s.Buckets)
		}
		if f := s.Fleet; f == nil || len(f.Relays) != 1 || f.Relays[0].Relay != "A" || !f.Relays[0].Active || len(f.Leases) != schema.BucketCount {
			t.Errorf("the fleet is %+v", f)
		}
		for i, status := range s.Buckets {
			sequence := map[bool]int64{true: 1}[i == bucket]
			if status.Bucket != i || status.State != fsm.Owned || status.BatchState != "" || status.LastSequence != sequence || status.LastError != "" {
				t.Errorf("bucket %d: %+v", i, status)
			}
		}
		x.stop()
		if s := x.Status(); s.State != "stopped" || s.Ready() || len(s.Buckets) != 0 || s.Fleet != nil {
			t.Errorf("after Run: %+v", s)
		}
	})
}

// Whoever asks a relay what it is doing learns who has paused a bucket, until when and
// why, and that it is over when it is.
func TestStatusOfAPausedBucket(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		client := store.NewClient(schema, db, db)
		pause := store.Pause{Bucket: 2, Until: store.NoEnd, By: "ann@desk", Reason: "migration"}
		if reply := client.Do(t.Context(), pause); reply.Class != store.Done {
			t.Fatal(reply.Err)
		}
		x := run(t, config(db, b))
		synctest.Wait()
		want := relay.Pause{By: "ann@desk", Reason: "migration"}
		if s := x.Status().Buckets[2]; s.State != fsm.Paused || s.Paused == nil || *s.Paused != want {
			t.Errorf("paused: %+v", s)
		}

		end := time.Now().Add(15 * time.Second).UTC().Truncate(time.Second)
		client.Do(t.Context(), store.Pause{Bucket: 2, Seen: store.NoEnd, Until: store.Ticks(outbox.Ticks(end)), By: "bob", Reason: "soon"})
		<-time.After(11 * time.Second) // a round
		want = relay.Pause{Until: end, By: "bob", Reason: "soon"}
		if s := x.Status().Buckets[2]; s.State != fsm.Paused || s.Paused == nil || *s.Paused != want {
			t.Errorf("with another end: %+v", s)
		}
		<-time.After(10 * time.Second)
		if s := x.Status().Buckets[2]; s.State != fsm.Owned || s.Paused != nil {
			t.Errorf("after it: %+v", s)
		}
		x.stop()
	})
}

// Two relays share the buckets, and when one stops, the other has all of them after
// its next round, far sooner than a lease lapses. Nothing is delivered twice.
func TestTwoRelays(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		first, second := config(db, b), config(db, b)
		first.RelayID, second.RelayID = "A", "B"
		x := run(t, first)
		synctest.Wait()
		y := run(t, second)
		<-time.After(45 * time.Second)
		owned := map[string]int{}
		for _, owner := range scan(db).owners {
			owned[owner]++
		}
		if owned["A"] != 4 || owned["B"] != 4 {
			t.Errorf("they own %v", owned)
		}
		keys := make([]string, 100)
		for i := range keys {
			keys[i] = fmt.Sprint(i)
		}
		enqueue(t, db, nil, keys...)
		x.stop()
		<-time.After(12 * time.Second)
		if owners := scan(db).owners; len(owners) != schema.BucketCount {
			t.Errorf("the buckets are owned by %v", owners)
		}
		delivered := ids(b.take(t, len(keys)))
		slices.Sort(delivered)
		if len(slices.Compact(delivered)) != len(keys) || len(b.appended) != 0 {
			t.Error("something was delivered twice")
		}
		y.stop()
		wantHandedBack(t, db, "A", "B")
	})
}

// Draining waits for what the broker has not answered yet, deletes it, and then
// hands back: a restart repeats nothing (case L-23).
func TestDrainWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		cfg := config(db, b)
		cfg.RelayID = "A"
		b.hold()
		enqueue(t, db, nil, "k")
		r := run(t, cfg)
		b.take(t, 1)
		r.cancel()
		<-time.After(11 * time.Second) // a round goes by meanwhile
		if s := scan(db); len(s.owners) == 0 || s.rows != 1 {
			t.Errorf("in the meantime: %+v", s)
		}
		b.release()
		r.stop()
		if left := scan(db).rows; left != 0 {
			t.Errorf("%d rows are left", left)
		}
		wantHandedBack(t, db, "A")
	})
}

// A drain that is not through within ShutdownTimeout ends all the same, and leaves
// alone what may still be published: the row, and the lease of its bucket.
func TestDrainGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		cfg := config(db, b)
		cfg.ShutdownTimeout = 8 * time.Second
		stopped, observer := observed[event.RelayStopped]()
		cfg.Observers = []event.Observer{observer}
		b.hold()
		messages := enqueue(t, db, nil, "k")
		r := run(t, cfg)
		b.take(t, 1)
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > cfg.ShutdownTimeout {
			t.Errorf("it took %v", took)
		}
		s := scan(db)
		lease := outbox.LeaseSortKey(messages[0].Bucket(schema.BucketCount))
		if s.rows != 1 || len(s.owners) != 1 || s.owners[lease] == "" {
			t.Errorf("left behind: %+v", s)
		}
		if e := receive(t, stopped); e.Unreleased != 1 {
			t.Errorf("told of %d leases", e.Unreleased)
		}
	})
}
