package explore

import (
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

// Searches make many small values and keep few.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// sound runs a search that must see everything and find nothing.
func sound(t *testing.T, o Options) {
	t.Helper()
	if underRace {
		t.Skip("nothing runs at once here")
	}
	began := time.Now()
	r := Search(o)
	t.Logf("%d states, depth %d, %d ends, %d steps, %.1f s", r.States, r.Depth, r.Ends, r.Steps, time.Since(began).Seconds())
	if r.Violation != nil {
		t.Errorf("%v\n\n%s", r.Violation, r.Violation.Scenario)
	}
	if !r.Complete && o.MaxDepth == 0 {
		t.Error("the search gave up")
	}
}

// Two relays share a bucket for three rounds in which one thing goes wrong, or one of
// them stops and starts again, with clocks anywhere within the allowed skew: no
// promise is broken, and in the end one of them works on the bucket.
func TestLeases(t *testing.T) {
	t.Run("a fault", func(t *testing.T) { sound(t, Options{JoinWithin: 2, Faults: 1}) })
	t.Run("a stop and a start", func(t *testing.T) { sound(t, Options{JoinWithin: 1, Ticks: 7, Stops: 1, Restarts: 1}) })
	t.Run("one relay", func(t *testing.T) { sound(t, Options{Relays: 1, Ticks: 8, Faults: 1, Stops: 1, Restarts: 1}) })
	t.Run("no answers", func(t *testing.T) {
		sound(t, Options{JoinWithin: 1, Ticks: 7, Faults: 2, Kinds: []Fault{Held, Throttled}})
	})
	t.Run("clocks", func(t *testing.T) {
		sound(t, Options{JoinWithin: 1, Clocks: true, FaultTicks: 3, Faults: 1, Kinds: []Fault{Throttled, Slow}})
	})
	t.Run("two buckets", func(t *testing.T) { sound(t, Options{JoinWithin: 1, Buckets: 2}) })
}

// One relay delivers three rows around a gap while something goes wrong; two relays
// hand a bucket over in the middle of that.
func TestDelivery(t *testing.T) {
	t.Run("a fault", func(t *testing.T) {
		sound(t, Options{Relays: 1, Prompt: true, Rows: aKeyAroundAnother(), Ticks: 4, Faults: 1})
	})
	t.Run("a gap for ever", func(t *testing.T) {
		sound(t, Options{Relays: 1, Prompt: true, Rows: []Row{{Key: "a"}, {Unused: true}, {Key: "a"}}, Ticks: 4, Faults: 1})
	})
	t.Run("handover", func(t *testing.T) {
		sound(t, Options{JoinWithin: 1, Prompt: true, Rows: []Row{{Key: "a"}}, Stops: 1, Faults: 1})
	})
	t.Run("a stop after a panic", func(t *testing.T) {
		sound(t, Options{JoinWithin: 1, Prompt: true, Rows: []Row{{Key: "a"}}, Stops: 1, Faults: 1, Kinds: []Fault{Failed}})
	})
}

// The sizes that take minutes. EXPLORE is anything; make explore sets it.
func TestExhaustive(t *testing.T) {
	if os.Getenv("EXPLORE") == "" {
		t.Skip("EXPLORE is not set; make explore runs the large searches")
	}
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"two relays, one bucket, three rounds, two faults", Options{JoinWithin: 2, Faults: 2}},
		{"the same, until after the leases have lapsed", Options{JoinWithin: 2, Ticks: 12, FaultTicks: 6, Faults: 2}},
		{"the first, with every pair of clocks", Options{JoinWithin: 2, Faults: 2, Clocks: true}},
		{"two relays, one bucket, three rounds, a fault, a stop and a start", Options{JoinWithin: 2, Faults: 1, Stops: 1, Restarts: 1}},
		{"one relay, three rows, two faults", Options{Relays: 1, Prompt: true, Rows: aKeyAroundAnother(), Faults: 2}},
		{"two relays, two rows, a fault, a handover", Options{JoinWithin: 1, Prompt: true, Rows: []Row{{Key: "a"}, {Key: "a"}}, Faults: 1, Stops: 1}},
		{"two relays, two rows, two faults, a handover", Options{JoinWithin: 1, Prompt: true, Rows: []Row{{Key: "a"}, {Key: "a"}}, Faults: 2, Stops: 1}},
		{"two relays, one row, a fault, a handover, every request a choice", Options{JoinWithin: 1, Rows: []Row{{Key: "a"}}, Ticks: 5, Faults: 1, Stops: 1}},
		{"three relays, two buckets, one fault, to a depth", Options{Relays: 3, Buckets: 2, JoinWithin: 1, Faults: 1, MaxDepth: 14}},
	} {
		t.Run(c.name, func(t *testing.T) { sound(t, c.o) })
	}
}

