package simulation

import (
	"math/rand/v2"
	"slices"
	"time"
)

// dice decide which faults happen, and how. Each kind has a source of randomness
// of its own, and so has each happening, so that to leave one out moves no other
// by itself: a failing run can be made smaller step by step.
type dice struct {
	seed  uint64
	rates Rates
	only  Happenings
	kinds [faultKinds]source
	// rolled is how many times each kind's roll has come up, happened how many
	// times it was noted that one happened.
	rolled, happened [faultKinds]int
	// record is told of each.
	record func(who, name string, detail any)
}

func newDice(o Options, record func(who, name string, detail any)) *dice {
	d := &dice{seed: o.Seed, rates: o.Faults, only: o.Only, record: record}
	for k := range d.kinds {
		d.kinds[k] = source{derived(o.Seed, "fault "+faultNames[k])}
	}
	return d
}

// roll tells whether a fault of a kind happens now, by its rate.
func (d *dice) roll(kind Fault) bool { return d.rollAt(kind, d.rates[kind]) }

// rollAt is roll with another probability, for a kind that has a rate at all.
func (d *dice) rollAt(kind Fault, p float64) bool {
	return d.rates[kind] > 0 && d.kinds[kind].chance(p) && d.counts(kind)
}

// counts numbers a happening, and tells whether it is one of those that are to be.
func (d *dice) counts(kind Fault) bool {
	d.rolled[kind]++
	only, limited := d.only[kind]
	return !limited || slices.Contains(only, d.rolled[kind])
}

// of is the source of randomness of a kind's last happening.
func (d *dice) of(kind Fault) source {
	return source{rand.New(rand.NewPCG(d.seed, uint64(kind)<<32|uint64(d.rolled[kind])))}
}

// note counts and records a fault that happens.
func (d *dice) note(kind Fault, who, of string) {
	d.happened[kind]++
	d.record(who, faultHappened, faultOf{kind, of})
}

// strikes rolls, and notes what happens.
func (d *dice) strikes(kind Fault, who, of string) bool {
	if !d.roll(kind) {
		return false
	}
	d.note(kind, who, of)
	return true
}

// rest ends all faults.
func (d *dice) rest() { d.rates = Rates{} }

// calm tells whether there are no faults.
func (d *dice) calm() bool { return d.rates == Rates{} }

// source is a source of randomness.
type source struct{ *rand.Rand }

// chance is true with a probability.
func (s source) chance(p float64) bool { return p > 0 && s.Float64() < p }

// between is a random duration from a to b.
func (s source) between(a, b time.Duration) time.Duration {
	return a + time.Duration(s.Int64N(int64(b-a)+1))
}
