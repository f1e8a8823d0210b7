package telemetry_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/telemetry"
)

// troubledStatus is a relay with some trouble, as its board has it.
func troubledStatus() telemetry.Status {
	s := statusNow()
	board := telemetry.NewBoard()
	for i := range 40 {
		for range i % 7 * 20 {
			board.Observe(event.Envelope{Relay: "relay-a", At: noon.Add(time.Duration(i) * time.Second), Event: event.RecordAcknowledged{Topic: "orders"}})
		}
	}
	for _, e := range []event.Event{
		event.BucketBlocked{Bucket: 5, Sequence: 9, Reason: "rejected: message too large"},
		event.StoreThrottled{Lane: "messages", Request: "fetch", Bucket: 3},
		event.StoreUnthrottled{Lane: "messages"},
	} {
		board.Observe(event.Envelope{Relay: "relay-a", At: noon.Add(40 * time.Second), Event: e})
	}
	board.Fill(&s, noon.Add(41*time.Second))
	return s
}

// What came from others, such as a topic's name or a reason, is text on the page and
// nothing else.
func TestThePageIsEscaped(t *testing.T) {
	const attack = `</script><script>alert(1)</script><img src=x onerror="alert(2)">`
	s := serve(t, telemetry.AdminOptions{Status: func() telemetry.Status {
		status := troubledStatus()
		status.Relay = attack
		status.Buckets[1].LastError = attack
		status.Settings["region"] = attack
		status.Troubles = append(status.Troubles, json.RawMessage(fmt.Sprintf(`{"level":"warn","event":"x","reason":%q}`, attack)))
		return status
	}})
	got := s.want(http.StatusOK, "GET", "/")
	if n := strings.Count(got.body, "<script"); n != 1 || strings.Contains(got.body, "<img") {
		t.Errorf("%d scripts in\n%s", n, got.body)
	}
	policy := got.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
}

// A paused topic has one line, however many buckets tell of it, and is in /status.
func TestThePageSaysWhichTopicsArePaused(t *testing.T) {
	paused := []telemetry.TopicPause{{Topic: "orders", Pause: telemetry.Pause{By: "ann@desk", Reason: "upgrade"}}}
	s := serve(t, telemetry.AdminOptions{Status: func() telemetry.Status {
		status := statusNow()
		status.Buckets = []telemetry.BucketStatus{{Bucket: 1, State: "owned", PausedTopics: paused}, {Bucket: 2, State: "owned", PausedTopics: paused}}
		return status
	}})
	line := "topic orders: paused until resumed, by ann@desk: upgrade"
	if n := strings.Count(s.want(http.StatusOK, "GET", "/").body, line); n != 1 {
		t.Errorf("%q is there %d times", line, n)
	}
	if body := s.want(http.StatusOK, "GET", "/status").body; strings.Count(body, `"topic": "orders"`) != 2 {
		t.Errorf("/status is %s", body)
	}
}

// Whoever looks at a paused bucket sees by whom, until when and why, in /status too.
func TestThePageSaysWhoHasPaused(t *testing.T) {
	s := serve(t, telemetry.AdminOptions{Status: func() telemetry.Status {
		status := statusNow()
		status.Buckets = []telemetry.BucketStatus{
			{Bucket: 1, State: "paused", Paused: &telemetry.Pause{Until: telemetry.Moment(noon), By: "ann@desk", Reason: "migration <1>"}},
			{Bucket: 2, State: "paused", Paused: &telemetry.Pause{}, LastError: "before"},
		}
		return status
	}})
	body := s.want(http.StatusOK, "GET", "/").body
	for _, part := range []string{"2 paused", "paused until 2026-03-01 12:00:00 UTC, by ann@desk: migration &lt;1&gt;<",
		"paused until resumed, by somebody: no reason given · before<"} {
		if !strings.Contains(body, part) {
			t.Errorf("the page does not say %q", part)
		}
	}
	document := s.want(http.StatusOK, "GET", "/status").body
	for _, part := range []string{`"until": "2026-03-01T12:00:00Z"`, `"by": "ann@desk"`, `"until": null`} {
		if !strings.Contains(document, part) {
			t.Errorf("/status does not say %s: %s", part, document)
		}
	}
}

