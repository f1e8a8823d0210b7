package mutants_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutant is one way to break the protocol.
type mutant struct {
	name   string
	breaks string // what is not true any more
	// caught are the invariants any of which may catch it. The first violation of
	// a seed counts.
	caught []string
	// scenario catches it, a file of simulation/testdata without its ending, where the
	// storm meets what it takes too rarely; "": the storm does.
	scenario string
	edits    []edit
}

// edit replaces a text that a file has exactly once.
type edit struct {
	file     string // from the module's root
	old, new string
}

// scripted stands for an expectation of a scenario, which is no invariant.
const scripted = "scenario"

// by lists the invariants that catch a mutant.
func by(invariants ...string) []string { return invariants }

// in is the one edit of most mutants.
func in(file, old, new string) []edit { return []edit{{file, old, new}} }

// root is the module's root, from this package's folder.
const root = "../.."

func all() []mutant {
	return slices.Concat(requests(), leases(), validity(), rows(), plans(), stops(), clocks(), publishing(), fencedMode(), parking(), layout())
}

// mutated are the texts of the files that a mutant changes.
func (m mutant) mutated() (map[string]string, error) {
	texts := map[string]string{}
	for _, e := range m.edits {
		text, read := texts[e.file]
		if !read {
			bytes, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			text = string(bytes)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("%s has this text %d times, must be once:\n%s", e.file, n, e.old)
		}
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return texts, nil
}

// Every mutant still changes what it says: code that has moved on takes its
// mutants along.
func TestTextsMatch(t *testing.T) {
	names := map[string]bool{}
	for _, m := range all() {
		if names[m.name] || m.name == "" || m.breaks == "" || len(m.caught) == 0 {
			t.Errorf("%s: has no name of its own, does not say what it breaks, or by what it is caught", m.name)
		}
		names[m.name] = true
		if _, err := m.mutated(); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
	if len(names) < 40 {
		t.Errorf("%d mutants, want at least 40", len(names))
	}
}
