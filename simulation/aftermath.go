package simulation

import (
	"fmt"
	"slices"
	"time"
)

// eventTable lets one thing happen to a settled fleet under load, without any
// fault, and demands what the event table of the protocol's page promises: who
// takes over and when, that nothing else moves, that no write is refused, and
// that nothing is delivered twice. Afterwards all is drained again.
func (f *fleet) eventTable() {
	if f.failed() {
		return
	}
	c := f.checker
	f.allBeat()
	first := len(f.writers.committed) // what is older may still come again, out of a request that was stuck
	failures := c.failures
	f.writers.resume()
	f.runUntil(f.now+f.o.LeaseRenewInterval, f.failed)
	moves, refused := c.moves, total(c.refused)-c.overtaken
	var happened string
	var want, more int
	repeats := false
	switch n := f.rand.IntN(5); {
	case n == 0:
		happened, want = f.oneJoins()
	case n == 1 && f.o.Faults != (Rates{}): // a world without faults has no crash either
		happened, want = f.oneCrashes()
		// A relay whose clock is behind counts the crashed one for a round longer, and hands
		// back what exceeds its share among so many.
		more = want
		repeats = true
	case n == 2 && f.o.Faults != (Rates{}):
		happened = f.oneRestarts()
		repeats = true
	default:
		happened, want = f.oneStops()
	}
	c.catchUp()
	if moved := c.moves - moves; moved < want || moved > want+more {
		c.violated("I-29", "%s: %d buckets moved, must be %d", happened, moved, want)
	}
	if more := total(c.refused) - c.overtaken - refused; more > 0 {
		c.violated("I-29", "%s: %d writes were refused", happened, more)
	}
	// A producer that fails now meets what was done to it before all was healed.
	if twice := c.duplicates(first); twice > 0 && !repeats && c.failures == failures {
		c.violated("I-29", "%s: %d messages were delivered twice", happened, twice)
	}
	f.writers.stop()
	f.drain()
}

// slack is what requests, messages and a batch in flight take, beside rounds.
const slack = 2 * time.Second

// rounds lets so many coordination rounds pass, those of far standbys included.
func (f *fleet) rounds(n int) {
	f.runUntil(f.now+time.Duration(n)*f.stride()+slack, f.failed)
}

// stride is the longest pause between two rounds of one relay.
func (f *fleet) stride() time.Duration {
	if len(f.processes) <= 2*f.o.Buckets {
		return f.o.LeaseRenewInterval
	}
	return max(f.o.LeaseRenewInterval, f.o.LeaseDuration*3/4)
}

// allBeat: each relay has refreshed its heartbeat within three quarters of a lease.
func (f *fleet) allBeat() {
	limit := max(f.o.LeaseRenewInterval, f.o.LeaseDuration*3/4) + f.o.LeaseRenewInterval/2
	for _, p := range f.processes {
		if silent := f.now - f.checker.witness(p).lastBeat; silent > limit {
			f.checker.about(p.name, -1).violated("I-32", "%s has sent no heartbeat for %v", p.name, silent)
		}
	}
}

// oneStops: its buckets are taken in the peers' next round, not after
// LeaseDuration. It returns what happened, and how many buckets have to move.
func (f *fleet) oneStops() (happened string, moves int) {
	p := f.anyone(f.rand)
	if len(f.processes) == 1 {
		f.boot(f.newID())
		f.rounds(4)
		moves = f.o.Buckets - f.holding(p) // that of the new one, before
	}
	for i := range 400 { // so that batches have several chunks
		f.At(time.Duration(i/20)*10*time.Millisecond, f.writers.write)
	}
	f.runUntil(f.now+200*time.Millisecond, f.failed)
	f.runUntil(f.now+f.o.LeaseRenewInterval, func() bool { return f.checker.deletes(p) || f.failed() })
	happened = fmt.Sprintf("%s, with %d buckets, stops", p.name, f.holding(p))
	moves += f.holding(p)
	f.stopGracefully(p)
	f.runUntil(f.now+slack, func() bool { return p.ended || f.failed() })
	if !p.ended {
		f.checker.violated("I-29", "%s: it has not ended after %v", happened, slack)
	}
	f.rounds(1)
	f.allOwned(happened)
	return happened, moves
}

