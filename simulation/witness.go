package simulation

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/store"
)

// witness is what the observer has seen of one process: what it sent, what it
// was answered, and what its producers reported.
type witness struct {
	incarnation string
	lastBeat    time.Duration // when its last heartbeat was sent
	lastSeen    store.Ticks   // that it said, the latest
	roundNow    store.Ticks   // that it said last
	yields      []int         // buckets that its last round's plan hands back
	tableRead   bool          // a read of the coordination partition was answered
	reached     bool          // a broker has answered one of its producers
	beaten      bool          // its last heartbeat was answered, and accepted
	view        sighting
	numbers     map[int64]int // tenures: the bucket of each number
	buckets     []bucketWitness
	outstanding map[publisher.Token]submission
	// transactions are the delivered records of each transactional producer that are
	// not committed.
	transactions map[int][]publisher.Token
	stop         stopWitness
	withdrew     time.Duration // when it did; 0: it takes part, or stops
}

// bucketWitness is what was seen of one bucket of a process.
type bucketWitness struct {
	tenure    int64         // number of the last claim or keep that was sent
	sentMono  time.Duration // when that was, by the process's monotonic clock
	granted   store.Ticks   // the expiry of the last one that was answered as done
	writes    int           // claims, keeps and releases without an answer
	plan      string        // what its last claim was planned on
	barrier   store.Ticks   // the expiry that its clock must pass before it submits; 0: none
	heldSince bool          // it holds the lease valid
	freeSince time.Duration // since when it does not; only while it does not
	draining  bool
	acked     map[int64]bool
	shared    map[int64]bool // rows that were rejected in a request of several, perhaps for others
	undeleted []int64        // acknowledged and not seen to be gone, ascending or not
	drain     drain
	bell      store.Ticks   // that the last round was shown
	clean     bool          // the last claim followed a release
	wrote     time.Duration // when its last lease write was answered
	rejected  map[int]int   // commits, and how often they were rejected, alone in their request
	batch     uint64        // of the last record that was submitted
	submitted int           // records of it that are outstanding
}

// submission is one record that a producer has not reported yet.
type submission struct {
	at       time.Duration
	producer int
}

// sighting is the coordination partition as a round was shown it.
type sighting struct {
	whole  bool          // after the last page
	at     time.Duration // when the read of its first page was sent
	leases []store.Lease
	relays []store.RelayRecord
}

// stopWitness is how far a graceful stop has come.
type stopWitness struct {
	began   time.Duration
	under   bool
	stamped bool // a stamp was sent
	reads   int  // whole reads since
	freed   bool // a release was sent since the last whole read
}

func (c *checker) witness(p *process) *witness {
	w := c.witnesses[p]
	if w == nil {
		w = &witness{
			numbers: map[int64]int{}, outstanding: map[publisher.Token]submission{},
			transactions: map[int][]publisher.Token{},
			buckets:      make([]bucketWitness, c.fleet.o.Buckets),
		}
		for b := range w.buckets {
			w.buckets[b].acked, w.buckets[b].shared = map[int64]bool{}, map[int64]bool{}
			w.buckets[b].rejected = map[int]int{}
			w.buckets[b].freeSince = c.fleet.now
		}
		c.witnesses[p] = w
	}
	return w
}

