package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// The end of a pause that has none is what a peer's clock can name last.
func TestNoEndIsTheLastTick(t *testing.T) {
	last := time.Date(9999, 12, 31, 23, 59, 59, 999_999_900, time.UTC)
	if store.NoEnd != store.Ticks(outbox.Ticks(last)) || !store.NoEnd.Time().Equal(last) {
		t.Errorf("got %v", store.NoEnd.Time())
	}
}

// pause is that of bucket 3, for an hour.
var pause = store.Pause{Bucket: 3, Until: after(time.Hour), By: "ops@host", Reason: "migration"}

// paused is an item with the attributes of the pause.
func paused(i item) item {
	i["PausedUntilUtc"], i["PausedBy"], i["PauseReason"] = num(int64(pause.Until)), str("ops@host"), str("migration")
	return i
}

// A pause is written beside what the owner writes: on a lease that is held, and on one
// that nobody has claimed yet, which can be claimed all the same.
func TestPause(t *testing.T) {
	onBoth(t, func(f fixture) {
		lease := f.held()
		if got := f.do(pause, store.Done).Result.(store.LeaseResult); got.Repeated {
			t.Error("the first pause passes for a repetition")
		}
		f.wantTable(paused(lease))
		if got := f.do(pause, store.Done).Result.(store.LeaseResult); !got.Repeated { // by the SDK
			t.Error("the repetition passes for another pause")
		}

		unclaimed := pause
		unclaimed.Bucket = 5
		f.do(unclaimed, store.Done)
		page := f.do(store.ReadCoordination{}, store.Done).Result.(store.CoordinationPage)
		if len(page.Leases) != 2 || page.Leases[1].PausedUntil != pause.Until || page.Leases[1].PausedBy != "ops@host" || page.Leases[1].PauseReason != "migration" {
			t.Errorf("got %+v", page.Leases)
		}
		f.do(store.Claim{Bucket: 5, Relay: "B", Incarnation: "B1", Claim: 1, Now: noon, Expires: noon + 1}, store.Done)
		f.do(store.Release{Bucket: 5, Relay: "B", Seen: noon + 1, Now: noon}, store.Done)
		f.wantTable(paused(lease), paused(f.coordination("LEASE#0000000005",
			item{"ExpiresAtUtc": num(int64(noon)), "Incarnation": str("B1"), "Claim": num(1)})))
	})
}

// Whoever has not seen the pause of another does not write over it, and does not end it.
func TestPauseOfAnotherIsSeen(t *testing.T) {
	onBoth(t, func(f fixture) {
		lease := f.held()
		f.do(pause, store.Done)
		second := store.Pause{Bucket: 3, Until: store.NoEnd, By: "other", Reason: "incident"}
		for _, r := range []store.Request{
			second,
			store.Pause{Bucket: 3, Seen: noon, Until: store.NoEnd, By: "other", Reason: "incident"},
			store.Resume{Bucket: 3, Seen: noon},
		} {
			reply := f.do(r, store.Refused)
			if old := reply.Result.(store.LeaseResult).Old; old == nil || old.PausedUntil != pause.Until || old.PausedBy != "ops@host" || !errors.Is(reply.Err, store.ErrConditionFailed) {
				t.Errorf("%+v: got %+v, %v", r, old, reply.Err)
			}
		}
		f.wantTable(paused(lease))

		second.Seen = pause.Until
		f.do(second, store.Done)
		lease["PausedUntilUtc"], lease["PausedBy"], lease["PauseReason"] = num(int64(store.NoEnd)), str("other"), str("incident")
		f.wantTable(lease)
	})
}

// A resume takes all of the pause, and nothing else.
func TestResume(t *testing.T) {
	onBoth(t, func(f fixture) {
		lease := f.held()
		f.do(pause, store.Done)
		f.do(store.Resume{Bucket: 3, Seen: pause.Until}, store.Done)
		for _, name := range []string{"PausedUntilUtc", "PausedBy", "PauseReason"} {
			delete(lease, name)
		}
		f.wantTable(lease)
		if got := f.do(store.Resume{Bucket: 3, Seen: pause.Until}, store.Done).Result.(store.LeaseResult); !got.Repeated {
			t.Error("a resume of what is not paused passes for one that did something")
		}
		f.do(store.Resume{Bucket: 6, Seen: pause.Until}, store.Done)
		f.wantTable(lease) // no item is made for it
	})
}

