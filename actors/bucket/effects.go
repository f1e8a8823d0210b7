package bucket

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
		timer timer
		after time.Duration
		// spread is the part of after that is random, so that buckets and relays
		// do not act at the same moment.
		spread time.Duration
		number uint64
	}
	// disarm drops the timer of a kind.
	disarm struct{ timer timer }
	// tellCoordinator and tellPublisher send a message.
	tellCoordinator struct{ message any }
	tellPublisher   struct{ message any }
	// emit tells the observers.
	emit struct{ event event.Event }
	// stop ends the actor.
	stop struct{}
)

func (do) isEffect()              {}
func (arm) isEffect()             {}
func (disarm) isEffect()          {}
func (tellCoordinator) isEffect() {}
func (tellPublisher) isEffect()   {}
func (emit) isEffect()            {}
func (stop) isEffect()            {}

// timer is a kind of timer; there is at most one of a kind.
type timer uint8

const (
	pollTimer timer = iota
	retryTimer
	lapseTimer
	timerKinds
)

// message is what a timer of the kind delivers.
func (t timer) message(number uint64) any {
	switch t {
	case pollTimer:
		return pollDue{number}
	case retryTimer:
		return retryDue{number}
	default:
		return lapseDue{number}
	}
}
