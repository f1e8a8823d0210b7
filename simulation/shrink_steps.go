package simulation

import (
	"maps"
	"slices"
	"time"
)

// round takes away whatever can go, once; false when nothing could, or nothing
// more may be tried. No step makes anything larger, so that the rounds end; what
// takes away much comes first.
func (s *search) round() bool {
	before := s.smaller
	for _, step := range []func(){
		s.cut, s.shortenSomewhat, s.dropKinds, s.fewerRelays, s.fewerBuckets, s.shorten, s.slower, s.dropHappenings, s.renumber,
	} {
		if s.over() {
			return false
		}
		step()
		s.cut()
	}
	return s.smaller > before
}

// cut ends the run at the whole second in which the promise is broken.
func (s *search) cut() {
	o := s.best.Options
	at := s.best.Broken().VirtualTime
	o.Duration = max(time.Second, (at + time.Second - 1).Truncate(time.Second))
	if o.Duration < s.best.Options.Duration {
		s.fails([]Options{o})
	}
}

// roomy is long enough to break a promise in many ways.
const roomy = 30 * time.Second

// shortenSomewhat makes a long run cheap, and leaves room: in a second or two a
// promise may break in a large fleet only.
func (s *search) shortenSomewhat() { s.shortenTo(roomy) }

func (s *search) shorten() { s.shortenTo(time.Second) }

// shortenTo tries round durations of at least so long, the shortest first, and
// then, with the same seed, the whole seconds below what was found, by halves.
func (s *search) shortenTo(floor time.Duration) {
	least := floor - time.Second
	var shorter []Options
	for _, d := range rungs(time.Second, s.best.Options.Duration, 1, 2, 3, 5, 10, 15, 20, 30, 45, 60) {
		if o := s.best.Options; d >= floor {
			o.Duration = d
			shorter = append(shorter, o)
		}
	}
	all := s.seeded(shorter)
	if i, found := s.fails(all); found && i > 0 {
		least = all[i-1].Duration
	} else if n := len(shorter); !found && n > 0 {
		least = shorter[n-1].Duration
	}
	for !s.over() && s.best.Options.Duration-least > time.Second {
		o := s.best.Options
		o.Duration = least + ((o.Duration - least) / 2).Truncate(time.Second)
		if _, found := s.fails([]Options{o}); !found {
			least = o.Duration
		}
	}
}

// fewerRelays tries smaller fleets, the smallest first.
func (s *search) fewerRelays() {
	s.fewer(func(o *Options) *int { return &o.Relays })
}

// fewerBuckets tries outboxes of fewer buckets, the smallest first.
func (s *search) fewerBuckets() {
	s.fewer(func(o *Options) *int { return &o.Buckets })
}

func (s *search) fewer(field func(*Options) *int) {
	var fewer []Options
	o := s.best.Options
	n := *field(&o)
	for _, less := range append(rungs(1, n-1, 1, 2, 3, 4, 6, 8), n-1) {
		if less >= 1 {
			*field(&o) = less
			fewer = append(fewer, o)
		}
	}
	s.fails(s.seeded(fewer))
}

// slower tries lower rates of messages, the lowest first.
func (s *search) slower() {
	var slower []Options
	for _, rate := range rungs(0.1, s.best.Options.Rate, 1, 2, 5) {
		o := s.best.Options
		o.Rate = rate
		slower = append(slower, o)
	}
	s.fails(s.seeded(slower))
}

// rungs are round values from unit up to less than top: these multiples of unit,
// and of ten or, where they go on to sixty as seconds do, of sixty times it.
func rungs[T time.Duration | int | float64](unit, top T, multiples ...T) []T {
	var all []T
	for {
		for _, m := range multiples {
			if unit*m >= top {
				return all
			}
			if !slices.Contains(all, unit*m) {
				all = append(all, unit*m)
			}
		}
		if last := multiples[len(multiples)-1]; last == 60 {
			unit *= 60
		} else {
			unit *= 10
		}
	}
}

