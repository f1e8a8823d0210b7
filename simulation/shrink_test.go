package simulation

import (
	"context"
	"errors"
	"hash/fnv"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// brokenByTwo is a run that breaks I-4 if the third crash and the fifth stall are
// among its faults, it goes on for 33 s, and two relays are there.
func brokenByTwo(o Options) Report {
	r := Report{Seed: o.Seed, OK: true, Virtual: o.Duration + 10*time.Second}
	for _, kind := range kindsOf(o) {
		r.rolled[kind] = 9
	}
	has := func(kind Fault, n int) bool { return o.Faults[kind] > 0 && o.Only.includes(kind, n) }
	if has(Crash, 3) && has(Stall, 5) && o.Duration >= 33*time.Second && o.Relays >= 2 {
		r.OK, r.Violations = false, []Violation{{Invariant: "I-4", VirtualTime: 32500 * time.Millisecond, Bucket: -1}}
	}
	return r
}

func tenMinuteStorm() Options {
	return Options{Seed: 17, Relays: 5, Duration: 10 * time.Minute, Faults: Storm()}
}

// What remains is exactly what the promise needs to be broken.
func TestShrinkFindsTheLeast(t *testing.T) {
	got, err := shrink(t.Context(), tenMinuteStorm(), ShrinkConfig{}, brokenByTwo)
	if err != nil {
		t.Fatal(err)
	}
	want := Options{
		Seed:   got.Options.Seed, // any does
		Relays: 2, Buckets: 1, Duration: 33 * time.Second, Rate: 0.1, Only: Happenings{Crash: {3}, Stall: {5}},
	}.WithDefaults()
	want.Faults[Crash], want.Faults[Stall] = Storm()[Crash], Storm()[Stall]
	if !reflect.DeepEqual(got.Options, want) {
		t.Errorf("got %+v\nwant %+v", got.Options, want)
	}
	kinds := len(kindsOf(tenMinuteStorm()))
	before := Size{Relays: 5, Buckets: 8, Duration: 10 * time.Minute, Rate: 20, Kinds: kinds, Happenings: 9 * kinds}
	after := Size{Relays: 2, Buckets: 1, Duration: 33 * time.Second, Rate: 0.1, Kinds: 2, Happenings: 2}
	if got.Before != before || got.After != after || !reflect.DeepEqual(got.From, tenMinuteStorm()) {
		t.Errorf("from %v to %v", got.Before, got.After)
	}
}

// Without any kind of fault all clocks are right. Where it only takes clocks that
// differ, a kind that never happens says so.
func TestShrinkKeepsTheClocksApart(t *testing.T) {
	run := func(o Options) Report {
		r := Report{Seed: o.Seed, OK: o.Faults == Rates{}}
		if !r.OK {
			r.Violations = []Violation{{Invariant: "I-5", VirtualTime: time.Second}}
		}
		return r
	}
	got, err := shrink(t.Context(), tenMinuteStorm(), ShrinkConfig{}, run)
	if err != nil || got.After.Kinds != 0 || len(got.Options.Only) != 1 || len(kindsOf(got.Options)) != 0 {
		t.Errorf("%v: %v, %+v", err, got.After, got.Options)
	}
}

// whimsical runs break a promise, or another one, or none, by a hash of what was
// asked for: runs that are nothing like each other, as those of two seeds.
func whimsical(salt byte, chance uint64) func(Options) Report {
	return func(o Options) Report {
		hash := fnv.New64a()
		hash.Write([]byte{salt})
		if err := WriteScenario(hash, o, "", ""); err != nil {
			panic(err)
		}
		whim := hash.Sum64()
		r := Report{Seed: o.Seed, OK: true}
		for i, kind := range kindsOf(o) {
			r.rolled[kind] = int(whim>>i) % 4
		}
		if o.Seed == 1 && o.Relays == 3 && o.Duration == 2*time.Minute || whim%100 < chance {
			invariant := []string{"I-1", "I-1", "I-4"}[whim%3]
			if o.Seed == 1 {
				invariant = "I-1"
			}
			r.OK, r.Violations = false, []Violation{{Invariant: invariant, VirtualTime: time.Duration(whim % uint64(3*time.Minute))}}
		}
		return r
	}
}

// Whatever runs do: the result is one of those that were run, it breaks the same
// promise, it is not larger than what was given, no more runs are made than
// allowed, and it is the same when many run at once.
func TestShrinkOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := whimsical(rapid.Byte().Draw(t, "salt"), rapid.Uint64Range(0, 100).Draw(t, "chance"))
		budget := rapid.IntRange(1, 400).Draw(t, "runs")
		o := Options{Seed: 1, Faults: Rates{Crash: 1, Stall: 0.5, AnswerLost: 0.1}}
		var runs atomic.Int64
		one, err := shrink(t.Context(), o, ShrinkConfig{MaxRuns: budget}, func(o Options) Report {
			runs.Add(1)
			return run(o)
		})
		if err != nil || int64(one.Runs) != runs.Load() || one.Runs > budget {
			t.Fatalf("%v: %d runs are said to be %d, of at most %d", err, runs.Load(), one.Runs, budget)
		}
		if again := run(one.Options); one.Broken().Invariant != "I-1" || !reflect.DeepEqual(again, one.Report) {
			t.Errorf("the result is %+v, but runs as %+v", one.Report, again)
		}
		b, a := one.Before, one.After
		if a.Relays > b.Relays || a.Buckets > b.Buckets || a.Duration > b.Duration || a.Rate > b.Rate || a.Kinds > b.Kinds {
			t.Errorf("from %v to %v", b, a)
		}
		many, err := shrink(t.Context(), o, ShrinkConfig{MaxRuns: budget, Each: allAtOnce}, run)
		if err != nil || !reflect.DeepEqual(one, many) {
			t.Errorf("%v: one by one %+v\nat once %+v", err, one, many)
		}
	})
}

