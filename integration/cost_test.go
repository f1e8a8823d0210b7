package integration

import (
	"fmt"
	"slices"
	"time"
)

// price is what one settled relay may send.
type price struct {
	relay  string
	owned  []int         // its buckets, ascending
	every  time.Duration // between two of its rounds
	poll   time.Duration // between two looks at one of its buckets; 0: it has messages, and polls are not judged
	rounds int
}

// bill compares the requests of one relay with its price: in each of its first
// rounds one heartbeat, then one strongly consistent query, then one keep of each
// owned bucket, and nothing else; and, beside the rounds, one eventually
// consistent query of one key for each owned bucket and poll. It returns how many
// requests of each kind the rounds had, and what is wrong with them. A round
// begins with its heartbeat; the last one must have ended, so that requests has
// one heartbeat more. What the SDK repeats, on a slow machine, does not count.
func bill(p price, requests []request) (counts map[kind]int, problems []string) {
	counts = map[kind]int{}
	wrong := func(format string, args ...any) {
		problems = append(problems, p.relay+": "+fmt.Sprintf(format, args...))
	}
	requests = only(requests, func(r request) bool { return r.relay == p.relay && r.attempt <= 1 })
	var begins []int
	for i, r := range requests {
		if r.kind == heartbeat {
			begins = append(begins, i)
		}
	}
	if len(begins) <= p.rounds {
		wrong("%d rounds have begun, want %d to have ended", len(begins), p.rounds)
		return counts, problems
	}
	for n := range p.rounds {
		round := requests[begins[n]:begins[n+1]]
		for _, r := range round {
			counts[r.kind]++
		}
		for _, problem := range p.judgeRound(round) {
			wrong("round %d: %s", n+1, problem)
		}
		if took := requests[begins[n+1]].sent.Sub(requests[begins[n]].sent); !near(took, p.every) {
			wrong("round %d lasted %v, want %v", n+1, took, p.every)
		}
	}
	for _, problem := range p.judgePolls(requests[begins[0]:begins[p.rounds]]) {
		wrong("%s", problem)
	}
	return counts, problems
}

func (p price) judgeRound(round []request) (problems []string) {
	var order []kind
	var kept []int
	for _, r := range round {
		switch {
		case r.kind == coordination && !r.strong:
			problems = append(problems, "its query is not strongly consistent")
		case r.kind == keep:
			kept = append(kept, r.bucket)
		}
		if r.coordinates() {
			order = append(order, r.kind)
		}
	}
	want := []kind{heartbeat, coordination}
	for range p.owned {
		want = append(want, keep)
	}
	if !slices.Equal(order, want) {
		problems = append(problems, fmt.Sprintf("it sent %v, want %v", order, want))
	}
	if slices.Sort(kept); !slices.Equal(kept, p.owned) {
		problems = append(problems, fmt.Sprintf("it kept %v and owns %v", kept, p.owned))
	}
	return problems
}

// judgePolls looks at what the rounds had beside them.
func (p price) judgePolls(requests []request) (problems []string) {
	last := map[int]time.Time{}
	polls := map[int]int{}
	for _, r := range requests {
		switch {
		case !r.works():
			continue
		case !slices.Contains(p.owned, r.bucket):
			problems = append(problems, fmt.Sprintf("a %s of bucket %d, which it does not own", r.kind, r.bucket))
			continue
		case p.poll == 0:
			continue
		case r.kind != discovery || r.strong || r.limit != 1:
			problems = append(problems, fmt.Sprintf("a %s (limit %d, strongly consistent: %v) of the idle bucket %d",
				r.kind, r.limit, r.strong, r.bucket))
			continue
		}
		if before, any := last[r.bucket]; any && !near(r.sent.Sub(before), p.poll) {
			problems = append(problems, fmt.Sprintf("two polls of bucket %d are %v apart, want %v", r.bucket, r.sent.Sub(before), p.poll))
		}
		last[r.bucket] = r.sent
		polls[r.bucket]++
	}
	for _, b := range p.owned {
		if whole := int(time.Duration(p.rounds) * p.every / max(p.poll, 1)); p.poll > 0 && (polls[b] < whole-1 || polls[b] > whole+1) {
			problems = append(problems, fmt.Sprintf("bucket %d was polled %d times, want about %d", b, polls[b], whole))
		}
	}
	return problems
}

// near allows for a slow machine, and for nothing that is done twice or left out.
func near(took, want time.Duration) bool { return took > want*2/3 && took < want*3/2 }
