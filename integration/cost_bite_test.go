package integration

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// settledPrice is what relay a may send in three rounds with two buckets.
var settledPrice = price{relay: "a", owned: []int{2, 5}, every: 2 * time.Second, poll: time.Second, rounds: 3}

// settledTraffic is just that, between a peer's requests, and the heartbeat that
// begins a fourth round.
func settledTraffic() []request {
	var all []request
	began := time.Unix(1_800_000_000, 0)
	add := func(at time.Duration, r request) {
		r.relay, r.sent, r.attempt = "a", began.Add(at), 1
		all = append(all, r, request{relay: "b", kind: keep, bucket: 2, sent: r.sent})
	}
	for round := range 4 {
		at := time.Duration(round) * 2 * time.Second
		add(at, request{kind: heartbeat, bucket: -1})
		if round == 3 {
			break
		}
		add(at, request{kind: coordination, bucket: -1, strong: true})
		add(at, request{kind: keep, bucket: 5})
		add(at, request{kind: keep, bucket: 2})
		for _, later := range []time.Duration{300 * time.Millisecond, 1300 * time.Millisecond} {
			add(at+later, request{kind: discovery, bucket: 2, limit: 1})
			add(at+later, request{kind: discovery, bucket: 5, limit: 1})
		}
	}
	return all
}

func TestBillAcceptsASettledRelay(t *testing.T) {
	counts, problems := bill(settledPrice, settledTraffic())
	if len(problems) != 0 || counts[heartbeat] != 3 || counts[coordination] != 3 || counts[keep] != 6 || counts[discovery] != 12 {
		t.Errorf("%v %q", counts, problems)
	}
}

func TestBillBites(t *testing.T) {
	// of is the place of the n-th request of a kind that relay a has sent.
	of := func(all []request, k kind, n int) int {
		for i, r := range all {
			if r.relay == "a" && r.kind == k {
				if n == 0 {
					return i
				}
				n--
			}
		}
		return -1
	}
	double := func(k kind, n int) func([]request) []request {
		return func(all []request) []request { return slices.Insert(all, of(all, k, n), all[of(all, k, n)]) }
	}
	drop := func(k kind, n int) func([]request) []request {
		return func(all []request) []request { return slices.Delete(all, of(all, k, n), of(all, k, n)+1) }
	}
	change := func(k kind, n int, to func(*request)) func([]request) []request {
		return func(all []request) []request { to(&all[of(all, k, n)]); return all }
	}
	for name, c := range map[string]struct {
		plant   func([]request) []request
		problem string
	}{
		"a second query":         {double(coordination, 1), "round 2: it sent"},
		"no query":               {drop(coordination, 2), "round 3: it sent"},
		"a weak query":           {change(coordination, 0, func(r *request) { r.strong = false }), "not strongly consistent"},
		"a keep twice":           {double(keep, 0), "it kept [2 5 5]"},
		"a keep left out":        {drop(keep, 3), "round 2: it kept [5]"},
		"a keep of another":      {change(keep, 0, func(r *request) { r.bucket = 4 }), "it kept [2 4]"},
		"a claim":                {change(keep, 0, func(r *request) { r.kind = claim }), "it sent"},
		"a round too soon":       {change(heartbeat, 1, func(r *request) { r.sent = r.sent.Add(-1100 * time.Millisecond) }), "lasted"},
		"a round left out":       {drop(heartbeat, 2), "rounds have begun"},
		"a poll twice":           {double(discovery, 4), "two polls"},
		"a poll left out":        {drop(discovery, 4), "two polls"},
		"no polls of a bucket":   {func(all []request) []request { return without(all, discovery, 5) }, "bucket 5 was polled 0 times"},
		"a strong poll":          {change(discovery, 0, func(r *request) { r.strong = true }), "strongly consistent: true"},
		"a poll of many keys":    {change(discovery, 0, func(r *request) { r.limit = 0 }), "limit 0"},
		"a fetch of no message":  {change(discovery, 0, func(r *request) { r.kind = fetch }), "a fetch"},
		"a poll of a peer's one": {change(discovery, 0, func(r *request) { r.bucket = 3 }), "does not own"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := bill(settledPrice, c.plant(settledTraffic()))
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.problem) }) {
				t.Errorf("%q", problems)
			}
		})
	}
}

// A standby far back in line that runs every round is found too.
func TestBillBitesOnRoundsTwiceAsOften(t *testing.T) {
	twice := settledPrice
	twice.every *= 2
	if _, problems := bill(twice, settledTraffic()); !strings.Contains(strings.Join(problems, "\n"), "round 1 lasted 2s, want 4s") {
		t.Errorf("%q", problems)
	}
}

// without drops all requests of a kind for a bucket.
func without(all []request, k kind, bucket int) []request {
	return only(all, func(r request) bool { return r.kind != k || r.bucket != bucket })
}
