package bucket

import (
	"fmt"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/store"
)

// core is one bucket's tenure without I/O: a message in, effects out.
type core struct {
	cfg     Config
	machine *fsm.Machine
	lease   lease
	fence   fence
	batch   *batch // nil: none; a window of depth one

	// expected is the sequence behind the longest prefix that this tenure has
	// removed, or set aside; a jump over it is a gap.
	// Invariant: never falls, at least 1.
	expected int64
	// fetched is the highest sequence that was ever read in this tenure.
	fetched int64
	// woken is why the bucket is looked at again as soon as the batch has ended;
	// empty: it is not.
	woken string
	// failures counts failed cycles in a row; one that removed a row, or found
	// the bucket empty, clears it.
	failures  int
	malformed int64          // the row at which the last look at the head met one that cannot be read; 0: none
	failing   actors.Instant // since when rows come back unacknowledged; zero: they do not
	failed    int64          // the first of them, the last time
	blocked   block

	parked    parked
	condemned condemned
	// unanswered is the transaction whose effect is not known; nil: none.
	unanswered store.Request
	// repeating: it was sent before, so that what ends this attempt says nothing of the
	// one before.
	repeating       bool
	lastTransaction uint64
	// refusedMove is the first row of the last move, if that was refused; 0: it was not.
	refusedMove int64

	ownedSince actors.Instant // when the tenure's first lease write was confirmed
	// cleanly: the tenure before had ended, or there was none, so that nothing of it is
	// on its way.
	cleanly bool
	// elderLapses is when the leases of an older process of our id have certainly lapsed;
	// zero: there was none.
	elderLapses   actors.Instant
	withheldSince actors.Instant
	pausedSince   actors.Instant
	paused        pause // what was said of the one that is on
	yielding      bool  // draining ends in a release, not in waiting for one
	quiesced      bool  // the coordinator was told that nothing is in flight

	discovering uint64 // token of the Discover under way, 0: none
	lastToken   uint64
	lastBatch   uint64
	timers      [timerKinds]uint64 // the number of the latest timer of each kind

	now     actors.Instant // of the present step
	effects []effect
}

// block is the row at which the bucket stays.
type block struct {
	sequence int64 // 0: the row's sort key itself cannot be read
	reason   string
	since    actors.Instant
	marker   bool // it is no row, but a marker that cannot be read
}

func newCore(cfg Config) *core {
	// Batches of an earlier tenure have other numbers.
	return &core{cfg: cfg, machine: fsm.NewBucket(), expected: 1, lastBatch: uint64(cfg.Claim) << 32}
}

// step takes one message and returns what is to be done, in order. The slice is
// good until the next step.
func (c *core) step(now actors.Instant, message any) []effect {
	c.now, c.effects = now, c.effects[:0]
	if c.machine.In(fsm.Released, fsm.Lost) {
		return nil
	}
	c.lookAgain()
	c.parked.endPauses(c.now.Ticks())
	c.sayPausedTopics()
	switch m := message.(type) {
	case Claim:
		c.lease.read = m.Lease
		c.cleanly = m.Lease == nil || m.Lease.Owner == ""
		c.claim(m.Round)
	case Resume:
		c.lease.read = &m.Lease
		if m.Elder != 0 {
			c.elderLives(m.Elder)
		}
		c.lease.seen, c.lease.resuming = m.Lease.Expires, true
		c.keep(m.Round)
	case Attend:
		c.attend(m)
	case Carry:
		c.carry(m.Round)
	case Quiesce:
		c.drain(Hold)
	case Wake:
		c.wake("notification")
	case Rebind:
		c.forgetFence()
		c.rebind()
	case actors.Replied:
		c.replied(m)
	case publisher.Published:
		c.published(m)
	case publisher.FenceTaken:
		c.fenceTaken(m)
	case pollDue:
		if m.number == c.timers[pollTimer] {
			c.poll()
		}
	case retryDue:
		if m.number == c.timers[retryTimer] {
			c.retry()
		}
	case lapseDue:
		if m.number == c.timers[lapseTimer] {
			c.lapse()
		}
	default:
		panic(fmt.Sprintf("bucket: unknown message %T", message))
	}
	c.settle()
	c.checkInvariants()
	return c.effects
}

