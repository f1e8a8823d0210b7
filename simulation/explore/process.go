package explore

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/actors/coordinator"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// process is one operating system process with one relay in it, as a value: its
// actors, their messages and timers, its clocks. A process that another world may
// see is never changed; whoever wants to go on with it takes a copy.
type process struct {
	number int    // among all of the search, from 0
	name   string // of the process: its relay id, with a number behind that from the second on
	relay  string

	actors []hosted // the coordinator first
	queue  []letter // of all its actors, in the order in which they were sent
	timers []timer  // by due, in order of their making at the same tick
	armed  uint64   // timers that were made

	born    int         // the tick
	bornAt  store.Ticks // by its wall clock
	offset  int         // of the wall clock: -1, 0 or 1 half of the allowed skew ahead
	stalled int         // until that tick nothing of it runs; 0: it runs
	dead    bool
	leaving bool // was asked to stop
	ended   bool // the coordinator has ended by itself

	beliefs []actors.Instant // by bucket: until when it holds the lease valid; zero: it does not
	code    stateHash        // of all that
}

// hosted is one actor. One without behaviour is the publisher, whose part the world
// plays.
type hosted struct {
	pid    *actor.PID
	actor  actor.Actor
	latest uint64 // the token of its latest request
}

// letter is a message on its way to an actor.
type letter struct {
	to      string
	message any
}

// timer is a message that waits for a tick.
type timer struct {
	number uint64
	due    int
	letter letter
}

const coordinatorID = "coordinator"

// boot makes a process with a relay in it, and runs it until it waits.
func (x *search) boot(w *world, relay string, offset int) {
	n := len(w.processes)
	p := &process{
		number: n, name: w.freeName(relay), relay: relay, born: w.tick, offset: offset,
		beliefs: make([]actors.Instant, x.o.Buckets),
	}
	r := x.runtime(n)
	c := coordinator.New(x.config(p, r), r)()
	p.actors = []hosted{{pid: &actor.PID{Id: coordinatorID}, actor: c}}
	w.processes = append(w.processes, p)
	p.bornAt = p.now(w).Ticks()
	x.within(w, p, func() {
		p.receive(x, p.actors[0], &actor.Started{})
		preset(c, x.o.RoundsBefore)
	})
}

// freeName is what the next process of a relay is called.
func (w *world) freeName(relay string) string {
	if w.started(relay) {
		return fmt.Sprintf("%s%d", relay, len(w.processes))
	}
	return relay
}

func (x *search) config(p *process, r *runtime) coordinator.Config {
	return coordinator.Config{
		Relay: p.relay, Mode: "ordered", BucketCount: x.o.Buckets,
		LeaseDuration: x.o.leaseDuration(), LeaseRenewInterval: x.o.interval(), ShutdownTimeout: x.o.shutdownTimeout(), MaxConcurrency: 8,
		Bucket: bucket.Config{
			BatchSize: x.o.BatchSize, MaxBatchBytes: 8 << 20, PollInterval: x.o.pollInterval(), ErrorBackoff: tick,
			LeaseDuration: x.o.leaseDuration(), LeaseRenewInterval: x.o.interval(), MaxClockSkew: x.plant.skew(x.o.skew()), Poison: bucket.Park, PoisonAfter: 1,
		},
		Ended: func(error) { x.here(r.process).ended = true },
	}
}

// within lets something happen in a process, then runs it until all its actors
// wait. The process must be the world's own copy.
func (x *search) within(w *world, p *process, do func()) {
	x.world = w
	do()
	for p.stalled == 0 && !p.gone() && w.broken == nil {
		if len(p.queue) > 0 {
			next := p.queue[0]
			p.queue = p.queue[1:]
			if h, found := p.find(next.to); found && h.actor != nil {
				p.receive(x, h, next.message)
			}
			continue
		}
		if len(p.timers) == 0 || p.timers[0].due > w.tick {
			break
		}
		p.queue = append(p.queue, p.timers[0].letter)
		p.timers = p.timers[1:]
	}
	if p.gone() {
		p.actors, p.queue, p.timers = nil, nil, nil
		clear(p.beliefs)
	}
	p.code = p.encode(w)
}

// gone tells whether nothing of the process will ever run again.
func (p *process) gone() bool { return p.dead || p.ended }

func (p *process) find(id string) (hosted, bool) {
	for _, h := range p.actors {
		if h.pid.Id == id {
			return h, true
		}
	}
	return hosted{}, false
}

