package relay

import (
	"testing"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
)

// Whoever looks at a relay sees which topics are paused, until the last of them is not.
func TestStatusHasPausedTopics(t *testing.T) {
	s := newStatus(Config{RelayID: "relay-a"})
	s.Observe(event.Envelope{Event: event.TopicsPaused{Bucket: 3, Topics: []event.PausedTopic{{Topic: "orders", By: "ann", Reason: "upgrade"}}}})
	got := s.snapshot().Buckets
	if len(got) != 1 || len(got[0].PausedTopics) != 1 || got[0].PausedTopics[0].Topic != "orders" || got[0].PausedTopics[0].By != "ann" {
		t.Fatalf("got %+v", got)
	}
	s.Observe(event.Envelope{Event: event.TopicsResumed{Bucket: 3}})
	if got := s.snapshot().Buckets[0].PausedTopics; len(got) != 0 {
		t.Errorf("still paused: %+v", got)
	}
}

// A paused bucket does not stay at the row any more at which it was blocked: that is found
// out anew when it goes on.
func TestStatusOfAPausedBucketHasNoError(t *testing.T) {
	s := newStatus(Config{RelayID: "relay-a"})
	to := func(state fsm.State) event.StateChanged {
		return event.StateChanged{Bucket: 3, Machine: "bucket", To: string(state)}
	}
	for _, e := range []event.Event{
		to(fsm.Owned), to(fsm.Blocked), event.BucketBlocked{Bucket: 3, Sequence: 5, Reason: "too large"},
		to(fsm.Paused), event.BucketUnblocked{Bucket: 3}, event.BucketPaused{Bucket: 3, By: "ann"},
	} {
		s.Observe(event.Envelope{Event: e})
	}
	if b := s.snapshot().Buckets[0]; b.LastError != "" || b.Paused == nil {
		t.Errorf("got %+v", b)
	}
}
