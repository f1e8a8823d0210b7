//go:build integration

package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"
)

// eventRow is one row of the table of what may happen to a fleet, and what was seen.
type eventRow struct {
	name string
	page string // its column of refused writes
	show func(t *testing.T) outcome
	seen *outcome // nil: not shown, or failed
}

// TestEventTable shows the rows of the page's event table on processes, each with
// a table and a topic of its own, under a light load of messages: as few refused
// writes as the page says, takeovers in time, a fair split afterwards, no bucket
// moved that need not, nothing lost, and first deliveries in order. A write that
// was refused since the SDK has repeated it, which a busy machine makes it do, is
// counted by itself.
//
// One row is not here: no process can have its clock set back while the machine
// keeps its own. The simulation shows it.
func TestEventTable(t *testing.T) {
	events := []*eventRow{
		{name: "steady state", page: "none", show: steadyState},
		{name: "instance starts", page: "none", show: instanceStarts},
		{name: "graceful stop", page: "none", show: gracefulStop},
		{name: "crash", page: "none", show: crash},
		{name: "whole fleet replaced at once", page: "none", show: fleetReplaced},
		{name: "stop misses its deadline", page: "none", show: missedDeadline},
		{name: "restart under the same id", page: "none", show: restart},
		{name: "stall past the lease", page: "one per lost bucket", show: stallWithRenewals},
		{name: "stall past the lease, between rounds", page: "one per lost bucket", show: stallBetweenRounds},
		{name: "many start on free buckets", page: "a few, once", show: manyStarts},
		{name: "more instances than buckets", page: "none", show: moreThanBuckets},
	}
	var mu sync.Mutex // guards what was seen
	t.Run("event", func(t *testing.T) {
		for _, e := range events {
			t.Run(strings.ReplaceAll(e.name, ",", ""), func(t *testing.T) {
				t.Parallel()
				seen := e.show(t)
				for _, problem := range seen.problems() {
					t.Error(problem)
				}
				mu.Lock()
				defer mu.Unlock()
				e.seen = &seen
			})
		}
	})
	t.Logf("lease %v, interval %v\n%s", leaseDuration, renewInterval, eventTable(events))
}

// eventTable is the table of what was seen, for people.
func eventTable(events []*eventRow) string {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "event\trefused, page\tseen\trepeated\ttakeover\tat most\tduplicates")
	for _, e := range events {
		if e.seen != nil {
			fmt.Fprintf(w, "%s\t%s\t%s\n", e.name, e.page, e.seen.columns())
		}
	}
	w.Flush()
	return table.String()
}

// A fleet that nothing happens to sends what the page says to the last request:
// idle, and, but for the fetches and deletes, under load. No bucket moves.
func steadyState(t *testing.T) outcome {
	const rounds, poll = 4, time.Second
	s := newSharing(t, 8)
	var fleet []*member
	for _, id := range []string{"a", "b", "c"} {
		fleet = append(fleet, s.join(id, "--poll-interval", poll.String()))
	}
	leases, mark := s.settle(fleet...), s.traffic.mark()
	s.awaitRounds(rounds, fleet...)
	idle := s.traffic.since(mark)
	for _, m := range fleet {
		p := price{relay: m.name, owned: bucketsOf(leases, m), every: renewInterval, poll: poll, rounds: rounds}
		t.Logf("%d idle rounds of %s with %d buckets: %s", rounds, m.name, len(p.owned), s.wantPrice(p, idle))
	}
	s.load()
	busy := s.traffic.mark()
	s.wantQuiet(rounds, fleet...)
	for _, m := range fleet {
		s.wantPrice(price{relay: m.name, owned: bucketsOf(leases, m), every: renewInterval, rounds: rounds}, s.traffic.since(busy))
	}
	return s.outcome(mark, 0, 0, fleet...)
}

// wantPrice wants the relay to have sent just what it may, and says how much.
func (s *sharing) wantPrice(p price, seen []request) string {
	s.t.Helper()
	counts, problems := bill(p, seen)
	for _, problem := range problems {
		s.t.Error(problem)
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d × %s", counts[k], k))
	}
	return strings.Join(parts, ", ")
}

// A third relay comes. Its peers hand it what exceeds their new shares, and it
// takes that on its next round; no other bucket moves.
func instanceStarts(t *testing.T) outcome {
	s := newSharing(t, 8)
	fleet := s.joinAll("a", "c")
	before := s.settle(fleet...)
	s.load()
	mark := s.traffic.mark()
	fleet = append(fleet, s.join("b"))
	s.traffic.await(s.t, "the newcomer's heartbeat", mark, func(seen []request) bool { return beats(seen, fleet[2]) > 0 })
	came := time.Now()
	after, at := s.awaitFair(fleet...)
	s.wantMoved(mark, before, after, bucketsOf(after, fleet[2]))
	s.wantQuiet(2, fleet...)
	return s.outcome(mark, at.Sub(came), 2*renewInterval+requestTime, fleet...)
}

