package mutants_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// The exhaustive search of small fleets (simulation/explore) catches mutants of the
// protocol too, in the sizes of make test. EXPLORED is a regular expression of their
// names.
func TestExplored(t *testing.T) {
	pattern := os.Getenv("EXPLORED")
	if pattern == "" {
		t.Skip("EXPLORED names no mutants")
	}
	chosen, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatalf("EXPLORED: %v", err)
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "explore.test")
	for _, m := range all() {
		if !chosen.MatchString(m.name) {
			continue
		}
		if err := m.build(t.Context(), dir, binary, "./simulation/explore"); err != nil {
			t.Logf("%-42s %v", m.name, err)
			continue
		}
		began := time.Now()
		search := exec.CommandContext(t.Context(), binary, "-test.run", "^Test(Leases|Delivery)$", "-test.failfast", "-test.timeout", "2m")
		search.Dir = filepath.Join(root, "simulation", "explore")
		out, err := search.CombinedOutput()
		found := regexp.MustCompile(`(I-\d+): (.*)`).Find(out)
		t.Logf("%-42s %.1f s %v %s", m.name, time.Since(began).Seconds(), err, found)
	}
}
