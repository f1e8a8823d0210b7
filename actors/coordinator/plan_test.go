package coordinator_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/actors/coordinator"
)

type leaseVector coordinator.LeaseState

func (l *leaseVector) UnmarshalJSON(text []byte) error {
	var owner *string
	pair := []any{&owner, &l.Expired}
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	if owner != nil {
		l.Owner = *owner
	}
	return nil
}

// The plans are those of the peer, case by case: a .NET relay in the same fleet
// claims and hands back the same buckets.
func TestPlanVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/plans.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		BucketCount int           `json:"bucket_count"`
		Active      []string      `json:"active"`
		Relay       string        `json:"relay"`
		Leases      []leaseVector `json:"leases"`
		Keep        []int         `json:"keep"`
		Release     []int         `json:"release"`
		Claim       []int         `json:"claim"`
		StandbyRank int           `json:"standby_rank"`
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	for i, c := range cases {
		leases := make([]coordinator.LeaseState, c.BucketCount)
		for b := range leases {
			leases[b] = coordinator.LeaseState(c.Leases[b])
		}
		plan := coordinator.MakePlan(c.Active, c.Relay, leases)
		if !slices.Equal(plan.Keep, c.Keep) || !slices.Equal(plan.Release, c.Release) ||
			!slices.Equal(plan.Claim, c.Claim) || plan.StandbyRank != c.StandbyRank {
			t.Errorf("case %d: got %+v, want keep %v, release %v, claim %v, rank %d",
				i, plan, c.Keep, c.Release, c.Claim, c.StandbyRank)
		}
	}
}

// drawFleet is some relays and what they hold; owners may be gone or expired.
func drawFleet(t *rapid.T) ([]string, []coordinator.LeaseState) {
	relays := make([]string, rapid.IntRange(1, 12).Draw(t, "relays"))
	for r := range relays {
		relays[r] = fmt.Sprintf("relay-%02d", r)
	}
	owners := append(slices.Clone(relays), "", "gone")
	leases := make([]coordinator.LeaseState, rapid.IntRange(1, 40).Draw(t, "buckets"))
	for b := range leases {
		leases[b] = coordinator.LeaseState{
			Owner:   rapid.SampledFrom(owners).Draw(t, "owner"),
			Expired: rapid.IntRange(0, 4).Draw(t, "expired") == 0,
		}
	}
	return relays, leases
}

// Relays that read the same state never claim the same bucket, and never one
// that is somebody's.
func TestPlansAreDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		relays, leases := drawFleet(t)
		claimed := map[int]string{}
		for _, self := range relays {
			for _, b := range coordinator.MakePlan(relays, self, leases).Claim {
				if by, twice := claimed[b]; twice && !leases[b].Expired {
					t.Fatalf("bucket %d is claimed by %s and %s", b, by, self)
				}
				claimed[b] = self
				if l := leases[b]; l.Owner != "" && !l.Expired {
					t.Fatalf("%s claims bucket %d of %s", self, b, l.Owner)
				}
			}
		}
	})
}

// From any state, rounds carried out lead to a fair split (max − min ≤ 1) in
// which nothing moves any more.
func TestPlansSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		relays, leases := drawFleet(t)
		for b := range leases {
			if leases[b].Owner == "gone" {
				leases[b].Expired = true
			}
		}
		for range 3 {
			carryOut(relays, leases)
		}
		if moved := carryOut(relays, leases); moved > 0 {
			t.Fatalf("%d buckets still move", moved)
		}
		held := map[string]int{}
		for _, l := range leases {
			held[l.Owner]++
		}
		floor := len(leases) / len(relays)
		for _, r := range relays {
			if held[r] < floor || held[r] > floor+1 {
				t.Fatalf("%s holds %d of %d buckets among %d relays", r, held[r], len(leases), len(relays))
			}
		}
	})
}

// carryOut lets each relay plan on the same state and then writes their plans.
func carryOut(relays []string, leases []coordinator.LeaseState) int {
	read := slices.Clone(leases)
	moved := 0
	for _, self := range relays {
		plan := coordinator.MakePlan(relays, self, read)
		for _, b := range plan.Keep {
			leases[b].Expired = false
		}
		for _, b := range plan.Release {
			leases[b] = coordinator.LeaseState{}
			moved++
		}
		for _, b := range plan.Claim {
			leases[b] = coordinator.LeaseState{Owner: self}
			moved++
		}
	}
	return moved
}

// Case L-12: a joiner with the smallest id takes no busy bucket, and the
// remainder stays with who holds it.
func TestJoinerTakesNoBusyBucket(t *testing.T) {
	leases := []coordinator.LeaseState{{Owner: "x"}, {Owner: "y"}}
	for _, self := range []string{"a", "b", "x", "y"} {
		plan := coordinator.MakePlan([]string{"a", "b", "x", "y"}, self, leases)
		if len(plan.Claim)+len(plan.Release) > 0 {
			t.Errorf("%s moves something: %+v", self, plan)
		}
	}
}

func BenchmarkMakePlan(b *testing.B) {
	relays := make([]string, 1000)
	for r := range relays {
		relays[r] = fmt.Sprintf("relay-%04d", r)
	}
	leases := make([]coordinator.LeaseState, 4096)
	for i := range leases {
		leases[i].Owner = relays[i%len(relays)]
	}
	b.ReportAllocs()
	for b.Loop() {
		coordinator.MakePlan(relays, relays[500], leases)
	}
}
