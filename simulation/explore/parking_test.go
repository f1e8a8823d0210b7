package explore

import (
	"os"
	"testing"
)

// One relay sets rows aside that the broker rejects, and two hand a bucket over in the
// middle of that, while an operator changes what is set aside.
func TestParking(t *testing.T) {
	t.Run("two acts", func(t *testing.T) { sound(t, oneRelay(0, 2)) })
	t.Run("a fault", func(t *testing.T) { sound(t, oneRelay(0, 1, Retry, Discard).withFaults(1)) })
	t.Run("rows behind", func(t *testing.T) { sound(t, oneRelay(2, 1, Retry, Discard)) })
	t.Run("a retry called off", func(t *testing.T) { sound(t, oneRelay(1, 2, Retry, CallOff)) })
	t.Run("a topic", func(t *testing.T) { sound(t, aTopic(2)) })
	t.Run("a row that cannot be read", func(t *testing.T) { sound(t, anUnreadableRow().withFaults(1, Held)) })
	t.Run("two processes of one id", func(t *testing.T) {
		sound(t, twoOfOneID(Options{Rows: aRejectedRow(1), Acts: 1, ActKinds: []Act{SetKeyAside}}))
	})
	t.Run("handover", func(t *testing.T) { sound(t, parkingHandover(0).withFaults(1, Torn)) })
}

// aTopic may be set aside, and retried.
func aTopic(acts int) Options {
	return Options{
		Relays: 1, Prompt: true, Rows: []Row{{Key: "a", Waiting: true}, {Key: "b"}}, Ticks: 6,
		Acts: acts, ActKinds: []Act{SetTopicAside, Retry},
	}
}

func anUnreadableRow() Options {
	return Options{
		Relays: 1, Prompt: true, Rows: []Row{{Key: "a", Waiting: true, Unreadable: true}, {Key: "a"}}, Ticks: 6,
		Acts: 1, ActKinds: []Act{MoveRow},
	}
}

// parkingHandover is from one relay that is asked to stop to another.
func parkingHandover(behind int) Options {
	return Options{
		JoinWithin: 1, Prompt: true, Rows: aRejectedRow(behind), Stops: 1,
		Acts: 1, ActKinds: []Act{Retry},
	}
}

// aRejectedRow waits from the beginning, and is rejected until that is mended; others
// of its key are committed at any time.
func aRejectedRow(behind int) []Row {
	rows := []Row{{Key: "a", Rejected: true, Waiting: true}}
	for range behind {
		rows = append(rows, Row{Key: "a"})
	}
	return rows
}

// aTenureDies: a relay dies, and what it has sent lands just before another one claims
// its bucket, and is seen in parts.
func aTenureDies(rows []Row, acts ...Act) Options {
	return Options{
		JoinWithin: 1, Prompt: true, Rows: rows, Ticks: 8, Acts: len(acts), ActKinds: acts,
		Faults: 2, Kinds: []Fault{Crashed, Torn},
	}
}

// twoOfOneID: a process starts under the id of one that may live, and resumes its lease.
func twoOfOneID(o Options) Options {
	o.Relays, o.Prompt, o.Overlap, o.Restarts, o.Ticks = 1, true, true, 1, 8
	return o
}

func oneRelay(behind, acts int, kinds ...Act) Options {
	return Options{Relays: 1, Prompt: true, Rows: aRejectedRow(behind), Ticks: 6, Acts: acts, ActKinds: kinds}
}

func (o Options) withFaults(n int, kinds ...Fault) Options {
	o.Faults, o.Kinds = n, kinds
	return o
}

// The sizes of the same that take minutes; see TestExhaustive.
func TestExhaustiveParking(t *testing.T) {
	if os.Getenv("EXPLORE") == "" {
		t.Skip("EXPLORE is not set; make explore runs the large searches")
	}
	twoKeys := []Row{{Key: "a", Rejected: true, Waiting: true}, {Key: "b"}, {Key: "a"}}
	inTurn := []Row{{Key: "a", Rejected: true, Waiting: true}, {Key: "b", Rejected: true, Waiting: true}, {Key: "a"}, {Key: "b"}}
	moved := []Row{{Key: "a", Rejected: true, Waiting: true}, {Key: "a"}, {Key: "a", Together: true}}
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"one relay, two rows, an act, a fault", oneRelay(1, 1).withFaults(1)},
		{"one relay, a row, two acts, a fault", oneRelay(0, 2).withFaults(1)},
		{"one relay, two rows, two acts, an answer that is lost", oneRelay(1, 2).withFaults(1, Held)},
		{"one relay, three rows of two keys, two acts", Options{Relays: 1, Prompt: true, Rows: twoKeys, Ticks: 6, Acts: 2}},
		{"one relay, four rows of two keys, two retries", Options{Relays: 1, Prompt: true, Rows: inTurn, Ticks: 6, Acts: 2, ActKinds: []Act{Retry}}},
		{"one relay, a topic, two acts, a fault", aTopic(2).withFaults(1)},
		{"one relay, two rows, a retry called off, an answer that is lost", oneRelay(1, 2, Retry, CallOff).withFaults(1, Held)},
		{"one relay, a topic, retried and called off", Options{
			Relays: 1, Prompt: true, Rows: []Row{{Key: "a", Waiting: true}, {Key: "b"}}, Ticks: 6,
			Acts: 3, ActKinds: []Act{SetTopicAside, Retry, CallOff},
		}},
		{"one relay, a row that cannot be read, a fault", anUnreadableRow().withFaults(1, Held, Repeated, Throttled, Slow, SlowAnswer, Torn)},
		{"two processes of one id, two rows, an act, a fault", twoOfOneID(Options{
			Rows: aRejectedRow(1), Acts: 1, ActKinds: []Act{Retry, SetKeyAside}, Faults: 1,
		})},
		{"two relays, three rows, a retry, a torn move, a handover", Options{
			JoinWithin: 2, Prompt: true, Rows: moved, Stops: 1, Acts: 1, ActKinds: []Act{Retry}, Faults: 1, Kinds: []Fault{Torn},
		}},
		{"two relays, two rows, a retry, a fault, a handover", parkingHandover(1).withFaults(1, Held, Torn)},
		{"two relays, two rows, a retry, a death, a torn transaction", aTenureDies(aRejectedRow(1), Retry)},
	} {
		t.Run(c.name, func(t *testing.T) { sound(t, c.o) })
	}
}
