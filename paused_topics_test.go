package relay

import (
	"testing"

	"github.com/bucketbrigade/relay/event"
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
