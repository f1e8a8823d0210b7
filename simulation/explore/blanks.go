package explore

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"unsafe"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/store"
)

// blanks are fields that are left out of a state (nil), or written otherwise, since
// what they hold decides nothing that the actor will ever do. TestBlanks goes on from
// states that differ in these alone and finds no difference.
var blanks = map[string]writer{
	// Set by each step before it is read.
	"coordinator.core.now": nil, "coordinator.core.effects": nil,
	"bucket.core.now": nil, "bucket.core.effects": nil,
	// Only told to observers.
	"coordinator.core.began": nil, "bucket.core.withheldSince": nil, "bucket.core.pausedSince": nil,
	"bucket.batch.submittedAt": nil,
	// Numbers that only tell the latest from earlier ones: timers are written as live or
	// not, tokens as how many were given out since.
	"coordinator.core.timers": nil, "bucket.core.timers": nil,
	"coordinator.core.lastToken": nil, "bucket.core.lastToken": nil,
	"coordinator.round.token": tokenOf, "coordinator.stop.token": tokenOf,
	"bucket.lease.token": tokenOf, "bucket.batch.token": tokenOf, "bucket.probe.token": tokenOf,
	"bucket.core.discovering": tokenOf,
	// Only told to observers.
	"bucket.core.failing": nil, "bucket.core.failed": nil, "bucket.block.since": nil,
	"bucket.parked.failing": nil, "bucket.parked.rejected": nil,
	"coordinator.stop.frees": func(e *encoder, p unsafe.Pointer) {
		for _, token := range slices.Sorted(maps.Keys(*(*map[uint64]bool)(p))) {
			e.token(token)
		}
		e.text("")
	},
	// A lease write that ended before this instant ended before any read to come.
	"bucket.lease.ended": func(e *encoder, p unsafe.Pointer) {
		if ended := (*actors.Instant)(p); !ended.IsZero() && ended.Mono >= e.now.Mono {
			e.number(int64(ended.Mono))
		}
		e.text("")
	},
	"store.Reply.Err": func(e *encoder, p unsafe.Pointer) { e.is(*(*error)(p) != nil) },
}

func tokenOf(e *encoder, p unsafe.Pointer) { e.token(*(*uint64)(p)) }

// idle leaves out what a struct holds while its token is zero: a round between two
// rounds (but for what is known of the clock), and the round of a lease write when
// none is under way.
func idle(t reflect.Type, whole writer) writer {
	switch t.String() {
	case "coordinator.round":
		token, clock := field(t, "token"), field(t, "clock")
		write := compile(clock.Type)
		return func(e *encoder, p unsafe.Pointer) {
			if *(*uint64)(unsafe.Add(p, token.Offset)) == 0 {
				write(e, unsafe.Add(p, clock.Offset))
				return
			}
			whole(e, p)
		}
	case "bucket.lease":
		token, round := field(t, "token"), field(t, "round")
		return func(e *encoder, p unsafe.Pointer) {
			if *(*uint64)(unsafe.Add(p, token.Offset)) != 0 {
				whole(e, p)
				return
			}
			n := reflect.New(t) // the same without a round
			n.Elem().Set(reflect.NewAt(t, p).Elem())
			open(n.Elem().FieldByName(round.Name)).SetZero()
			whole(e, n.UnsafePointer())
		}
	}
	return whole
}

func field(t reflect.Type, name string) reflect.StructField {
	f, found := t.FieldByName(name)
	if !found {
		panic(fmt.Sprintf("explore: %s has no field %s any more", t, name))
	}
	return f
}

// timerKinds are the places of the timers' numbers in the cores.
var timerKinds = map[string]int{
	"coordinator.roundDue": 0, "coordinator.deadlineDue": 1, "coordinator.repeatDue": 2, "coordinator.publisherDue": 3,
	"bucket.pollDue": 0, "bucket.retryDue": 1, "bucket.lapseDue": 2,
}

// letter writes a message on its way to an actor.
func (e *encoder) letter(to hosted, message any) {
	if r, replied := message.(actors.Replied); replied {
		e.token(r.Token)
		e.text(requestCode(r.Request))
		e.reply(r.Reply)
		return
	}
	t := reflect.TypeOf(message)
	kind, timer := timerKinds[t.String()]
	if !timer {
		e.any(message)
		return
	}
	e.text(t.String())
	if to.actor != nil {
		v := reflect.ValueOf(message)
		e.is(v.Field(0).Uint() == to.core().FieldByName("timers").Index(kind).Uint())
	}
}

func (e *encoder) reply(r store.Reply) {
	e.number(int64(r.Class))
	e.is(r.Err != nil)
	e.any(r.Result)
}

// core is the actor's core.
func (h hosted) core() reflect.Value {
	return reflect.ValueOf(h.actor).Elem().FieldByName("core").Elem()
}

// lastToken is the latest token that an actor has given out.
func (h hosted) lastToken() uint64 {
	if h.actor == nil {
		return 0
	}
	return h.core().FieldByName("lastToken").Uint()
}
