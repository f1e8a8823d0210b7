package bucket

import (
	"errors"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/store"
)

// lease is what the tenure knows of its lease item.
type lease struct {
	// token is that of the lease write under way; 0: none.
	// Invariant: at most one lease write is outstanding.
	token uint64
	round Round // of the write under way
	// resuming: the tenure began with a lease that named us, perhaps under an
	// earlier incarnation, and no keep was confirmed yet.
	resuming bool
	got      bool // a claim or keep of this tenure was confirmed
	// conflicts are how often the round's keep met a transaction; deferred: it is to be
	// sent again when ours has ended.
	conflicts int
	deferred  bool
	// ended is when the last lease write ended. What was read before may not
	// show it.
	ended actors.Instant
	// read is the item as a round last read it; nil: there was none.
	read *store.Lease
	// seen is the expiry that our next write goes under; 0: unknown.
	seen store.Ticks
	// validUntil is until when we may act for the bucket; zero: not at all.
	// Invariant: only a confirmed claim or keep moves it forward.
	validUntil actors.Instant
	// barrier is the expiry that was first withheld because our clock was
	// behind it: nothing is sent until our clock has passed it. 0: none.
	barrier store.Ticks
}

// valid tells whether the lease is valid locally at this instant.
func (c *core) valid() bool {
	return !c.lease.validUntil.IsZero() && !c.lease.validUntil.PassedAt(c.now)
}

func (c *core) expiry(round Round) store.Ticks {
	return round.Now.Ticks().Add(c.cfg.LeaseDuration)
}

// write sends a lease write, of which there is never a second one under way.
func (c *core) write(round Round, r store.Request) {
	c.lease.round, c.lease.deferred = round, false
	c.lease.token = c.do(r)
}

func (c *core) claim(round Round) {
	c.write(round, store.Claim{
		Bucket:      c.cfg.Bucket,
		Relay:       c.cfg.Relay,
		Incarnation: c.cfg.Incarnation,
		Claim:       c.cfg.Claim,
		Now:         round.Now.Ticks(),
		Expires:     c.expiry(round),
		NotAfter:    round.Now.Add(c.cfg.LeaseRenewInterval),
	})
}

// keep extends the lease under the expiry that was seen. A clock that is, or may
// be, ahead keeps nothing. Nor is anything sent that would move the expiry
// backwards: then nothing is published until our clock has passed what was withheld
// (protocol.md section 3, step 3 and Clock guard).
func (c *core) keep(round Round) {
	if round.Ahead {
		return
	}
	expires := c.expiry(round)
	if expires < c.lease.seen {
		if c.lease.barrier == 0 {
			c.lease.barrier = c.lease.seen
			c.emit(event.ClockBehind{Bucket: c.cfg.Bucket, By: c.lease.seen.Sub(expires)})
		}
		c.withhold("clock behind")
		return
	}
	c.write(round, store.Keep{
		Bucket:      c.cfg.Bucket,
		Relay:       c.cfg.Relay,
		Incarnation: c.cfg.Incarnation,
		Claim:       c.cfg.Claim,
		Seen:        c.lease.seen,
		Expires:     expires,
		NotAfter:    round.Now.Add(c.cfg.LeaseRenewInterval),
	})
}

// release hands the lease back. Sent, answered or not, it ends local validity.
func (c *core) release() {
	if c.machine.In(fsm.Draining) {
		c.fire(fsm.Release)
	}
	c.invalidate()
	c.write(Round{Now: c.now, ReadAt: c.now}, store.Release{
		Bucket:   c.cfg.Bucket,
		Relay:    c.cfg.Relay,
		Seen:     c.lease.seen,
		Now:      c.now.Ticks(),
		NotAfter: c.now.Add(c.cfg.LeaseRenewInterval),
	})
}

// attend follows a round. What it read of the lease counts only when no write
// of ours was under way since the read was sent.
func (c *core) attend(m Attend) {
	if c.lease.token == 0 && (c.lease.ended.IsZero() || c.lease.ended.Mono < m.Round.ReadAt.Mono) {
		if !c.ours(m.Lease) {
			c.notOurs(m.Lease)
			return
		}
		c.lease.read, c.lease.seen = m.Lease, m.Lease.Expires
		if m.Lease.Incarnation != c.cfg.Incarnation { // the older process keeps it still
			c.elderLives(m.Lease.Expires)
		}
		c.pauseOrResume()
		c.listen()
	}
	if m.Verdict != Hold && !c.machine.In(fsm.Claiming) {
		c.drain(Yield)
	}
	if c.lease.token != 0 || c.lease.seen == 0 {
		return
	}
	switch {
	case c.machine.In(fsm.Releasing):
		c.release()
	case c.machine.In(fsm.Draining) && c.yielding && c.batch == nil && c.unanswered == nil && c.elderGone():
		// Nothing is in flight: settle releases it.
	case m.Verdict == Leave && c.unanswered == nil:
		// It lapses, and what the publisher has is abandoned then. A transaction in doubt is
		// the table's, and has an end once it can be repeated.
	default:
		c.lease.conflicts = 0
		c.keep(m.Round)
	}
}