// receive lets an actor have a message, and carries out its end if that follows.
func (p *process) receive(x *search, h hosted, message any) {
	ctx := &courier{search: x, process: p, self: h.pid, message: message}
	if !x.attempt(p, h, ctx) || !ctx.stop {
		return
	}
	var ending []hosted // children first
	for _, child := range p.actors {
		if strings.HasPrefix(child.pid.Id, h.pid.Id+"/") {
			ending = append(ending, child)
		}
	}
	for _, one := range append(ending, h) {
		p.actors = slices.DeleteFunc(p.actors, func(other hosted) bool { return other.pid == one.pid })
		if one.actor == nil {
			continue
		}
		x.attempt(p, one, &courier{search: x, process: p, self: one.pid, message: &actor.Stopping{}})
		x.attempt(p, one, &courier{search: x, process: p, self: one.pid, message: &actor.Stopped{}})
	}
	if parent, found := p.find(coordinatorID); found && h.pid.Id != coordinatorID {
		p.receive(x, parent, &actor.Terminated{Who: h.pid})
	}
}

// attempt is false when the actor panics, which breaks a promise.
func (x *search) attempt(p *process, h hosted, ctx *courier) (survived bool) {
	defer func() {
		if reason := recover(); reason != nil {
			x.world.breaks("I-9", "%s: %s panicked: %v", p.name, h.pid.Id, reason)
		}
	}()
	if x.plant.step != nil && h.pid.Id != coordinatorID {
		if after := x.plant.step(h.core(), ctx.message); after != nil {
			defer after()
		}
	}
	h.actor.Receive(ctx)
	return true
}

// chosen is why an actor panics whose panic is a choice.
const chosen = "chosen"

// bucketActor is the place of the actor of bucket 0 among the actors; -1: there is none.
func (p *process) bucketActor() int {
	return slices.IndexFunc(p.actors, func(h hosted) bool { return strings.Contains(h.pid.Id, "/bucket-0-") })
}

// fail ends the actor of bucket 0 as a panic does. The process goes on.
func (p *process) fail(x *search) {
	dead := p.actors[p.bucketActor()]
	p.actors = slices.DeleteFunc(p.actors, func(h hosted) bool { return h.pid == dead.pid })
	x.attempt(p, dead, &courier{search: x, process: p, self: dead.pid, message: &actor.Stopping{}})
	p.beliefs[0] = actors.Instant{}
	claim := dead.core().FieldByName("cfg").FieldByName("Claim").Int()
	p.queue = append(p.queue, letter{coordinatorID, bucket.Failed{Tenure: claim, Reason: chosen}})
}

// copy is the process for a world of its own.
func (p *process) copy(x *search) *process {
	n := *p
	n.actors = slices.Clone(p.actors)
	for i := range n.actors {
		if n.actors[i].actor != nil {
			n.actors[i].actor = x.copies.of(n.actors[i].actor).(actor.Actor)
		}
	}
	n.queue, n.timers, n.beliefs = slices.Clone(p.queue), slices.Clone(p.timers), slices.Clone(p.beliefs)
	return &n
}

// encode is what tells this process from others.
func (p *process) encode(w *world) stateHash {
	e := encoder{out: w.search.buffer[:0], now: p.now(w)}
	for _, n := range []int{p.number, p.born, p.offset, p.stalled} {
		e.number(int64(n))
	}
	e.text(p.relay)
	e.is(p.dead)
	e.is(p.leaving)
	e.is(p.ended)
	for i := range p.actors {
		h := &p.actors[i]
		h.latest = h.lastToken()
		e.lastToken = h.latest
		e.text(h.pid.Id)
		if h.actor != nil {
			v := reflect.ValueOf(h.actor)
			compile(v.Type().Elem())(&e, v.UnsafePointer())
		}
	}
	for _, l := range p.queue {
		p.encodeLetter(&e, l)
	}
	for _, t := range p.timers {
		e.number(int64(t.due))
		p.encodeLetter(&e, t.letter)
	}
	for _, b := range p.beliefs {
		e.number(int64(b.Wall))
		e.number(int64(b.Mono))
	}
	w.search.buffer = e.out
	return e.hash()
}

func (p *process) encodeLetter(e *encoder, l letter) {
	to, _ := p.find(l.to)
	e.lastToken = to.latest
	e.text(l.to)
	e.letter(to, l.message)
}

