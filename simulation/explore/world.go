package explore

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/store"
)

// world is one state of everything, as a value.
type world struct {
	search    *search
	tick      int
	table     *table
	processes []*process
	wires     []wire
	left      budget
	named     []naming // by bucket
	delivery  delivery
	aside     aside

	healing phase
	refused int // writes, while all should be settled
	broken  *Violation
}

// phase is how far a world has come on its way to a settled fleet.
type phase uint8

const (
	trying   phase = iota
	settling       // nothing is chosen any more
	emptying       // and all that is set aside is retried
)

// budget is what may still happen.
type budget struct{ faults, stops, restarts int }

// naming is since when a lease has named a process's incarnation.
type naming struct {
	incarnation string
	since       int // ticks
}

// wire is a request on its way, or its answer.
type wire struct {
	process int
	to      *actor.PID
	token   uint64
	request store.Request
	code    string // of the request
	sent    actors.Instant
	since   int // the tick at which it was sent

	state wireState
	until int          // the tick to which it is delayed
	reply *store.Reply // that is on its way back
	again bool         // it was applied before

	part   *store.Fetched // what a fetch has read below its border
	border int
}

// wireState is how far a request has come.
type wireState uint8

const (
	underWay wireState = iota // must arrive before time goes on
	delayed
	lurking // its sender will not hear of it, and it lands at any time, or never
)

// copy is a world to go on with. Processes are shared until they are changed.
func (w *world) copy() *world {
	n := *w
	n.processes, n.wires, n.named = slices.Clone(w.processes), slices.Clone(w.wires), slices.Clone(w.named)
	n.delivery, n.aside = w.delivery.copy(), w.aside.copy()
	return &n
}

// own is the world's own copy of a process.
func (w *world) own(number int) *process {
	p := w.processes[number].copy(w.search)
	w.processes[number] = p
	return p
}

// urgent tells whether something must happen before time goes on.
func (w *world) urgent() bool {
	return slices.ContainsFunc(w.wires, func(one wire) bool { return one.state == underWay }) || w.publishing()
}

// send takes a request on its way.
func (x *search) send(p *process, to *actor.PID, r store.Request, token uint64) {
	w := x.world
	if x.plant.request != nil {
		r = x.plant.request(r)
	}
	now := p.now(w)
	w.sendingAside(p, r)
	if deadline := r.Deadline(); !deadline.IsZero() && now.Until(deadline) <= 0 {
		p.queue = append(p.queue, letter{to.Id, actors.Replied{Token: token, Request: r, Reply: store.NotSent(r)}})
		return
	}
	if _, releases := r.(store.Release); releases {
		w.releasing(p)
	}
	if x.plant.early != nil && x.plant.early(r) {
		done := store.Reply{Result: store.MoveResult{}}
		p.queue = append(p.queue, letter{to.Id, actors.Replied{Token: token, Request: r, Reply: done, Sent: now, Received: now}})
	}
	one := wire{process: p.number, to: to, token: token, request: r, code: requestCode(r), sent: now, since: w.tick}
	if x.prompt(r) {
		replied := actors.Replied{Token: token, Request: r, Reply: w.apply(one), Sent: now, Received: now}
		p.queue = append(p.queue, letter{to.Id, replied})
		return
	}
	at := len(w.wires)
	for at > 0 && w.wires[at-1].process > p.number {
		at--
	}
	w.wires = slices.Insert(w.wires, at, one)
}

// prompt tells whether a request is applied and answered at once, without a choice:
// looks for messages where there are none, or which of the two it finds does not
// matter, and the lanes that the search is not about.
func (x *search) prompt(r store.Request) bool {
	switch r.(type) {
	case store.Discover:
		return true
	case store.Fetch:
		return len(x.o.Rows) == 0
	case store.ReadMarkers:
		return !x.o.parking()
	}
	return x.o.Prompt && r.Lane() == store.Coordination
}