// carry keeps the lease under the expiry that we last wrote, since this round
// has read nothing.
func (c *core) carry(round Round) {
	if c.lease.token == 0 && c.lease.seen != 0 && c.machine.In(fsm.Owned, fsm.Blocked, fsm.Withheld, fsm.Paused, fsm.Draining) {
		c.lease.conflicts = 0
		c.keep(round)
	}
}

// ours tells whether a lease names this very process; while we resume, the name
// of an earlier incarnation will do. A lease without an expiry has no owner.
func (c *core) ours(lease *store.Lease) bool {
	if lease == nil || lease.Unreadable || lease.Expires == 0 || lease.Owner != c.cfg.Relay {
		return false
	}
	return lease.Incarnation == c.cfg.Incarnation || c.lease.resuming
}

// notOurs: the lease is another's or nobody's.
func (c *core) notOurs(lease *store.Lease) {
	if c.machine.In(fsm.Releasing) {
		c.released()
		return
	}
	c.lose(lease)
}

func (c *core) lose(lease *store.Lease) {
	c.invalidate()
	c.fire(fsm.Lose)
	owner := ""
	if lease != nil {
		owner = lease.Owner
	}
	if !c.lease.got {
		c.emit(event.BucketRefused{Bucket: c.cfg.Bucket})
	} else {
		c.emit(event.BucketLost{Bucket: c.cfg.Bucket, Owner: owner})
	}
	c.end(nil)
}

func (c *core) released() {
	c.fire(fsm.Unlease)
	c.emit(event.BucketReleased{Bucket: c.cfg.Bucket})
	c.end(nil)
}

// leaseReplied takes the end of the lease write under way.
func (c *core) leaseReplied(m actors.Replied) {
	c.lease.token, c.lease.ended = 0, c.now
	result, _ := m.Reply.Result.(store.LeaseResult)
	switch m.Reply.Class {
	case store.Done:
		c.leaseWritten(m.Request)
	case store.Refused:
		if c.namesUs(result.Old) {
			c.unsettled(m)
			return
		}
		c.notOurs(result.Old)
	case store.Ambiguous:
		c.unsettled(m)
	case store.Retriable:
		c.leaseNotWritten(m)
	}
}

// namesUs: the item that refused us names this process with another expiry or
// tenure, so that an older write of ours is still making its way.
func (c *core) namesUs(old *store.Lease) bool {
	return old != nil && old.Owner == c.cfg.Relay && old.Incarnation == c.cfg.Incarnation
}

// unsettled: nothing new is concluded until the next read; validity that was
// confirmed still runs.
func (c *core) unsettled(m actors.Replied) {
	c.lease.seen = 0
	c.emit(event.BucketUnsettled{Bucket: c.cfg.Bucket, Request: m.Request.RequestName(), Err: m.Reply.Err})
}

// maxConflicts bounds how often a round's keep is sent again because a transaction
// had the lease item.
const maxConflicts = 5

// leaseNotWritten: the write was certainly not applied, and the next round
// tries again. A keep that met a transaction is sent again: when ours has ended, if
// there is one, else at once. A tenure that never began ends.
func (c *core) leaseNotWritten(m actors.Replied) {
	switch m.Request.(type) {
	case store.Claim:
		c.fire(fsm.Lose)
		c.end(m.Reply.Err)
	case store.Keep:
		if errors.Is(m.Reply.Err, store.ErrConflict) && c.lease.conflicts < maxConflicts {
			c.lease.conflicts++
			c.lease.deferred = true
			if !c.transacting() {
				c.keepDeferred()
			}
		}
	}
}

// keepDeferred sends a keep again that met a transaction.
func (c *core) keepDeferred() {
	if c.lease.deferred && c.lease.token == 0 && c.lease.seen != 0 && !c.machine.In(fsm.Releasing, fsm.Released, fsm.Lost) {
		c.keep(c.lease.round)
	}
	c.lease.deferred = false
}

func (c *core) leaseWritten(r store.Request) {
	switch r := r.(type) {
	case store.Release:
		c.released()
	case store.Claim:
		c.confirmed(r.Expires)
	case store.Keep:
		c.confirmed(r.Expires)
	}
}

