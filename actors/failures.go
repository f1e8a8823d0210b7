package actors

import (
	"errors"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// Failures notes, for a runtime, what the table fails to do, so that no request
// fails without a word, whichever actor sent it. The zero value is ready; it is
// not safe for concurrent use.
type Failures struct {
	throttled   [2]bool         // by lane
	unavailable bool            // the last request had no proper answer
	failing     map[string]bool // by request: the last one was answered with an error
}

// Note takes the reply to a request and returns what there is to tell, mostly
// nothing: each failure, and the first answer after failures. A refused
// condition is an answer; a conflict with a transaction, and a request that was
// not sent, are the course of things.
func (f *Failures) Note(r store.Request, reply store.Reply) []event.Event {
	switch {
	case reply.Class == store.Done, reply.Class == store.Refused:
		return f.answered(r, reply)
	case errors.Is(reply.Err, store.ErrNotSent), errors.Is(reply.Err, store.ErrConflict):
		return nil
	case errors.Is(reply.Err, store.ErrThrottled):
		f.throttled[r.Lane()] = true
		return []event.Event{event.StoreThrottled{
			Lane: r.Lane().String(), Request: r.RequestName(), Bucket: r.ConcernsBucket(),
		}}
	case errors.Is(reply.Err, store.ErrUnavailable):
		f.unavailable = true
		return []event.Event{event.StoreUnavailable{Request: r.RequestName(), Err: reply.Err}}
	}
	if f.failing == nil {
		f.failing = map[string]bool{}
	}
	f.failing[r.RequestName()] = true
	return []event.Event{event.StoreFailed{Request: r.RequestName(), Bucket: r.ConcernsBucket(), Err: reply.Err}}
}

func (f *Failures) answered(r store.Request, reply store.Reply) (events []event.Event) {
	if f.unavailable {
		f.unavailable = false
		events = append(events, event.StoreAvailable{})
	}
	if f.failing[r.RequestName()] {
		f.failing[r.RequestName()] = false
		events = append(events, event.StoreRecovered{Request: r.RequestName()})
	}
	if lane := r.Lane(); f.throttled[lane] && reply.Class == store.Done {
		f.throttled[lane] = false
		events = append(events, event.StoreUnthrottled{Lane: lane.String()})
	}
	return events
}