// told follows what a relay says of itself, as far as the observer needs it to
// know what the relay is about.
func (w *witness) told(c *checker, p *process, e event.Event) {
	switch e := e.(type) {
	case event.StateChanged:
		w.moved(c, p, e)
	case event.ClockBehind:
		w.buckets[e.Bucket].barrier = c.expiry(e.Bucket)
	case event.BucketKept:
		w.believes(c, p, e)
	case event.RoundCompleted:
		w.yields = w.planYields(c, p)
	case event.BucketDraining: // for the round before a stop, perhaps, which it hears of later
		w.buckets[e.Bucket].draining = !w.stop.under || slices.Contains(w.yields, e.Bucket)
	case event.RelayStopping:
		w.stop, w.withdrew = stopWitness{under: true, began: c.fleet.now}, 0
	case event.RelayWithdrawn:
		w.withdrew = c.fleet.now
	case event.RelayRenamed:
		w.withdrew = 0
	case event.RecordRejected:
		b := &w.buckets[e.Bucket]
		if !e.Alone && b.shared[e.Sequence] {
			c.about(p.name, e.Bucket).violated("I-17", "row %d of bucket %d is rejected again in a request of several", e.Sequence, e.Bucket)
		}
		b.shared[e.Sequence] = b.shared[e.Sequence] || !e.Alone
		if id, err := uuid.Parse(e.Message); e.Alone && err == nil {
			b.rejected[c.fleet.writers.byID[id]]++ // a row's number may be another's by now
		}
		row := rowName{e.Bucket, e.Sequence}
		if i, known := c.rows[row]; e.Alone && known && !c.fleet.writers.guilty(c.fleet.writers.committed[i].message) && !c.fleet.writers.reused[row] {
			c.about(p.name, e.Bucket).violated("I-17", "row %d of bucket %d is blamed for the rejection of another", e.Sequence, e.Bucket)
		}
	}
}

func (w *witness) moved(c *checker, p *process, e event.StateChanged) {
	b := &w.buckets[e.Bucket]
	if e.Machine != "bucket" {
		if to := fsm.State(e.To); to == fsm.Removed || to == fsm.BackingOff {
			b.drain.head, b.drain.open = b.drain.tick(), 0 // what is under way for the batch is not waited for
		}
		return
	}
	switch fsm.State(e.To) {
	case fsm.Owned:
		if fsm.State(e.From) == fsm.Claiming {
			b.drain = drain{tenure: b.tenure, baseline: 1, aside: asideWitness{since: p.Now(), clean: b.clean}}
			b.draining = false
		}
	case fsm.Lost:
		c.gaveUp(p, e.Bucket)
		b.barrier = 0
	case fsm.Released:
		b.barrier = 0
	}
}

// believes: the lease is believed no longer than what was written of it allows,
// by either clock.
func (w *witness) believes(c *checker, p *process, e event.BucketKept) {
	b := &w.buckets[e.Bucket]
	skew := c.fleet.o.MaxClockSkew
	if wall := time.Duration(b.granted.Time().UnixNano()) - skew; e.Wall > wall+time.Microsecond {
		c.about(p.name, e.Bucket).violated("I-23", "%s believes the lease of bucket %d %v too long by its wall clock", p.name, e.Bucket, e.Wall-wall)
	}
	if mono := b.sentMono + c.fleet.o.LeaseDuration - skew; e.Mono > mono {
		c.about(p.name, e.Bucket).violated("I-23", "%s believes the lease of bucket %d %v too long by its monotonic clock", p.name, e.Bucket, e.Mono-mono)
	}
}

// gaveUp: a bucket is given up only when the table says that it is another's, and
// not for what was read before the lease came to name this process.
func (c *checker) gaveUp(p *process, b int) {
	o := c.fleet.o
	named := c.named[b]
	if named.incarnation != "" && named.incarnation == text(c.witness(p).incarnation) &&
		c.fleet.now-max(named.since, p.stalledUntil) > 2*o.LeaseRenewInterval {
		c.about(p.name, b).violated("I-24", "%s gives up bucket %d although the lease has named it for %v", p.name, b, c.fleet.now-named.since)
	}
}

// naming is whom a lease names, and since when.
type naming struct {
	incarnation string
	since       time.Duration
}