// apply lets the table have a request, and checks what comes of it.
func (w *world) apply(one wire) store.Reply {
	before := w.table
	a := w.search.tables.apply(before, one.request, one.code)
	w.table = a.after
	if a.reply.Class == store.Refused {
		w.refused++
	}
	w.written(w.processes[one.process], one.request, before)
	if f := w.search.plant.reply; f != nil {
		return f(one.request, a.reply)
	}
	return a.reply
}

// answer brings a reply to the process.
func (w *world) answer(one wire, reply store.Reply) {
	if w.processes[one.process].gone() {
		return
	}
	w.shown(one.process, one.request, reply)
	p := w.own(one.process)
	w.search.within(w, p, func() {
		p.queue = append(p.queue, letter{one.to.Id, actors.Replied{
			Token: one.token, Request: one.request, Reply: reply, Sent: one.sent, Received: p.now(w),
		}})
	})
}

// giveUp makes the sender conclude, in time, that no answer comes.
func (w *world) giveUp(one wire) {
	p := w.own(one.process)
	due := one.since + w.search.o.requestTicks()
	reply := unanswered(one.request)
	if f := w.search.plant.reply; f != nil {
		reply = f(one.request, reply)
	}
	w.search.within(w, p, func() {
		p.arm(due, letter{one.to.Id, actors.Replied{
			Token: one.token, Request: one.request, Reply: reply, Sent: one.sent, Received: one.sent.Add(w.search.o.interval() / 2),
		}})
	})
}

// unanswered is what the sender of a request concludes when no answer came.
func unanswered(r store.Request) store.Reply {
	reply := store.Reply{Class: store.Ambiguous, Err: fmt.Errorf("%s: %w", r.RequestName(), store.ErrUnavailable)}
	if !writes(r) {
		reply.Class = store.Retriable
	}
	return reply
}

func throttled(r store.Request) store.Reply {
	return store.Reply{Class: store.Retriable, Err: fmt.Errorf("%s: %w", r.RequestName(), store.ErrThrottled)}
}

// goOn lets a tick go by: what was delayed arrives, and timers fire.
func (w *world) goOn() {
	w.tick++
	for i := range w.wires {
		if one := &w.wires[i]; one.state == delayed && one.until <= w.tick {
			one.state = underWay
		}
	}
	for i := range w.delivery.batches {
		if one := &w.delivery.batches[i]; one.state == delayed && one.until <= w.tick {
			one.state = underWay
		}
	}
	for i, p := range w.processes {
		resumes := p.stalled > 0 && p.stalled <= w.tick
		fires := len(p.timers) > 0 && p.timers[0].due <= w.tick
		if p.gone() || !resumes && !(fires && p.stalled == 0) {
			continue
		}
		own := w.own(i)
		if resumes {
			own.stalled = 0
		}
		w.search.within(w, own, func() {})
	}
}

// encode is what tells this world from others.
func (w *world) encode() stateHash {
	e := encoder{out: w.search.buffer[:0]}
	for _, n := range []int{int(w.healing), w.tick, w.table.number, w.left.faults, w.left.stops, w.left.restarts} {
		e.number(int64(n))
	}
	e.number(int64(len(w.processes)))
	for _, p := range w.processes {
		e.out = append(e.out, p.code[:]...)
	}
	for _, one := range w.wires {
		e.number(int64(one.process))
		e.number(int64(one.state))
		e.text(one.code)
		if one.state != lurking {
			to, _ := w.processes[one.process].find(one.to.Id)
			e.lastToken = to.latest
			e.text(one.to.Id)
			e.token(one.token)
			e.number(int64(one.until))
			e.number(int64(one.since))
			e.is(one.again)
			if one.reply != nil {
				e.reply(*one.reply)
			}
			e.number(int64(one.border))
			if one.part != nil {
				e.any(*one.part)
			}
		}
	}
	for _, n := range w.named {
		e.text(n.incarnation)
		e.number(int64(min(w.tick-n.since, 2*w.search.o.Interval+1)))
	}
	w.encodeDelivery(&e)
	if w.search.o.parking() {
		w.encodeAside(&e)
	}
	w.search.buffer = e.out
	return e.hash()
}
