package publisher

import (
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
)

const (
	// defaultMessageBytes is the limit of the pool for topics without a small one.
	defaultMessageBytes = 1_000_000
	// poolMargin is how far a pool's limit stays below the topic's, for what a
	// request has around its records.
	poolMargin = 100
	// minMessageBytes is the least limit that a client accepts.
	minMessageBytes = 1000
	// maxPools bounds the pools, and with them the producers. A topic with yet
	// another limit uses the next smaller pool, or careful producers.
	maxPools = 8

	// The pause before a place whose producers fail gets another one: doubled each
	// time, with jitter. The first swap is at once.
	openPause    = 250 * time.Millisecond
	maxOpenPause = 10 * time.Second
)

// pool is the shared producers for topics of one size limit.
type pool struct {
	limit int
	slots []*slot
}

// gate holds back the opening of producers that fail one after another.
type gate struct {
	failures int
	fault    *Fault // of the last failure; nil when it may be tried
}

// failing tells whether a pause runs.
func (g *gate) failing() bool { return g.fault != nil }

// slot is the place of one shared producer.
type slot struct {
	gate
	limit    int
	producer *producer // nil: none yet, or it is failing
}

// producer is one producer.
type producer struct {
	options Options
	slot    *slot  // nil for a careful one
	fence   *fence // whose transactional producer it is; nil: it has no transactions
	state   producerState
	// proven: it has got an acknowledgement, or a refusal of a record, which too is
	// the answer of a broker that works.
	proven bool
	// full: its queue was full. Paused: a timer is armed for it, of which there is
	// never a second one, however many batches meet the full queue.
	full, paused bool
	// Invariant: the outstanding rows that went to it; at most one when careful.
	outstanding int
	paths       map[place]*path
	// users is how many batches use a careful one; uses how many ever did, and how many
	// records a shared one was given.
	users, uses int
	reach       reachability
	answered    actors.Instant // when a broker last did, as far as it was told
	// Of one that ends.
	since   actors.Instant
	retired string // why, when it was retired and did not fail
}

type producerState uint8

const (
	opening producerState = iota
	open
	ending // takes no records; closed when its reports are in
)

// path is one producer's way to one partition, for the rows of all buckets: the
// priming lock (kafka.md, ordered mode, point 3).
type path struct {
	// Invariant: at most one while it is not primed.
	outstanding int
	// primed: the broker has acknowledged a record, so it knows the producer and
	// refuses what comes behind a rejected one.
	primed   bool
	lastSent actors.Instant
	// heard is when the path last got an acknowledgement; watched: a timer looks at it.
	heard   actors.Instant
	watched bool
	// era is the topic's when the path was primed: a topic that was deleted and
	// created again knows no producer.
	era int
	// alone: the one outstanding record was alone from the start.
	alone bool
}

// admits tells whether a record may be sent: with a broker that may not know the
// producer (any more), only when none is outstanding.
func (w *path) admits(now actors.Instant, primeAfter time.Duration, era int) bool {
	return w.outstanding == 0 || w.known(now, primeAfter, era)
}

// known tells whether the broker can be relied upon to know the producer.
func (w *path) known(now actors.Instant, primeAfter time.Duration, era int) bool {
	return w.primed && w.era == era && actors.Elapsed(w.lastSent, now) < primeAfter
}

func (w *path) sent(now actors.Instant, primeAfter time.Duration, era int) {
	w.primed = w.known(now, primeAfter, era)
	w.era = era
	w.outstanding++
	w.alone = w.outstanding == 1
	w.lastSent = now
}

// remembered is for how long a broker is relied upon to know a producer of which it
// has got nothing: while nothing was sent, and while records waited.
const remembered = DefaultPrimeAfter

// watch looks after a path on which records wait behind another one.
func (c *core) watch(p *producer, at place) {
	w := p.path(at)
	if p.slot == nil || w.outstanding < 2 || w.watched {
		return
	}
	w.watched = true
	c.wake(max(0, remembered-actors.Elapsed(w.heard, c.now)), memoryDue{p.options.Number, at})
}

// memoryDue retires a producer when records of it have waited for longer than brokers
// remember it: if the first one was rejected then, the next one would be taken for the
// first of an unknown producer. One record may wait for ever.
func (c *core) memoryDue(m memoryDue) {
	p := c.producer(m.producer)
	if p == nil {
		return
	}
	w := p.path(m.place)
	w.watched = false
	if w.outstanding > 1 && actors.Elapsed(w.heard, c.now) >= remembered {
		c.retire(p, "records waited for longer than brokers remember a producer")
		return
	}
	c.watch(p, m.place)
}

func (p *producer) path(at place) *path {
	w, known := p.paths[at]
	if !known {
		w = &path{}
		p.paths[at] = w
	}
	return w
}

// slotFor is the bucket's slot in the pool of a limit. Nil: there is no pool that
// small, so the row goes carefully.
func (c *core) slotFor(limit, bucket int) *slot {
	i, known := slices.BinarySearchFunc(c.pools, limit, func(p *pool, n int) int { return p.limit - n })
	switch {
	case known:
	case limit < minMessageBytes:
		return nil
	case len(c.pools) < maxPools:
		p := &pool{limit: limit}
		for range c.cfg.Producers {
			p.slots = append(p.slots, &slot{limit: limit})
		}
		c.pools = slices.Insert(c.pools, i, p)
	case i == 0:
		return nil
	default:
		i--
	}
	slots := c.pools[i].slots
	return slots[bucket%len(slots)]
}