// confirmed: a claim or keep was applied.
func (c *core) confirmed(expires store.Ticks) {
	c.lease.seen = expires
	if !c.lease.round.Off {
		c.lease.validUntil = c.lease.round.Now.Add(c.cfg.LeaseDuration - c.cfg.MaxClockSkew)
		c.watchLease()
	}
	if c.machine.In(fsm.Claiming) {
		c.fire(fsm.Claimed)
		c.ownedSince = c.now
		c.emit(event.BucketClaimed{Bucket: c.cfg.Bucket, Claim: c.cfg.Claim, Resumed: c.lease.resuming})
		c.start()
		c.pauseOrResume()
	}
	c.lease.resuming, c.lease.got = false, true
	c.emit(event.BucketKept{
		Bucket: c.cfg.Bucket, ValidFor: c.now.Until(c.lease.validUntil),
		Wall: c.lease.validUntil.Wall, Mono: c.lease.validUntil.Mono,
	})
	if c.batch != nil && c.batch.machine.In(fsm.Publishing) && !c.batch.abandoned {
		c.tellPublisher(publisher.Extend{Bucket: c.cfg.Bucket, NotAfter: c.lease.validUntil})
	}
	c.confirmOrWithhold()
	c.askAgain()
}

// confirmOrWithhold ends withholding when the lease is valid and our clock has
// passed what was withheld, and begins it when the lease is not valid.
func (c *core) confirmOrWithhold() {
	behind := c.lease.barrier != 0 && c.now.Ticks() <= c.lease.barrier
	if !behind && c.lease.barrier != 0 {
		c.lease.barrier = 0
		c.emit(event.ClockAgreed{Bucket: c.cfg.Bucket})
	}
	switch {
	case behind:
		c.withhold("clock behind")
	case !c.valid():
		c.lapsed()
	case c.machine.In(fsm.Withheld):
		c.fire(fsm.Confirm)
		c.emit(event.BucketResumed{Bucket: c.cfg.Bucket, After: actors.Elapsed(c.withheldSince, c.now)})
		c.start()
	}
}

// start begins to look for messages: at once, and then every PollInterval.
func (c *core) start() {
	c.wake("poll")
	c.arm(pollTimer, c.cfg.PollInterval, c.cfg.PollInterval/2)
}

// watchLease looks again when local validity has ended. A clock that is set, or a
// machine that was suspended, may end it sooner than the timer: as long as the
// publisher has rows, which go out by themselves, that is looked for.
func (c *core) watchLease() {
	wait := max(0, c.now.Until(c.lease.validUntil)) + time.Millisecond
	if c.batch != nil && c.batch.machine.In(fsm.Publishing) {
		wait = min(wait, c.cfg.PollInterval)
	}
	c.arm(lapseTimer, wait, 0)
}

// lapse: local validity may have ended.
func (c *core) lapse() {
	if c.lease.validUntil.IsZero() {
		return
	}
	if c.valid() { // by neither clock yet
		c.watchLease()
		return
	}
	c.lapsed()
}

// lapsed: local validity has ended, by one of the clocks. That it is set right again
// does not bring it back: only a confirmed keep does.
func (c *core) lapsed() {
	c.invalidate()
	c.withhold("lease lapsed")
}

// withhold sends nothing more for the bucket until a keep is confirmed. What
// was published and not deleted is published again by whoever owns it next.
func (c *core) withhold(reason string) {
	if c.machine.In(fsm.Owned, fsm.Blocked) {
		c.fire(fsm.Withhold)
		c.withheldSince = c.now
		c.forgetBlock()
		c.emit(event.BucketWithheld{Bucket: c.cfg.Bucket, Reason: reason})
	}
	c.abandon()
}

// abandon gives up the batch. Rows that the publisher has are waited for: they
// are in flight until it has answered.
func (c *core) abandon() {
	switch {
	case c.batch == nil || c.batch.abandoned:
	case c.batch.machine.In(fsm.Publishing):
		c.batch.abandoned = true
		c.doubtFence()
		c.tellPublisher(publisher.Abandon{Bucket: c.cfg.Bucket})
	default:
		c.dropBatch()
	}
}

// invalidate ends local validity now.
func (c *core) invalidate() {
	c.lease.validUntil = actors.Instant{}
	c.effects = append(c.effects, disarm{lapseTimer})
}

func (c *core) arm(t timer, after, spread time.Duration) {
	c.timers[t]++
	c.effects = append(c.effects, arm{timer: t, after: after, spread: spread, number: c.timers[t]})
}
