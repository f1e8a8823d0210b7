package simulation

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// process is one simulated operating system process with one relay in it. It is
// the actors' Runtime.
type process struct {
	world  *world
	net    *network
	name   string // unique among all processes of the run
	relay  string // the relay id, which a restart may share
	mode   relay.Mode
	seed   uint64
	system *actor.ActorSystem

	born time.Duration // in virtual time
	// joined is when it got its incarnation: when it was born, or renamed.
	joined time.Duration
	clock  clock

	dead         bool
	held         bool          // it has held a lease
	superseded   time.Duration // when the last younger process under its id first held one; 0: none yet
	cutOffUntil  time.Duration // until when no request to the table arrives
	leaving      bool          // was asked to stop
	withdrawn    bool          // it has withdrawn, and has not come back yet
	stalledUntil time.Duration
	stalled      []*mailbox // with messages, until then
	lanes        [2]lane
	failures     actors.Failures
	coordinator  *actor.PID
	observe      func(*process, event.Event)
	ended        bool // the coordinator has ended by itself
	endedWith    error
}

var _ actors.Runtime = (*process)(nil)

// fenced tells whether its relay publishes in transactions, which its successors can
// end.
func (p *process) fenced() bool { return p.mode == relay.ModeFenced }

// Now implements actors.Runtime.
func (p *process) Now() actors.Instant {
	return actors.Instant{
		Wall: epoch + p.world.now + p.clock.ahead(p.world.now),
		Mono: p.world.now - p.born - p.clock.stood,
	}
}

// Rand implements actors.Runtime.
func (p *process) Rand(name string) *rand.Rand { return derived(p.seed, p.name+"/"+name) }

// maxDue bounds what is to happen in a run: actors arm one timer for each thing
// that they wait for, so more is a leak.
const maxDue = 50_000

// After implements actors.Runtime.
func (p *process) After(to *actor.PID, d time.Duration, message any) (cancel func()) {
	if len(p.world.due) > maxDue {
		p.panicked("runtime", fmt.Sprintf("I-19: more than %d timers and messages are under way", maxDue))
	}
	e := p.world.schedule(p, d, func() { p.system.Root.Send(to, message) })
	e.timer = true
	return func() { e.do = nil }
}

// Do implements actors.Runtime.
func (p *process) Do(to *actor.PID, r store.Request, token uint64) {
	p.net.send(p, r, func(reply store.Reply, sent actors.Instant) {
		for _, e := range p.failures.Note(r, reply) {
			p.Emit(e)
		}
		replied := actors.Replied{Token: token, Request: r, Reply: reply, Sent: sent}
		if !sent.IsZero() {
			replied.Received = p.Now()
		}
		p.system.Root.Send(to, replied)
	})
}

// Emit implements actors.Runtime.
func (p *process) Emit(e event.Event) {
	p.world.record(p.name, e.EventName(), e)
	p.observe(p, e)
	switch e := e.(type) {
	case event.RelayWithdrawn:
		p.withdrawn = true
	case event.RelayRenamed:
		// Under a higher incarnation it is younger than others under its id.
		p.relay, p.withdrawn, p.held, p.joined = e.Relay, false, false, p.world.now
	}
}

// Props implements actors.Runtime.
func (p *process) Props(producer actor.Producer, opts ...actor.PropsOption) *actor.Props {
	ours := []actor.PropsOption{
		actor.WithDispatcher(dispatcher{}),
		actor.WithMailbox(func() actor.Mailbox { return &mailbox{host: p} }),
	}
	return actor.PropsFromProducer(producer, append(ours, opts...)...)
}

// crash ends the process at once: actors, mailboxes, timers and answers are
// gone. Requests on the wire may still be applied.
func (p *process) crash() {
	if p.dead {
		return
	}
	p.dead = true
	p.world.record(p.name, processDied, nil)
	kept := p.world.ready[:0]
	for _, m := range p.world.ready {
		if m.host != p {
			kept = append(kept, m)
		}
	}
	clear(p.world.ready[len(kept):])
	p.world.ready = kept
}

// stall lets nothing of the process run for a while; time goes on.
func (p *process) stall(d time.Duration) {
	if p.dead || p.stalledUntil > p.world.now {
		return
	}
	p.world.record(p.name, processStalled, paused{d})
	p.pause(d)
}

func (p *process) pause(d time.Duration) {
	p.stalledUntil = p.world.now + d
	kept := p.world.ready[:0]
	for _, m := range p.world.ready {
		if m.host == p {
			p.stalled = append(p.stalled, m)
		} else {
			kept = append(kept, m)
		}
	}
	clear(p.world.ready[len(kept):])
	p.world.ready = kept
	p.world.At(d, p.goOn)
}

// suspend is a stall in which the monotonic clock stands still too, as on a
// machine that sleeps.
func (p *process) suspend(d time.Duration) {
	if p.dead || p.stalledUntil > p.world.now || p.clock.leapt {
		return
	}
	p.world.record(p.name, processSuspended, paused{d})
	p.pause(d)
	p.clock.stood += d
	for _, e := range p.world.due {
		if e.host == p && e.timer {
			e.at += d
		}
	}
	heap.Init(&p.world.due)
}

// setClock moves the wall clock by d, as far as the allowed skew lets it.
func (p *process) setClock(d time.Duration) {
	p.world.record(p.name, processClockSet, clockSet{d})
	p.clock.set(p.world.now, d)
}

// leap sets the wall clock by d away from what it would be; 0 sets it right.
func (p *process) leap(d time.Duration) {
	if p.dead || p.clock.leap == d {
		return
	}
	p.world.record(p.name, processClockSet, clockSet{d - p.clock.leap})
	p.clock.leap, p.clock.leapt = d, true
}

func (p *process) goOn() {
	if p.dead {
		return
	}
	p.world.record(p.name, processResumed, nil)
	p.world.ready = append(p.world.ready, p.stalled...)
	p.stalled = nil
}

// panicked notes a broken invariant of an actor.
func (p *process) panicked(who string, reason any) {
	p.Emit(event.ActorFailed{Actor: who, Bucket: -1, Reason: fmt.Sprint(reason)})
}
