package explore

import (
	"slices"

	"github.com/bucketbrigade/relay/actors/coordinator"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// choice is one thing that the environment may do next.
type choice struct {
	kind    choiceKind
	index   int // of the wire or process
	operand int
}

type choiceKind uint8

const (
	arrive      choiceKind = iota // a request is applied and answered, or its answer arrives
	land                          // a request whose sender has given up is applied
	hold                          // a request gets no answer in time
	repeat                        // a request is applied, and stays on its way
	throttle                      // a request is not applied, and that is answered
	slow                          // a request arrives a tick later
	slowAnswer                    // a request is applied, and answered a tick later
	start                         // a relay starts; index is its number, operand its clock
	stop                          // a relay is asked to stop
	crash                         // a process dies
	stall                         // a process stands still for operand ticks
	setClock                      // a wall clock is set to operand
	elapse                        // a tick goes by
	commit                        // a transaction commits; index is its first row
	acknowledge                   // the broker has a batch, and says so
	unsent                        // the broker has operand rows of a batch, and no more
	unheard                       // a batch is given up
	linger                        // a batch takes a tick longer
	late                          // a batch that was given up is appended
	splitFetch                    // a fetch reads below operand now, and the rest when it arrives
	fail                          // a process's bucket actor panics, without a cause
	operate                       // an operator changes what is set aside; index is which operation
	ring                          // the operator rings for the owner
	mend                          // the broker takes what it rejected
	tear                          // a transaction is applied, and operand are the bits of what is not seen of it
	appear                        // the rest of it is seen
	partly                        // a delete is processed but for what is behind operand rows
)

// choices are what may happen next: what goes well first.
func (w *world) choices() []choice {
	o := w.search.o
	var list []choice
	add := func(kind choiceKind, index, operand int) { list = append(list, choice{kind, index, operand}) }
	if len(w.processes) == 0 {
		w.joins(add)
		return list
	}
	urgent := false
	for i, one := range w.wires {
		switch one.state {
		case underWay:
			urgent = true
			add(arrive, i, 0)
		case lurking:
			add(land, i, 0)
		}
	}
	urgent = w.deliveryChoices(add) || urgent
	w.asideChoices(add)
	w.processChoices(add)
	if w.left.faults > 0 && w.tick < o.FaultTicks {
		w.faultChoices(add)
	}
	if !urgent && w.tick < o.Ticks && !w.veilEnds() {
		add(elapse, 0, 0)
	}
	if !urgent && w.tick == o.Ticks {
		return nil // what still lurks never lands
	}
	return list
}

// offsets are the clocks that a process may start with.
func (o Options) offsets() []int {
	if o.Clocks {
		return []int{0, -1, 1}
	}
	return []int{0}
}

// processChoices are the comings and goings of relays.
func (w *world) processChoices(add func(choiceKind, int, int)) {
	o := w.search.o
	if w.tick < o.JoinWithin {
		w.joins(add)
	}
	for i, p := range w.processes {
		if (p.gone() || o.Overlap) && w.left.restarts > 0 && w.latest(p) {
			add(start, int(p.relay[0]-'a'), p.offset)
		}
		if !p.gone() && !p.leaving && w.left.stops > 0 {
			add(stop, i, 0)
		}
	}
}

// joins are the starts of relays that have not started yet.
func (w *world) joins(add func(choiceKind, int, int)) {
	for n := range w.search.o.Relays {
		if w.started(relayID(n)) {
			continue
		}
		for _, offset := range w.search.o.offsets() {
			add(start, n, offset)
		}
	}
}

func (w *world) started(relay string) bool {
	return slices.ContainsFunc(w.processes, func(p *process) bool { return p.relay == relay })
}

// relayID is that of the relay of a number: a, b and so on.
func relayID(n int) string { return string(rune('a' + n)) }

// latest tells whether a process is the last that ran under its relay id.
func (w *world) latest(p *process) bool {
	for _, other := range w.processes[p.number+1:] {
		if other.relay == p.relay {
			return false
		}
	}
	return true
}

// faultChoices are what may go wrong.
func (w *world) faultChoices(add func(choiceKind, int, int)) {
	o := w.search.o
	for i, one := range w.wires {
		if one.state != delayed && one.reply == nil && one.part == nil && o.may(Torn) {
			w.tears(i, add)
		}
		if one.state != underWay || one.reply != nil || one.part != nil {
			continue
		}
		if o.may(Held) {
			add(hold, i, 0)
		}
		if o.may(Repeated) && writes(one.request) && !one.again {
			add(repeat, i, 0)
		}
		if o.may(Throttled) && !one.again {
			add(throttle, i, 0)
		}
		if w.tick < one.since+o.requestTicks() {
			if o.may(Slow) {
				add(slow, i, 0)
			}
			if o.may(SlowAnswer) {
				add(slowAnswer, i, 0)
			}
		}
	}
	for i, p := range w.processes {
		if p.gone() || p.stalled > 0 {
			continue
		}
		if o.may(Crashed) {
			add(crash, i, 0)
		}
		if o.may(Failed) && p.bucketActor() >= 0 {
			add(fail, i, 0)
		}
		if o.may(Stalled) {
			add(stall, i, o.Interval)
			add(stall, i, o.Lease)
		}
		for offset := -1; offset <= 1 && o.may(ClockSet); offset++ {
			if offset != p.offset {
				add(setClock, i, offset)
			}
		}
	}
	w.deliveryFaults(add)
}

// may tells whether a fault is among those that happen; without any named all are,
// but for panics where no row may be set aside.
func (o Options) may(f Fault) bool {
	for _, kind := range o.Kinds {
		if kind == f {
			return true
		}
	}
	return len(o.Kinds) == 0 && (f != Failed || o.parking())
}

// after is the world after a choice.
func (w *world) after(c choice) *world {
	n := w.copy()
	x := w.search
	x.world = n
	if c.fault() {
		n.left.faults--
	}
	switch c.kind {
	case arrive:
		n.arrive(c.index)
	case land:
		one := n.take(c.index)
		n.apply(one)
	case hold:
		n.hold(c.index)
	case repeat:
		n.apply(n.wires[c.index])
		n.wires[c.index].again = true
	case throttle:
		one := n.take(c.index)
		reply := throttled(one.request)
		if f := x.plant.reply; f != nil {
			reply = f(one.request, reply)
		}
		n.answer(one, reply)
	case slow:
		n.wires[c.index].state, n.wires[c.index].until = delayed, n.tick+1
	case slowAnswer:
		reply := n.apply(n.wires[c.index])
		n.wires[c.index].state, n.wires[c.index].until, n.wires[c.index].reply = delayed, n.tick+1, &reply
	case start:
		n.start(c)
	case elapse:
		n.goOn()
	default:
		if !n.happensTo(c) && !n.actsAside(c) {
			n.delivers(c)
		}
	}
	n.check()
	return n
}

// happensTo carries out what happens to a process; false when it is something else.
func (w *world) happensTo(c choice) bool {
	switch c.kind {
	case stop, crash, stall, setClock, fail:
	default:
		return false
	}
	p := w.own(c.index)
	w.search.within(w, p, func() {
		switch c.kind {
		case stop:
			w.left.stops--
			p.leaving = true
			p.queue = append(p.queue, letter{coordinatorID, coordinator.Stop{}})
		case crash:
			p.dead = true
		case stall:
			p.stalled = w.tick + c.operand
		case setClock:
			p.offset = c.operand
		case fail:
			p.fail(w.search)
		}
	})
	if p.gone() {
		w.bury(p)
	}
	return true
}

// fault tells whether a choice costs a fault.
func (c choice) fault() bool {
	switch c.kind {
	case hold, repeat, throttle, slow, slowAnswer, crash, stall, setClock, unsent, unheard, linger, splitFetch, partly, tear, fail:
		return true
	}
	return false
}

// take removes a wire.
func (w *world) take(i int) wire {
	one := w.wires[i]
	w.wires = append(w.wires[:i:i], w.wires[i+1:]...)
	return one
}

// arrive applies a request and answers it, or brings an answer.
func (w *world) arrive(i int) {
	one := w.take(i)
	if one.reply != nil {
		w.answer(one, *one.reply)
		return
	}
	reply := w.apply(one)
	if one.part != nil {
		page := reply.Result.(store.Fetched)
		rest := slices.DeleteFunc(slices.Clone(page.Rows), func(row outbox.Row) bool { return !beyond(one.border)(row) })
		page.Rows = append(slices.Clone(one.part.Rows), rest...)
		reply.Result = page
	}
	w.answer(one, reply)
}

// beyond tells whether a row is at or behind a border.
func beyond(border int) func(outbox.Row) bool {
	return func(row outbox.Row) bool { return row.Sequence >= int64(border) }
}

func (w *world) hold(i int) {
	one := w.wires[i]
	if writes(one.request) {
		w.wires[i].state = lurking
	} else {
		w.take(i)
	}
	w.giveUp(one)
}

func (w *world) start(c choice) {
	relay := relayID(c.index)
	if w.started(relay) {
		w.left.restarts--
	}
	w.search.boot(w, relay, c.operand)
}

// bury leaves a dead process's requests on their own.
func (w *world) bury(p *process) {
	kept := w.wires[:0]
	for _, one := range w.wires {
		if one.process == p.number {
			if one.reply != nil || !writes(one.request) {
				continue
			}
			one.state = lurking
		}
		kept = append(kept, one)
	}
	w.wires = kept
	w.buryBatches(p)
}

// heal ends all choosing.
func (w *world) heal() {
	w.healing = settling
	kept := w.wires[:0]
	for _, one := range w.wires {
		if one.state != lurking {
			kept = append(kept, one)
		}
	}
	w.wires = kept
	w.healDelivery()
	w.healAside()
}

// deliverFirst lets the first thing arrive that must.
func (w *world) deliverFirst() {
	w.search.world = w
	for i, one := range w.wires {
		if one.state == underWay {
			w.arrive(i)
			w.check()
			return
		}
	}
	w.deliverBatch()
	w.check()
}
