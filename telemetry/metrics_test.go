package telemetry_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/telemetry"
)

// scraped are metrics that are read as Prometheus reads them.
type scraped struct {
	*telemetry.Metrics
	t      testing.TB
	export *telemetry.Export
}

func newScraped(t testing.TB) scraped {
	t.Helper()
	export, err := telemetry.NewExport(t.Context(), telemetry.ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := telemetry.NewMetrics(export.Provider(), "")
	if err != nil {
		t.Fatal(err)
	}
	return scraped{m, t, export}
}

func (s scraped) tell(events ...event.Event) { s.tellOf("relay-a", events...) }

func (s scraped) tellOf(relay string, events ...event.Event) {
	for _, e := range events {
		s.Observe(event.Envelope{Relay: relay, At: time.Unix(1_800_000_000, 0), Event: e})
	}
}

// text is a whole scrape.
func (s scraped) text() string {
	answer := httptest.NewRecorder()
	s.export.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return answer.Body.String()
}

// outboxName is the label that all series have.
var outboxName = regexp.MustCompile(`\boutbox_name="outbox",|,?\boutbox_name="outbox"`)

// series are the values of a scrape, by name and labels as they are written,
// outbox_name left out.
func (s scraped) series() map[string]float64 {
	s.t.Helper()
	values := map[string]float64{}
	for line := range strings.Lines(s.text()) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "} ")
		if !found || !strings.HasPrefix(name, "outbox_") {
			continue
		}
		name = outboxName.ReplaceAllString(name, "")
		if !strings.HasSuffix(name, "{") {
			name += "}"
		}
		name = strings.TrimSuffix(name, "{")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			s.t.Fatalf("line %q: %v", line, err)
		}
		values[name] = v
	}
	return values
}

func (s scraped) want(want map[string]float64) {
	s.t.Helper()
	got := s.series()
	for name, value := range want {
		if v, found := got[name]; !found || v != value {
			s.t.Errorf("%s is %v (found: %v), want %v", name, v, found, value)
		}
	}
}

// An alert on a rate must see the first event, and a dashboard must tell "never"
// from "not measured": before anything has happened, all counters are there.
func TestCountersStandAtZeroFromTheStart(t *testing.T) {
	s := newScraped(t)
	s.want(map[string]float64{
		"outbox_messages_published_total":                                   0,
		`outbox_publish_failures_total{class="fenced"}`:                     0,
		`outbox_publish_failures_total{class="rejected"}`:                   0,
		"outbox_batches_published_total":                                    0,
		"outbox_lease_losses_total":                                         0,
		`outbox_requests_total{outcome="ambiguous",request="keep"}`:         0,
		`outbox_requests_total{outcome="done",request="fetch"}`:             0,
		`outbox_capacity_units_total{outcome="retriable",request="delete"}`: 0,
		`outbox_wakeups_total{cause="full batch"}`:                          0,
		"outbox_gaps_probed_total":                                          0,
		"outbox_gaps_filled_total":                                          0,
		"outbox_rows_refetched_total":                                       0,
		"outbox_producers_retired_total":                                    0,
		"outbox_buckets_owned":                                              0,
		`outbox_buckets{state="withheld"}`:                                  0,
		"outbox_clock_skew_seconds":                                         0,
	})
	for name, value := range s.series() {
		if value != 0 {
			t.Errorf("%s is %v before anything has happened", name, value)
		}
	}
}

