package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/telemetry"
)

var update = flag.Bool("update", false, "write the files of testdata instead of comparing with them")

// samples has each event at least once, and once for each level that it may
// have by itself.
func samples() []event.Event {
	return slices.Concat(relaySamples(), bucketSamples(), tableSamples(), publishSamples())
}

var errRefused = errors.New("query leases: connection refused")

func relaySamples() []event.Event {
	return []event.Event{
		event.RelayStarted{Incarnation: "0639000000000000000-0badcafe"},
		event.RelayReady{After: 1200 * time.Millisecond},
		event.RelayStopping{},
		event.RelayStopping{Err: errRefused},
		event.RelayStopped{},
		event.RelayStopped{Unreleased: 2},
		event.RelayStopped{Unreleased: 1, Err: errRefused},
		event.RelayReplaced{Incarnation: "1-a", By: "2-b"},
		event.RelayWithdrawn{Reason: "clock", Ahead: -41 * time.Second},
		event.RelayWithdrawn{Reason: "brokers"},
		event.RelayRenamed{Relay: "relay-a2", Incarnation: "0639000000000000001-0badcafe"},
		event.ClockSkewed{Ahead: 41 * time.Second},
		event.ClockRight{Ahead: -300 * time.Millisecond},
		event.RoundCompleted{Active: 3, Owned: 4, StandbyRank: -1, Took: 12 * time.Millisecond, Ahead: -200 * time.Millisecond},
		event.RoundCompleted{Active: 9, Owned: 0, StandbyRank: 0, Took: 12 * time.Millisecond},
		fleetSeen(),
		event.HeartbeatRefused{Ahead: 3 * time.Second},
		event.HeartbeatAccepted{},
		event.StoreUnavailable{Request: "heartbeat", Err: errRefused},
		event.StoreAvailable{},
		event.StoreFailed{Request: "keep", Bucket: 3, Err: errRefused},
		event.StoreRecovered{Request: "keep"},
		event.BucketCountMismatch{Bucket: 1, Sequence: 77, Stamped: 16, Ours: 8},
		event.ActorFailed{Actor: "bucket 7", Bucket: 7, Reason: "illegal event", Pause: 2 * time.Second},
	}
}

func bucketSamples() []event.Event {
	return []event.Event{
		event.BucketClaimed{Bucket: 3, Claim: 5, Resumed: true},
		event.BucketRefused{Bucket: 3},
		event.BucketKept{Bucket: 3, ValidFor: 28 * time.Second},
		event.BucketUnsettled{Bucket: 3, Request: "keep", Err: errRefused},
		event.BucketWithheld{Bucket: 0, Reason: "lease lapsed"},
		event.BucketResumed{Bucket: 3, After: 4 * time.Second},
		event.BucketDraining{Bucket: 3},
		event.BucketReleased{Bucket: 3},
		event.BucketLost{Bucket: 3, Owner: "relay-b"},
		event.BucketLost{Bucket: 3},
		event.BucketBlocked{Bucket: 3, Sequence: 9, Reason: "MessageId: not a uuid"},
		event.BucketBlocked{Bucket: 3, Reason: "sort key: not a number"},
		event.BucketUnblocked{Bucket: 3, After: time.Hour},
		event.BucketPaused{Bucket: 3, Until: start.Add(90 * time.Minute), By: "ops", Reason: "migration"},
		event.BucketPaused{Bucket: 3, By: "ops", Reason: "migration"},
		event.ClockBehind{Bucket: 3, By: 2500 * time.Millisecond},
		event.ClockAgreed{Bucket: 3},
		event.LeaseUnreadable{Item: "LEASE#3", Err: errRefused},
		event.StateChanged{Bucket: 3, Machine: "bucket", Event: "claim confirmed", From: "claiming", To: "owned"},
	}
}

func tableSamples() []event.Event {
	return []event.Event{
		event.RequestCompleted{Request: "fetch", Bucket: 3, Outcome: "done", Took: 1500 * time.Microsecond, Capacity: 0.5},
		event.RequestCompleted{Request: "read", Bucket: -1, Outcome: "done", Took: time.Millisecond, Capacity: 1},
		event.BacklogSampled{Pending: []int{10000, 0, 3}, Messages: 10003, Limited: 1, Oldest: time.Hour, ParkedKeys: 1, ParkedRows: 7, Took: 40 * time.Millisecond},
		event.BacklogUnknown{Err: errRefused},
		event.BacklogUnknown{},
		event.StoreThrottled{Lane: "messages", Request: "fetch", Bucket: 3},
		event.StoreUnthrottled{Lane: "messages"},
		event.BucketWoken{Bucket: 3, Cause: "poll"},
		event.BatchFetched{Bucket: 3, Rows: 500, Bytes: 150_000, Refetched: 1},
		event.GapProbed{Bucket: 3, From: 11, To: 12, Filled: true},
		event.BatchRemoved{Bucket: 3, Rows: 500, Last: 512},
		event.DeleteFailed{Bucket: 3, Rows: 25, Err: errRefused},
	}
}

