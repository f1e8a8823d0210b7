package actors_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// No request fails without a word, and each fault's end is told once: throttling
// by lane, a table that does not answer for the whole relay, anything else by
// request. A refused condition, a conflict, and what was not sent are no faults.
func TestFailures(t *testing.T) {
	type events = []event.Event
	var (
		failures    actors.Failures
		fetch       = store.Fetch{Bucket: 3}
		keep        = store.Keep{Bucket: 4}
		done        = store.Reply{}
		refused     = store.Reply{Class: store.Refused, Err: store.ErrConditionFailed}
		throttled   = store.Reply{Class: store.Ambiguous, Err: fmt.Errorf("keep: %w", store.ErrThrottled)}
		unavailable = store.Reply{Class: store.Retriable, Err: store.ErrUnavailable}
		denied      = store.Reply{Class: store.Retriable, Err: store.ErrDenied}
		conflict    = store.Reply{Class: store.Retriable, Err: store.ErrConflict}
	)
	for i, step := range []struct {
		request store.Request
		reply   store.Reply
		want    events
	}{
		{fetch, done, nil},
		{fetch, throttled, events{event.StoreThrottled{Lane: "messages", Request: "fetch", Bucket: 3}}},
		{fetch, throttled, events{event.StoreThrottled{Lane: "messages", Request: "fetch", Bucket: 3}}},
		{keep, done, nil},
		{keep, throttled, events{event.StoreThrottled{Lane: "coordination", Request: "keep", Bucket: 4}}},
		{fetch, done, events{event.StoreUnthrottled{Lane: "messages"}}},
		{fetch, done, nil},
		{keep, refused, nil},
		{keep, done, events{event.StoreUnthrottled{Lane: "coordination"}}},
		{keep, unavailable, events{event.StoreUnavailable{Request: "keep", Err: store.ErrUnavailable}}},
		{fetch, done, events{event.StoreAvailable{}}},
		{keep, denied, events{event.StoreFailed{Request: "keep", Bucket: 4, Err: store.ErrDenied}}},
		{fetch, done, nil},
		{keep, conflict, nil},
		{keep, store.NotSent(keep), nil},
		{keep, refused, events{event.StoreRecovered{Request: "keep"}}},
		{keep, done, nil},
	} {
		if got := failures.Note(step.request, step.reply); !reflect.DeepEqual(got, step.want) {
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
