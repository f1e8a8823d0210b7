package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/simulation"
)

// simulateJSON runs the command and reads its document.
func simulateJSON(t *testing.T, args ...string) simulateDocument {
	t.Helper()
	c := &console{}
	got := c.run(append([]string{"simulate", "--output", "json"}, args...)...)
	var d simulateDocument
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != exitDone || got.stderr != "" {
		t.Fatalf("%v: exit %d, %v\n%s", args, got.code, err, got.stderr)
	}
	return d
}

func TestSimulateFindsThatPromisesAreKept(t *testing.T) {
	d := simulateJSON(t, "--seeds", "4-6", "--duration", "20s", "--faults", "storm", "--parallel", "2")
	if len(d.Seeds) != 3 || d.Summary.OK != 3 || len(d.Summary.Failed) != 0 {
		t.Fatalf("%+v", d.Summary)
	}
	for i, s := range d.Seeds {
		m := s.Messages
		if s.Seed != uint64(4+i) || !s.OK || m.Enqueued == 0 || m.Published-m.Duplicates != m.Enqueued || m.Pending != 0 {
			t.Errorf("seed %d: %+v", s.Seed, s)
		}
		if s.VirtualSeconds < 20 || s.Settings.Duration != 20 || s.Settings.LeaseDuration < 3 || s.Settings.LeaseDuration > 30 {
			t.Errorf("seed %d: %v virtual seconds, %+v", s.Seed, s.VirtualSeconds, s.Settings)
		}
		if s.Requests["claim"] < 8 || s.Coverage["bucket.claiming/claimed"] == 0 || s.RefusedWrites.Settled != 0 {
			t.Errorf("seed %d: %v, %v, %+v", s.Seed, s.Requests, s.Coverage, s.RefusedWrites)
		}
	}
}

// The names are a contract with whoever reads the document (cli.md).
func TestSimulateNamesItsJSON(t *testing.T) {
	c := &console{}
	got := c.run("simulate", "--seed", "1", "--duration", "5s", "--output", "json")
	var document struct {
		Seeds   []map[string]json.RawMessage
		Summary map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(got.stdout), &document); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"seed", "ok", "digest", "virtualSeconds", "wallSeconds", "settings", "messages", "handovers",
		"refusedWrites", "requests", "faults", "coverage", "violations", "replay"} {
		if _, has := document.Seeds[0][name]; !has {
			t.Errorf("a seed has no %s", name)
		}
	}
	for name, want := range map[string][]string{
		"messages":      {"enqueued", "published", "duplicates", "parked", "pending"},
		"refusedWrites": {"total", "settled", "byRequest"},
	} {
		var part map[string]json.RawMessage
		if err := json.Unmarshal(document.Seeds[0][name], &part); err != nil || len(part) != len(want) {
			t.Errorf("%s is %s", name, document.Seeds[0][name])
		}
		for _, field := range want {
			if _, has := part[field]; !has {
				t.Errorf("%s has no %s", name, field)
			}
		}
	}
	if string(document.Seeds[0]["violations"]) != "[]" {
		t.Errorf("no violations are %s", document.Seeds[0]["violations"])
	}
	var faults map[string]int
	if err := json.Unmarshal(document.Seeds[0]["faults"], &faults); err != nil || len(faults) != len(simulation.FaultKinds()) {
		t.Errorf("faults %v, %v", faults, err)
	}
}

// What is observed, how many run at once, and in which process: the run is the
// same, and its replay works as it is printed.
func TestSimulateGivesOneDigest(t *testing.T) {
	folder := t.TempDir()
	trace, timeline := filepath.Join(folder, "run.jsonl"), filepath.Join(folder, "run.svg")
	args := []string{"--seeds", "7-9", "--duration", "15s", "--faults", "storm", "--rate", "12.5", "--batch-size", "7"}
	plain := simulateJSON(t, append(args, "--parallel", "1")...)
	observed := simulateJSON(t, append(args, "--parallel", "3", "--trace", trace, "--timeline", timeline)...)
	for i, s := range plain.Seeds {
		command := strings.Fields(s.Replay)
		if !slices.Equal(command[:2], []string{"relay", "simulate"}) {
			t.Fatalf("replay %q", s.Replay)
		}
		replayed := simulateJSON(t, command[2:]...).Seeds[0]
		if observed.Seeds[i].Digest != s.Digest || replayed.Digest != s.Digest || replayed.Settings != s.Settings {
			t.Errorf("seed %d: digest %s, observed %s, replayed %s", s.Seed, s.Digest, observed.Seeds[i].Digest, replayed.Digest)
		}
	}
	for _, name := range []string{"run-7", "run-8", "run-9"} {
		wantJSONLines(t, filepath.Join(folder, name+".jsonl"))
		wantXML(t, filepath.Join(folder, name+".svg"))
	}
}