func TestEventsAreCounted(t *testing.T) {
	s := newScraped(t)
	s.tell(
		event.BucketWoken{Bucket: 3, Cause: "poll"},
		event.BucketWoken{Bucket: 3, Cause: "full batch"},
		event.BatchFetched{Bucket: 3, Rows: 5, Bytes: 100, Refetched: 2},
		event.GapProbed{Bucket: 3, From: 1, To: 2, Filled: true},
		event.GapProbed{Bucket: 3, From: 4, To: 4},
		event.RecordAcknowledged{Bucket: 3, Sequence: 3, Topic: "orders", Lag: 40 * time.Millisecond},
		event.RecordAcknowledged{Bucket: 3, Sequence: 5, Topic: "orders", Lag: -time.Second},
		event.RecordAcknowledged{Bucket: 3, Sequence: 6, Topic: "bills", Lag: time.Minute},
		event.BatchPublished{Bucket: 3, Rows: 5, Acknowledged: 3, Took: 30 * time.Millisecond},
		event.PublishFailed{Bucket: 3, Rows: 2, Topic: "orders", Class: "retriable", Code: "timeout"},
		event.RecordRejected{Bucket: 3, Sequence: 7, Topic: "orders", Code: "too large"},
		event.RecordRejected{Bucket: 3, Sequence: 7, Topic: "orders", Code: "too large", Alone: true},
		event.ProducerRetired{Producer: 1, Reason: "bucket lost", Outstanding: 4},
		event.RequestCompleted{Request: "fetch", Bucket: 3, Outcome: "done", Took: 3 * time.Millisecond, Capacity: 1.5},
		event.RequestCompleted{Request: "fetch", Bucket: 3, Outcome: "done", Took: 3 * time.Millisecond, Capacity: 0.5},
		event.RequestCompleted{Request: "keep", Bucket: 3, Outcome: "ambiguous", Took: 5 * time.Second},
		event.RoundCompleted{Active: 1, Owned: 1, Ahead: -1500 * time.Millisecond},
	)
	s.want(map[string]float64{
		`outbox_wakeups_total{cause="poll"}`:                                        1,
		`outbox_wakeups_total{cause="full batch"}`:                                  1,
		"outbox_rows_refetched_total":                                               2,
		"outbox_gaps_probed_total":                                                  2,
		"outbox_gaps_filled_total":                                                  1,
		`outbox_messages_published_total{topic="orders"}`:                           2,
		`outbox_messages_published_total{topic="bills"}`:                            1,
		"outbox_delivery_lag_seconds_count":                                         3,
		"outbox_delivery_lag_seconds_sum":                                           60.04,
		"outbox_batches_published_total":                                            1,
		`outbox_batch_size_bucket{le="5"}`:                                          1,
		`outbox_batch_size_bucket{le="2"}`:                                          0,
		"outbox_publish_duration_seconds_sum":                                       0.03,
		`outbox_publish_failures_total{class="retriable"}`:                          1,
		`outbox_publish_failures_total{class="rejected"}`:                           1,
		"outbox_producers_retired_total":                                            1,
		`outbox_requests_total{outcome="done",request="fetch"}`:                     2,
		`outbox_requests_total{outcome="ambiguous",request="keep"}`:                 1,
		`outbox_capacity_units_total{outcome="done",request="fetch"}`:               2,
		`outbox_request_duration_seconds_count{outcome="ambiguous",request="keep"}`: 1,
		"outbox_clock_skew_seconds":                                                 -1.5,
		"outbox_lease_losses_total":                                                 0,
	})
}

// changed is a step of a bucket's machine.
func changed(bucket int, to fsm.State) event.Event {
	return event.StateChanged{Bucket: bucket, Machine: "bucket", To: string(to)}
}

// The gauges say what is held now, all relays of the process together; what has
// ended, however it ended, is out of them.
func TestBucketsAreCountedByState(t *testing.T) {
	s := newScraped(t)
	s.tell(changed(0, fsm.Owned), changed(1, fsm.Owned), changed(2, fsm.Owned), changed(1, fsm.Blocked),
		event.StateChanged{Bucket: 2, Machine: "batch", To: string(fsm.Publishing)})
	s.tellOf("relay-b", changed(5, fsm.Owned), changed(6, fsm.Owned), changed(6, fsm.Withheld))
	s.want(map[string]float64{"outbox_buckets_owned": 5, `outbox_buckets{state="owned"}`: 3,
		`outbox_buckets{state="blocked"}`: 1, `outbox_buckets{state="withheld"}`: 1})

	s.tell(changed(0, fsm.Draining), changed(0, fsm.Releasing), changed(0, fsm.Released),
		changed(2, fsm.Lost), event.BucketLost{Bucket: 2, Owner: "relay-b"})
	s.want(map[string]float64{"outbox_buckets_owned": 3, "outbox_lease_losses_total": 1})

	s.tellOf("relay-b", event.ActorFailed{Actor: "bucket 6", Bucket: 6, Reason: "broken"})
	s.want(map[string]float64{"outbox_buckets_owned": 2, `outbox_buckets{state="withheld"}`: 0})

	s.tell(event.RelayStopped{})
	s.tellOf("relay-b", event.ActorFailed{Actor: "coordinator", Bucket: -1, Reason: "broken"})
	s.want(map[string]float64{"outbox_buckets_owned": 0, `outbox_buckets{state="blocked"}`: 0})
}

// A process that has replaced its relays must not go on reporting the old ones.
func TestClosedMetricsReportNoGauges(t *testing.T) {
	s := newScraped(t)
	s.tell(changed(0, fsm.Owned))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if v, found := s.series()["outbox_buckets_owned"]; found {
		t.Errorf("outbox_buckets_owned is still reported, as %v", v)
	}
}

