package telemetry_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/telemetry"
)

// Each lease is somebody's, or is said to be nobody's. One that has lapsed is nobody's, as
// relay status has it.
func TestFleet(t *testing.T) {
	f := telemetry.NewFleet(noon, fleetSeen())
	wantRelays := map[string]struct {
		state   string
		buckets []int
	}{
		"relay-a": {"active", []int{0, 5, 6}},
		"relay-b": {"stopped", []int{}},
		"relay-c": {"silent", []int{}}, // the lease in its name has lapsed
		"relay-d": {"unknown", []int{4}},
	}
	if len(f.Relays) != len(wantRelays) {
		t.Errorf("%d relays", len(f.Relays))
	}
	for _, r := range f.Relays {
		want := wantRelays[r.ID]
		if r.State != want.state || !slices.Equal(r.Buckets, want.buckets) || r.Owned != len(want.buckets) {
			t.Errorf("%s is %s and owns %v, want %s and %v", r.ID, r.State, r.Buckets, want.state, want.buckets)
		}
		if stopped := r.State == "stopped"; (r.StoppedAt != nil) != stopped {
			t.Errorf("%s stopped at %v", r.ID, r.StoppedAt)
		}
	}
	for name, c := range map[string]struct{ got, want []int }{
		"free": {f.Free, []int{2}}, "lapsed": {f.Lapsed, []int{1}}, "paused": {f.Paused, []int{5}}, "unreadable": {f.Unreadable, []int{3}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

// A relay that is away with leases in its name comes first, and many buckets are one
// short line.
func TestThePageOfAFleet(t *testing.T) {
	s := serve(t, telemetry.AdminOptions{Status: func() telemetry.Status {
		status := statusNow()
		seen := event.FleetSeen{Relays: []event.RelaySeen{{Relay: "alive", Active: true}, {Relay: "dead"}}, Leases: make([]event.LeaseSeen, 10_000)}
		for b := range seen.Leases {
			seen.Leases[b].Owner = []string{"alive", "dead"}[b*2/10_000]
		}
		for b := 0; b < 100; b += 2 {
			seen.Leases[b].Owner = ""
		}
		status.Fleet = telemetry.NewFleet(noon, seen)
		return status
	}})
	body := s.want(http.StatusOK, "GET", "/").body
	dead, alive := strings.Index(body, ">dead<"), strings.Index(body, ">alive<")
	if dead < 0 || alive < dead {
		t.Errorf("dead stands at %d, alive at %d", dead, alive)
	}
	for _, part := range []string{"5000–9999", "nobody owns 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 38 more"} {
		if !strings.Contains(body, part) {
			t.Errorf("the page does not say %q", part)
		}
	}
	if len(body) > 32<<10 {
		t.Errorf("the page has %d bytes", len(body))
	}
}
