package coordinator

import (
	"time"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// effect is something that the core wants done. The order of effects is a
// contract: the actor performs them one after another.
type effect interface{ isEffect() }

type (
	// do sends a request; its reply carries the token.
	do struct {
		request store.Request
		token   uint64
	}
	// arm sets a timer in place of the one of its kind.
	arm struct {
		timer  timer
		after  time.Duration
		number uint64
	}
	// spawn makes a bucket actor and sends it its first command.
	spawn struct {
		bucket int
		tenure int64
		first  any
	}
	// tell sends a command to a bucket actor.
	tell struct {
		tenure  int64
		message any
	}
	// forget drops a bucket actor that has ended.
	forget struct{ tenure int64 }
	// openPublisher makes the publisher actor, in place of a dead one.
	openPublisher struct{ number int }
	// tellPublisher sends a command to the publisher.
	tellPublisher struct{ message any }
	// emit tells the observers.
	emit struct{ event event.Event }
	// finish ends the actor and all its children, and says why.
	finish struct{ err error }
)

func (do) isEffect()            {}
func (arm) isEffect()           {}
func (spawn) isEffect()         {}
func (tell) isEffect()          {}
func (forget) isEffect()        {}
func (openPublisher) isEffect() {}
func (tellPublisher) isEffect() {}
func (emit) isEffect()          {}
func (finish) isEffect()        {}

// timer is a kind of timer; there is at most one of a kind.
type timer uint8

const (
	roundTimer timer = iota
	deadlineTimer
	repeatTimer
	publisherTimer
	paceTimer
	timerKinds
)

// message is what a timer of the kind delivers.
func (t timer) message(number uint64) any {
	switch t {
	case roundTimer:
		return roundDue{number}
	case deadlineTimer:
		return deadlineDue{number}
	case repeatTimer:
		return repeatDue{number}
	case paceTimer:
		return paceDue{number}
	default:
		return publisherDue{number}
	}
}
