package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNothingBroken says that the run to be shrunk keeps every promise: there is
// nothing to look into.
var ErrNothingBroken = errors.New("the run breaks no promise")

// ShrinkConfig says how much is tried. Zero values mean the defaults.
type ShrinkConfig struct {
	// MaxRuns is how many runs may be made, the first included; default 2,000.
	MaxRuns int
	// Seeds is how many other seeds one step of the search tries at most, shared
	// among the smaller runs that it has to choose from, at least one each; default
	// 100, negative: none. A fleet of another size, or with fewer faults, is another run
	// altogether, and what broke in one seed may break in the next.
	Seeds int
	// Each calls do for 0 to n-1, several at once if it likes, and returns when all
	// calls have returned. What is found does not depend on it. Nil: one call after
	// the other, since nothing in this package starts a goroutine.
	Each func(n int, do func(i int))
	// Progress is told of each smaller run as it is found, by the caller of Shrink;
	// nil: nobody is.
	Progress func(Shrunk)
}

// Shrunk is the smallest run found that breaks the promise.
type Shrunk struct {
	// From are the options that Shrink was given; Options those of the smallest
	// run, with all defaults filled in and without Observe.
	From, Options Options
	Report        Report
	Runs          int // that were made, the first included
	Before, After Size
}

// Broken is the promise that the run breaks, as the run that was given does.
func (s Shrunk) Broken() Violation { return s.Report.Violations[0] }

// Size is what is made smaller.
type Size struct {
	Relays, Buckets int
	Duration        time.Duration // virtual, until everything is healed
	Rate            float64       // messages a virtual second
	Kinds           int           // of faults that may happen
	Happenings      int           // of faults, until the promise is broken
}

func (s Size) String() string {
	text := fmt.Sprintf("%s, %s, %s of %s messages a second",
		several(s.Relays, "relay"), several(s.Buckets, "bucket"), shortDuration(s.Duration), decimal(s.Rate))
	if s.Happenings == 0 {
		return text + ", no fault"
	}
	return text + fmt.Sprintf(", %s of %s", several(s.Happenings, "fault"), several(s.Kinds, "kind"))
}

// several is a number of things.
func several(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Shrink looks for a small run that breaks the promise that the given one breaks
// first, by its number: a shorter run, fewer relays, buckets and messages, fewer
// kinds of faults, and of each only the happenings that matter. The relays'
// settings and HealWithin stay: another promise may be broken with others.
//
// It repeats that until nothing more can go, or MaxRuns are made, or ctx ends; in
// the last case it returns what it has, with ctx's error. The error is
// ErrNothingBroken when the given options break nothing, and then Shrunk has
// their report. The result depends on the options, MaxRuns and Seeds only. It
// panics for options that Validate finds wrong, as Run does.
func Shrink(ctx context.Context, o Options, cfg ShrinkConfig) (Shrunk, error) {
	return shrink(ctx, o, cfg, Run)
}

// shrink is Shrink with another way to run.
func shrink(ctx context.Context, o Options, cfg ShrinkConfig, run func(Options) Report) (Shrunk, error) {
	orDefault(&cfg.MaxRuns, 2000)
	orDefault(&cfg.Seeds, 100)
	if cfg.Each == nil {
		cfg.Each = oneByOne
	}
	o.Observe = nil
	found := Shrunk{From: o, Options: o.WithDefaults(), Runs: 1}
	found.Report = run(found.Options)
	if len(found.Report.Violations) == 0 {
		return found, ErrNothingBroken
	}
	found.Before = sizeOf(found.Options, found.Report)
	found.After = found.Before
	s := &search{ctx: ctx, cfg: cfg, run: run, best: found, broken: found.Broken().Invariant}
	s.rounds()
	return s.best, ctx.Err()
}

func oneByOne(n int, do func(i int)) {
	for i := range n {
		do(i)
	}
}

func sizeOf(o Options, r Report) Size {
	return Size{
		Relays: o.Relays, Buckets: o.Buckets, Duration: o.Duration, Rate: o.Rate,
		Kinds: len(kindsOf(o)), Happenings: len(happeningsOf(o, r)),
	}
}

// kindsOf are the kinds that may happen.
func kindsOf(o Options) []Fault {
	var kinds []Fault
	for _, kind := range FaultKinds() {
		if only, limited := o.Only[kind]; o.Faults[kind] > 0 && (!limited || len(only) > 0) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// happening is one of a kind's: 1 is the first.
type happening struct {
	kind   Fault
	number int
}

// happeningsOf are those of a run, kind by kind.
func happeningsOf(o Options, r Report) []happening {
	var all []happening
	for _, kind := range kindsOf(o) {
		for n := 1; n <= r.rolled[kind]; n++ {
			if o.Only.includes(kind, n) {
				all = append(all, happening{kind, n})
			}
		}
	}
	return all
}