// reopen gives a slot a producer, if it has none. Without a slot it lets careful
// producers be opened again, when they are needed.
func (c *core) reopen(s *slot) {
	if s == nil {
		c.careful.fault = nil
		return
	}
	s.fault = nil
	if s.producer == nil {
		s.producer = c.open(Options{MaxMessageBytes: s.limit})
		s.producer.slot = s
		if s.limit != defaultMessageBytes {
			c.wake(poolIdle, idleDue{s.producer.options.Number, 0})
		}
	}
}

func (c *core) open(options Options) *producer {
	c.lastOpened++
	options.Number = c.lastOpened
	p := &producer{options: options, paths: map[place]*path{}}
	c.producers = append(c.producers, p)
	c.do(openProducer{options})
	return p
}

// notOpened: the factory has no producer for us.
func (c *core) notOpened(m notOpened) {
	p := c.producer(m.producer)
	if p == nil {
		return
	}
	c.emit(event.ProducerFailed{Producer: m.producer, Code: m.fault.Code})
	p.state = ending
	c.vacate(p, m.fault)
	c.remove(p)
	c.unreachable(m.producer, m.fault.Error())
}

// fail ends a producer that met a fatal error: no new rows, purges until its
// reports are in, and a fresh one in its place at once. Batches that have rows on
// it are stopped; those that merely were about to use it go on with the fresh one.
func (c *core) fail(p *producer, fault *Fault) {
	if p.state == ending {
		return
	}
	c.emit(event.ProducerFailed{Producer: p.options.Number, Code: fault.Code, Outstanding: p.outstanding})
	c.end(p, fault)
}

// retire ends a producer although it works, since records of it must not trail
// in later.
func (c *core) retire(p *producer, reason string) {
	if p.state == ending {
		return
	}
	p.retired = reason
	p.proven = true // nothing speaks against a fresh one at once
	c.end(p, &Fault{Ambiguous, "PRODUCER_RETIRED", reason})
}

func (c *core) end(p *producer, fault *Fault) {
	p.state, p.since = ending, c.now
	for _, b := range c.buckets {
		if b.active != nil && b.active.uses(p) {
			b.active.stop()
		}
	}
	c.vacate(p, fault)
	if p.outstanding > 0 {
		c.do(purge{p.options.Number})
		c.wake(c.cfg.PurgeInterval, purgeDue{p.options.Number})
	}
	c.closeWhenDone(p)
}

// uses tells whether a row of the batch is outstanding on the producer.
func (t *batch) uses(p *producer) bool {
	return slices.ContainsFunc(t.rows, func(r row) bool { return r.state == outstanding && r.via == p })
}

// vacate takes a producer out of its place. The next one is opened at once when
// this one had worked, else after a pause.
func (c *core) vacate(p *producer, fault *Fault) {
	g := &c.careful
	if p.slot != nil {
		g = &p.slot.gate
		p.slot.producer = nil
	}
	for _, b := range c.buckets {
		if b.active != nil && b.active.careful == p {
			b.active.careful = nil
		}
	}
	if p.proven {
		g.failures = 0
	} else {
		g.failures++
	}
	if g.failures > 1 || g.failures == 1 && fault.Code == CodeNotOpened {
		g.fault = fault
		c.wake(c.jittered(min(maxOpenPause, openPause<<min(g.failures-1, 10))), reopenDue{p.slot})
	} else if p.slot != nil {
		c.reopen(p.slot)
	}
}

// works takes note that a broker has answered a producer, which may have ended since:
// nothing speaks against its successor.
func (c *core) works(p *producer) {
	p.proven = true
	g := &c.careful
	if p.slot != nil {
		g = &p.slot.gate
	}
	g.failures = 0
	if p.state == ending && g.failing() {
		c.reopen(p.slot)
	}
}

// purgeDue purges an ending producer again, or closes it without the reports that
// have not come: their rows may have been appended.
func (c *core) purgeDue(m purgeDue) {
	p := c.producer(m.producer)
	if p == nil || p.state != ending {
		return
	}
	if actors.Elapsed(p.since, c.now) < c.cfg.PurgeDeadline {
		c.do(purge(m))
		c.wake(c.cfg.PurgeInterval, m)
		return
	}
	unreported := p.outstanding
	fault := &Fault{Ambiguous, CodeTimedOut, "no report came of a producer that has ended"}
	for _, b := range c.buckets {
		if b.active == nil {
			continue
		}
		for i := range b.active.rows {
			if r := &b.active.rows[i]; r.state == outstanding && r.via == p {
				c.takeBack(b.active, i)
				c.settle(b.active, i, Unknown, fault)
			}
		}
	}
	c.close(p, unreported)
}

func (c *core) closeWhenDone(p *producer) {
	if p.state == ending && p.outstanding == 0 && c.producer(p.options.Number) == p {
		c.close(p, 0)
	}
}

// close frees a producer that has ended. Records without a report may still be
// appended by requests that are under way.
func (c *core) close(p *producer, unreported int) {
	switch {
	case p.retired != "":
		c.emit(event.ProducerRetired{Producer: p.options.Number, Reason: p.retired, Outstanding: unreported})
	case unreported > 0:
		c.emit(event.ProducerRetired{Producer: p.options.Number, Reason: "reports did not come", Outstanding: unreported})
	}
	c.do(closeProducer{p.options.Number})
	c.remove(p)
}

func (c *core) remove(p *producer) {
	c.forgetQuestions(p)
	c.producers = slices.DeleteFunc(c.producers, func(other *producer) bool { return other == p })
}