func publishSamples() []event.Event {
	return []event.Event{
		event.RecordAcknowledged{Bucket: 3, Sequence: 10, Topic: "orders", Lag: 40 * time.Millisecond},
		event.BatchPublished{Bucket: 3, Rows: 500, Acknowledged: 498, Took: 20 * time.Millisecond},
		event.BatchTraced{Bucket: 3, Batch: event.BatchPublished{Bucket: 3, Rows: 500, Acknowledged: 498, Took: 20 * time.Millisecond}, Topic: "orders",
			Traces: make([]event.Trace, 128), Unlinked: 372, Class: "retriable", Code: "timed out"},
		event.RecordRejected{Bucket: 3, Sequence: 10, Message: "5f2c", Topic: "orders", Code: "message too large, limit 2000", Alone: true},
		event.RecordRejected{Bucket: 3, Sequence: 10, Message: "5f2c", Topic: "orders", Code: "message too large", Alone: false},
		event.PublishFailed{Bucket: 3, Rows: 500, Topic: "orders", Class: "ambiguous", Code: "timed out"},
		event.PublishRecovered{Bucket: 3, After: 9 * time.Second},
		event.RecordParked{Bucket: 3, Sequence: 10, Message: "5f2c", Topic: "orders", KeyID: "9d0f", Reason: "MSG_SIZE_TOO_LARGE: limit 2000", Attempts: 3},
		event.LetterPublished{Bucket: 3, Sequence: 10, Message: "5f2c", Topic: "orders", LetterTopic: "letters", Reason: "MSG_SIZE_TOO_LARGE: limit 2000"},
		event.RowsMoved{Bucket: 3, Rows: 40, Last: 812},
		event.MoveFailed{Bucket: 3, Request: "move", Refusal: "marker", Err: errRefused},
		event.MarkersRead{Bucket: 3, Keys: 2, Topics: 1},
		event.TopicsPaused{Bucket: 3, Topics: []event.PausedTopic{{Topic: "orders", By: "ann", Reason: "upgrade"}}},
		event.TopicsResumed{Bucket: 3},
		event.KeyRetried{Bucket: 3, KeyID: "9d0f", Topic: "orders"},
		event.RetryRejected{Bucket: 3, KeyID: "9d0f", Topic: "orders", Sequence: 10, Reason: "MSG_SIZE_TOO_LARGE: limit 2000"},
		event.KeyCleared{Bucket: 3, KeyID: "9d0f", Topic: "orders"},
		event.TopicRetried{Bucket: 3, Topic: "orders"},
		event.BrokerUnreachable{Reason: "connection refused"},
		event.BrokerReached{After: 300 * time.Millisecond},
		event.FenceTaken{Bucket: 3, Producer: 2, Took: 500 * time.Millisecond},
		event.FenceFailed{Bucket: 3, Code: "COORDINATOR_NOT_AVAILABLE"},
		event.TransactionAborted{Bucket: 3, Rows: 500, Code: "message too large"},
		event.ProducerOpened{Producer: 2, Careful: true},
		event.ProducerFailed{Producer: 2, Code: "gapless guarantee", Outstanding: 30},
		event.ProducerRetired{Producer: 2, Reason: "lease lost", Outstanding: 30},
		event.ProducerRetired{Producer: 2, Reason: "idle"},
	}
}

var start = time.Date(2026, 3, 1, 10, 30, 0, 0, time.FixedZone("", 3600))

