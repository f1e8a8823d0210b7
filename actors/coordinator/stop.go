package coordinator

import (
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

const (
	maxFinalReads = 3 // of the leases, after they were handed back
	maxStamps     = 3
	stampPause    = 200 * time.Millisecond
	// handBack is kept of the shutdown timeout for stamping and handing back, a
	// quarter of it at most.
	handBack = 5 * time.Second
)

// phase is how far a graceful stop has come (protocol.md section 3, Graceful
// stop).
type phase uint8

const (
	running   phase = iota // not stopping
	quiescing              // publishes in flight end; rounds keep their leases
	stamping               // our record is marked as stopped
	reading                // the leases are read
	freeing                // those that name us are handed back
	over                   // a relay that has withdrawn waits to come back
)

// stop is a graceful stop under way.
type stop struct {
	phase  phase
	err    error          // why the relay stops by itself; nil: it was asked to
	until  actors.Instant // the end of the shutdown timeout
	stamps int
	reads  int
	view   view
	readAt actors.Instant
	token  uint64          // of the stamp or read under way; 0: none
	frees  map[uint64]bool // tokens of releases that no bucket actor stands for
	asked  int             // bucket actors that were told to hand back and have not ended
}

// beginStop drains all buckets, and ends.
func (c *core) beginStop(err error) {
	if c.state == stopping {
		return
	}
	idle := c.state == starting
	c.state = stopping
	c.emit(event.RelayStopping{Err: err})
	if idle { // nothing was ever written
		c.finish(err)
		return
	}
	c.drainAll(err)
}

// drainAll begins to drain all buckets, anew when they are being drained already.
func (c *core) drainAll(err error) {
	c.stop = stop{phase: quiescing, err: err, until: c.now.Add(c.cfg.ShutdownTimeout)}
	c.arm(deadlineTimer, c.cfg.ShutdownTimeout-min(handBack, c.cfg.ShutdownTimeout/4))
	for b := range c.children {
		if k := &c.children[b]; k.tenure != 0 {
			k.asked = false
			c.tell(b, bucket.Quiesce{})
		}
	}
	c.stopStep()
}

// stopStep goes on when the children, or the releases of ours, that it waited for
// have come so far.
func (c *core) stopStep() {
	switch c.stop.phase {
	case quiescing:
		if c.busy == 0 {
			c.beginHandBack()
		}
	case freeing:
		if c.allFreed() {
			c.readAgain()
		}
	}
}

// repeatStop tries a request again; a hand-back whose release is not settled in
// time is left to the next read.
func (c *core) repeatStop() {
	switch c.stop.phase {
	case stamping:
		c.stamp()
	case reading:
		c.readLeases("")
	case freeing:
		c.readAgain()
	}
}

// deadlinePassed: first the drain's, then the whole timeout's.
func (c *core) deadlinePassed() {
	if c.stop.phase == quiescing {
		c.beginHandBack()
		return
	}
	c.handedBack()
}

// beginHandBack ends the rounds, whose late writes the stamp refuses, and
// stamps.
func (c *core) beginHandBack() {
	c.round.token = 0
	c.timers[roundTimer]++
	c.stop.phase = stamping
	c.arm(deadlineTimer, c.now.Until(c.stop.until))
	c.stamp()
}

// stamp marks our record as stopped before any lease is handed back, so that a
// stop that is cut short leaves leases that lapse and never free buckets that
// peers keep reserved for us.
//
// A clock that was set since anybody has told the time may be ahead by hours, and for so
// long our successor's heartbeats would be refused: the stamp is as early as it may be.
func (c *core) stamp() {
	c.stop.stamps++
	at := c.lastBeat + 1
	if c.lastBeat == 0 || !c.guard.forgot() {
		at = max(at, c.serviceTime())
	}
	c.stop.token = c.do(store.StampStopped{Relay: c.id.relay, Incarnation: c.id.incarnation, At: at, NotAfter: c.stop.until})
}

func (c *core) stopReplied(m actors.Replied) {
	if _, stamp := m.Request.(store.StampStopped); stamp {
		c.stamped(m.Reply)
		return
	}
	page, ok := m.Reply.Result.(store.CoordinationPage)
	if !ok {
		c.arm(repeatTimer, stampPause)
		return
	}
	c.stop.view.add(page)
	if page.Next != "" {
		c.readLeases(page.Next)
		return
	}
	c.handBack()
}

func (c *core) stamped(r store.Reply) {
	if r.Class != store.Done && r.Class != store.Refused && c.stop.stamps < maxStamps {
		c.arm(repeatTimer, stampPause)
		return
	}
	c.stop.phase = reading
	c.readLeases("")
}

func (c *core) readLeases(after string) {
	if after == "" {
		c.stop.view, c.stop.readAt = c.newView(), c.now
	}
	c.stop.token = c.do(store.ReadCoordination{After: after, NotAfter: c.stop.until})
}

// handBack frees every lease that names us and our incarnation, also one that we
// did not know of; but not that of a bucket of which something may still be
// published, or set aside: its actor has not come to rest, or it has panicked and has
// no successor that did.
func (c *core) handBack() {
	c.stop.phase, c.stop.reads = freeing, c.stop.reads+1
	c.stop.frees = map[uint64]bool{}
	round := bucket.Round{Now: c.now, ReadAt: c.stop.readAt}
	for b, lease := range c.stop.view.leases {
		k := &c.children[b]
		names := lease != nil && lease.Owner == c.id.relay && lease.Incarnation == c.id.incarnation
		switch {
		case k.tenure != 0 && k.quiesced:
			c.tell(b, bucket.Attend{Round: round, Lease: lease, Verdict: bucket.Leave})
			if !k.asked {
				k.asked = true
				c.stop.asked++
			}
		case k.tenure == 0 && names && k.failures.count == 0:
			token := c.do(store.Release{
				Bucket: b, Relay: c.id.relay, Seen: lease.Expires, Now: c.now.Ticks(), NotAfter: c.stop.until,
			})
			c.stop.frees[token] = true
		}
	}
	if c.allFreed() {
		c.handedBack()
		return
	}
	c.arm(repeatTimer, c.cfg.LeaseRenewInterval/2)
}

// freed: a release that we sent ourselves has ended.
func (c *core) freed(m actors.Replied) {
	if c.stop.frees[m.Token] {
		delete(c.stop.frees, m.Token)
		c.stopStep()
	}
}

// allFreed tells whether each release of this pass has ended.
func (c *core) allFreed() bool { return c.stop.asked+len(c.stop.frees) == 0 }

// readAgain looks for a lease that names us still, since a claim that was sent
// before the stop may have landed meanwhile (case L-02).
func (c *core) readAgain() {
	c.timers[repeatTimer]++
	if c.stop.reads == maxFinalReads {
		c.handedBack()
		return
	}
	c.stop.phase = reading
	c.readLeases("")
}

// handedBack ends the stop: of a relay that was asked to, or of one that has
// withdrawn for a while.
func (c *core) handedBack() {
	if c.state == withdrawn {
		c.goAway()
		return
	}
	c.finish(c.stop.err)
}
