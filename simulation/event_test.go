package simulation_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/simulation"
)

func TestAnEventReadsAlikeInJSON(t *testing.T) {
	for _, c := range []struct {
		detail any
		want   string
	}{
		{nil, `{"at":1.5,"who":"p1","event":"e"}`},
		{event.BucketClaimed{Bucket: 3, Claim: 2}, `{"at":1.5,"who":"p1","event":"e","bucket":3,"detail":{"bucket":3,"claim":2,"resumed":false}}`},
		{event.RelayStopping{Err: errors.New("away")}, `{"at":1.5,"who":"p1","event":"e","detail":{"err":"away"}}`},
		{event.RelayStopped{}, `{"at":1.5,"who":"p1","event":"e","detail":{"err":null,"unreleased":0}}`},
		{event.BucketPaused{Until: time.Unix(0, 0)}, `{"at":1.5,"who":"p1","event":"e","bucket":0,"detail":{"bucket":0,"by":"","reason":"","until":"1970-01-01T00:00:00Z"}}`},
		{simulation.Violation{Invariant: "I-1", VirtualTime: 2 * time.Second, Bucket: -1},
			`{"at":1.5,"who":"p1","event":"e","detail":{"bucket":-1,"detail":"","invariant":"I-1","process":"","virtualTime":2}}`},
	} {
		got, err := json.Marshal(simulation.Event{At: 1500 * time.Millisecond, Who: "p1", Name: "e", Detail: c.detail})
		if err != nil || string(got) != c.want {
			t.Errorf("%v\n%s\nwant %s", err, got, c.want)
		}
	}
}

// Whether somebody observes does not change the run, and what is observed adds up
// to what the report says.
func TestObservingDoesNotChangeTheRun(t *testing.T) {
	o := simulation.Options{Seed: 4, Faults: simulation.Storm(), Duration: 30 * time.Second}.Draw()
	want := simulation.Run(o)
	seen, faults := map[string]int{}, 0
	o.Observe = func(e simulation.Event) { seen[e.Name]++ }
	got := simulation.Run(o)
	if got.Digest != want.Digest {
		t.Errorf("digest %s, observed %s", want.Digest, got.Digest)
	}
	for _, n := range got.Faults {
		faults += n
	}
	requests := 0
	for _, n := range got.Requests {
		requests += n
	}
	if seen["record.appended"] != got.Messages.Published || seen["fault.happened"] != faults || seen["request.applied"] != requests {
		t.Errorf("seen %v, report %+v", seen, got)
	}
}

// The settings that a seed draws are those that production accepts, and what was
// given is kept.
func TestDrawnSettingsAreValid(t *testing.T) {
	for seed := range uint64(2000) {
		for i, o := range []simulation.Options{
			{}, {LeaseDuration: 4 * time.Second}, {LeaseRenewInterval: 11 * time.Second}, {MaxClockSkew: 9 * time.Second},
			{LeaseDuration: 4 * time.Second, MaxClockSkew: 3 * time.Second}, {LeaseRenewInterval: 3 * time.Second, MaxClockSkew: 6 * time.Second},
		} {
			o.Seed = seed
			drawn := o.Draw()
			if err := drawn.Validate(); err != nil {
				t.Fatalf("seed %d: %+v became %+v: %v", seed, o, drawn, err)
			}
			if o.LeaseDuration != 0 && drawn.LeaseDuration != o.LeaseDuration || o.MaxClockSkew != 0 && drawn.MaxClockSkew != o.MaxClockSkew {
				t.Fatalf("seed %d: %+v became %+v", seed, o, drawn)
			}
			if i == 0 && (drawn.LeaseDuration < 3*time.Second || drawn.LeaseDuration > 30*time.Second) {
				t.Fatalf("seed %d: a lease of %v", seed, drawn.LeaseDuration)
			}
		}
	}
}