// More topics than anybody has cost no memory without end, and nothing is lost:
// what is beyond the limit is counted together.
func TestTopicsWithoutEnd(t *testing.T) {
	s := newScraped(t)
	var tellers sync.WaitGroup
	for teller := range 4 {
		tellers.Go(func() {
			for topic := range 1000 {
				s.tell(event.RecordAcknowledged{Topic: fmt.Sprint("topic-", teller, "-", topic)})
			}
		})
	}
	tellers.Wait()
	series, total := 0, 0.0
	for name, value := range s.series() {
		if strings.HasPrefix(name, "outbox_messages_published_total") {
			series++
			total += value
		}
	}
	if series > 2001 || total != 4000 {
		t.Errorf("%d series with %v messages", series, total)
	}
}

// documentedMetric is one line of the table in docs/metrics.md.
var documentedMetric = regexp.MustCompile("(?m)^\\| `(outbox[a-z.]+)` \\| (counter|gauge|histogram) \\| (\\S+) \\|([^|]*)\\| [^|]+ \\| `(\\w+)` \\|$")

// The page says of each instrument what a scrape shows: its name, its kind, its
// labels; and it has no line for one that is not there.
func TestThePageIsTrue(t *testing.T) {
	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newScraped(t)
	s.tell(
		event.RecordAcknowledged{Topic: "orders"},
		event.BatchPublished{Rows: 1},
		event.RequestCompleted{Request: "fetch", Outcome: "done"},
		event.BacklogSampled{},
	)
	text := s.text()
	shown := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (outbox_\w+) (\w+)$`).FindAllStringSubmatch(text, -1) {
		shown[m[1]] = m[2]
	}
	instruments := map[string]telemetry.Instrument{}
	for _, i := range telemetry.Instruments() {
		instruments[i.Name] = i
	}
	for _, line := range documentedMetric.FindAllStringSubmatch(string(page), -1) {
		name, kind, unit, attributes, prometheus := line[1], line[2], line[3], strings.ReplaceAll(line[4], "`", ""), line[5]
		i := instruments[name]
		if i.Kind != kind || i.Unit != unit || strings.Join(i.Attributes, ", ") != strings.TrimSpace(attributes) {
			t.Errorf("docs/metrics.md has %s as %s, %s, %q; it is %+v", name, kind, unit, attributes, i)
		}
		if shown[prometheus] != kind {
			t.Errorf("docs/metrics.md has %s as the %s %s; a scrape has it as %q", name, kind, prometheus, shown[prometheus])
		}
		for _, label := range i.Attributes {
			if !regexp.MustCompile(`(?m)^` + prometheus + `(_count)?\{.*\b` + label + `="`).MatchString(text) {
				t.Errorf("%s has no label %s in a scrape", prometheus, label)
			}
		}
		if !strings.Contains(text, "# HELP "+prometheus+" "+i.Help+"\n") {
			t.Errorf("a scrape has not the help of %s", name)
		}
		delete(instruments, name)
		delete(shown, prometheus)
	}
	for name := range instruments {
		t.Errorf("docs/metrics.md has no line for %s", name)
	}
	for name := range shown {
		t.Errorf("docs/metrics.md has no line for %s, which a scrape shows", name)
	}
}

// What a message costs to measure: a count and a histogram's.
func BenchmarkObserve(b *testing.B) {
	s := newScraped(b)
	e := event.Envelope{Relay: "a", Event: event.RecordAcknowledged{Bucket: 3, Topic: "orders", Lag: time.Second}}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			s.Observe(e)
		}
	})
}

// What waits is known to one relay of the fleet: no other reports a figure, and one
// that has handed bucket 0 on, or cannot measure, reports none any more, instead of
// one that grows old.
func TestTheBacklogIsReportedWhileItIsKnown(t *testing.T) {
	sample := event.BacklogSampled{Messages: 12, Limited: 1, Oldest: 90 * time.Second, ParkedKeys: 2, ParkedRows: 7}
	gauges := map[string]float64{"outbox_pending_messages": 12, "outbox_pending_oldest_age_seconds": 90, "outbox_parked_keys": 2, "outbox_parked_rows": 7}
	for _, end := range []event.Event{
		event.BacklogUnknown{}, event.BacklogUnknown{Err: errRefused}, event.RelayStopped{}, event.ActorFailed{Actor: "coordinator", Bucket: -1},
	} {
		s := newScraped(t)
		s.tell(changed(0, fsm.Owned), sample)
		s.tellOf("relay-b", changed(1, fsm.Owned))
		s.want(gauges)
		s.tell(end)
		for name := range gauges {
			if v, found := s.series()[name]; found {
				t.Errorf("after %s, %s is still %v", end.EventName(), name, v)
			}
		}
	}
}
