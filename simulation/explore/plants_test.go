package explore

import (
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/store"
)

// planting is a bug that is put between the relays and the world, and a search that
// must find it.
type planting struct {
	name   string
	breaks string // what is not true any more
	within Options
	plant  plant
	caught string // by which invariant
}

// weaker replaces the condition of the writes whose update or condition has a text.
func weaker(of, condition string) plant {
	return plant{condition: func(update, before string) string {
		if strings.Contains(update, of) || strings.Contains(before, of) {
			return condition
		}
		return before
	}}
}

// believed takes the end of some keeps for success.
func believed(class store.Class) plant {
	return plant{reply: func(r store.Request, reply store.Reply) store.Reply {
		if _, keeps := r.(store.Keep); keeps && reply.Class == class {
			return store.Reply{Result: store.LeaseResult{}}
		}
		return reply
	}}
}

// strangers makes every lease that refuses a keep another relay's.
func strangers(r store.Request, reply store.Reply) store.Reply {
	if result, ok := reply.Result.(store.LeaseResult); ok && reply.Class == store.Refused && result.Old != nil {
		old := *result.Old
		old.Owner = "stranger"
		reply.Result = store.LeaseResult{Old: &old}
	}
	return reply
}

func noSkew(time.Duration) time.Duration { return 0 }

func leasePlantings() []planting {
	return []planting{
		{
			name: "claim of a live lease", breaks: "only a free or expired lease is claimed", caught: "I-5",
			within: Options{JoinWithin: 2, Faults: 1, Kinds: []Fault{Held}},
			plant:  weaker("attribute_not_exists(#owner)", ""),
		},
		{
			name: "keep under any expiry", breaks: "a late keep does not undo a newer one", caught: "I-7",
			within: Options{Relays: 1, Faults: 1, Kinds: []Fault{Held}},
			plant:  weaker("SET #expires = :expiry, #incarnation", "#owner = :me"),
		},
		{
			name: "release under any expiry", breaks: "a late release does not free a successor's lease", caught: "I-20",
			within: Options{Relays: 1, Ticks: 12, Faults: 1, Stops: 1, Restarts: 1, Kinds: []Fault{Held}},
			plant:  weaker("SET #expires = :now REMOVE", "#owner = :me"),
		},
		{
			name: "heartbeat moves backwards", breaks: "a late heartbeat does not revive a stopped relay (L-01)", caught: "I-20",
			within: Options{Relays: 1, Faults: 1, Stops: 1, Kinds: []Fault{Held}},
			plant:  weaker("#seen <= :now", ""),
		},
		{
			name: "stamp of another incarnation", breaks: "a stopping process does not hide its successor", caught: "I-20",
			within: Options{Relays: 1, Ticks: 12, Faults: 1, Stops: 1, Restarts: 1, Kinds: []Fault{Held}},
			plant:  weaker("#incarnation = :mine", ""),
		},
		{
			name: "prune of a live record", breaks: "a late prune does not take a living relay's record", caught: "I-20",
			within: Options{JoinWithin: 2, RoundsBefore: 9, Former: true, Faults: 1, Kinds: []Fault{Held}},
			plant:  weaker("#seen < :dead", ""),
		},
		{
			name: "skew is not subtracted", breaks: "local validity ends MaxClockSkew before the lease", caught: "I-5",
			within: Options{JoinWithin: 1, FaultTicks: 3, Clocks: true, Faults: 1, Kinds: []Fault{Throttled}},
			plant:  plant{maxSkew: noSkew},
		},
		{
			name: "unanswered keep is applied", breaks: "an unanswered write concludes nothing", caught: "I-5",
			within: Options{JoinWithin: 1, Ticks: 7, Faults: 2, Kinds: []Fault{Held}},
			plant:  believed(store.Ambiguous),
		},
		{
			name: "throttled keep is applied", breaks: "a write that was not applied changes nothing", caught: "I-5",
			within: Options{JoinWithin: 1, Ticks: 7, Faults: 2, Kinds: []Fault{Throttled}},
			plant:  believed(store.Retriable),
		},
		{
			name: "refused keep is applied", breaks: "a keep that is refused by another owner is a loss", caught: "I-5",
			within: Options{JoinWithin: 2, Ticks: 12, FaultTicks: 6, Faults: 1, Kinds: []Fault{Stalled}},
			plant:  believed(store.Refused),
		},
		{
			name: "unsettled is lost", breaks: "a refusal by our own older write concludes nothing", caught: "I-24",
			within: Options{Relays: 1, Faults: 1, Kinds: []Fault{Held}},
			plant:  plant{reply: strangers},
		},
	}
}

// Each planted bug is found by the search that is said to find it, and nothing is
// found without it.
func TestPlantedBugsOfLeases(t *testing.T) { testPlantings(t, leasePlantings()) }

func testPlantings(t *testing.T, all []planting) {
	for _, p := range all {
		began := time.Now()
		t.Run(p.name, func(t *testing.T) {
			o := p.within
			if underRace {
				t.Skip("nothing runs at once here")
			}
			if r := Search(o); r.Violation != nil || !r.Complete {
				t.Errorf("without the bug: %d states, complete: %v: %v", r.States, r.Complete, r.Violation)
			}
			o.plant = p.plant
			r := Search(o)
			if r.Violation == nil {
				t.Fatalf("not found in %d states: %s", r.States, p.breaks)
			}
			if r.Violation.Invariant != p.caught {
				t.Errorf("found by %s, want %s", r.Violation.Invariant, p.caught)
			}
			t.Logf("%.1f s, %d states, %d choices: %v", time.Since(began).Seconds(), r.States, r.Depth, r.Violation)
		})
	}
}
