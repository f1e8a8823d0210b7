package simulation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/simulation"
)

// A promise that nobody can keep, settled within a nanosecond, takes no fault, one
// relay and a second to be broken. What is written fails in the same way.
func TestShrunkScenarioFailsAlike(t *testing.T) {
	o := simulation.Options{Seed: 17, Faults: simulation.Storm(), Duration: 90 * time.Second, HealWithin: time.Nanosecond}.Draw()
	o.Observe = func(simulation.Event) { t.Fatal("a candidate was observed") }
	got, err := simulation.Shrink(t.Context(), o, simulation.ShrinkConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (simulation.Size{Relays: 1, Buckets: 1, Duration: time.Second, Rate: 0.1}); got.After != want {
		t.Errorf("left are %v, want %v", got.After, want)
	}
	var file strings.Builder
	if err := got.WriteScenario(&file); err != nil {
		t.Fatal(err)
	}
	s, err := simulation.ParseScenario("small.txt", strings.NewReader(file.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, file.String())
	}
	r := s.Run()
	if r.OK || r.Digest != got.Report.Digest || r.Violations[0] != got.Broken() || !s.IsRandomRun() {
		t.Errorf("digest %s, want %s; violations %v", r.Digest, got.Report.Digest, r.Violations)
	}
	for _, want := range []string{"I-10 is broken", "seed 17", "1ns after everything was healed", "process started as relay-1", "all faults end"} {
		if !strings.Contains(s.Title+"\n"+s.Story, want) {
			t.Errorf("the story does not say %q:\n%s", want, file.String())
		}
	}
}