// The page is one document: it names nothing outside, also not for a browser that
// would not obey the policy.
func TestThePageIsSelfContained(t *testing.T) {
	s := serve(t, telemetry.AdminOptions{Status: troubledStatus, Now: func() time.Time { return noon.Add(time.Hour) }})
	body := s.want(http.StatusOK, "GET", "/").body
	for _, m := range regexp.MustCompile(`(?:src|href|action|url)\s*[=(]\s*"?([^"\s>)]+)`).FindAllStringSubmatch(body, -1) {
		if target := m[1]; target != "data:," && target != "status" && target != "metrics" {
			t.Errorf("the page names %s", target)
		}
	}
	if len(body) > 64<<10 {
		t.Errorf("it has %d bytes", len(body))
	}
}

// The page is asked for by people with thousands of buckets too: those in trouble are
// shown, the others stand in the counts.
func TestThePageOfManyBuckets(t *testing.T) {
	s := serve(t, telemetry.AdminOptions{Status: func() telemetry.Status {
		status := statusNow()
		status.Buckets, status.Fleet = nil, nil
		for b := range 5000 {
			bucket := telemetry.BucketStatus{Bucket: b, State: "owned"}
			if b%1000 == 999 {
				bucket = telemetry.BucketStatus{Bucket: b, State: "blocked", LastError: "rejected"}
			}
			status.Buckets = append(status.Buckets, bucket)
		}
		return status
	}})
	body := s.want(http.StatusOK, "GET", "/").body
	for _, part := range []string{"4995 owned", "5 blocked", "and 4800 more", ">4999</td>"} {
		if !strings.Contains(body, part) {
			t.Errorf("the page does not say %q", part)
		}
	}
	if first := strings.Index(body, ">999</td>"); first < 0 || first > strings.Index(body, ">0</td>") {
		t.Error("a blocked bucket does not come first")
	}
}

// Rates are of the last minute that is over, or of the time since the start; what is
// older is forgotten, also when nothing has happened since.
func TestBoardRates(t *testing.T) {
	board := telemetry.NewBoard()
	tell := func(after time.Duration, events ...event.Event) {
		for _, e := range events {
			board.Observe(event.Envelope{Relay: "a", At: noon.Add(after), Event: e})
		}
	}
	rates := func(after time.Duration) telemetry.Rates {
		var s telemetry.Status
		board.Fill(&s, noon.Add(after))
		return *s.Rates
	}
	if r := rates(0); r.MessagesPerSecond != 0 || len(r.LastMinute) != 60 {
		t.Errorf("before anything: %+v", r)
	}
	tell(0, event.RelayStarted{})
	for range 30 {
		tell(5*time.Second, event.RecordAcknowledged{}, event.RequestCompleted{Capacity: 0.5})
	}
	tell(6*time.Second, event.PublishFailed{}, event.RecordRejected{Alone: true}, event.RecordRejected{})
	if r := rates(10 * time.Second); r.MessagesPerSecond != 3 || r.RequestsPerSecond != 3 || r.UnitsPerSecond != 1.5 || r.FailuresPerMinute != 12 {
		t.Errorf("after 10 s: %+v", r)
	}
	if r := rates(60 * time.Second); r.MessagesPerSecond != 0.5 || r.LastMinute[5] != 30 {
		t.Errorf("after 60 s: %+v", r)
	}
	if r := rates(time.Hour); r.MessagesPerSecond != 0 || r.FailuresPerMinute != 0 {
		t.Errorf("an hour later: %+v", r)
	}
}