// The same search twice sees the same.
func TestSameTwice(t *testing.T) {
	o := Options{Relays: 1, Ticks: 3, Faults: 1}
	a, b := Search(o), Search(o)
	if a != b {
		t.Errorf("%+v, then %+v", a, b)
	}
}

// A search that is bounded by its depth or its states says that it is not complete.
func TestBounds(t *testing.T) {
	for _, o := range []Options{{Faults: 1, MaxDepth: 12}, {Faults: 1, MaxStates: 100}} {
		if r := Search(o); r.Complete || r.Violation != nil || r.States < 50 {
			t.Errorf("%+v: %+v", o, r)
		}
	}
}

// What is left out of a state decides nothing: whatever is taken for one state goes
// on alike.
func TestBlanks(t *testing.T) {
	if underRace {
		t.Skip("nothing runs at once here")
	}
	for _, o := range []Options{
		{JoinWithin: 1, Ticks: 4, Faults: 1},
		{Relays: 1, Ticks: 6, Faults: 1, Stops: 1, Restarts: 1},
		{Relays: 1, Prompt: true, Rows: aKeyAroundAnother(), Ticks: 4, Faults: 1},
		oneRelay(1, 1, Retry).withFaults(1, Held, Torn, Failed),
	} {
		x := newSearch(o.withDefaults())
		first := map[stateHash]*world{}
		compared := 0
		x.again = func(code stateHash, w *world) {
			before, again := first[code]
			if !again {
				first[code] = w
				return
			}
			compared++
			choices := before.choices()
			if !slices.Equal(choices, w.choices()) {
				t.Fatalf("one state offers %v, and %v", choices, w.choices())
			}
			for _, c := range choices {
				if a, b := before.after(c), w.after(c); a.encode() != b.encode() {
					t.Fatalf("%s leads from one state to two", w.words(c))
				}
			}
		}
		x.visit(x.beginning())
		if compared < 100 {
			t.Errorf("only %d states were reached twice", compared)
		}
	}
}

// What takes a coincidence of 100 ns is not prevented: two clocks that differ by just
// MaxClockSkew, of which one claims at the very instant of the expiry; and a restart
// within the instant in which its predecessor has written the expiry that its late
// release goes under.
func TestTies(t *testing.T) {
	if underRace {
		t.Skip("nothing runs at once here")
	}
	for _, c := range []struct {
		o      Options
		broken string
	}{
		{Options{JoinWithin: 1, Clocks: true, FaultTicks: 3, Faults: 1, Kinds: []Fault{Throttled}, ties: equalSkew}, "I-5"},
		{Options{Relays: 1, Ticks: 4, Faults: 1, Stops: 1, Restarts: 1, Kinds: []Fault{Crashed}, ties: equalTimes}, "I-20"},
	} {
		if r := Search(c.o); r.Violation == nil || r.Violation.Invariant != c.broken {
			t.Errorf("found %v, want %s", r.Violation, c.broken)
		}
	}
}
