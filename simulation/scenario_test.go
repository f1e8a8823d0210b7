package simulation_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bucketbrigade/relay/simulation"
)

// readScenario parses a file.
func readScenario(t *testing.T, path string) *simulation.Scenario {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s, err := simulation.ParseScenario(filepath.Base(path), file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// scenarioFiles are the scripts of testdata.
func scenarioFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	return paths
}

// Each scenario shows what its story promises, in whichever order the seed lets
// things happen that a script does not order.
func TestScenarios(t *testing.T) {
	for _, path := range scenarioFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			for seed := range number(t, "SCENARIO_SEEDS", scenarioSeeds) {
				s := readScenario(t, path)
				s.Options.Seed += seed
				if s.Story == "" {
					t.Errorf("%s tells no story", path)
				}
				for _, v := range s.Run().Violations {
					t.Errorf("seed %d: %v", s.Options.Seed, v)
				}
			}
		})
	}
}

// SCENARIO=testdata/L-01.txt runs one scenario and prints each event.
func TestScenario(t *testing.T) {
	path := os.Getenv("SCENARIO")
	if path == "" {
		t.Skip("SCENARIO names no file")
	}
	s := readScenario(t, path)
	s.Options.Seed += number(t, "SIMULATION_SEED", 0)
	s.Options.Observe = func(e simulation.Event) { t.Log(e) }
	for _, v := range s.Run().Violations {
		t.Error(v)
	}
}