// submitted checks one record on its way to a producer.
func (w *witness) submitted(c *checker, p *process, t publisher.Token, topic string, producer int) {
	b := &w.buckets[t.Bucket]
	if b.submitted > 0 && b.batch != t.Batch {
		c.about(p.name, t.Bucket).violated("I-16", "%s submits row %d of bucket %d while %d records of an earlier batch are outstanding", p.name, t.Sequence, t.Bucket, b.submitted)
	}
	b.batch, b.submitted = t.Batch, b.submitted+1
	w.outstanding[t] = submission{c.fleet.now, producer}
	if b.barrier != 0 {
		if p.Now().Ticks() <= b.barrier {
			c.about(p.name, t.Bucket).violated("I-25", "%s submits row %d of bucket %d before its clock has passed the expiry that it withheld", p.name, t.Sequence, t.Bucket)
		}
		b.barrier = 0
	}
	// Of a row that was set aside, and is retried, no gap matters any more.
	retried := c.everAside[rowName{t.Bucket, t.Sequence}]
	if int64(t.Batch>>32) == b.drain.tenure && !retried {
		w.passes(c, p, t.Bucket, t.Sequence, topic)
		if at := b.drain.gapBefore(t); at != 0 {
			c.about(p.name, t.Bucket).violated("I-4", "%s submits row %d of bucket %d behind the gap at %d, which was not probed empty after the row was read", p.name, t.Sequence, t.Bucket, at)
		}
	}
}

// reported takes what a producer says.
func (w *witness) reported(message any) {
	switch m := message.(type) {
	case publisher.Reached:
		w.reached = true
	case publisher.Reported:
		open, transactional := w.transactions[m.Producer]
		for _, r := range m.Reports {
			w.ended(r.Token)
			switch {
			case r.Fault != nil:
			case transactional:
				open = append(open, r.Token)
			default:
				w.acknowledged(r.Token)
			}
		}
		if transactional {
			w.transactions[m.Producer] = open
		}
	case publisher.Concluded:
		if m.Call == publisher.Commit && m.Fault == nil {
			for _, t := range w.transactions[m.Producer] {
				w.acknowledged(t)
			}
		}
		if m.Fault == nil { // what had no report yet is dropped by an abort
			w.closed(m.Producer)
			w.transactions[m.Producer] = nil
		}
	}
}

// acknowledged: the broker has a record for good.
func (w *witness) acknowledged(t publisher.Token) {
	if b := &w.buckets[t.Bucket]; !b.acked[t.Sequence] {
		b.acked[t.Sequence] = true
		b.undeleted = append(b.undeleted, t.Sequence)
	}
}

// closed: nothing of a producer is reported any more.
func (w *witness) closed(producer int) {
	delete(w.transactions, producer)
	for t, s := range w.outstanding { // the order does not matter
		if s.producer == producer {
			w.ended(t)
		}
	}
}

// ended: a record is not outstanding any more, if it was.
func (w *witness) ended(t publisher.Token) {
	if _, was := w.outstanding[t]; was {
		delete(w.outstanding, t)
		w.buckets[t.Bucket].submitted--
	}
}

// leftover is for how long after its bucket's lease was lost a record may be
// outstanding: until a clock that was set is noticed, the publisher's grace, its
// deadline for purging, and what timers and messages take.
func (f *fleet) leftover() time.Duration {
	return f.o.PollInterval + publisher.DefaultAbandonGrace + publisher.DefaultPurgeDeadline + 2*time.Second
}

// sweep looks, each second, for records that are outstanding although their bucket's lease was
// lost long ago. They would be appended hours later, behind newer ones.
func (f *fleet) sweep() {
	f.checker.sweep()
	f.At(time.Second, f.sweep)
}

func (c *checker) sweep() {
	for _, p := range c.fleet.processes {
		w := c.witness(p)
		for n := range w.buckets {
			b := &w.buckets[n]
			if holds := c.holds(p, n); holds != b.heldSince {
				b.heldSince, b.freeSince = holds, c.fleet.now
			}
		}
		var stuck []publisher.Token
		for t, s := range w.outstanding {
			b := &w.buckets[t.Bucket]
			since := max(b.freeSince, s.at, p.stalledUntil)
			if !b.heldSince && c.fleet.now-since > c.fleet.leftover() {
				stuck = append(stuck, t)
			}
		}
		if len(stuck) > 0 {
			t := slices.MinFunc(stuck, func(a, b publisher.Token) int { return int(a.Sequence - b.Sequence) })
			c.about(p.name, t.Bucket).violated("I-26", "%s lost bucket %d %v ago, and %d of its records are outstanding", p.name, t.Bucket, c.fleet.now-w.buckets[t.Bucket].freeSince, len(stuck))
		}
	}
}
