package publisher

import (
	"slices"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/outbox"
)

// bucket is what the publisher remembers of one bucket.
type bucket struct {
	number  int
	active  *batch   // nil: none
	waiting *Publish // of a later tenure, until the active one is answered; nil: none
	// careful is the highest sequence that was ever in a request that was refused,
	// whatever for: rows up to it go through a careful producer. Once they are acknowledged, or set aside
	// by their bucket, the bucket's rows are above it, and it is back in its pool.
	careful int64
	// guilty is the row that was rejected last, alone in its request, and span how
	// many numbers from it on are careful: one, and twice as many with each further
	// row, since bad rows come together and each that is found by a shared producer
	// ends it. 0: the last batch had none.
	guilty, span int64
	// Invariant: the budget bytes of the active batch's outstanding rows.
	bytes int
	fence *fence // of fenced mode; nil: never asked for
}

// batch is one Publish in work.
type batch struct {
	bucket  *bucket
	request Publish
	number  uint64 // among all that were begun
	asks    uint64 // number of the last question for metadata before it began
	rows    []row
	// Invariant: no row before next is pending.
	next int
	// Invariant: the numbers of rows in these states.
	pending, outstanding int
	// stopped: no row is handed over any more.
	stopped bool
	lanes   map[place]*lane
	keys    map[topicKey]*keyed
	// careful is the producer that the batch's careful rows go through, nil: none.
	careful *producer
}

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// topicKey is a topic and the key of a record that has one.
type topicKey struct{ topic, key string }

// lane is the part of a batch that goes to one partition.
type lane struct {
	place
	// poolBytes is the limit of its pool of producers. It stays what it was when the
	// lane began, whatever metadata comes later: two producers would not keep the
	// rows in order.
	poolBytes int
	held      uint64 // the pass in which a row of it had to wait
	// bytes are the budget bytes of its outstanding rows; fenced mode counts them.
	bytes int
}

// keyed are the rows of a batch with one topic and key.
type keyed struct {
	held uint64 // the pass in which a row of it had to wait
	// Invariant: the outstanding rows of the key; all of them are on lane.
	outstanding int
	lane        *lane
}

// row is one row of a batch.
type row struct {
	state rowState
	// partition is that which the record is meant for, once it is decided.
	partition int32
	decided   bool
	// The following are set when the row is prepared.
	prepared bool
	record   Record
	bytes    int // of the budget
	lane     *lane
	keyed    *keyed // nil: keyless
	tight    bool   // too large for the shared producers of its topic, not for the topic
	// Invariant: not nil while the row is outstanding.
	via    *producer
	result Result
}

// undecided is the partition of a record of which none was decided.
const undecided = -1

func (r *row) meantFor() int32 {
	if !r.decided {
		return undecided
	}
	return r.partition
}

type rowState uint8

const (
	pending     rowState = iota // not handed over
	outstanding                 // handed over, no report yet
	delivered                   // of fenced mode: has its report, and its transaction is open
	settled                     // has its result
)

// over tells whether the batch can be answered.
func (t *batch) over() bool {
	return t.outstanding == 0 && (t.stopped || t.pending == 0)
}

// stop ends the handing over; rows that are still pending become NotSubmitted.
func (t *batch) stop() { t.stopped = true }

func (t *batch) lane(tp *topic, partition int32) *lane {
	at := place{tp.name, partition}
	l, known := t.lanes[at]
	if !known {
		l = &lane{place: at, poolBytes: tp.poolBytes()}
		t.lanes[at] = l
	}
	return l
}

func (t *batch) keyOf(m *outbox.Message) *keyed {
	if m.Key == nil {
		return nil
	}
	name := topicKey{m.Topic, string(m.Key)}
	k, known := t.keys[name]
	if !known {
		k = &keyed{}
		t.keys[name] = k
	}
	return k
}

// find is the index of a row, -1 when the batch has none of that sequence.
func (t *batch) find(sequence int64) int {
	i, found := slices.BinarySearchFunc(t.request.Rows, sequence, func(r outbox.Row, s int64) int {
		switch {
		case r.Sequence < s:
			return -1
		case r.Sequence > s:
			return 1
		}
		return 0
	})
	if !found {
		return -1
	}
	return i
}

// publish begins a batch, or lets it wait for the rows of an earlier one. That
// one is of a tenure whose actor has ended: its rows that are still pending are
// not wanted any more.
func (c *core) publish(m Publish) {
	b := c.bucket(m.Bucket)
	if b.active == nil {
		c.begin(b, m)
		return
	}
	b.active.stop()
	c.dropWaiting(b)
	b.waiting = &m
}

func (c *core) begin(b *bucket, m Publish) {
	c.begun++
	b.active = &batch{
		bucket:  b,
		request: m,
		number:  c.begun,
		asks:    c.asks,
		rows:    make([]row, len(m.Rows)),
		pending: len(m.Rows),
		lanes:   map[place]*lane{},
		keys:    map[topicKey]*keyed{},
	}
}

// dropWaiting answers the waiting Publish without having looked at it.
func (c *core) dropWaiting(b *bucket) {
	m := b.waiting
	if m == nil {
		return
	}
	b.waiting = nil
	results := make([]Result, len(m.Rows))
	for i := range results {
		results[i].Partition = undecided
	}
	c.do(answer{m.ReplyTo, Published{Bucket: m.Bucket, Batch: m.Batch, Results: results}})
}

// finish answers the active batch and begins the one that waits.
func (c *core) finish(b *bucket) {
	t := b.active
	c.leaveCareful(t)
	results := make([]Result, len(t.rows))
	clean := true
	for i := range t.rows {
		results[i] = t.rows[i].result
		results[i].Partition = t.rows[i].meantFor()
		clean = clean && results[i].Outcome == Acknowledged
	}
	if clean {
		b.span = 0
	}
	c.do(answer{t.request.ReplyTo, Published{Bucket: b.number, Batch: t.request.Batch, Results: results}})
	b.active = nil
	if m := b.waiting; m != nil {
		b.waiting = nil
		c.begin(b, *m)
	}
}

func (c *core) extend(m Extend) {
	b := c.bucket(m.Bucket)
	if b.waiting != nil {
		b.waiting.NotAfter = m.NotAfter
	} else if b.active != nil {
		b.active.request.NotAfter = m.NotAfter
	}
}

// abandon stops what the bucket has asked for. What is outstanding gets a short
// grace.
func (c *core) abandon(m Abandon) {
	b := c.bucket(m.Bucket)
	c.dropWaiting(b)
	t := b.active
	if t == nil {
		return
	}
	t.stop()
	if t.outstanding > 0 {
		c.wake(c.cfg.AbandonGrace, graceOver{b.number, t.number})
	}
}

// graceOver retires the producers of an abandoned batch that is still not over.
// Purging its rows alone is not possible (kafka.md, ordered mode, point 8).
func (c *core) graceOver(m graceOver) {
	t := c.bucket(m.bucket).active
	if t == nil || t.number != m.number {
		return
	}
	for i := range t.rows {
		if r := &t.rows[i]; r.state == outstanding {
			c.retire(r.via, "a bucket's lease ended with its records outstanding")
		}
	}
}

// lapsed tells whether no row of the batch may be handed over any more.
func (t *batch) lapsed(now actors.Instant) bool { return t.request.NotAfter.PassedAt(now) }
