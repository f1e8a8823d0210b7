package publisher

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
)

// core is the order algorithm of ordered mode (kafka.md), and what both modes have
// in common: batches, topics, the budget, the way to the brokers. It takes one
// message at a time and returns what is to be done; it has no clock, no I/O and no
// randomness but the source that it was given.
//
// What ordered mode keeps, in one sentence each (fencing has those of fenced mode):
//
//   - a row is handed over only when all earlier rows of its bucket on its
//     partition, and all earlier rows of its topic and key, were handed over to the
//     same producer before it, or acknowledged;
//   - a producer's first record on a partition goes alone, whichever bucket it is
//     of, until it is acknowledged;
//   - when one row fails, no later row of its batch is handed over any more;
//   - a bucket has rows on a careful producer, or on shared ones, never both.
type core struct {
	cfg    Config
	random *rand.Rand

	// Of the step that is being made.
	now actors.Instant
	out []effect

	// Invariant: ascending by number.
	buckets []*bucket
	begun   uint64 // batches, ever
	turn    int    // whose rows are looked at first in the next round
	pass    uint64 // number of the current look at one batch

	// Invariant: ascending by number; those that end are among them until closed.
	producers  []*producer
	lastOpened int
	pools      []*pool // Invariant: ascending by limit
	home       *slot   // of the pool for topics without a small limit; opened at the start
	careful    gate    // of all careful producers

	topics map[string]*topic
	asked  []*topic // Invariant: the topics with a question under way, oldest first
	asks   uint64   // number of the last question

	budget  budget
	reach   reach
	letters letters

	fencing *fencing // nil in ordered mode
}

// newCore takes a configuration with its defaults.
func newCore(cfg Config, random *rand.Rand) *core {
	c := &core{
		cfg:    cfg,
		random: random,
		topics: map[string]*topic{},
		budget: newBudget(cfg.MaxBytes, cfg.Buckets),
	}
	if cfg.Fencing != nil {
		c.fencing = &fencing{core: c, settings: *cfg.Fencing}
	}
	return c
}

// step takes one message and returns its effects, in their order.
func (c *core) step(now actors.Instant, message any) []effect {
	c.now, c.out = now, nil
	if c.fencing == nil || !c.fencing.take(message) {
		c.take(message)
	}
	c.round()
	return c.out
}

// take takes what both modes take alike, and what is ordered mode's own.
func (c *core) take(message any) {
	switch m := message.(type) {
	case start:
		c.reach.since = c.now
		c.home = c.slotFor(defaultMessageBytes, 0)
		c.reopen(c.home)
	case Publish:
		c.publish(m)
	case Extend:
		c.extend(m)
	case Abandon:
		c.abandon(m)
	case Reported:
		c.reported(m)
	case Fataled:
		if p := c.producer(m.Producer); p != nil {
			c.fail(p, m.Fault)
		}
	case Described:
		c.described(m)
	case Reached:
		if c.producer(m.Producer) != nil {
			c.reached(m.Producer)
		}
	case Unreached:
		c.unreached(m)
	default:
		c.internal(message)
	}
}

// internal takes the performer's answers and the timers.
func (c *core) internal(message any) {
	switch m := message.(type) {
	case opened:
		if p := c.producer(m.producer); p != nil {
			p.state = open
			c.emit(event.ProducerOpened{Producer: m.producer, Careful: p.options.Careful})
		}
	case notOpened:
		c.notOpened(m)
	case notProduced:
		c.notProduced(m)
	case purgeDue:
		c.purgeDue(m)
	case graceOver:
		c.graceOver(m)
	case memoryDue:
		c.memoryDue(m)
	case complaintDue:
		c.complaintDue(m)
	case describeDue:
		c.describeDue(m)
	case queueDue:
		if p := c.producer(m.producer); p != nil {
			p.full, p.paused = false, false
		}
	case lettersDue:
		c.lettersDue()
	case reopenDue:
		c.reopen(m.slot)
	case idleDue:
		c.idleDue(m)
	}
}

// round serves every bucket once. Another bucket comes first each time, so that
// what the common half of the budget gives back does not always go to the same
// one.
func (c *core) round() {
	n := len(c.buckets)
	for i := range n {
		c.serve(c.buckets[(c.turn+i)%n])
	}
	if n > 0 {
		c.turn = (c.turn + 1) % n
	}
}

// serve hands over what may be handed over, and answers what is over.
func (c *core) serve(b *bucket) {
	if c.fencing != nil {
		c.fencing.serve(b)
		return
	}
	for b.active != nil {
		c.submit(b.active)
		if !b.active.over() {
			return
		}
		c.finish(b)
	}
}

func (c *core) do(e effect) { c.out = append(c.out, e) }

func (c *core) emit(e event.Event) { c.do(emit{e}) }

func (c *core) wake(after time.Duration, message any) { c.do(wake{after, message}) }

// jittered is between three quarters and five quarters of d.
func (c *core) jittered(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(c.random.Int64N(int64(d/2)+1))
}

// bucket is the bucket of that number, made when it is first heard of.
func (c *core) bucket(number int) *bucket {
	i, known := slices.BinarySearchFunc(c.buckets, number, func(b *bucket, n int) int { return b.number - n })
	if !known {
		c.buckets = slices.Insert(c.buckets, i, &bucket{number: number})
	}
	return c.buckets[i]
}

// producer is the producer of that number, nil when it was closed.
func (c *core) producer(number int) *producer {
	i, known := slices.BinarySearchFunc(c.producers, number, func(p *producer, n int) int { return p.options.Number - n })
	if !known {
		return nil
	}
	return c.producers[i]
}
