package simulation

import (
	"time"

	"github.com/bucketbrigade/relay/store"
)

// belief is that one process holds a bucket's lease valid until an instant of
// its own clocks.
type belief struct {
	process *process
	until   store.Instant
}

// holds tells whether it does so now: neither clock has passed the instant.
func (b belief) holds() bool {
	now := b.process.Now()
	return now.Wall <= b.until.Wall && now.Mono <= b.until.Mono
}

func (c *checker) believesNot(p *process, b int) {
	kept := c.beliefs[b][:0]
	for _, other := range c.beliefs[b] {
		if other.process != p {
			kept = append(kept, other)
		}
	}
	c.beliefs[b] = kept
}

// believes: a process holds a lease valid. Nobody else may at this instant, but
// for a process that cannot know yet of a younger one under its id.
func (c *checker) believes(p *process, b int, until store.Instant) {
	c.believesNot(p, b)
	mine := belief{p, until}
	if !p.held {
		p.held = true
		c.supersede(p)
	}
	for _, other := range c.beliefs[b] {
		if mine.holds() && other.holds() && !c.unaware(p) && !c.unaware(other.process) {
			c.about(p.name, b).violated("I-5", "%s and %s both hold the lease of bucket %d valid", p.name, other.process.name, b)
		}
	}
	c.beliefs[b] = append(c.beliefs[b], mine)
}

// supersede: a process holds leases for the first time, so that older ones under
// its id are to end.
func (c *checker) supersede(p *process) {
	for _, other := range c.fleet.processes {
		if other != p && other.relay == p.relay && other.joined <= p.joined {
			other.superseded = c.fleet.now
			c.tenures.superseded[other.name] = true
		}
	}
}

// unaware tells whether a process may still not know that another has begun under
// its id. It has a round and a request's time for it, in which it may hold valid
// what the other has handed on already; and as long as it is cut off from the table.
func (c *checker) unaware(p *process) bool {
	grace := 2*c.fleet.o.LeaseRenewInterval + requestTimeout
	return p.superseded != 0 && c.fleet.now-max(p.superseded, p.stalledUntil, p.cutOffUntil) <= grace
}

// ended: the relay in the process has come to its end, and believes nothing any
// more.
func (c *checker) ended(p *process) {
	c.witness(p).stopped(c, p)
	for b := range c.fleet.o.Buckets {
		c.believesNot(p, b)
	}
}

func (c *checker) died(p *process) {
	c.lastMove = c.fleet.now // its peers are still to see it
	for b := range c.fleet.o.Buckets {
		c.believesNot(p, b)
	}
	delete(c.witnesses, p)
}

// holds tells whether a process holds a lease valid by its own reckoning.
func (c *checker) holds(p *process, b int) bool {
	for _, other := range c.beliefs[b] {
		if other.process == p && other.holds() {
			return true
		}
	}
	return false
}

// renewed is how long ago, by the process's own reckoning, the lease that it holds
// valid was renewed; a long time when it holds none.
func (c *checker) renewed(p *process, bucket int) time.Duration {
	for _, b := range c.beliefs[bucket] {
		if b.process == p && b.holds() {
			return c.fleet.o.LeaseDuration - c.fleet.o.MaxClockSkew - p.Now().Until(b.until)
		}
	}
	return time.Hour
}
