package mutants_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"
)

// explored are mutants that the exhaustive search of small fleets catches in the
// sizes of make test.
var explored = []string{
	"heartbeat moves backwards", "heartbeat without incarnation", "claim of a live lease", "keep under any expiry",
	"release under any expiry", "release of another's lease", "any old item is our own", "stamp of another incarnation",
	"prune of a live record", "unsettled is lost", "unanswered keep is applied", "throttled keep is applied",
	"a failed read shows an empty table", "skew is not subtracted", "validity counts from the answer", "a stored cursor",
}

// The exhaustive search (simulation/explore) catches them without any luck. MUTANTS
// chooses among them, as for the storm.
func TestCaughtByExploring(t *testing.T) {
	pattern := os.Getenv("MUTANTS")
	if pattern == "" {
		t.Skip("MUTANTS names no mutants; make mutants runs them all")
	}
	chosen, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatalf("MUTANTS: %v", err)
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "explore.test")
	for _, m := range all() {
		if !slices.Contains(explored, m.name) || !chosen.MatchString(m.name) {
			continue
		}
		if err := m.build(t.Context(), dir, binary, "./simulation/explore"); err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		began := time.Now()
		search := exec.CommandContext(t.Context(), binary,
			"-test.run", "^Test(Leases|Delivery)$", "-test.failfast", "-test.timeout", patience.String())
		search.Dir = filepath.Join(root, "simulation", "explore")
		out, err := search.CombinedOutput()
		found := regexp.MustCompile(`I-\d+: .*`).Find(out)
		if err == nil || found == nil {
			t.Errorf("%s: not found: %v\n%s", m.name, err, tail(out))
		}
		fmt.Printf("%-42s explored %5.1f s  %s\n", m.name, time.Since(began).Seconds(), found)
	}
}