// One of three is asked to leave. Its peers have its buckets within two rounds,
// and nothing is delivered twice.
func gracefulStop(t *testing.T) outcome {
	s := newSharing(t, 8)
	fleet := s.joinAll("a", "b", "c")
	before := s.settle(fleet...)
	s.load()
	s.awaitRounds(1, fleet...)
	mark := s.traffic.mark()
	left := time.Now()
	fleet[0].stop()
	after, at := s.awaitFair(fleet[1:]...)
	if problem := disorder(s.traffic.since(mark), "a"); problem != "" {
		t.Error(problem)
	}
	s.wantMoved(mark, before, after, bucketsOf(before, fleet[0]))
	s.wantQuiet(2, fleet[1:]...)
	o := s.outcome(mark, at.Sub(left), 2*renewInterval, fleet[1:]...)
	if o.duplicates != 0 {
		s.t.Errorf("%d records are duplicates, although nothing has failed", o.duplicates)
	}
	return o
}

// One of three is killed. Its peers write nothing to its buckets until its leases
// have lapsed, and then split them.
func crash(t *testing.T) outcome {
	s := newSharing(t, 8)
	fleet := s.joinAll("a", "b", "c")
	before := s.settle(fleet...)
	s.load()
	s.awaitRounds(1, fleet...)
	mark := s.traffic.mark()
	died := s.kill(fleet[0])
	after, at := s.awaitFair(fleet[1:]...)
	s.wantMoved(mark, before, after, bucketsOf(before, fleet[0]))
	s.wantQuiet(2, fleet[1:]...)
	return s.outcome(mark, at.Sub(died), leaseDuration+renewInterval+requestTime, fleet[1:]...)
}

// All are killed, and as many new ones start: they wait for the leases to lapse,
// then split the buckets. The old ones have just ended their rounds, so that the
// leases lapse while no new relay is between its read and its claims.
func fleetReplaced(t *testing.T) outcome {
	s := newSharing(t, 8)
	old := s.joinAll("a", "b", "c")
	before := s.settle(old...)
	s.load()
	s.awaitRoundEnd(old...)
	mark := s.traffic.mark()
	died := s.kill(old...)
	young := s.joinAll("d", "e", "f")
	after, at := s.awaitFair(young...)
	s.wantMoved(mark, before, after, allBuckets(8))
	s.wantQuiet(2, young...)
	return s.outcome(mark, at.Sub(died), leaseDuration+renewInterval+requestTime, young...)
}

// A relay is killed and starts again under its id: the leases still name it, so
// that it goes on at once, and no bucket moves.
func restart(t *testing.T) outcome {
	s := newSharing(t, 8)
	fleet := s.joinAll("a", "b", "c")
	before := s.settle(fleet...)
	s.load()
	s.awaitRoundEnd(fleet[0])
	mark := s.traffic.mark()
	s.kill(fleet[0])
	again := s.joinAs("a again", "a")
	s.traffic.await(s.t, "its first heartbeat", mark, func(seen []request) bool { return beats(seen, again) > 0 })
	came := time.Now()
	own := bucketsOf(before, fleet[0])
	after, at := s.awaitLeases("those of the new process", func(leases map[int]lease) bool {
		for _, b := range own {
			if leases[b].owner != "a" || leases[b].incarnation == before[b].incarnation {
				return false
			}
		}
		return true
	})
	s.wantMoved(mark, before, after, nil)
	s.wantQuiet(2, again, fleet[1], fleet[2])
	return s.outcome(mark, at.Sub(came), requestTime, again, fleet[1], fleet[2])
}

// outcome ends the scenario. The final stop of all that run counts too: it is
// graceful, and has no refused write either.
func (s *sharing) outcome(mark int, took, within time.Duration, running ...*member) outcome {
	s.t.Helper()
	duplicates := s.finish(running...)
	seen := s.traffic.since(mark)
	return outcome{refused: refusals(seen), repeated: repetitions(seen), took: took, within: within, duplicates: duplicates}
}

func allBuckets(n int) []int {
	all := make([]int, n)
	for b := range all {
		all[b] = b
	}
	return all
}

// pause stops a process as a debugger or a suspended machine does.
func (m *member) pause() { m.signal(syscall.SIGSTOP) }

// wake lets it go on.
func (m *member) wake() { m.signal(syscall.SIGCONT) }