// now reads the process's clocks. Wall clocks of two processes are never at the
// same microsecond, however they are set.
func (p *process) now(w *world) actors.Instant {
	since := time.Duration(w.tick) * tick
	ahead := time.Duration(p.offset)*w.search.o.halfSkew() + w.search.o.apart(p.number)
	return actors.Instant{Wall: epoch + since + ahead, Mono: since - time.Duration(p.born)*tick}
}

// runtime is the actors' Runtime in the process of a number, in whichever world is
// being worked on.
type runtime struct {
	search  *search
	process int
	made    actor.Producer // of the latest Props
}

var _ actors.Runtime = (*runtime)(nil)

func (x *search) runtime(process int) *runtime {
	for len(x.runtimes) <= process {
		x.runtimes = append(x.runtimes, &runtime{search: x, process: len(x.runtimes)})
	}
	return x.runtimes[process]
}

// here is a process of the world that is being worked on.
func (x *search) here(process int) *process { return x.world.processes[process] }

// Now implements actors.Runtime.
func (r *runtime) Now() actors.Instant {
	return r.search.plant.clocks(r.search.here(r.process).now(r.search.world))
}

// constant is a source of randomness that has no state: all jitter is none, and what
// tells incarnations apart is the process's number.
type constant uint64

func (c constant) Uint64() uint64 { return uint64(c)<<32 | uint64(c) }

// Rand implements actors.Runtime.
func (r *runtime) Rand(name string) *rand.Rand {
	if name == coordinatorID {
		return rand.New(constant(r.process + 1))
	}
	return rand.New(constant(1))
}

// After implements actors.Runtime.
func (r *runtime) After(to *actor.PID, d time.Duration, message any) (cancel func()) {
	p := r.search.here(r.process)
	number := p.arm(r.search.world.tick+ticksIn(d), letter{to.Id, message})
	return func() { r.search.here(r.process).disarm(number) }
}

func (p *process) arm(due int, l letter) uint64 {
	p.armed++
	at := len(p.timers)
	for at > 0 && p.timers[at-1].due > due {
		at--
	}
	p.timers = slices.Insert(p.timers, at, timer{p.armed, due, l})
	return p.armed
}

func (p *process) disarm(number uint64) {
	p.timers = slices.DeleteFunc(p.timers, func(t timer) bool { return t.number == number })
}

// Do implements actors.Runtime.
func (r *runtime) Do(to *actor.PID, request store.Request, token uint64) {
	r.search.send(r.search.here(r.process), to, request, token)
}

// Emit implements actors.Runtime.
func (r *runtime) Emit(e event.Event) { r.search.observe(r.search.here(r.process), e) }

// Props implements actors.Runtime.
func (r *runtime) Props(producer actor.Producer, _ ...actor.PropsOption) *actor.Props {
	r.made = producer
	return &actor.Props{}
}

// courier is an actor's context: what protoactor offers and the actors use.
type courier struct {
	actor.Context
	search  *search
	process *process
	self    *actor.PID
	message any
	stop    bool
}

// Message implements actor.Context.
func (c *courier) Message() any { return c.message }

// Self implements actor.Context.
func (c *courier) Self() *actor.PID { return c.self }

// Send implements actor.Context.
func (c *courier) Send(to *actor.PID, message any) {
	if to == nil {
		return
	}
	if h, found := c.process.find(to.Id); found && h.actor == nil {
		c.search.toPublisher(c.process, message)
		return
	}
	c.process.queue = append(c.process.queue, letter{to.Id, message})
}

// SpawnNamed implements actor.Context. The publisher is played by the world; it
// reaches a broker at once.
func (c *courier) SpawnNamed(_ *actor.Props, name string) (*actor.PID, error) {
	h := hosted{pid: &actor.PID{Id: c.self.Id + "/" + name}}
	if strings.HasPrefix(name, "publisher-") {
		c.process.actors = append(c.process.actors, h)
		c.Send(c.self, publisher.Connected{})
		return h.pid, nil
	}
	h.actor = c.search.runtime(c.process.number).made()
	c.process.actors = append(c.process.actors, h)
	c.process.receive(c.search, h, &actor.Started{})
	return h.pid, nil
}

// Stop implements actor.Context.
func (c *courier) Stop(*actor.PID) { c.stop = true }
