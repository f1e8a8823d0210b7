package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/simulation"
)

// hasty writes a random run whose promise nobody can keep: that the fleet has
// settled a nanosecond after all faults end.
func hasty(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(folder, "hasty.txt")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	o := simulation.Options{Seed: 1<<63 + 17, Duration: 20 * time.Second, LeaseDuration: 6 * time.Second, Faults: simulation.Storm(), HealWithin: 1}
	if err := errors.Join(simulation.WriteScenario(file, o, "Hasty", ""), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// The file that --shrink writes is a scenario that fails alike, with the digest
// that the document names, by the command that it names.
func TestSimulateShrinks(t *testing.T) {
	folder := t.TempDir()
	small := filepath.Join(folder, "small.txt")
	c := &console{}
	got := c.run("simulate", "--scenario", hasty(t, folder), "--shrink", small, "--output", "json")
	if got.code != exitFailed || got.stderr != "relay: 1 of 1 seeds broke a promise\n" {
		t.Fatalf("exit %d, stderr %q", got.code, got.stderr)
	}
	var d simulateDocument
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || d.Seeds[0].Shrunk == nil {
		t.Fatalf("%v\n%s", err, got.stdout)
	}
	s := d.Seeds[0].Shrunk
	if d.Seeds[0].Seed != 1<<63+17 || d.Seeds[0].Settings.Faults != faultsOfScenario || s.File != small ||
		s.Before.Duration != 20 || s.Before.Kinds == 0 || s.After != (sizeDocument{Relays: 1, Buckets: 1, Duration: 1, Rate: 0.1}) {
		t.Errorf("%+v\n%+v", d.Seeds[0].Settings, *s)
	}
	command := strings.Fields(s.Replay)
	again := c.run(append(command[1:], "--output", "json")...)
	var played simulateDocument
	if err := json.Unmarshal([]byte(again.stdout), &played); err != nil || again.code != exitFailed {
		t.Fatalf("%s: exit %d, %v\n%s", s.Replay, again.code, err, again.stderr)
	}
	p := played.Seeds[0]
	if p.Digest != s.Digest || p.Seed != s.Seed || len(p.Violations) == 0 || p.Violations[0] != s.Violation || p.Replay != s.Replay || p.Shrunk != nil {
		t.Errorf("the document says %+v, and played it is %+v", *s, p)
	}
}

// Each broken seed has a file of its own; seeds that keep their promises have
// none, nor is one left behind of finding out whether it can be written.
func TestSimulateShrinksEachBrokenSeed(t *testing.T) {
	folder := t.TempDir()
	c := &console{}
	got := c.run("simulate", "--scenario", hasty(t, folder), "--seeds", "7-8", "--shrink", filepath.Join(folder, "small.txt"))
	for _, want := range []string{"shrunk in ", "    from 3 relays, 8 buckets, 20s of 20 messages a second, ", "    to   1 relay, 1 bucket, 1s of 0.1 messages a second, no fault:",
		"relay simulate --scenario " + filepath.Join(folder, "small-7.txt"), "relay simulate --scenario " + filepath.Join(folder, "small-8.txt")} {
		if got.code != exitFailed || !strings.Contains(got.stdout, want) {
			t.Errorf("exit %d, and the text does not say %q:\n%s", got.code, want, got.stdout)
		}
	}
	wantFiles(t, folder, "hasty.txt", "small-7.txt", "small-8.txt")
	if got := c.run("simulate", "--seed", "1", "--duration", "5s", "--faults", "none", "--shrink", filepath.Join(folder, "none.txt")); got.code != exitDone {
		t.Errorf("exit %d\n%s", got.code, got.stderr)
	}
	wantFiles(t, folder, "hasty.txt", "small-7.txt", "small-8.txt")
}

func wantFiles(t *testing.T, folder string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("the folder has %v, want %v", names, want)
	}
}

func TestSimulateRefusesToShrinkAScript(t *testing.T) {
	c := &console{}
	got := c.run("simulate", "--scenario", "../../simulation/testdata/L-08.txt", "--shrink", filepath.Join(t.TempDir(), "small.txt"))
	if got.code != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, "L-08.txt is a script of steps; only a random run can be shrunk") {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	got = c.run("simulate", "--seed", "1", "--shrink", "/no/such/folder/small.txt")
	if got.code != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, "--shrink: open /no/such/folder") {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// Who interrupts a search has the smallest run of so far, and no success.
func TestSimulateKeepsWhatAnInterruptedSearchFound(t *testing.T) {
	small := filepath.Join(t.TempDir(), "small.txt")
	ctx, interrupt := context.WithCancel(t.Context())
	c := &simulate{app: &app{stdout: io.Discard, stderr: io.Discard}, shrink: small, seeds: seedRange{3, 3}, parallel: 1}
	c.shrinker = func(_ context.Context, o simulation.Options, _ simulation.ShrinkConfig) (simulation.Shrunk, error) {
		interrupt()
		o.Relays = 1
		r := simulation.Report{Violations: []simulation.Violation{{Invariant: "I-4", Detail: "row 5 passes row 4", Bucket: -1}}}
		return simulation.Shrunk{From: o, Options: o, Report: r}, ctx.Err()
	}
	o := simulation.Options{Seed: 3, Duration: time.Second, HealWithin: 1}
	if _, err := c.smaller(ctx, simulated{options: o}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(small)
	if err != nil || !strings.Contains(string(text), "I-4 is broken") || !strings.Contains(string(text), "\nrelays 1\n") {
		t.Errorf("%v\n%s", err, text)
	}
}
