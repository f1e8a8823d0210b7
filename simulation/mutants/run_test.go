package mutants_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

const (
	// withinSeeds is how many seeds of the storm a mutant may survive.
	withinSeeds = 200
	// patience bounds the run of one mutant, which may make no progress at all:
	// several times what that many seeds take.
	patience = 10 * time.Minute
)

// verdict is what became of one mutant.
type verdict struct {
	mutant    mutant
	invariant string // that caught it, or scripted; "": it survived
	seed      int
	detail    string
	built     time.Duration // how long it took to compile
	ran       time.Duration // how long its seeds took
	err       error         // it could not be built, made no progress, or ended otherwise
}

// outcome is the verdict in a few words.
func (v verdict) outcome() string {
	switch {
	case v.err != nil:
		return v.err.Error()
	case v.invariant == "":
		if v.mutant.scenario != "" {
			return "SURVIVED " + v.mutant.scenario
		}
		return fmt.Sprintf("SURVIVED %d seeds", withinSeeds)
	case !slices.Contains(v.mutant.caught, v.invariant):
		return fmt.Sprintf("seed %d: %s, must be %s", v.seed, v.invariant, strings.Join(v.mutant.caught, " or "))
	}
	return fmt.Sprintf("seed %d: %s", v.seed, v.caughtBy())
}

// caughtBy is the invariant, or the scenario.
func (v verdict) caughtBy() string {
	if v.invariant == scripted {
		return v.mutant.scenario
	}
	return v.invariant
}

// The storm catches every mutant within the stated number of seeds, by an invariant that
// the mutant breaks, or the scenario does that it names; and the storm finds nothing in
// the code as it is.
// MUTANTS is a regular expression of their names: "." for all.
func TestCaught(t *testing.T) {
	pattern := os.Getenv("MUTANTS")
	if pattern == "" {
		t.Skip("MUTANTS names no mutants; make mutants runs them all")
	}
	chosen, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatalf("MUTANTS: %v", err)
	}
	mutants := slices.DeleteFunc(all(), func(m mutant) bool { return !chosen.MatchString(m.name) })
	if len(mutants) == 0 {
		t.Fatalf("MUTANTS %q: no mutant has such a name", pattern)
	}
	control := mutant{name: "no mutant"}
	verdicts := judge(t, append([]mutant{control}, mutants...))
	fmt.Print(table(verdicts[1:]))
	if v := verdicts[0]; v.err != nil || v.invariant != "" {
		t.Errorf("the code as it is, without a mutant: %s %s", v.outcome(), v.detail)
	}
	for _, v := range verdicts[1:] {
		switch {
		case v.err != nil || v.invariant == "":
			t.Errorf("%s: not caught, although it breaks: %s\n%s", v.mutant.name, v.mutant.breaks, v.outcome())
		case !slices.Contains(v.mutant.caught, v.invariant):
			t.Errorf("%s: %s: %s", v.mutant.name, v.outcome(), v.detail)
		}
	}
}

// judge runs the mutants, as many at a time as there are processors, and says of
// each what became of it. The verdicts are in the order of the mutants.
func judge(t *testing.T, mutants []mutant) []verdict {
	type numbered struct {
		verdict
		number int
	}
	verdicts := make(chan numbered)
	places := make(chan string, runtime.GOMAXPROCS(0))
	for range cap(places) {
		places <- t.TempDir()
	}
	go func() {
		for n, m := range mutants { // in their order, so that neighbours share compiled packages
			dir := <-places
			go func() {
				v := m.run(t.Context(), dir)
				places <- dir
				verdicts <- numbered{v, n}
			}()
		}
	}()
	ordered := make([]verdict, len(mutants))
	for n := range mutants {
		v := <-verdicts
		ordered[v.number] = v.verdict
		first, _, _ := strings.Cut(v.outcome(), "\n")
		fmt.Printf("%3d of %d  %s: %s\n", n+1, len(mutants), v.mutant.name, first)
	}
	return ordered
}

// table is the verdicts for a reader, in the notation of Markdown.
func table(verdicts []verdict) string {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	fmt.Fprintln(columns, "| mutant\t| not true any more\t| seed\t| caught by\t| seconds\t|")
	fmt.Fprintln(columns, "|---\t|---\t|---\t|---\t|---\t|")
	seeds, built, ran := 0, time.Duration(0), time.Duration(0)
	for _, v := range verdicts {
		seed, by := "", v.caughtBy()
		if v.invariant != "" {
			seed, seeds = strconv.Itoa(v.seed), max(seeds, v.seed)
		} else if by, _, _ = strings.Cut(v.outcome(), "\n"); by == "" {
			by = "nothing"
		}
		fmt.Fprintf(columns, "| %s\t| %s\t| %s\t| %s\t| %.1f\t|\n", v.mutant.name, v.mutant.breaks, seed, by, v.ran.Seconds())
		built, ran = built+v.built, ran+v.ran
	}
	columns.Flush()
	fmt.Fprintf(&text, "%d mutants; the last was caught by seed %d, and the bound is %d; %.0f s to build and %.0f s to run\n",
		len(verdicts), seeds, withinSeeds, built.Seconds(), ran.Seconds())
	return text.String()
}

// run builds the simulation with the mutant in it, in dir, and runs the storm, or its
// scenario, until the first seed that fails. The seeds run one after another, in one
// process, so that it is the lowest, and the same each time.
func (m mutant) run(ctx context.Context, dir string) (v verdict) {
	v.mutant = m
	binary := filepath.Join(dir, "simulation.test")
	began := time.Now()
	v.err = m.build(ctx, dir, binary, "./simulation")
	v.built = time.Since(began)
	if v.err != nil {
		return v
	}
	test := "^TestStorm$"
	if m.scenario != "" {
		test = "^TestScenarios$/^" + m.scenario + "$"
	}
	seeds := exec.CommandContext(ctx, binary, "-test.run", test, "-test.timeout", patience.String())
	seeds.Dir = filepath.Join(root, "simulation")
	seeds.Env = append(os.Environ(), "GOMAXPROCS=1", "SIMULATION_SEEDS="+strconv.Itoa(withinSeeds))
	began = time.Now()
	out, err := seeds.CombinedOutput()
	v.ran = time.Since(began)
	found := regexp.MustCompile(`seed (\d+): (I-\d+|` + scripted + `) at (.*)`).FindSubmatch(out)
	switch {
	case found != nil:
		v.seed, _ = strconv.Atoi(string(found[1]))
		v.invariant, v.detail = string(found[2]), string(found[3])
	case bytes.Contains(out, []byte("test timed out")):
		v.err = fmt.Errorf("HANGS: no end after %v\n%s", patience, tail(out))
	case err != nil && !bytes.Contains(out, []byte("was never seen")):
		// Some fault or transition that was never seen says nothing about the mutant.
		v.err = fmt.Errorf("FAILS otherwise: %w\n%s", err, tail(out))
	}
	return v
}

// tail is the end of a program's output.
func tail(out []byte) []byte {
	const most = 2000
	return out[max(0, len(out)-most):]
}
