package event

import "time"

// Event is something that happened. Values are immutable once emitted; they
// are passed by value, and slices in them must not be changed by readers.
type Event interface {
	// EventName is the stable name of the event's type, for logs and traces:
	// "bucket.claimed". It never changes once released.
	EventName() string
}

// Envelope is an event with its origin.
type Envelope struct {
	// Relay is the id of the relay in which it happened.
	Relay string
	// At is the relay's wall clock when it happened.
	At time.Time
	// Elapsed is the relay's monotonic clock when it happened, since the start
	// of its process: durations between events are taken from it.
	Elapsed time.Duration
	Event   Event
}

// Observer is told of each event, in the order in which one actor emitted
// them. Observe is called from several goroutines, must be safe for that, and
// must not block: it runs inside the actors.
type Observer interface {
	Observe(Envelope)
}

// ObserverFunc lets a function be an Observer.
type ObserverFunc func(Envelope)

// Observe calls f.
func (f ObserverFunc) Observe(e Envelope) { f(e) }
