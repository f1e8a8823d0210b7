package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/store"
)

// A retry is called off once, and only while it is the one that was seen.
func TestCallOff(t *testing.T) {
	onBoth(t, func(f fixture) {
		f.put(f.parkedMarker(nil))
		f.do(store.AskRetry{Bucket: 3, KeyID: keyID, At: noon + 1}, store.Done)
		asked := known
		asked.RetryAt = noon + 1
		off := store.CallOff{Bucket: 3, Seen: asked, ParkedAt: noon + 5, Reason: "too large"}

		f.do(store.AskRetry{Bucket: 3, KeyID: keyID, At: noon + 2}, store.Done)
		reply := f.do(off, store.Refused)
		if got := reply.Result.(store.SetAsideResult).Existing; got == nil || got.RetryAt != noon+2 || !errors.Is(reply.Err, store.ErrConditionFailed) {
			t.Errorf("of a retry that was asked for again: got %+v, %v", got, reply.Err)
		}
		off.Seen.RetryAt = noon + 2
		f.do(off, store.Done)
		f.wantTable(f.parkedMarker(item{"ParkedAtUtc": num(int64(noon) + 5)}))
		if got := f.do(off, store.Done).Result.(store.SetAsideResult); !got.Repeated {
			t.Error("the SDK's repetition passes for another one")
		}
		off.Bucket = 4
		if got := f.do(off, store.Refused).Result.(store.SetAsideResult); got.Existing != nil || got.Repeated {
			t.Errorf("of a marker that is gone: got %+v", got)
		}
	})
}

// A topic that is delivered again since its pause is over stays set aside, without a
// pause: else it would end at once.
func TestCallOffTakesThePause(t *testing.T) {
	onBoth(t, func(f fixture) {
		over := store.Marker{Topic: "all", Reason: "migration", ParkedAt: noon, PausedUntil: after(time.Minute), PausedBy: "ops"}
		f.do(store.PauseTopic{Bucket: 3, Marker: over}, store.Done)
		f.do(store.CallOff{Bucket: 3, Seen: over, ParkedAt: noon + 5, Reason: "mistyped"}, store.Done)
		f.wantTable(f.parked("ALL#all", item{"Reason": str("mistyped"), "ParkedAtUtc": num(int64(noon) + 5)}))
	})
}

// What an owner sent before the retry was asked for does not take the marker when it
// arrives after the retry was called off: rows may be set aside under it by now.
func TestARemovalFromBeforeARetryThatWasCalledOff(t *testing.T) {
	onBoth(t, func(f fixture) {
		f.held()
		f.put(f.parkedMarker(nil))
		early := store.Unmark{Tenure: tenure, Marker: known, Token: "early"}
		f.do(store.AskRetry{Bucket: 3, KeyID: keyID, At: noon + 1}, store.Done)
		asked := known
		asked.RetryAt = noon + 1
		f.do(store.CallOff{Bucket: 3, Seen: asked, ParkedAt: noon + 5, Reason: known.Reason}, store.Done)
		if got := f.do(early, store.Refused).Result.(store.MoveResult).Refusal; got != store.MarkerRefused {
			t.Errorf("got %v", got)
		}
	})
}