// deletes tells whether a process has rows to delete, which is when a stop could
// leave something behind.
func (c *checker) deletes(p *process) bool {
	for b, seen := range c.witness(p).buckets {
		if slices.ContainsFunc(seen.undeleted, func(sequence int64) bool { return c.present(b, sequence) }) {
			return true
		}
	}
	return false
}

// oneJoins: its peers hand back what exceeds their new shares in their next
// round, and it claims that in its own next one.
func (f *fleet) oneJoins() (happened string, moves int) {
	relays := len(f.processes) + 1
	share, remainder := f.o.Buckets/relays, f.o.Buckets%relays
	for _, p := range f.processes {
		if remainder > 0 && f.holding(p) > share {
			remainder--
		}
	}
	if remainder > 0 {
		share++
	}
	p := f.boot(f.newID())
	f.rounds(3)
	happened = fmt.Sprintf("%s joins as relay %d of %d buckets", p.name, relays, f.o.Buckets)
	f.allOwned(happened)
	return happened, share
}

// oneCrashes: its leases and its heartbeat lapse together, and the others split
// its buckets.
func (f *fleet) oneCrashes() (happened string, moves int) {
	p := f.anyone(f.rand)
	if len(f.processes) == 1 {
		f.boot(f.newID())
		f.rounds(4)
		moves = f.o.Buckets - f.holding(p)
	}
	happened = fmt.Sprintf("%s, with %d buckets, crashes", p.name, f.holding(p))
	moves += f.holding(p)
	f.bury(p)
	f.runUntil(f.now+f.o.LeaseDuration+f.o.MaxClockSkew, f.failed)
	f.rounds(1)
	f.allOwned(happened)
	return happened, moves
}

// oneRestarts: it crashes, and the next process has its id. The leases name it
// still: it takes them up in its first round, and nothing moves. It begins when
// its clock, wherever that is, has passed the last heartbeat of its predecessor.
func (f *fleet) oneRestarts() (happened string) {
	p := f.anyone(f.rand)
	happened = fmt.Sprintf("%s, with %d buckets, crashes and starts again", p.name, f.holding(p))
	f.bury(p)
	f.runUntil(f.now+f.o.MaxClockSkew, f.failed)
	f.boot(p.relay)
	f.rounds(1)
	f.allOwned(happened)
	return happened
}

// holding is how many leases a process holds valid.
func (f *fleet) holding(p *process) int {
	n := 0
	for b := range f.o.Buckets {
		if f.checker.holds(p, b) {
			n++
		}
	}
	return n
}

// allOwned: each bucket has an owner.
func (f *fleet) allOwned(happened string) {
	owned := 0
	for _, p := range f.processes {
		owned += f.holding(p)
	}
	if owned < f.o.Buckets && !f.failed() {
		f.checker.violated("I-29", "%s: %d buckets have no owner in time", happened, f.o.Buckets-owned)
	}
}

// drain lets the fleet deliver what is left.
func (f *fleet) drain() {
	end := f.now + f.o.HealWithin
	for f.now < end && !f.failed() && f.unsettled() != "" {
		f.runUntil(min(end, f.now+time.Second), f.failed)
	}
	f.checker.catchUp()
	if why := f.unsettled(); why != "" && !f.failed() {
		f.checker.violated("I-10", "%v after the last event: %s", f.o.HealWithin, why)
	}
	f.demandAll()
}

// duplicates is how many deliveries were not the first of their message, among
// the messages from one on.
func (c *checker) duplicates(first int) int {
	n := 0
	for _, times := range c.delivered[first:] {
		n += max(0, times-1)
	}
	return n
}