// replied sorts a reply by its token; one that nobody waits for is ignored.
func (c *core) replied(m actors.Replied) {
	switch {
	case m.Token == c.lease.token && m.Token != 0:
		c.leaseReplied(m)
	case m.Token == c.discovering && m.Token != 0:
		c.discovered(m)
	case c.batch != nil && c.batch.awaits(m.Token):
		c.batchReplied(m)
	}
}

// discovered: a message waits, or else there is time to look for a key without rows.
func (c *core) discovered(m actors.Replied) {
	c.discovering = 0
	found, ok := m.Reply.Result.(store.Discovered)
	switch {
	case !ok:
	case found.Waiting:
		c.wake("poll")
		c.parked.owed = c.checkDue()
	case c.batch == nil && c.checkDue():
		c.parked.checking = true
		c.wake("check")
	}
}

// settle does what follows from the state after each message: a bucket that is
// ready begins a batch, one that drains and has nothing in flight goes on.
func (c *core) settle() {
	c.sendQueued()
	if c.batch == nil && c.woken == "" && c.retryDue() {
		c.woken = "retry"
	}
	switch {
	case c.machine.In(fsm.Owned, fsm.Blocked) && c.batch == nil && c.woken != "":
		c.begin()
	case c.machine.In(fsm.Draining) && c.batch == nil && c.unfinished():
		c.woken = "drain"
		c.begin()
	case c.machine.In(fsm.Draining) && c.batch == nil && c.lease.token == 0:
		c.drained()
	}
}

// wake asks for a look at the bucket's head, now or when the batch has ended.
func (c *core) wake(cause string) {
	if c.machine.In(fsm.Owned, fsm.Blocked, fsm.Withheld, fsm.Paused, fsm.Claiming) {
		c.woken = cause
	}
}

// poll looks for messages, cheaply, and keeps its own time.
func (c *core) poll() {
	if !c.machine.In(fsm.Owned, fsm.Blocked) {
		return
	}
	c.arm(pollTimer, c.cfg.PollInterval, 0)
	if c.batch != nil && c.checkDue() {
		c.parked.owed = true
	}
	if c.batch != nil || c.discovering != 0 || !c.valid() {
		return
	}
	c.discovering = c.do(store.Discover{Bucket: c.cfg.Bucket, NotAfter: c.lease.validUntil})
}

// drain ends fetching for good. What is published is still deleted.
func (c *core) drain(verdict Verdict) {
	c.yielding = c.yielding || verdict == Yield
	if c.machine.In(fsm.Draining, fsm.Releasing) {
		return
	}
	c.fire(fsm.Drain)
	c.emit(event.BucketDraining{Bucket: c.cfg.Bucket})
	c.woken, c.discovering = "", 0
	c.effects = append(c.effects, disarm{pollTimer})
	if c.batch != nil && c.batch.machine.In(fsm.Fetching, fsm.Probing, fsm.BackingOff) && c.unanswered == nil {
		c.dropBatch()
	}
}

// drained: nothing is in flight and no lease write is under way.
func (c *core) drained() {
	switch {
	case c.unanswered != nil:
		// A keep that is confirmed lets it be repeated.
	case c.yielding && c.lease.seen != 0 && c.lease.resuming && c.lease.read.Incarnation != c.cfg.Incarnation:
		// No keep of ours was ever applied: the lease is that of an earlier process
		// under our id, which may still live. Only its own incarnation hands it back.
		c.lose(c.lease.read)
	case c.yielding && !c.elderGone():
		// The next owner, under another id, would not know of the older process.
	case c.yielding && c.lease.seen != 0:
		c.release()
	case !c.yielding && !c.quiesced:
		c.quiesced = true
		c.tellCoordinator(Quiesced{c.cfg.Bucket, c.cfg.Claim})
	}
}