// A topic is paused as a marker that says who and until when, and reads so.
func TestPauseTopic(t *testing.T) {
	onBoth(t, func(f fixture) {
		m := store.Marker{Topic: "all", Reason: "migration", ParkedAt: noon, PausedUntil: after(time.Hour), PausedBy: "ops@host"}
		stored := f.parked("ALL#all", item{"Reason": str("migration"), "ParkedAtUtc": num(int64(noon)),
			"PausedUntilUtc": num(int64(m.PausedUntil)), "PausedBy": str("ops@host")})
		f.do(store.PauseTopic{Bucket: 3, Marker: m}, store.Done)
		f.wantTable(stored)
		if got := f.do(store.PauseTopic{Bucket: 3, Marker: m}, store.Done).Result.(store.SetAsideResult); !got.Repeated {
			t.Error("the repetition passes for another pause")
		}
		page := f.do(store.ReadMarkers{Bucket: 3}, store.Done).Result.(store.MarkersPage)
		if len(page.Markers) != 1 || page.Markers[0] != m {
			t.Errorf("got %+v", page)
		}

		longer := m
		longer.ParkedAt, longer.PausedUntil = noon+1, after(2*time.Hour)
		for _, seen := range []store.Ticks{0, noon - 1} {
			reply := f.do(store.PauseTopic{Bucket: 3, Seen: seen, Marker: longer}, store.Refused)
			if got := reply.Result.(store.SetAsideResult).Existing; got == nil || *got != m {
				t.Errorf("seen %d: got %+v", seen, got)
			}
		}
		f.do(store.PauseTopic{Bucket: 3, Seen: noon, Marker: longer}, store.Done)
		stored["ParkedAtUtc"], stored["PausedUntilUtc"] = num(int64(noon)+1), num(int64(longer.PausedUntil))
		f.wantTable(stored)
	})
}

// A pause whose topic is delivered again, or was, is not set anew: rows may be on their way.
func TestPauseTopicDuringItsRetry(t *testing.T) {
	onBoth(t, func(f fixture) {
		m := store.Marker{Topic: "all", Reason: "migration", ParkedAt: noon, PausedUntil: store.NoEnd, PausedBy: "ops@host"}
		f.do(store.PauseTopic{Bucket: 3, Marker: m}, store.Done)
		f.do(store.AskRetry{Bucket: 3, Topic: "all", At: noon + 5}, store.Done)
		again := m
		again.ParkedAt = noon + 9
		reply := f.do(store.PauseTopic{Bucket: 3, Seen: noon, Marker: again}, store.Refused)
		if got := reply.Result.(store.SetAsideResult).Existing; got == nil || got.RetryAt != noon+5 {
			t.Errorf("got %+v", got)
		}
		reply = f.do(store.PauseTopic{Bucket: 4, Seen: noon, Marker: again}, store.Refused)
		if got := reply.Result.(store.SetAsideResult); got.Existing != nil || got.Repeated {
			t.Errorf("of a marker that is gone: got %+v", got)
		}
	})
}

// An owner that was about to remove the marker of a pause that is over is refused when
// the pause has another end.
func TestUnmarkOfAPauseWithAnotherEnd(t *testing.T) {
	onBoth(t, func(f fixture) {
		f.held()
		m := store.Marker{Topic: "all", Reason: "r", ParkedAt: noon, PausedUntil: noon + 1, PausedBy: "b"}
		f.do(store.PauseTopic{Bucket: 3, Marker: m}, store.Done)
		longer := m
		longer.ParkedAt, longer.PausedUntil = noon+2, store.NoEnd
		f.do(store.PauseTopic{Bucket: 3, Seen: noon, Marker: longer}, store.Done)
		reply := f.do(store.Unmark{Tenure: tenure, Marker: m, Token: "t"}, store.Refused)
		if got := reply.Result.(store.MoveResult).Refusal; got != store.MarkerRefused {
			t.Errorf("got %v", got)
		}
		f.do(store.Unmark{Tenure: tenure, Marker: longer, Token: "u"}, store.Done)
	})
}