// dropKinds leaves out whole kinds of faults: all; all, with clocks that differ as
// they do in a world with faults; and then as many as can go.
func (s *search) dropKinds() {
	kinds := kindsOf(s.best.Options)
	if s.best.Options.Faults != (Rates{}) {
		none := []Options{withKinds(s.best.Options, nil)}
		if len(kinds) > 0 {
			none = append(none, withoutHappenings(s.best.Options, kinds[0]))
		}
		if _, found := s.fails(s.seeded(none)); found {
			return
		}
	}
	try := func(candidates [][]Fault) ([]Fault, int, bool) {
		var fewer []Options
		for _, kinds := range candidates {
			fewer = append(fewer, withKinds(s.best.Options, kinds))
		}
		all := s.seeded(fewer)
		i, found := s.fails(all)
		return kindsOf(s.best.Options), i * len(candidates) / max(1, len(all)), found
	}
	var seen []Fault // before the promise is broken
	for _, h := range happeningsOf(s.best.Options, s.best.Report) {
		if !slices.Contains(seen, h.kind) {
			seen = append(seen, h.kind)
		}
	}
	if 0 < len(seen) && len(seen) < len(kinds) {
		try([][]Fault{seen})
	}
	minimize(kindsOf(s.best.Options), try)
}

// manyHappenings are so many that leaving out some is tried with one seed only.
const manyHappenings = 50

// dropHappenings leaves out single happenings: first those that would come after
// the promise is broken, and then as many as can go.
func (s *search) dropHappenings() {
	all := happeningsOf(s.best.Options, s.best.Report)
	if len(all) == 0 {
		return
	}
	if limited := withHappenings(s.best.Options, all); !maps.EqualFunc(limited.Only, s.best.Options.Only, slices.Equal[[]int]) {
		s.fails([]Options{limited})
	}
	minimize(all, func(candidates [][]happening) ([]happening, int, bool) {
		var fewer []Options
		for _, these := range candidates {
			fewer = append(fewer, withHappenings(s.best.Options, these))
		}
		if len(all) <= manyHappenings {
			fewer = s.seeded(fewer)
		}
		i, found := s.fails(fewer)
		all = happeningsOf(s.best.Options, s.best.Report)
		return all, i * len(candidates) / max(1, len(fewer)), found
	})
}

// renumber tries as many happenings of each kind, but its first ones: they come
// early, in a shorter run, and of some seed they may do.
func (s *search) renumber() {
	o := s.best.Options
	only := Happenings{}
	for kind, numbers := range o.Only {
		only[kind] = make([]int, len(numbers))
		for i := range numbers {
			only[kind][i] = i + 1
		}
	}
	if !maps.EqualFunc(only, o.Only, slices.Equal[[]int]) {
		o.Only = only
		s.fails(s.seeded([]Options{o}))
	}
}

// withKinds are the options with these kinds of faults only.
func withKinds(o Options, kinds []Fault) Options {
	o.Only = maps.Clone(o.Only)
	for _, kind := range FaultKinds() {
		if !slices.Contains(kinds, kind) {
			o.Faults[kind] = 0
			delete(o.Only, kind)
		}
	}
	return o
}

// withoutHappenings are the options with one kind that never happens: without any
// kind all clocks would be right.
func withoutHappenings(o Options, kind Fault) Options {
	o = withKinds(o, []Fault{kind})
	o.Only = Happenings{kind: {}}
	return o
}

// withHappenings are the options with these happenings only, and their kinds.
func withHappenings(o Options, all []happening) Options {
	o.Only = Happenings{}
	for _, h := range all {
		o.Only[h.kind] = append(o.Only[h.kind], h.number)
	}
	for _, kind := range FaultKinds() {
		if o.Only[kind] == nil {
			o.Faults[kind] = 0
		}
	}
	return o
}
