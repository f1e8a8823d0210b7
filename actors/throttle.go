package actors

import (
	"errors"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// Throttle notes, for a runtime, which lane the table throttles. The zero value
// is ready; it is not safe for concurrent use.
type Throttle struct {
	lanes [2]bool
}

// Note takes the reply to a request and returns what there is to tell: nil, or
// StoreThrottled for each throttled request, or StoreUnthrottled for the first
// one that was applied after such.
func (t *Throttle) Note(r store.Request, reply store.Reply) event.Event {
	lane := r.Lane()
	switch {
	case errors.Is(reply.Err, store.ErrThrottled):
		t.lanes[lane] = true
		return event.StoreThrottled{Lane: lane.String(), Request: r.RequestName(), Bucket: r.ConcernsBucket()}
	case reply.Class == store.Done && t.lanes[lane]:
		t.lanes[lane] = false
		return event.StoreUnthrottled{Lane: lane.String()}
	default:
		return nil
	}
}