func wantJSONLines(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	at := 0.0
	for line := range bytes.Lines(content) {
		var e struct {
			At         float64
			Who, Event string
		}
		if err := json.Unmarshal(line, &e); err != nil || e.Who == "" || e.At < at {
			t.Fatalf("%s: %v: %s", path, err, line)
		}
		names[e.Event], at = true, e.At
	}
	for _, name := range []string{"process.started", "messages.committed", "request.applied", "bucket.kept", "record.appended", "fault.happened", "world.healed"} {
		if !names[name] {
			t.Errorf("%s has no %s", path, name)
		}
	}
}

func wantXML(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(content)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
}

// broken is a run that broke two promises.
func broken(o simulation.Options) simulation.Report {
	return simulation.Report{
		Seed: o.Seed, Digest: "00000000deadbeef", Virtual: 75 * time.Second,
		Messages: simulation.Messages{Enqueued: 40, Published: 42, Duplicates: 3, Pending: 1}, Handovers: 9,
		Refused: map[string]int{"keep": 2, "claim": 1}, Requests: map[string]int{"fetch": 20}, Faults: map[string]int{"crash": 1},
		Coverage: map[string]int{"bucket.owned/drain": 2},
		Violations: []simulation.Violation{
			{Invariant: "I-4", VirtualTime: 61500 * time.Millisecond, Detail: "row 5 of bucket 2 passes row 4 of the same topic and key", Process: "p3", Bucket: 2},
			{Invariant: "I-1", VirtualTime: 75 * time.Second, Detail: "one more", Bucket: -1},
		},
	}
}

func TestSimulateExitsWithOneForABrokenPromise(t *testing.T) {
	c := &console{simulate: func(o simulation.Options) simulation.Report {
		if o.Seed == 2 {
			return broken(o)
		}
		return simulation.Report{Seed: o.Seed, OK: true}
	}}
	got := c.run("simulate", "--seeds", "1-3", "--duration", "5s", "--faults", "none")
	if got.code != exitFailed || got.stderr != "relay: 1 of 3 seeds broke a promise\n" {
		t.Errorf("exit %d, stderr %q", got.code, got.stderr)
	}
	for _, want := range []string{"I-4 at 1m1.5s: row 5", "the last events of bucket 2:", "relay simulate --seed 2 ", "3 seeds: 2 ok, 1 with broken promises"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the text does not say %q:\n%s", want, got.stdout)
		}
	}
}

func TestSimulateWordsItsResults(t *testing.T) {
	var out strings.Builder
	c := &simulate{app: &app{stdout: &out, stderr: io.Discard}, faults: faultsStorm, output: formatText}
	o := simulation.Options{Relays: 3, Buckets: 8, Duration: time.Hour, Rate: 2.5, LeaseDuration: 6 * time.Second, LeaseRenewInterval: 1500 * time.Millisecond,
		MaxClockSkew: 400 * time.Millisecond, PollInterval: time.Second, BatchSize: 40, Poison: relay.PoisonPark, PoisonAfter: 3}
	p, s := c.printer(), summary{wall: 1500 * time.Millisecond}
	for seed := uint64(17); seed <= 18; seed++ {
		o.Seed = seed
		r := simulated{options: o, report: broken(o)}
		if seed == 17 {
			r.report.Violations, r.report.OK = nil, true
		} else {
			r.last = []simulation.Event{
				{At: 59 * time.Second, Who: "p3", Name: "bucket.claimed"},
				{At: 61 * time.Second, Who: "world", Name: "fault.happened", Detail: struct{ Of string }{strings.Repeat("long ", 20)}},
			}
		}
		s.add(r)
		p.seed(r)
	}
	if err := p.summary(&s); err != nil {
		t.Fatal(err)
	}
	golden(t, "simulate.txt", out.String())
}

func TestSimulateReportsAllBadUsageTogether(t *testing.T) {
	c := &console{}
	got := c.run("simulate", "--seed", "-1", "--seeds", "9-2", "--relays", "5000", "--buckets", "0", "--duration", "60", "--rate", "none",
		"--faults", "few", "--lease-duration", "5s", "--lease-renew-interval", "4s", "--scenario", "x", "--parallel", "0", "now")
	if got.code != exitUsage || got.stdout != "" {
		t.Errorf("exit %d, stdout %q", got.code, got.stdout)
	}
	golden(t, "simulate_usage.txt", got.stderr)
}

func TestSimulateTriesTheSettingsOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "relay.yaml")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("table: orders\nbrokers: kafka:9092\nlease-duration: 12s\nlease-renew-interval: 3s\nmax-clock-skew: 1s\nbucket-count: 4\n")
	d := simulateJSON(t, "--config", file, "--seed", "1", "--duration", "5s", "--batch-size", "9")
	want := triedDocument{Relays: 3, Buckets: 4, Duration: 5, Rate: 20, Faults: faultsDefault, LeaseDuration: 12, LeaseRenewInterval: 3,
		MaxClockSkew: 1, PollInterval: 1, BatchSize: 9, Poison: "park", PoisonAfter: 3, Mode: relay.ModeOrdered}
	if d.Seeds[0].Settings != want {
		t.Errorf("settings %+v, want %+v", d.Seeds[0].Settings, want)
	}
	write("lease-durration: 12s\nlease-renew-interval: 11s\n")
	c := &console{}
	got := c.run("simulate", "--config", file)
	for _, wrong := range []string{`lease-durration "12s": no such setting; the nearest is lease-duration (from relay.yaml:1)`,
		"lease-renew-interval 11s: must be at most a third of lease-duration 30s (from relay.yaml:2)"} {
		if got.code != exitUsage || !strings.Contains(got.stderr, wrong) {
			t.Errorf("exit %d, stderr:\n%s", got.code, got.stderr)
		}
	}
}

func TestSimulateStartsNothingWithoutItsFiles(t *testing.T) {
	c := &console{simulate: func(simulation.Options) simulation.Report { panic("started") }}
	got := c.run("simulate", "--timeline", "/no/such/folder/run.svg", "--trace", "/no/such/folder/run.jsonl")
	if got.code != exitUsage || !strings.Contains(got.stderr, "--timeline: open") || !strings.Contains(got.stderr, "--trace: open") {
		t.Errorf("exit %d, stderr:\n%s", got.code, got.stderr)
	}
}

// A scenario is played instead of a drawn run; an expectation that is not met is
// a broken promise, and what the scenario says itself cannot be said twice.
func TestSimulatePlaysAScenario(t *testing.T) {
	story, err := os.ReadFile("../../simulation/testdata/L-08.txt")
	if err != nil {
		t.Fatal(err)
	}
	good, bad := filepath.Join(t.TempDir(), "good.txt"), filepath.Join(t.TempDir(), strings.Repeat("a long ", 15)+"name.txt")
	for path, text := range map[string]string{
		good: string(story),
		bad:  strings.Replace(string(story), "expect 2 deliveries", "expect 3 deliveries", 1),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &console{}
	if got := c.run("simulate", "--scenario", good, "--output", "json"); got.code != exitDone {
		t.Errorf("exit %d\n%s", got.code, got.stderr)
	}
	got := c.run("simulate", "--scenario", bad)
	if got.code != exitFailed || !strings.Contains(got.stdout, "expect 3 deliveries") ||
		!strings.Contains(got.stdout, "relay simulate --scenario '"+bad+"'\n") { // to be pasted

		t.Errorf("exit %d\n%s", got.code, got.stdout)
	}
	for _, wrong := range [][]string{
		{"--scenario", good, "--relays", "2"},
		{"--scenario", filepath.Join(t.TempDir(), "none.txt")},
	} {
		if got := c.run(append([]string{"simulate"}, wrong...)...); got.code != exitUsage || got.stdout != "" {
			t.Errorf("%v: exit %d\n%s", wrong, got.code, got.stderr)
		}
	}
}

// Seeds that have begun are run to their end, which may take a while: who interrupts them
// is told, and has their results.
func TestAnInterruptedSimulationSaysWhatItWaitsFor(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	a := &app{args: []string{"simulate", "--seeds", "1-100", "--parallel", "1"}, stdout: &stdout, stderr: &stderr, now: func() time.Time { return noon },
		simulate: func(o simulation.Options) simulation.Report {
			interrupt()
			<-ctx.Done()
			return simulation.Report{Seed: o.Seed, OK: true}
		}}
	code := a.execute(ctx)
	if code != exitFailed || !strings.HasPrefix(stderr.String(), "interrupted: seeds that have begun are run to their end; a second signal ends them, too\n") ||
		!strings.Contains(stdout.String(), "1 ok, 0 with broken promises") {
		t.Errorf("exit %d\n%s%s", code, &stdout, &stderr)
	}
}
