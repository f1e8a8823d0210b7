package coordinator

import (
	"fmt"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// state is where the relay is in its life.
type state string

const (
	starting state = "starting" // neither table nor broker may have been reached yet
	active   state = "active"
	standby  state = "standby" // no share, and nothing held
	// withdrawn: as if stopped, until the relay can be trusted to take part again.
	withdrawn state = "withdrawn"
	stopping  state = "stopping"
	stopped   state = "stopped"
)

// identity is what the relay is known by in the table.
type identity struct{ relay, incarnation string }

// core is the coordinator without I/O: a message in, effects out.
type core struct {
	cfg   Config
	id    identity
	state state

	// rename gives a relay that joins anew an incarnation that is higher than the
	// one before, and an id of its own unless that was configured.
	rename func(now actors.Instant, before identity) identity

	began     actors.Instant
	ready     bool           // a round was completed since it began, or came back
	tableRead bool           // starting: the coordination partition was read once
	connected bool           // a broker was reached
	cutOff    actors.Instant // since when no broker is; zero: none was yet
	failed    int            // reads that failed in a row while starting

	guard     guard
	skewed    bool          // our clock is off, and that was said
	offRounds int           // in a row
	wentBack  time.Duration // our wall clock's step, by more than LeaseDuration; 0: none

	round      round
	rounds     uint64      // completed
	lastBeat   store.Ticks // the latest LastSeen of all heartbeats sent
	beats      int         // heartbeats sent under this incarnation
	refusing   bool        // our heartbeats are refused
	paced      []int       // buckets that are still to be told of the round
	inTurn     int         // so many at once
	children   []child     // by bucket
	busy       int         // children that have not quiesced
	worked     bool        // a lease was ours in some round
	lastTenure int64

	publisher         int // number of the publisher actor
	publisherFailures failures

	stop stop

	lastToken uint64
	timers    [timerKinds]uint64
	now       actors.Instant
	effects   []effect
}

// child is the bucket actor of one bucket.
type child struct {
	tenure   int64 // 0: none
	quiesced bool
	asked    bool // was told to hand its lease back, and has not ended
	// elder is until when the lease was that of an older process of our id, as a round
	// read it last; 0: it never was.
	elder store.Ticks
	// failures are panics of the bucket's actors; none is spawned before notBefore.
	failures
	notBefore actors.Instant
}

func newCore(cfg Config, incarnation string) *core {
	return &core{
		cfg: cfg, id: identity{cfg.Relay, incarnation}, state: starting, children: make([]child, cfg.BucketCount),
		guard: guard{limit: cfg.Bucket.MaxClockSkew / 2},
	}
}

// start is the core's first step.
func (c *core) start(now actors.Instant) []effect {
	c.now, c.began, c.effects = now, now, c.effects[:0]
	c.guard.look(now)
	c.emit(event.RelayStarted{Incarnation: c.id.incarnation})
	c.openPublisher()
	c.beginRound()
	return c.effects
}

// step takes one message and returns what is to be done, in order. The slice is
// good until the next step.
func (c *core) step(now actors.Instant, message any) []effect {
	c.now, c.effects = now, c.effects[:0]
	if c.state == stopped {
		return nil
	}
	c.lookAtClock()
	switch m := message.(type) {
	case Stop:
		c.beginStop(nil)
	case Notify:
		c.notify(m.Buckets)
	case actors.Replied:
		c.replied(m)
	case publisher.Connected:
		c.reached()
	case publisher.Unusable:
		c.unusable(m)
	case publisher.Disconnected:
		c.disconnected()
	case bucket.Quiesced:
		c.quiesced(m)
	case bucket.Mismatched:
		c.mismatched(m)
	case bucket.Ended:
		c.ended(m)
	case bucket.Failed:
		c.bucketFailed(m)
	case childDied:
		c.childDied(m)
	case publisherDied:
		c.publisherDied(m.number)
	default:
		c.timer(message)
	}
	c.checkInvariants()
	return c.effects
}

func (c *core) timer(message any) {
	switch m := message.(type) {
	case roundDue:
		if m.number == c.timers[roundTimer] {
			c.beginRound()
		}
	case deadlineDue:
		if m.number == c.timers[deadlineTimer] {
			c.deadlinePassed()
		}
	case repeatDue:
		if m.number == c.timers[repeatTimer] {
			c.repeatStop()
		}
	case publisherDue:
		if m.number == c.timers[publisherTimer] {
			c.openPublisher()
		}
	case paceDue:
		if m.number == c.timers[paceTimer] {
			c.holdNext()
		}
	default:
		panic(fmt.Sprintf("coordinator: unknown message %T", message))
	}
}

// replied sorts a reply by its token; one that nobody waits for is ignored.
func (c *core) replied(m actors.Replied) {
	c.guard.heard(m)
	switch {
	case m.Token == 0:
	case m.Token == c.round.token:
		c.round.token = 0
		c.roundReplied(m)
	case m.Token == c.stop.token:
		c.stop.token = 0
		c.stopReplied(m)
	default:
		c.freed(m)
	}
}

// reached: a broker answers. A relay that waited for one goes on at once.
func (c *core) reached() {
	c.connected = true
	if c.state == starting && c.tableRead && c.round.token == 0 || c.away() && c.round.token == 0 {
		c.beginRound()
	}
}

// unusable: the dead-letter topic does not exist. A relay that has begun goes on:
// the topic may come back, and its letters wait.
func (c *core) unusable(m publisher.Unusable) {
	if c.state == starting && !c.ready {
		c.finish(fmt.Errorf("%w: topic %q: %w: create it, or choose another policy for rejected records", ErrDeadLetterTopic, m.Topic, m.Fault))
	}
}

func (c *core) disconnected() {
	if c.connected {
		c.connected, c.cutOff = false, c.now
	}
}

func (c *core) notify(buckets []int) {
	for _, b := range buckets {
		if b >= 0 && b < len(c.children) && c.children[b].tenure != 0 {
			c.tell(b, bucket.Wake{})
		}
	}
}

// mismatched: the table was written with another bucket count. It is the table
// that is wrong, so whoever takes over will stop too.
func (c *core) mismatched(m bucket.Mismatched) {
	if c.state == stopping {
		return
	}
	c.emit(event.BucketCountMismatch{
		Bucket: m.Bucket, Sequence: m.Sequence, Stamped: m.Stamped, Ours: c.cfg.BucketCount,
	})
	c.beginStop(fmt.Errorf("%w: message %d of bucket %d was written with bucket count %d, this relay has %d",
		ErrBucketCount, m.Sequence, m.Bucket, m.Stamped, c.cfg.BucketCount))
}

// replaced: another process runs under our id. Nothing more is written.
func (c *core) replaced(by string) {
	c.emit(event.RelayReplaced{Incarnation: c.id.incarnation, By: by})
	c.finish(fmt.Errorf("%w: relay %s: incarnation %s was replaced by %s",
		ErrReplaced, c.id.relay, c.id.incarnation, by))
}

// finish ends everything now; leases that were not handed back lapse.
func (c *core) finish(err error) {
	unreleased := 0
	for _, k := range c.children {
		if k.tenure != 0 || k.failures.count > 0 {
			unreleased++
		}
	}
	c.state = stopped
	c.emit(event.RelayStopped{Unreleased: unreleased, Err: err})
	c.effects = append(c.effects, finish{err})
}

func (c *core) do(r store.Request) uint64 {
	c.lastToken++
	c.effects = append(c.effects, do{request: r, token: c.lastToken})
	return c.lastToken
}

func (c *core) arm(t timer, after time.Duration) {
	c.timers[t]++
	c.effects = append(c.effects, arm{timer: t, after: max(0, after), number: c.timers[t]})
}

func (c *core) emit(e event.Event) { c.effects = append(c.effects, emit{e}) }

// tell sends a command to the actor of a bucket.
func (c *core) tell(b int, message any) {
	c.effects = append(c.effects, tell{tenure: c.children[b].tenure, message: message})
}

// checkInvariants panics when the core is in a state that must not be. The
// numbers are those of docs/invariants.md.
func (c *core) checkInvariants() {
	if c.state == starting && c.beats != 0 {
		panic("coordinator: I-13: a heartbeat was sent before table and broker were reached")
	}
	if c.round.token != 0 && c.stop.token != 0 {
		panic("coordinator: I-14: a round goes on while leases are handed back")
	}
}
