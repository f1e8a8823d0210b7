package coordinator

import (
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

const (
	maxOffRounds   = 3 // in a row, after which the relay withdraws
	maxCutOffTerms = 2 // lease durations without a broker, after which it does
)

// clockSaid is what is known of our clock in a round.
type clockSaid struct {
	// off: it is wrong, or has stepped and nobody has told the time since. Nothing
	// is claimed or pruned, and a keep does not extend local validity.
	off bool
	// ahead: it is wrong forwards, or may be: no keep is sent either.
	ahead bool
	by    time.Duration // ahead; negative: behind
}

// lookAtClock notices steps of the wall clock.
func (c *core) lookAtClock() {
	if step := c.guard.look(c.now); step < -c.cfg.LeaseDuration && c.guard.dated && c.state != starting {
		c.wentBack = step
	}
}

// judgeClock decides whether the round is off (protocol.md section 3, Clock
// guard).
func (c *core) judgeClock() {
	by, off := c.guard.offRound(c.round.now, c.now)
	untold := c.guard.dated && !c.guard.known()
	c.round.clock = clockSaid{off: off || untold, ahead: off && by > 0 || untold, by: by}
	switch {
	case off:
		c.offRounds++
		if !c.skewed {
			c.skewed = true
			c.emit(event.ClockSkewed{Ahead: by})
		}
	case !untold:
		c.offRounds = 0
		c.clockIsRight(by)
	}
}

// clockIsRight ends what was said of our clock. A relay that has not joined yet has
// an incarnation of then, which might be higher than that of its successor.
func (c *core) clockIsRight(by time.Duration) {
	if !c.skewed {
		return
	}
	c.skewed = false
	c.emit(event.ClockRight{Ahead: by})
	if c.state == starting {
		before := c.id
		if c.lastBeat == 0 { // nobody has seen it: it need not be outdone
			before.incarnation = ""
		}
		c.id = c.rename(c.now, before)
		c.emit(event.RelayRenamed{Relay: c.id.relay, Incarnation: c.id.incarnation})
	}
}

// serviceTime is the service's time, as far as we know better than by our clock.
func (c *core) serviceTime() store.Ticks {
	if by, off := c.guard.off(c.now); off {
		return c.now.Ticks().Add(-by)
	}
	return c.now.Ticks()
}

// mustWithdraw withdraws a relay whose clock is wrong for long, or was so far
// ahead that its leases seem to last for ever, and one that reaches no broker.
func (c *core) mustWithdraw() bool {
	cutOff := !c.connected && actors.Elapsed(c.cutOff, c.now) >= maxCutOffTerms*c.cfg.LeaseDuration
	switch {
	case c.wentBack < 0:
		c.withdraw("clock", c.wentBack)
	case c.offRounds >= maxOffRounds:
		c.withdraw("clock", c.round.clock.by)
	case cutOff:
		c.withdraw("brokers", 0)
	default:
		return false
	}
	return true
}

// withdraw drains, stamps, and hands back, like a stop; then the relay waits.
func (c *core) withdraw(reason string, ahead time.Duration) {
	c.state, c.ready = withdrawn, false
	c.emit(event.RelayWithdrawn{Reason: reason, Ahead: ahead})
	c.nextRound(everyRound) // what drains is kept meanwhile
	c.drainAll(nil)
}

// leaving tells whether the buckets are being handed back, all of them.
func (c *core) leaving() bool { return c.state == stopping || c.state == withdrawn }

// away tells whether the relay has withdrawn and has handed back what it could.
func (c *core) away() bool { return c.state == withdrawn && c.stop.phase == over }

// goAway: what was not handed back lapses, since nothing is kept any more. One read a
// round tells the time.
func (c *core) goAway() {
	c.stop.phase, c.stop.token = over, 0
	c.timers[deadlineTimer]++
	c.timers[repeatTimer]++
	c.arm(roundTimer, c.cfg.LeaseRenewInterval)
}

// mayComeBack lets the relay join anew once its clock is right, a broker is
// reached, and nothing of before is left.
func (c *core) mayComeBack() {
	left := false
	for b, k := range c.children {
		if k.tenure != 0 {
			left = true
			c.attend(b, bucket.Leave)
		}
	}
	if left || c.round.clock.off || !c.connected {
		c.nextRound(everyRound)
		return
	}
	before := c.id
	c.id = c.rename(c.now, before)
	if c.id.relay != before.relay {
		c.lastBeat = 0 // what may still land is of another record
	}
	c.state, c.began, c.stop, c.beats, c.wentBack = starting, c.now, stop{}, 0, 0
	c.emit(event.RelayRenamed{Relay: c.id.relay, Incarnation: c.id.incarnation})
	c.beginRound()
}