// linesOf is what one relay's new Log writes for events at one instant.
func linesOf(level zerolog.Level, events ...event.Event) []string {
	var out bytes.Buffer
	log := telemetry.NewLog(zerolog.New(&out).Level(level))
	for _, e := range events {
		log.Observe(event.Envelope{Relay: "relay-a", At: start, Event: e})
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// Each event's line is byte for byte the one in testdata/lines.jsonl: scripts
// depend on names, dashboards on fields.
func TestLines(t *testing.T) {
	var got []string
	for _, e := range samples() {
		got = append(got, linesOf(zerolog.TraceLevel, e)...)
	}
	const golden = "testdata/lines.jsonl"
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	wanted := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
	if len(got) != len(wanted) {
		t.Errorf("%d lines, want %d", len(got), len(wanted))
	}
	for i := range min(len(got), len(wanted)) {
		if got[i] != wanted[i] {
			t.Errorf("line %d\n got %s\nwant %s", i+1, got[i], wanted[i])
		}
	}
}

// documented is one event's row of docs/events.md.
type documented struct {
	fields, levels []string
	fault          bool
	endsWith       []string
}

// readDocs reads the tables of docs/events.md, which package event's test
// compares with the types.
func readDocs(t *testing.T) map[string]documented {
	t.Helper()
	page, err := os.ReadFile("../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := map[string]documented{}
	for text := range strings.Lines(string(page)) {
		cells := strings.Split(text, "|")
		if len(cells) != 7 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		var row documented
		for _, m := range quoted.FindAllStringSubmatch(cells[3], -1) {
			row.fields = append(row.fields, m[1])
		}
		row.levels = strings.Split(strings.TrimSpace(cells[4]), ", ")
		row.fault = strings.Contains(cells[2], "**fault**")
		if _, ends, ok := strings.Cut(cells[2], "ends with "); ok {
			ends, _, _ = strings.Cut(ends, ":")
			for _, m := range quoted.FindAllStringSubmatch(ends, -1) {
				row.endsWith = append(row.endsWith, m[1])
			}
		}
		rows[strings.Trim(cells[1], " `")] = row
	}
	return rows
}

// docs/events.md says of each event which fields its lines have and at which
// levels they are: no more, no fewer. Its rows are exactly the types of package
// event, so an event without a line here fails too.
func TestLinesAreAsDocumented(t *testing.T) {
	common := []string{"level", "time", "relay", "event", "message"}
	fields, levels := map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, e := range samples() {
		var line map[string]any
		if err := json.Unmarshal([]byte(linesOf(zerolog.TraceLevel, e)[0]), &line); err != nil {
			t.Fatal(err)
		}
		name := e.EventName()
		if line["event"] != name {
			t.Errorf("event is %v, want %s", line["event"], name)
		}
		if fields[name] == nil {
			fields[name], levels[name] = map[string]bool{}, map[string]bool{}
		}
		levels[name][line["level"].(string)] = true
		for field := range line {
			if !slices.Contains(common, field) {
				fields[name][field] = true
			}
		}
	}
	docs := readDocs(t)
	for name, doc := range docs {
		if fields[name] == nil {
			t.Errorf("no line for %s", name)
			continue
		}
		slices.Sort(doc.fields)
		if got := slices.Sorted(maps.Keys(fields[name])); !slices.Equal(got, doc.fields) {
			t.Errorf("%s: fields %v, documented %v", name, got, doc.fields)
		}
		for level := range levels[name] {
			if !slices.Contains(doc.levels, level) {
				t.Errorf("%s: level %s, documented %v", name, level, doc.levels)
			}
		}
	}
	for name := range fields {
		if _, ok := docs[name]; !ok {
			t.Errorf("%s is not in docs/events.md", name)
		}
	}
}

// Every event has words of its own.
func TestNoEventIsUnknown(t *testing.T) {
	sentences := map[any]string{}
	for _, e := range samples() {
		var line map[string]any
		if err := json.Unmarshal([]byte(linesOf(zerolog.TraceLevel, e)[0]), &line); err != nil {
			t.Fatal(err)
		}
		if other, taken := sentences[line["message"]]; taken && other != e.EventName() {
			t.Errorf("%s and %s share the sentence %q", e.EventName(), other, line["message"])
		}
		sentences[line["message"]] = e.EventName()
	}
}

type foreign struct{}

func (foreign) EventName() string { return "foreign.happened" }

// An event of somebody else's type is named, not dropped and not a panic.
func TestForeignEvent(t *testing.T) {
	got := linesOf(zerolog.TraceLevel, foreign{})[0]
	want := `{"level":"debug","time":"2026-03-01T09:30:00.000Z","relay":"relay-a","event":"foreign.happened",` +
		`"message":"Something happened that this log has no words for."}`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A fleet that does its work without trouble writes nothing at info level.
func TestQuietFleetIsQuiet(t *testing.T) {
	got := linesOf(zerolog.InfoLevel,
		fleetSeen(),
		event.RoundCompleted{Active: 2, Owned: 4, StandbyRank: -1},
		event.BucketKept{Bucket: 1, ValidFor: 28 * time.Second},
		event.BucketWoken{Bucket: 1, Cause: "poll"},
		event.RequestCompleted{Request: "fetch", Bucket: 1, Outcome: "done"},
		event.BatchFetched{Bucket: 1, Rows: 1},
		event.StateChanged{Bucket: 1, Machine: "batch", From: "fetching", To: "publishing"},
		event.GapProbed{Bucket: 1, From: 1, To: 1},
		event.RecordAcknowledged{Bucket: 1, Sequence: 2},
		event.BatchPublished{Bucket: 1, Rows: 1, Acknowledged: 1},
		event.BatchRemoved{Bucket: 1, Rows: 1, Last: 2},
	)
	if len(got) != 1 || got[0] != "" {
		t.Errorf("a quiet fleet wrote %q", got)
	}
}
