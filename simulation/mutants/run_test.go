package mutants_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// withinSeeds is how many seeds of the storm a mutant may survive.
	withinSeeds = 200
	// atOnce bounds how many mutants are built and run at a time.
	atOnce = 2
	// patience bounds the run of one mutant, which may make no progress at all.
	patience = 10 * time.Minute
)

// verdict is what became of one mutant.
type verdict struct {
	mutant    mutant
	invariant string // that caught it; "": it survived
	seed      int
	detail    string
	took      time.Duration
	err       error // it could not be built, or its run ended otherwise
}

func (v verdict) String() string {
	switch {
	case v.err != nil:
		return fmt.Sprintf("%-42s %v", v.mutant.name, v.err)
	case v.invariant == "":
		return fmt.Sprintf("%-42s SURVIVED %d seeds, %.0f s", v.mutant.name, withinSeeds, v.took.Seconds())
	}
	return fmt.Sprintf("%-42s %-5s seed %3d  %5.1f s  %s", v.mutant.name, v.invariant, v.seed, v.took.Seconds(), v.detail)
}

// The storm catches every mutant within the stated number of seeds, by an
// invariant that the mutant breaks. MUTANTS is a regular expression of their
// names: "." for all.
func TestCaught(t *testing.T) {
	pattern := os.Getenv("MUTANTS")
	if pattern == "" {
		t.Skip("MUTANTS names no mutants; make mutants runs them all")
	}
	chosen, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatalf("MUTANTS: %v", err)
	}
	var mutants []mutant
	for _, m := range all() {
		if chosen.MatchString(m.name) {
			mutants = append(mutants, m)
		}
	}
	verdicts := make(chan verdict)
	places := make(chan string, atOnce)
	for range atOnce {
		places <- t.TempDir()
	}
	for _, m := range mutants {
		go func() {
			dir := <-places
			v := m.run(t.Context(), dir)
			places <- dir
			verdicts <- v
		}()
	}
	for range mutants {
		v := <-verdicts
		fmt.Println(v)
		switch {
		case v.err != nil || v.invariant == "":
			t.Errorf("%s: not caught: %s", v.mutant.name, v.mutant.breaks)
		case !slices.Contains(v.mutant.caught, v.invariant):
			t.Errorf("%s: caught by %s, must be by %v: %s", v.mutant.name, v.invariant, v.mutant.caught, v.detail)
		}
	}
}

// run builds the simulation with the mutant in it, in dir, and runs the storm
// until the first seed that fails.
func (m mutant) run(ctx context.Context, dir string) (v verdict) {
	v.mutant = m
	binary := filepath.Join(dir, "simulation.test")
	if v.err = m.build(ctx, dir, binary, "./simulation"); v.err != nil {
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	storm := exec.CommandContext(ctx, binary, "-test.run", "^TestStorm$", "-test.timeout", patience.String())
	storm.Dir = filepath.Join(root, "simulation")
	storm.Env = append(os.Environ(), "SIMULATION_SEEDS="+strconv.Itoa(withinSeeds))
	began := time.Now()
	out, err := storm.CombinedOutput()
	v.took = time.Since(began)
	found := regexp.MustCompile(`seed (\d+): (I-\d+) at (.*)`).FindSubmatch(out)
	if found == nil {
		// The storm also fails when some fault or transition was never seen, which
		// says nothing about the mutant.
		if err != nil && !bytes.Contains(out, []byte("was never seen")) {
			v.err = fmt.Errorf("storm: %w\n%s", err, tail(out))
		}
		return v
	}
	v.seed, _ = strconv.Atoi(string(found[1]))
	v.invariant, v.detail = string(found[2]), string(found[3])
	return v
}

// build compiles a package's tests with the mutant's files in place of the real
// ones.
func (m mutant) build(ctx context.Context, dir, binary, target string) error {
	texts, err := m.mutated()
	if err != nil {
		return err
	}
	module, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for file, text := range texts {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(module, file)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", path, "-o", binary, target)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, tail(out))
	}
	return nil
}

// tail is the end of a program's output.
func tail(out []byte) []byte {
	const most = 2000
	return out[max(0, len(out)-most):]
}
