package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// done is an applied request of a relay, answered a second after it was sent.
func done(relay string, k kind, bucket, second int) request {
	r := request{relay: relay, kind: k, bucket: bucket, sent: time.Unix(int64(second), 0)}
	r.answer(time.Unix(int64(second)+1, 0), http.StatusOK, http.Header{"Date": {"now"}}, nil)
	return r
}

func TestAnswersAreUnderstood(t *testing.T) {
	dated := http.Header{"Date": {"Mon, 30 Nov 2026 23:04:23 GMT"}}
	refused := []byte(`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}`)
	other := []byte(`{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException"}`)
	for name, c := range map[string]struct {
		status                  int
		header                  http.Header
		text                    []byte
		applied, refused, dated bool
	}{
		"applied":            {http.StatusOK, dated, []byte("{}"), true, false, true},
		"refused":            {http.StatusBadRequest, dated, refused, false, true, true},
		"failed":             {http.StatusBadRequest, dated, other, false, false, true},
		"a refusal's text":   {http.StatusOK, dated, refused, true, false, true},
		"without a date":     {http.StatusOK, http.Header{}, []byte("{}"), true, false, false},
		"without any answer": {0, nil, nil, false, false, false},
	} {
		var r request
		r.answer(time.Unix(1, 0), c.status, c.header, c.text)
		if r.applied() != c.applied || r.refused != c.refused || r.dated != c.dated {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestFaultsBite(t *testing.T) {
	sound := done("a", keep, 1, 0)
	refused := sound
	refused.status, refused.refused = http.StatusBadRequest, true
	if problems := faults([]request{sound, refused}); len(problems) != 0 {
		t.Errorf("%q", problems)
	}
	for want, plant := range map[string]func(*request){
		"not of the protocol": func(r *request) { r.kind = unknown + ": Scan" },
		"no answer":           func(r *request) { r.status, r.dated = 0, false },
		"without a date":      func(r *request) { r.dated = false },
		"failed":              func(r *request) { r.status = http.StatusBadGateway },
	} {
		bad := sound
		plant(&bad)
		if problems := faults([]request{sound, bad}); len(problems) != 1 || !strings.Contains(problems[0], want) {
			t.Errorf("%q, want one that says %q", problems, want)
		}
	}
}

func TestOutcomeBites(t *testing.T) {
	one := []request{{relay: "a", kind: claim, refused: true}}
	for name, c := range map[string]struct {
		outcome  outcome
		problems int
	}{
		"nothing refused, in time":  {outcome{took: 4, within: 4}, 0},
		"as many refused as must":   {outcome{refused: one, least: 1, most: 1}, 0},
		"one refused too many":      {outcome{refused: one}, 1},
		"one too few":               {outcome{least: 1, most: 1}, 1},
		"too late":                  {outcome{took: 5, within: 4}, 1},
		"too late, and one refused": {outcome{refused: one, took: 5, within: 4}, 2},
	} {
		if problems := c.outcome.problems(); len(problems) != c.problems {
			t.Errorf("%s: %q", name, problems)
		}
	}
}

func TestOutcomeIsShown(t *testing.T) {
	o := outcome{refused: []request{{}}, took: 2140 * time.Millisecond, within: 4 * time.Second, duplicates: 3}
	if got := o.columns(); got != "1\t0\t2.1 s\t4.0 s\t3" {
		t.Errorf("%q", got)
	}
	if got := (outcome{}).columns(); got != "0\t0\t-\t-\t0" {
		t.Errorf("%q", got)
	}
}

func TestRestlessAndClaimed(t *testing.T) {
	refused := request{relay: "b", kind: claim, bucket: 4, status: http.StatusBadRequest, refused: true}
	seen := []request{
		done("a", keep, 1, 0), done("a", claim, 3, 0), done("b", claim, 2, 0), refused, done("a", release, 3, 1), done("b", claim, 3, 2),
	}
	if got := claimed(seen); !slices.Equal(got, []int{2, 3, 3}) {
		t.Errorf("claimed: %v", got)
	}
	if got := applied(seen, claim, "a"); !slices.Equal(got, []int{3}) {
		t.Errorf("claimed by a: %v", got)
	}
	if got := restless(seen); len(got) != 5 || len(refusals(seen)) != 1 {
		t.Errorf("restless: %s", tally(got))
	}
}

// A repetition is told apart from a loss by the call that it belongs to.
func TestRepetitionsAreNoRefusals(t *testing.T) {
	attempt := func(call string, n int, refused bool) request {
		r := request{relay: "a", kind: keep, bucket: 1, status: http.StatusOK, refused: refused}
		r.belong(http.Header{"Amz-Sdk-Invocation-Id": {call}, "Amz-Sdk-Request": {fmt.Sprintf("attempt=%d; max=2", n)}})
		return r
	}
	for name, c := range map[string]struct {
		seen              []request
		refused, repeated int
	}{
		"an applied write repeated":         {[]request{attempt("x", 1, false), attempt("x", 2, true)}, 0, 1},
		"a refused write":                   {[]request{attempt("x", 1, true)}, 1, 0},
		"a refused write repeated":          {[]request{attempt("x", 1, true), attempt("x", 2, true)}, 2, 0},
		"a second write, after an applied":  {[]request{attempt("x", 1, false), attempt("y", 1, true)}, 1, 0},
		"a repetition of what was not seen": {[]request{attempt("y", 1, false), attempt("x", 2, true)}, 1, 0},
	} {
		if r, p := len(refusals(c.seen)), len(repetitions(c.seen)); r != c.refused || p != c.repeated || len(restless(c.seen)) != r {
			t.Errorf("%s: %d refused, %d repeated", name, r, p)
		}
	}
}

func TestAllInFlightBites(t *testing.T) {
	beat, kept := done("a", heartbeat, -1, 0), done("a", keep, 1, 0)
	look, peers, sample := done("a", discovery, 1, 0), done("b", discovery, 2, 0), done("a", backlog, 2, 0)
	for name, c := range map[string]struct {
		seen []request
		all  bool
	}{
		"nothing beside the last round": {[]request{beat, look, beat, kept, peers, sample, beat, look}, true},
		"a poll beside it":              {[]request{beat, kept, beat, look, beat}, false},
		"no whole round yet":            {[]request{look, beat, kept}, false},
	} {
		if allInFlight(c.seen, "a") != c.all {
			t.Error(name)
		}
	}
}

func TestTrespassesBite(t *testing.T) {
	seen := []request{
		done("b", fetch, 1, 0), done("a", fetch, 3, 0), done("a", heartbeat, -1, 0),
		done("a", deletion, 1, 1), done("a", backlog, 2, 1), done("a", claim, 1, 2), done("a", fetch, 1, 3), done("a", keep, 2, 3),
	}
	if got := tally(trespasses(seen, "a", []int{1, 2})); got != "a's delete: 1, a's keep: 1" {
		t.Error(got)
	}
}

func TestDisorderBites(t *testing.T) {
	orderly := []request{
		done("a", keep, 1, 0), done("a", stamp, -1, 1), done("b", release, 9, 1), done("a", coordination, -1, 2),
		done("a", release, 1, 3), done("a", release, 2, 3), done("a", coordination, -1, 4),
	}
	if problem := disorder(orderly, "a"); problem != "" {
		t.Error(problem)
	}
	early := slices.Clone(orderly)
	early[4].sent = early[1].sent // on its way before the stamp had its answer
	for name, seen := range map[string][]request{
		"no stamp":                  slices.Delete(slices.Clone(orderly), 1, 2),
		"a release beside it":       early,
		"no read after the last":    orderly[:6],
		"nothing handed back":       orderly[:4],
		"another relay's stop only": orderly[2:3],
	} {
		if disorder(seen, "a") == "" {
			t.Errorf("%s: not found", name)
		}
	}
}