// end stops the actor; the machine is in one of its ends. Err is why a claim
// could not be written.
func (c *core) end(err error) {
	if c.leavesPublisher() {
		c.tellPublisher(publisher.Abandon{Bucket: c.cfg.Bucket})
	}
	c.batch = nil
	c.tellCoordinator(Ended{c.cfg.Bucket, c.cfg.Claim, err})
	c.effects = append(c.effects, stop{})
}

// pause is an operator's.
type pause struct {
	until      store.Ticks
	by, reason string
}

// pauseOrResume follows what an operator wrote on the lease, as it was last
// read.
func (c *core) pauseOrResume() {
	lease := c.lease.read
	if lease == nil {
		return
	}
	paused := lease.PausedUntil > c.now.Ticks()
	is := pause{lease.PausedUntil, lease.PausedBy, lease.PauseReason}
	switch {
	case paused && c.machine.In(fsm.Owned, fsm.Withheld, fsm.Blocked):
		c.fire(fsm.Pause)
		c.pausedSince = c.now
		c.forgetBlock()
		c.sayPaused(is)
		c.abandon()
	case paused && c.machine.In(fsm.Paused) && is != c.paused: // it has another end, say
		c.sayPaused(is)
	case !paused && c.machine.In(fsm.Paused):
		c.fire(fsm.Resume)
		c.emit(event.BucketResumed{Bucket: c.cfg.Bucket, After: actors.Elapsed(c.pausedSince, c.now)})
		c.start()
		c.confirmOrWithhold() // our clock may still be behind
	}
}

func (c *core) sayPaused(p pause) {
	c.paused = p
	said := event.BucketPaused{Bucket: c.cfg.Bucket, By: p.by, Reason: p.reason}
	if p.until < store.NoEnd {
		said.Until = p.until.Time()
	}
	c.emit(said)
}

// blockAt stays at a row and says so, once for each row.
func (c *core) blockAt(sequence int64, reason string) {
	switch {
	case c.machine.In(fsm.Blocked) && c.blocked.sequence == sequence:
		return
	case c.machine.In(fsm.Blocked):
		c.forgetBlock()
	case c.machine.In(fsm.Owned):
		c.fire(fsm.Block)
	default:
		return
	}
	c.blocked = block{sequence: sequence, reason: reason, since: c.now}
	c.emit(event.BucketBlocked{Bucket: c.cfg.Bucket, Sequence: sequence, Reason: reason})
}

// unblock goes on: the row that blocked is out of the way.
func (c *core) unblock() {
	if c.machine.In(fsm.Blocked) {
		c.fire(fsm.Unblock)
		c.forgetBlock()
	}
}

// forgetBlock says that the bucket does not stay at a row any more: it may be
// blocked anew as soon as it is read again.
func (c *core) forgetBlock() {
	if !c.blocked.since.IsZero() {
		c.emit(event.BucketUnblocked{Bucket: c.cfg.Bucket, After: actors.Elapsed(c.blocked.since, c.now)})
		c.blocked = block{}
	}
}

// fire takes a transition of the bucket's machine. An illegal one is a broken
// invariant.
func (c *core) fire(e fsm.Event) { c.transition(c.machine, e) }

func (c *core) transition(m *fsm.Machine, e fsm.Event) {
	from := m.State()
	if err := m.Fire(e); err != nil {
		panic(err)
	}
	c.emit(event.StateChanged{
		Bucket: c.cfg.Bucket, Machine: m.Name(), Event: string(e), From: string(from), To: string(m.State()),
	})
}

func (c *core) do(r store.Request) uint64 {
	c.lastToken++
	c.effects = append(c.effects, do{request: r, token: c.lastToken})
	return c.lastToken
}

func (c *core) emit(e event.Event) { c.effects = append(c.effects, emit{e}) }

func (c *core) tellCoordinator(message any) {
	c.effects = append(c.effects, tellCoordinator{message})
}

func (c *core) tellPublisher(message any) {
	c.effects = append(c.effects, tellPublisher{message})
}
