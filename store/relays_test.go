package store_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/store"
)

// relay is the record of relay A.
func (f fixture) relay(attributes item) item { return f.coordination("RELAY#A", attributes) }

// A heartbeat replaces the record, with incarnation and mode where there are any,
// and tells what was there before.
func TestHeartbeatItems(t *testing.T) {
	onBoth(t, func(f fixture) {
		first := f.do(store.Heartbeat{Relay: "A", LastSeen: noon}, store.Done)
		f.wantTable(f.relay(item{"LastSeenUtc": num(int64(noon))}))
		if first.Result.(store.HeartbeatResult).Previous != nil {
			t.Error("there was a record before the first heartbeat")
		}

		f.put(f.relay(item{"LastSeenUtc": num(int64(noon)), "StoppedAtUtc": num(int64(noon)), "Incarnation": str("A0")}))
		second := f.do(store.Heartbeat{Relay: "A", Incarnation: "A1", Mode: "ordered", LastSeen: after(time.Second)}, store.Done)
		f.wantTable(f.relay(item{
			"LastSeenUtc": num(int64(after(time.Second))), "Incarnation": str("A1"), "Mode": str("ordered"),
		}))
		want := store.RelayRecord{ID: "A", LastSeen: noon, Stopped: noon, Incarnation: "A0"}
		if got := second.Result.(store.HeartbeatResult).Previous; got == nil || *got != want {
			t.Errorf("the record before was %+v, want %+v", got, want)
		}
	})
}

// A heartbeat only moves forward (case L-01): one that comes late is refused, and
// learns of the record that refused it. The same one twice, as the SDK repeats it,
// is done.
func TestHeartbeatOnlyMovesForward(t *testing.T) {
	f := newFixture(t, schemas["default"])
	beat := store.Heartbeat{Relay: "A", Incarnation: "A1", LastSeen: noon}
	f.do(beat, store.Done)
	f.do(beat, store.Done)

	f.do(store.StampStopped{Relay: "A", Incarnation: "A1", At: noon + 1}, store.Done)
	late := f.do(beat, store.Refused)
	want := store.RelayRecord{ID: "A", LastSeen: noon + 1, Stopped: noon + 1, Incarnation: "A1"}
	if got := late.Result.(store.HeartbeatResult).Previous; got == nil || *got != want {
		t.Errorf("refused by %+v, want %+v", got, want)
	}
	if !errors.Is(late.Err, store.ErrConditionFailed) {
		t.Errorf("got %v", late.Err)
	}
	f.do(store.Heartbeat{Relay: "A", Incarnation: "A1", LastSeen: noon + 2}, store.Done)
}

// A stop stamps only a record of its own incarnation, or one without any; what
// else is in the record stays.
func TestStampStopped(t *testing.T) {
	stamp := store.StampStopped{Relay: "A", Incarnation: "A1", At: after(time.Second)}
	for name, test := range map[string]struct {
		before item
		want   store.Class
	}{
		"our own":                {item{"LastSeenUtc": num(1), "Incarnation": str("A1"), "Mode": str("ordered")}, store.Done},
		"without an incarnation": {item{"LastSeenUtc": num(1)}, store.Done},
		"a successor's":          {item{"LastSeenUtc": num(1), "Incarnation": str("A2")}, store.Refused},
		"none at all":            {nil, store.Done},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(f fixture) {
				want := f.relay(test.before)
				if test.before != nil {
					f.put(f.relay(test.before))
				}
				f.do(stamp, test.want)
				if test.want == store.Done {
					want["LastSeenUtc"], want["StoppedAtUtc"] = num(int64(stamp.At)), num(int64(stamp.At))
				}
				f.wantTable(want)
				f.do(stamp, test.want) // and so does the SDK's repetition
				f.wantTable(want)
			})
		})
	}
}

// Prune deletes a record that stopped long enough ago, or has been silent for
// much longer, by the record as it is when the request arrives.
func TestPruneConditions(t *testing.T) {
	prune := store.Prune{Relay: "A", Stopped: after(-30 * time.Second), Dead: after(-300 * time.Second)}
	seen := func(at store.Ticks, stopped bool) item {
		i := item{"LastSeenUtc": num(int64(at))}
		if stopped {
			i["StoppedAtUtc"] = num(int64(at))
		}
		return i
	}
	for name, test := range map[string]struct {
		before item
		want   store.Class
	}{
		"alive":                         {seen(noon, false), store.Refused},
		"silent for less":               {seen(prune.Dead, false), store.Refused},
		"silent for long":               {seen(prune.Dead-1, false), store.Done},
		"stopped just now":              {seen(prune.Stopped, true), store.Refused},
		"stopped long ago":              {seen(prune.Stopped-1, true), store.Done},
		"silent, but not stopped, only": {seen(prune.Stopped-1, false), store.Refused},
		"gone already":                  {nil, store.Done},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(f fixture) {
				var left []item
				if test.before != nil {
					f.put(f.relay(test.before))
				}
				if test.want == store.Refused {
					left = append(left, f.relay(test.before))
				}
				f.do(prune, test.want)
				f.wantTable(left...)
			})
		})
	}
}

// Ids may hold whatever is printable, the separator included, and come back as
// they are.
func TestRelayIDs(t *testing.T) {
	f := newFixture(t, schemas["custom"])
	ids := []string{" ", "#", "RELAY#x", "a b", "~"}
	var want []store.RelayRecord
	for _, id := range ids {
		f.do(store.Heartbeat{Relay: id, Incarnation: "1", LastSeen: noon}, store.Done)
		want = append(want, store.RelayRecord{ID: id, LastSeen: noon, Incarnation: "1"})
	}
	page := f.do(store.ReadCoordination{}, store.Done).Result.(store.CoordinationPage)
	if !reflect.DeepEqual(page.Relays, want) {
		t.Errorf("got %+v, want %+v", page.Relays, want)
	}
}
