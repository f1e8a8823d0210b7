package actors

import (
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// Instant is a moment by the process's wall and monotonic clock.
type Instant = store.Instant

// Elapsed is how much time has gone by between two instants of one process, by
// the clock that has gone further.
func Elapsed(from, to Instant) time.Duration { return store.Elapsed(from, to) }

// Runtime is the only door from actor code to time, timers, randomness and
// I/O. It has two implementations: the live one of package relay, and the
// simulation's in virtual time.
//
// Its methods are called from within Receive and never block.
type Runtime interface {
	// Now reads both clocks.
	Now() Instant
	// Rand is a source of randomness of its own for the actor of that name. It
	// is not safe for concurrent use: one actor, one source.
	Rand(name string) *rand.Rand
	// After sends msg to an actor when d has gone by. Cancel drops it; a timer
	// that has already fired may still be in the mailbox, so messages of timers
	// carry a number by which an old one is known.
	After(to *actor.PID, d time.Duration, msg any) (cancel func())
	// Do sends one request to the table off the actor. The result comes back to
	// it as a Replied with the same token, exactly once unless the process ends.
	Do(to *actor.PID, r store.Request, token uint64)
	// Emit tells the observers what happened.
	Emit(event.Event)
	// Props are protoactor's, with the runtime's dispatcher and mailbox.
	Props(actor.Producer, ...actor.PropsOption) *actor.Props
}

// Replied is the answer to one Runtime.Do.
type Replied struct {
	Token   uint64
	Request store.Request
	Reply   store.Reply
	// Sent is when the request really left, Received when its answer had come.
	// Both are zero when it never left.
	Sent, Received Instant
}

// StopOnPanic stops an actor that panicked, never restarts it: a restart would
// lose the message that it was working on without anyone knowing. Whoever
// spawned it learns by Terminated.
func StopOnPanic() actor.SupervisorStrategy {
	return actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
}