func allAtOnce(n int, do func(i int)) {
	var doing sync.WaitGroup
	for i := range n {
		doing.Go(func() { do(i) })
	}
	doing.Wait()
}

func TestShrinkOfWhatIsNotBroken(t *testing.T) {
	o := tenMinuteStorm()
	o.Relays = 1
	got, err := shrink(t.Context(), o, ShrinkConfig{}, brokenByTwo)
	if !errors.Is(err, ErrNothingBroken) || got.Runs != 1 || !got.Report.OK {
		t.Errorf("%v after %d runs", err, got.Runs)
	}
}

// Whoever interrupts a search has the smallest run of so far.
func TestShrinkIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var told Shrunk
	runs := 0
	got, err := shrink(ctx, tenMinuteStorm(), ShrinkConfig{Progress: func(s Shrunk) { told = s }}, func(o Options) Report {
		if runs++; runs == 100 {
			interrupt()
		}
		return brokenByTwo(o)
	})
	if !errors.Is(err, context.Canceled) || runs != 100 || !reflect.DeepEqual(got.Options, told.Options) {
		t.Errorf("%v after %d runs: %v, told %v", err, runs, got.After, told.After)
	}
	if brokenByTwo(got.Options).OK || got.After.Duration >= got.Before.Duration {
		t.Errorf("from %v to %v", got.Before, got.After)
	}
}

// Of any list of which some items are needed, exactly those remain.
func TestMinimize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := make([]int, rapid.IntRange(1, 60).Draw(t, "items"))
		for i := range items {
			items[i] = i
		}
		needed := rapid.SliceOfNDistinct(rapid.IntRange(0, len(items)-1), 1, min(6, len(items)), rapid.ID).Draw(t, "needed")
		slices.Sort(needed)
		left := items
		minimize(items, func(candidates [][]int) ([]int, int, bool) {
			for i, c := range candidates {
				if !slices.ContainsFunc(needed, func(n int) bool { return !slices.Contains(c, n) }) {
					left = c
					return c, i, true
				}
			}
			return nil, 0, false
		})
		if !slices.Equal(left, needed) {
			t.Errorf("left %v, needed %v", left, needed)
		}
	})
}
