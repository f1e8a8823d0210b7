package simulation_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/simulation"
)

// anyOptions draws options of every kind; about half of the fields have their
// defaults.
func anyOptions(t *rapid.T) simulation.Options {
	drawn := func(name string, most time.Duration) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, name)) * time.Duration(rapid.IntRange(0, 1).Draw(t, name+" given"))
	}
	o := simulation.Options{
		Seed: rapid.Uint64().Draw(t, "seed"), Relays: rapid.IntRange(0, 9).Draw(t, "relays"), Buckets: rapid.IntRange(0, 32).Draw(t, "buckets"),
		Duration: drawn("duration", 3*time.Hour), Rate: rapid.Float64Range(0, 1e6).Draw(t, "rate"),
		BatchSize: rapid.IntRange(0, 500).Draw(t, "batch"), PollInterval: drawn("poll", 10*time.Second), HealWithin: drawn("heal-within", time.Hour),
	}
	o = o.Draw()
	kinds := rapid.SliceOfDistinct(rapid.SampledFrom(simulation.FaultKinds()), rapid.ID).Draw(t, "kinds")
	for i, kind := range kinds {
		o.Faults[kind] = rapid.Float64Range(0, 10).Draw(t, "rate of a kind")
		if o.Faults[kind] > 0 && i%2 == 0 {
			if o.Only == nil {
				o.Only = simulation.Happenings{}
			}
			o.Only[kind] = append([]int{}, rapid.SliceOfN(rapid.IntRange(1, 1000), 0, 4).Draw(t, "only")...)
		}
	}
	return o
}

// A random run reads back as it was written.
func TestWriteScenarioReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyOptions(t)
		if o.Validate() != nil {
			t.Skip("nobody may run it")
		}
		var file strings.Builder
		if err := simulation.WriteScenario(&file, o, "A title", "A story\nof two lines"); err != nil {
			t.Fatal(err)
		}
		s, err := simulation.ParseScenario("written.txt", strings.NewReader(file.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, file.String())
		}
		if want := o.WithDefaults(); !reflect.DeepEqual(s.Options, want) {
			t.Errorf("got %+v\nwant %+v\n%s", s.Options, want, file.String())
		}
		if s.Title != "A title" || s.Story != "A story\nof two lines" || !s.IsRandomRun() {
			t.Errorf("title %q, story %q", s.Title, s.Story)
		}
	})
}

// A random run that was written is the run: it has its digest, with every
// happening left in or some left out.
func TestWrittenScenarioRunsAlike(t *testing.T) {
	for _, only := range []simulation.Happenings{nil, {simulation.AnswerLost: {1, 3, 4}, simulation.Crash: {}}} {
		o := simulation.Options{Seed: 5, Relays: 2, Duration: 30 * time.Second, Faults: simulation.Storm(), Only: only}.Draw()
		var file strings.Builder
		if err := simulation.WriteScenario(&file, o, "A title", ""); err != nil {
			t.Fatal(err)
		}
		if got, want := played(t, file.String()), simulation.Run(o); got.Digest != want.Digest || !got.OK {
			t.Errorf("digest %s, want %s; violations %v", got.Digest, want.Digest, got.Violations)
		}
	}
}

// A random run is one line behind its settings, and says itself all that it needs.
func TestRandomRunErrors(t *testing.T) {
	for text, want := range map[string]string{
		"run for":                          "x.txt:3: at the end of the line: a while is missing",
		"run for 0s":                       `x.txt:3: "0s": a while is more than nothing`,
		"run for 60s\nseed 4":              `x.txt:4: "seed": nothing follows "run for"`,
		"start A\nrun for 60s":             "a random run has neither steps",
		"latency 5ms\nrun for 60s":         "nor latency",
		"without topic late\nrun for 60s":  "nor topics that do not exist",
		"end open\nrun for 60s":            "a random run has neither steps",
		"interval 20s\nrun for 60s":        "x.txt: a random run with these settings: ",
		"seed -4":                          `x.txt:3: "-4": the seed is a number, not negative`,
		"fault crash 1 only":               "x.txt:3: at the end of the line: which of them is missing",
		"fault crash 1 only 0":             `x.txt:3: "0": the first is 1`,
		"fault crash 1 never 3":            `x.txt:3: "3": nothing more may follow`,
		"fault crash 1 only 2\nrun for 5s": "",
	} {
		_, err := simulation.ParseScenario("x.txt", strings.NewReader("# Title\n# Story\n"+text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
