package actors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// Throttling is told for each throttled request, and its end once per lane: a lane
// that works says nothing of the other.
func TestThrottle(t *testing.T) {
	var (
		throttle  actors.Throttle
		fetch     = store.Fetch{Bucket: 3}
		keep      = store.Keep{Bucket: 4}
		throttled = store.Reply{Class: store.Ambiguous, Err: fmt.Errorf("keep: %w", store.ErrThrottled)}
		failed    = store.Reply{Class: store.Retriable, Err: store.ErrUnavailable}
		refused   = store.Reply{Class: store.Refused, Err: store.ErrConditionFailed}
	)
	for i, step := range []struct {
		request store.Request
		reply   store.Reply
		want    event.Event
	}{
		{fetch, store.Reply{}, nil},
		{fetch, throttled, event.StoreThrottled{Lane: "messages", Request: "fetch", Bucket: 3}},
		{fetch, throttled, event.StoreThrottled{Lane: "messages", Request: "fetch", Bucket: 3}},
		{keep, store.Reply{}, nil},
		{keep, throttled, event.StoreThrottled{Lane: "coordination", Request: "keep", Bucket: 4}},
		{fetch, failed, nil},
		{fetch, store.Reply{}, event.StoreUnthrottled{Lane: "messages"}},
		{fetch, store.Reply{}, nil},
		{keep, refused, nil},
		{keep, store.Reply{}, event.StoreUnthrottled{Lane: "coordination"}},
	} {
		if got := throttle.Note(step.request, step.reply); got != step.want {
			t.Errorf("step %d: got %v, want %v", i, got, step.want)
		}
	}
}

// Elapsed takes the clock that has gone further (case X-18).
func TestElapsed(t *testing.T) {
	from := actors.Instant{Wall: time.Hour, Mono: time.Minute}
	for _, test := range []struct {
		to   actors.Instant
		want time.Duration
	}{
		{actors.Instant{Wall: time.Hour + 60*time.Second, Mono: time.Minute}, 60 * time.Second},
		{actors.Instant{Wall: time.Hour - 60*time.Second, Mono: time.Minute + 5*time.Second}, 5 * time.Second},
	} {
		if got := actors.Elapsed(from, test.to); got != test.want {
			t.Errorf("to %v: got %v, want %v", test.to, got, test.want)
		}
	}
}