// A line that cannot be read is named, with the word and what is wrong with it;
// all such lines are reported together.
func TestScenarioErrors(t *testing.T) {
	for text, want := range map[string]string{
		"lease 3":                             `x.txt:3: "3": lease is a duration like 90s or 200ms`,
		"lease":                               "x.txt:3: at the end of the line: lease is missing",
		"buckets 0":                           `x.txt:3: "0": buckets is at least 1`,
		"begin A":                             `x.txt:3: "begin": there is no such command`,
		"start A\nlease 3s":                   `x.txt:4: "lease": there is no such command or setting, or a setting stands behind the first step`,
		"stop A":                              `x.txt:3: "A": no process of that name was started`,
		"start A\nat 5s\nat 4s stop A":        "x.txt:5: ", // time
		"start A\nlose claims of A":           `x.txt:4: "claims": a request is one of heartbeat`,
		"start A\nlose claim of A now":        `x.txt:4: "now": how often is a number`,
		"start A\nhold produce of A":          "hold does not apply to produce",
		"start A\nexpect 3 ducks":             `x.txt:4: "ducks": what is counted is one of rows`,
		"start A\nexpect A sleeps":            `x.txt:4: "sleeps": what it does is one of runs`,
		"start A\nstop A A2":                  `x.txt:4: "A2": no process of that name`,
		"start A\ncommit m1 in bucket":        "x.txt:4: at the end of the line: a bucket is missing",
		"start A\nexpect 1 deliveries":        `x.txt:4: at the end of the line: "of" is missing`,
		"start A\nexpect no sent of A 3":      `x.txt:4: "3": want of, in bucket, since or saying`,
		"operator paints key a":               `x.txt:3: "paints": what the operator does is one of parks`,
		"operator parks key a":                "x.txt:3: ",
		"operator pauses key a in bucket 0":   `x.txt:3: "0": a bucket or a topic is paused, not a key`,
		"operator pauses bucket 0 for 0s":     `x.txt:3: "0s": a while is more than nothing`,
		"operator resumes topic audit":        `x.txt:3: "topic": want "bucket" here`,
		"operator discards m1":                `x.txt:3: "m1": no message of that name is written`,
		"expect key a in bucket 0 is lost":    `x.txt:3: "lost": it is one of free, set aside, to be retried`,
		"start A with poison cheese":          `x.txt:3: "cheese": the policy is one of park, block, dead-letter`,
		"fault thunder 1":                     `x.txt:3: "thunder": the kinds are requestLost`,
		"end open\nstart A":                   `nothing follows "end open"`,
		"start A\nexpect 1 deliveries of m1":  `x.txt:4: "m1": no message of that name is written`,
		"start A with a hat":                  `x.txt:3: "a": what it has of its own is one of poison, mode`,
		"start A with mode loose":             `x.txt:3: "loose": the mode is one of ordered, fenced`,
		"start A\nrepeat commit of A":         "repeat does not apply to commit",
		"start A\nforget abort of A":          "forget does not apply to abort",
		"start A\nlose commit of A in bucket": `x.txt:4: "in": how often is a number`,
	} {
		_, err := simulation.ParseScenario("x.txt", strings.NewReader("# Title\n# Story\n"+text))
		var fault *simulation.ScenarioError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	_, err := simulation.ParseScenario("x.txt", strings.NewReader("start A\nbegin B\nstall C"))
	for _, want := range []string{"x.txt:2", "x.txt:3", "opens with its story"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

// played runs a script.
func played(t *testing.T, script string) simulation.Report {
	t.Helper()
	s, err := simulation.ParseScenario("script", strings.NewReader("# Title\n# Story\n"+script))
	if err != nil {
		t.Fatal(err)
	}
	return s.Run()
}

// What no story of testdata needs works too: brokers, topics, keyless messages,
// pages that are cut.
func TestScenarioCommands(t *testing.T) {
	r := played(t, `
		seed 3
		latency 5ms
		without topic late
		start A
		within 15s A owns 8 buckets
		commit m1 keyless to late
		commit m2 key x to audit
		at 20s create topic late with 1 partitions
		within 60s 1 deliveries of m1 m2
		forbid audit
		commit m3 key x to audit
		throughout 5s no deliveries of m3
		allow audit
		within 60s 1 deliveries of m3
		fail-over produce of A 2 times
		cut fetch of A after 2
		commit m4..m9 in bucket 1
		within 10s order of bucket 1 is m4..m9
		after 30s forget produce of A
		commit m10 in bucket 1
		within 10s log of bucket 1 is m4..m10
		create topic payments with 2 partitions
		partitions payments 1 more
		commit m11 keyless to payments
		within 5s 1 deliveries of m11
		delete topic payments
		put record of gone seen 0s
		operator parks topic audit in bucket 0-3 ringing after 2s
		after 1s operator parks topic audit in bucket 2 refused
		expect topic audit in bucket 0-3 is set aside
		expect topic audit in bucket 4 is free
		operator retries topic audit in bucket 0-3
		after 20s expect topic audit is free
		expect no rows set aside in bucket 2
		after 10s expect A runs
		kill A
		expect A died
	`)
	for _, v := range r.Violations {
		t.Error(v)
	}
}

// A random run can be written as a scenario, and is then the same for the same
// seed.
func TestScenarioWithRandomFaults(t *testing.T) {
	script := "relays 3\nseed 5\nrate 20\nfaults storm\nfault crash 2\nlease 6s\nskew 400ms\nat 60s"
	a, b := played(t, script), played(t, script)
	if !a.OK || a.Messages.Enqueued == 0 || a.Faults["crash"] == 0 {
		t.Errorf("%+v", a)
	}
	if a.Digest != b.Digest {
		t.Errorf("digests %s and %s", a.Digest, b.Digest)
	}
}

// What is not as expected is a violation, with file, line and what there is
// instead, and the run ends there.
func TestUnmetExpectation(t *testing.T) {
	r := played(t, "start A\nwithin 5s A owns 8 buckets\nexpect owner of 3 is B\nexpect owner of 4 is C")
	if r.OK || len(r.Violations) != 1 {
		t.Fatalf("violations %v, want one", r.Violations)
	}
	want := "script:5: expect owner of 3 is B: the owner of 3 is A"
	if v := r.Violations[0]; v.Invariant != "scenario" || v.Detail != want {
		t.Errorf("violation %v, want %s", v, want)
	}
}