// The last troubles are the log's lines of trouble and of its end, the newest first;
// a lasting one does not drive out the others, and there is no end of them.
func TestBoardTroubles(t *testing.T) {
	board := telemetry.NewBoard()
	at := noon
	tell := func(e event.Event) {
		at = at.Add(time.Second)
		board.Observe(event.Envelope{Relay: "a", At: at, Elapsed: at.Sub(noon), Event: e})
	}
	tell(event.BucketClaimed{Bucket: 1})
	tell(event.BucketLost{Bucket: 1, Owner: "b"})
	for range 100 {
		tell(event.StoreUnavailable{Request: "fetch", Err: errRefused})
	}
	tell(event.StoreAvailable{})
	var s telemetry.Status
	board.Fill(&s, at)
	var events []string
	for _, line := range s.Troubles {
		var l struct{ Event string }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		events = append(events, l.Event)
	}
	if got := strings.Join(events, " "); got != "store.available store.unavailable bucket.lost" {
		t.Errorf("got %s", got)
	}
	for n := range 1000 {
		tell(event.BucketLost{Bucket: 7, Owner: fmt.Sprint("relay-", n)})
	}
	board.Fill(&s, at)
	if len(s.Troubles) != 20 || !strings.Contains(string(s.Troubles[0]), `"owner":"relay-999"`) {
		t.Errorf("%d troubles, the newest %s", len(s.Troubles), s.Troubles[0])
	}
}

// What one command has done to many buckets is one trouble, and leaves room for others;
// what was done to others for another reason is another.
func TestBoardPutsTogetherWhatIsAlike(t *testing.T) {
	board := telemetry.NewBoard()
	tell := func(seconds int, e event.Event) {
		after := time.Duration(seconds) * time.Second
		board.Observe(event.Envelope{Relay: "a", At: noon.Add(after), Elapsed: after, Event: e})
	}
	tell(0, event.BucketLost{Bucket: 9, Owner: "b"})
	for i, bucket := range []int{7, 2, 0, 1, 3} {
		tell(i+1, event.BucketPaused{Bucket: bucket, By: "ann", Reason: "upgrade"})
	}
	tell(6, event.BucketPaused{Bucket: 5, By: "ann", Reason: "a look at row 42"})
	for range 50 {
		tell(30, event.StoreThrottled{Lane: "messages", Request: "fetch", Bucket: 6})
	}
	tell(70, event.BucketPaused{Bucket: 2, By: "ann", Reason: "upgrade"}) // the log reminds of all that are paused
	for i, bucket := range []int{0, 1, 2} {
		tell(80+i, event.BucketResumed{Bucket: bucket, After: time.Minute + time.Duration(i)*time.Second})
	}
	var s telemetry.Status
	board.Fill(&s, noon.Add(100*time.Second))
	type shown struct {
		Event, Reason, Owner, Time, FirstTime string
		Count                                 int
		Bucket                                *int
		Buckets                               []int
	}
	var got []string
	for _, line := range s.Troubles {
		var l shown
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		buckets := fmt.Sprint(l.Buckets)
		if l.Bucket != nil {
			buckets += fmt.Sprint(*l.Bucket)
		}
		got = append(got, fmt.Sprintf("%s %s%s %s: %d, %s to %s", l.Event, l.Reason, l.Owner, buckets, l.Count, l.FirstTime, l.Time))
	}
	want := []string{
		"bucket.resumed  [0 1 2]: 3, 2026-03-01T12:01:20.000Z to 2026-03-01T12:01:22.000Z",
		"bucket.paused upgrade [0 1 2 3 7]: 10, 2026-03-01T12:00:01.000Z to 2026-03-01T12:01:10.000Z",
		"bucket.paused a look at row 42 []5: 2, 2026-03-01T12:00:06.000Z to 2026-03-01T12:01:10.000Z",
		"store.throttled  []6: 1,  to 2026-03-01T12:00:30.000Z",
		"bucket.lost b []9: 1,  to 2026-03-01T12:00:00.000Z",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s", strings.Join(got, "\n  "))
	}
	admin := serve(t, telemetry.AdminOptions{Status: func() telemetry.Status { return s }})
	page := admin.want(http.StatusOK, "GET", "/").body
	for _, text := range []string{"<b>10 times since 2026-03-01 12:00:01</b>", "buckets: 0–3, 7 · lasted: ", "bucket: 5 · lasted: "} {
		if !strings.Contains(page, text) {
			t.Errorf("no %q in\n%s", text, page)
		}
	}
}
