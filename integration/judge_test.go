package integration

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// outcome is what one event has cost a fleet.
type outcome struct {
	refused    []request     // from the event on
	repeated   []request     // refused, but only since the SDK repeated what was applied
	least      int           // refused writes that there must be
	most       int           // and that there may be
	took       time.Duration // until each bucket had an owner for good; 0: there was nothing to take
	within     time.Duration // what it may have taken
	duplicates int           // records beyond the first of a message
}

// problems are what is more, or less, than the event may cost.
func (o outcome) problems() (problems []string) {
	if n := len(o.refused); n < o.least || n > o.most {
		problems = append(problems, fmt.Sprintf("%d writes were refused, want %d to %d: %s", n, o.least, o.most, tally(o.refused)))
	}
	if o.took > o.within {
		problems = append(problems, fmt.Sprintf("the buckets were taken over after %v, want %v at most", o.took, o.within))
	}
	return problems
}

// columns are the outcome's figures in a table, tab separated.
func (o outcome) columns() string {
	takeover, within := "-", "-"
	if o.within > 0 {
		takeover, within = fmt.Sprintf("%.1f s", o.took.Seconds()), fmt.Sprintf("%.1f s", o.within.Seconds())
	}
	return fmt.Sprintf("%d\t%d\t%s\t%s\t%d", len(o.refused), len(o.repeated), takeover, within, o.duplicates)
}

// only are the requests that match, in their order.
func only(requests []request, matches func(request) bool) []request {
	var some []request
	for _, r := range requests {
		if matches(r) {
			some = append(some, r)
		}
	}
	return some
}

// refusals are the writes whose condition failed, but for those that the SDK has
// repeated: a machine was slow, and the condition failed on what the call itself
// had written.
func refusals(requests []request) []request {
	return only(requests, func(r request) bool { return r.refused && !repeated(r, requests) })
}

// repeated tells whether a request is a further attempt of a call of which an
// earlier one was not refused.
func repeated(r request, requests []request) bool {
	return r.attempt > 1 && slices.ContainsFunc(requests, func(earlier request) bool {
		return earlier.relay == r.relay && earlier.call == r.call && earlier.attempt < r.attempt && !earlier.refused
	})
}

// repetitions are the writes that were refused because the SDK has repeated them.
func repetitions(requests []request) []request {
	return only(requests, func(r request) bool { return r.refused && repeated(r, requests) })
}

// restless are those that no settled fleet sends: what moves a bucket, and what
// is refused.
func restless(requests []request) []request {
	return only(requests, func(r request) bool { return r.moves() || r.refused && !repeated(r, requests) })
}

// claimed are the buckets of all applied claims, ascending, each as often as it
// was claimed.
func claimed(requests []request) []int {
	return applied(requests, claim, "")
}

// applied are the buckets of all applied requests of a kind, ascending; of one
// relay, or, without a name, of all.
func applied(requests []request, k kind, relay string) []int {
	var buckets []int
	for _, r := range requests {
		if r.kind == k && r.applied() && (relay == "" || r.relay == relay) {
			buckets = append(buckets, r.bucket)
		}
	}
	slices.Sort(buckets)
	return buckets
}

// faults are what may not be among the requests of any fleet with a sound table:
// such as the protocol does not know, such without an answer, and answers without
// the service's time, on which the clock guard depends, or with an error.
func faults(requests []request) (problems []string) {
	for _, c := range []struct {
		what    string
		matches func(request) bool
	}{
		{"are not of the protocol", func(r request) bool { return strings.HasPrefix(string(r.kind), string(unknown)) }},
		{"have no answer", func(r request) bool { return r.status == 0 }},
		{"have an answer without a date", func(r request) bool { return r.status != 0 && !r.dated }},
		{"have failed", func(r request) bool { return r.status != 0 && !r.applied() && !r.refused }},
	} {
		if bad := only(requests, c.matches); len(bad) > 0 {
			problems = append(problems, fmt.Sprintf("%d requests %s: %s", len(bad), c.what, tally(bad)))
		}
	}
	return problems
}

// disorder says how a graceful stop of a relay was not as it must be: its record
// is stamped before any lease is handed back, and the leases are read again after
// the last one was; empty: it was.
func disorder(requests []request, relay string) string {
	own := only(requests, func(r request) bool { return r.relay == relay && r.applied() })
	kinds := make([]kind, len(own))
	for i, r := range own {
		kinds[i] = r.kind
	}
	stamped, released := slices.Index(kinds, stamp), slices.Index(kinds, release)
	if stamped < 0 || released < 0 || own[released].sent.Before(own[stamped].answered) {
		return fmt.Sprintf("%s did not stamp its record before it handed a lease back: %v", relay, kinds)
	}
	last := released
	for i, k := range kinds {
		if k == release {
			last = i
		}
	}
	if !slices.Contains(kinds[last:], coordination) {
		return fmt.Sprintf("%s did not read the leases after it handed the last one back: %v", relay, kinds)
	}
	return ""
}

// allInFlight tells whether the last whole round of a relay had nothing beside it:
// each of its buckets has rows that it waits for, since one without is polled.
func allInFlight(requests []request, relay string) bool {
	beats, beside := 0, 0
	for _, r := range slices.Backward(requests) {
		switch {
		case r.relay != relay:
		case r.kind == heartbeat:
			beats++
		case beats == 1 && r.works():
			beside++
		}
	}
	return beats > 1 && beside == 0
}

// trespasses are the requests of a relay about buckets that it has lost, until it
// has claimed them anew. Anybody may look at the backlog.
func trespasses(requests []request, relay string, lost []int) []request {
	lost = slices.Clone(lost)
	return only(requests, func(r request) bool {
		if r.relay != relay || r.kind == backlog || !slices.Contains(lost, r.bucket) {
			return false
		}
		if r.kind == claim && r.applied() {
			lost = slices.DeleteFunc(lost, func(b int) bool { return b == r.bucket })
			return false
		}
		return true
	})
}

// tally says how many requests of which relay and kind there are.
func tally(requests []request) string {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.relay+"'s "+string(r.kind)]++
	}
	var parts []string
	for what, n := range counts {
		parts = append(parts, fmt.Sprintf("%s: %d", what, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
