package simulation

import (
	"context"
	"slices"
	"sync/atomic"
)

// search is one Shrink at work. Candidates are tried in their order, and the first
// that breaks the promise becomes the best; how many of them run at once, and
// which is ready first, changes nothing.
type search struct {
	ctx    context.Context
	cfg    ShrinkConfig
	run    func(Options) Report
	broken string // the invariant

	// Invariant: best has been run, and breaks the promise.
	best Shrunk
	// seeds is how many other seeds a step tries now.
	seeds int
	// tried is how many seeds were tried in place of the first one.
	tried uint64
	// smaller is how many times best has become smaller.
	smaller int
}

// rounds goes round after round, first with few seeds: what breaks often is small
// soon. When that finds nothing smaller any more, it takes more of them.
func (s *search) rounds() {
	for s.seeds = min(s.cfg.Seeds, fewSeedsAStep); ; s.seeds = min(s.cfg.Seeds, 3*s.seeds) {
		for s.round() {
		}
		if s.over() || s.seeds == s.cfg.Seeds {
			return
		}
	}
}

// fewSeedsAStep is how many seeds a step begins with.
const fewSeedsAStep = 12

// fails tries candidates until one breaks the promise, and returns its index;
// false when none does, when there are runs left for none, or ctx ends.
func (s *search) fails(candidates []Options) (int, bool) {
	candidates = candidates[:min(len(candidates), max(0, s.cfg.MaxRuns-s.best.Runs))]
	reports := make([]Report, len(candidates))
	var found atomic.Int64 // the least index so far of one that fails
	found.Store(int64(len(candidates)))
	s.cfg.Each(len(candidates), func(i int) {
		if int64(i) > found.Load() || s.ctx.Err() != nil {
			return
		}
		r := s.run(candidates[i])
		if !s.isAlike(r) {
			return
		}
		reports[i] = r
		for least := found.Load(); int64(i) < least && !found.CompareAndSwap(least, int64(i)); {
			least = found.Load()
		}
	})
	i := int(found.Load())
	if s.ctx.Err() != nil {
		return 0, false // some before it may not have been run
	}
	s.best.Runs += min(i+1, len(candidates))
	if i == len(candidates) {
		return 0, false
	}
	s.best.Options, s.best.Report = candidates[i], reports[i]
	s.best.After = sizeOf(s.best.Options, s.best.Report)
	s.smaller++
	if s.cfg.Progress != nil {
		s.cfg.Progress(s.best)
	}
	return i, true
}

// isAlike tells whether a run breaks the same promise, and hardly later than the
// best does. A run of one second that needs a minute of healing to break it is not
// the shorter one, and most often breaks it in another way.
func (s *search) isAlike(r Report) bool {
	if len(r.Violations) == 0 || r.Violations[0].Invariant != s.broken {
		return false
	}
	latest, best := s.best.Options.Duration, s.best.Broken().VirtualTime
	if best > latest { // while healing, which takes its time
		latest = best + s.best.Options.LeaseDuration
	}
	return r.Violations[0].VirtualTime <= latest
}

// over tells whether nothing more may be run.
func (s *search) over() bool { return s.ctx.Err() != nil || s.best.Runs >= s.cfg.MaxRuns }

// seeded are the candidates, each with its own seed and then with others: fresh
// ones, so that no two steps of the search look at the same. The fewer candidates,
// the more seeds each has.
func (s *search) seeded(candidates []Options) []Options {
	if s.seeds < 0 || len(candidates) == 0 {
		return candidates
	}
	others := max(1, s.seeds/len(candidates))
	var all []Options
	for _, o := range candidates {
		all = append(all, o)
		for n := range others {
			o.Seed = s.tried + uint64(n) + 1
			all = append(all, o)
		}
	}
	s.tried += uint64(others)
	return all
}

// minimize makes a list smaller until no part of it can go, by delta debugging:
// each half alone, then each quarter and all but each, and so on to single items.
// It asks fails with candidates in the order in which they are wanted; fails
// returns what the first that still fails consists of, and which it was.
func minimize[T any](items []T, fails func(candidates [][]T) (smaller []T, index int, found bool)) {
	for parts := 2; len(items) > 1; {
		parts = min(parts, len(items))
		var candidates [][]T
		for i := range parts {
			candidates = append(candidates, items[i*len(items)/parts:(i+1)*len(items)/parts])
		}
		if parts > 2 { // of two, one is all but the other
			for i := range parts {
				from, to := i*len(items)/parts, (i+1)*len(items)/parts
				candidates = append(candidates, slices.Concat(items[:from], items[to:]))
			}
		}
		smaller, index, found := fails(candidates)
		switch {
		case found && index < parts:
			items, parts = smaller, 2
		case found:
			items, parts = smaller, max(2, parts-1)
		case parts == len(items):
			return
		default:
			parts *= 2
		}
	}
}

// includes tells whether a kind's happening is to be.
func (h Happenings) includes(kind Fault, number int) bool {
	only, limited := h[kind]
	return !limited || slices.Contains(only, number)
}
