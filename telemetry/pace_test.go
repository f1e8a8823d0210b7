package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/telemetry"
)

// fleet feeds a Log with events at instants of the relays' own clocks. The wall
// clock stands still: pacing must not look at it.
type fleet struct {
	log *telemetry.Log
	out bytes.Buffer
}

func newFleet(level zerolog.Level) *fleet {
	f := &fleet{}
	f.log = telemetry.NewLog(zerolog.New(&f.out).Level(level))
	return f
}

func (f *fleet) at(elapsed time.Duration, events ...event.Event) { f.of("relay-a", elapsed, events...) }

func (f *fleet) of(relay string, elapsed time.Duration, events ...event.Event) {
	for _, e := range events {
		f.log.Observe(event.Envelope{Relay: relay, At: start, Elapsed: elapsed, Event: e})
	}
}

// told is what was written since the last call, in short: the event and what
// the pacer added to it.
func (f *fleet) told(t *testing.T) []string {
	t.Helper()
	var out []string
	for text := range strings.Lines(f.out.String()) {
		var line struct {
			Event    string
			Bucket   *int
			Ended    []string
			Lasted   float64
			Repeated int
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		short := line.Event
		if line.Bucket != nil {
			short += fmt.Sprintf(" %d", *line.Bucket)
		}
		if line.Ended != nil {
			short += fmt.Sprintf(" ended %s", strings.Join(line.Ended, ","))
		}
		if line.Lasted != 0 {
			short += fmt.Sprintf(" lasted %g", line.Lasted)
		}
		if line.Repeated != 0 {
			short += fmt.Sprintf(" repeated %d", line.Repeated)
		}
		out = append(out, short)
	}
	f.out.Reset()
	return out
}

func (f *fleet) want(t *testing.T, want ...string) {
	t.Helper()
	if got := f.told(t); !slices.Equal(got, want) {
		t.Errorf("told\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

var failed = event.PublishFailed{Bucket: 3, Rows: 5, Class: "retriable", Code: "leader change"}

// A broker that is away for a day, with a report each second: a line at once,
// after 1, 2, 4 … 32 minutes, each hour from then on, and one at the end.
func TestLastingFaultSlowsDown(t *testing.T) {
	f := newFleet(zerolog.InfoLevel)
	for s := range 86_400 {
		f.at(time.Duration(s)*time.Second, failed)
	}
	f.at(24*time.Hour, event.PublishRecovered{Bucket: 3, After: 24 * time.Hour})
	got := f.told(t)
	want := []string{
		"publish.failed 3",
		"publish.failed 3 lasted 60 repeated 59",
		"publish.failed 3 lasted 180 repeated 119",
		"publish.failed 3 lasted 420 repeated 239",
	}
	if !slices.Equal(got[:4], want) {
		t.Errorf("told first\n\t%s\nwant\n\t%s", strings.Join(got[:4], "\n\t"), strings.Join(want, "\n\t"))
	}
	if len(got) != 7+22+1 {
		t.Errorf("%d lines in a day, want 30", len(got))
	}
	if last := got[len(got)-1]; !strings.HasPrefix(last, "publish.recovered 3 ended publish.failed lasted 86400") {
		t.Errorf("the last line is %q", last)
	}
}

// A bucket is reported blocked once and stays so: whoever reads the log of a
// later hour must see it too, though the core says nothing more. Any event of
// the relay gives the occasion.
func TestSilentFaultIsTold(t *testing.T) {
	f := newFleet(zerolog.InfoLevel)
	f.at(0, event.BucketBlocked{Bucket: 2, Sequence: 9})
	for s := 10; s <= 200; s += 10 {
		f.at(time.Duration(s)*time.Second, event.RoundCompleted{})
	}
	f.at(200*time.Second, event.BucketUnblocked{Bucket: 2})
	f.want(t,
		"bucket.blocked 2",
		"bucket.blocked 2 lasted 60",
		"bucket.blocked 2 lasted 180",
		"bucket.unblocked 2 ended bucket.blocked lasted 200")
	f.at(time.Hour, event.RoundCompleted{})
	f.want(t)
}

// What each attempt reports is not known to last without any: a relay that has withdrawn
// sends no heartbeat, and a paused bucket publishes nothing. The next attempt that fails is
// told at once, and the end of it all says how long it has lasted.
func TestAFaultThatIsNotTriedIsNotTold(t *testing.T) {
	f := newFleet(zerolog.InfoLevel)
	refused := event.StoreFailed{Request: "heartbeat", Bucket: -1, Err: io.EOF}
	f.at(0, refused, failed)
	for s := 10; s <= 3000; s += 10 {
		f.at(time.Duration(s)*time.Second, event.RoundCompleted{})
	}
	f.want(t, "store.failed", "publish.failed 3")
	f.at(3010*time.Second, refused)
	f.at(3020*time.Second, refused)
	f.at(3140*time.Second, event.RoundCompleted{})
	f.at(3150*time.Second, event.StoreRecovered{Request: "heartbeat"}, event.PublishRecovered{Bucket: 3})
	f.want(t, "store.failed lasted 3010", "store.failed lasted 3140 repeated 1", "store.recovered ended store.failed lasted 3150",
		"publish.recovered 3 ended publish.failed lasted 3150")
}

// A fault that comes and goes every second must not write two lines a second.
func TestFlappingFaultSlowsDown(t *testing.T) {
	f := newFleet(zerolog.InfoLevel)
	for s := range 600 {
		f.at(time.Duration(s)*time.Second, failed)
		f.at(time.Duration(s)*time.Second+time.Second/2, event.PublishRecovered{Bucket: 3})
	}
	f.want(t,
		"publish.failed 3", "publish.recovered 3 ended publish.failed lasted 0.5",
		"publish.failed 3 repeated 59", "publish.recovered 3 ended publish.failed lasted 0.5",
		"publish.failed 3 repeated 119", "publish.recovered 3 ended publish.failed lasted 0.5",
		"publish.failed 3 repeated 239", "publish.recovered 3 ended publish.failed lasted 0.5")
}

// A fault that comes back soon after its end and then lasts is told when its
// pace allows, though it is reported only once.
func TestFaultThatReturnsToStay(t *testing.T) {
	f := newFleet(zerolog.InfoLevel)
	f.at(0, event.BucketWithheld{Bucket: 1})
	f.at(5*time.Second, event.BucketResumed{Bucket: 1})
	f.at(30*time.Second, event.BucketWithheld{Bucket: 1})
	f.at(59*time.Second, event.RoundCompleted{})
	f.want(t, "bucket.withheld 1", "bucket.resumed 1 ended bucket.withheld lasted 5")
	f.at(61*time.Second, event.RoundCompleted{})
	f.at(70*time.Second, event.BucketResumed{Bucket: 1})
	f.want(t, "bucket.withheld 1 lasted 31 repeated 1", "bucket.resumed 1 ended bucket.withheld lasted 40")
}

// A fault of long ago does not slow down a new one.
func TestPaceIsForgotten(t *testing.T) {
	f := newFleet(zerolog.InfoLevel)
	f.at(0, failed)
	f.at(time.Second, event.PublishRecovered{Bucket: 3})
	f.at(10*time.Minute, failed)
	f.at(11*time.Minute, failed)
	f.want(t,
		"publish.failed 3", "publish.recovered 3 ended publish.failed lasted 1",
		"publish.failed 3", "publish.failed 3 lasted 60")
}

// What is held back is still there for who reads at debug level.
func TestHeldBackIsDebug(t *testing.T) {
	f := newFleet(zerolog.DebugLevel)
	f.at(0, failed, failed)
	if got := f.out.String(); strings.Count(got, `"level":"warn"`) != 1 || strings.Count(got, `"level":"debug"`) != 1 {
		t.Errorf("wrote %s", got)
	}
}

// Each relay, bucket and lane has its own faults, and each relay its own clock.
func TestFaultsAreApart(t *testing.T) {
	f := newFleet(zerolog.InfoLevel)
	f.of("relay-a", time.Hour, failed, event.PublishFailed{Bucket: 4}, event.StoreThrottled{Lane: "messages", Bucket: -1})
	f.of("relay-b", time.Second, failed, event.StoreThrottled{Lane: "coordination", Bucket: -1})
	f.of("relay-b", 2*time.Second, event.PublishRecovered{Bucket: 3}, event.StoreUnthrottled{Lane: "messages"})
	f.want(t, "publish.failed 3", "publish.failed 4", "store.throttled",
		"publish.failed 3", "store.throttled", "publish.recovered 3 ended publish.failed lasted 1")
}

// Losing a bucket is told whatever else was going on, and ends the bucket's
// faults; the next owner reports what still is wrong.
func TestTenureEndsFaults(t *testing.T) {
	f := newFleet(zerolog.InfoLevel)
	f.at(0, failed)
	f.at(10*time.Second, event.BucketWithheld{Bucket: 3})
	f.at(40*time.Second, event.BucketLost{Bucket: 3})
	f.at(time.Hour, event.RoundCompleted{})
	f.want(t, "publish.failed 3", "bucket.withheld 3",
		"bucket.lost 3 ended bucket.withheld,publish.failed lasted 40")
}

// A relay that has ended reports nothing any more.
func TestStoppedRelayIsSilent(t *testing.T) {
	f := newFleet(zerolog.InfoLevel)
	f.at(0, event.BrokerUnreachable{Reason: "connection refused"})
	f.at(time.Second, event.RelayStopped{})
	f.at(time.Hour, event.RoundCompleted{})
	f.want(t, "broker.unreachable", "relay.stopped")
}

// Each rejected record is told at once, also right after another one of its
// bucket; its retries are paced; and it ends with its own acknowledgement only.
func TestRejectedRecords(t *testing.T) {
	f := newFleet(zerolog.InfoLevel)
	rejected := func(sequence int64) event.Event {
		return event.RecordRejected{Bucket: 1, Sequence: sequence, Alone: true}
	}
	f.at(0, event.RecordRejected{Bucket: 1, Sequence: 7}) // not alone: nobody knows yet
	f.at(time.Second, rejected(7))
	f.at(2*time.Second, rejected(7))
	f.at(3*time.Second, event.RecordAcknowledged{Bucket: 1, Sequence: 6})
	f.at(4*time.Second, event.RecordAcknowledged{Bucket: 1, Sequence: 7})
	f.at(5*time.Second, rejected(8))
	f.want(t, "record.rejected 1", "record.acknowledged 1 ended record.rejected lasted 3 repeated 1", "record.rejected 1")
}

// docs/events.md marks exactly the faults, and names what ends each.
func TestFaultsAreAsDocumented(t *testing.T) {
	docs := readDocs(t)
	byName := map[string]event.Event{}
	for _, e := range samples() {
		if _, known := byName[e.EventName()]; !known {
			byName[e.EventName()] = e
		}
	}
	for name, doc := range docs {
		f := newFleet(zerolog.InfoLevel)
		f.at(0, byName[name], byName[name])
		lines := len(f.told(t))
		if paced := lines == 1; doc.fault && !paced || !doc.fault && paced {
			t.Errorf("%s: two reports made %d lines; documented as a fault: %t", name, lines, doc.fault)
		}
		for _, end := range doc.endsWith {
			f := newFleet(zerolog.InfoLevel)
			f.at(0, inBucket3(byName[name]))
			f.at(time.Second, byName[end])
			if got := f.told(t); len(got) != 2 || !strings.Contains(got[1], "ended "+name) {
				t.Errorf("%s does not end %s: %v", end, name, got)
			}
		}
	}
}

// inBucket3 moves the one sample of another bucket to where the others are.
func inBucket3(e event.Event) event.Event {
	if w, ok := e.(event.BucketWithheld); ok {
		w.Bucket = 3
		return w
	}
	return e
}

// A hundred thousand different faults neither fill the memory nor the log.
func TestFaultsAreBounded(t *testing.T) {
	f := newFleet(zerolog.InfoLevel)
	for i := range 100_000 {
		f.at(0, event.LeaseUnreadable{Item: fmt.Sprint(i)})
	}
	if got := len(f.told(t)); got != 65_536 {
		t.Errorf("%d lines, want the 65,536 that are tracked", got)
	}
	f.at(time.Hour, failed) // room again: the old ones are forgotten by the sweep
	f.at(2*time.Hour, failed)
	f.want(t, "publish.failed 3")
}

// Many actors of several relays share one Log.
func TestConcurrentUse(t *testing.T) {
	log := telemetry.NewLog(zerolog.New(zerolog.SyncWriter(io.Discard)))
	var done sync.WaitGroup
	for worker := range 8 {
		done.Go(func() {
			relay := fmt.Sprintf("relay-%d", worker%2)
			for i := range 100 {
				for _, e := range samples() {
					log.Observe(event.Envelope{Relay: relay, At: start, Elapsed: time.Duration(i) * time.Second, Event: e})
				}
			}
		})
	}
	done.Wait()
}

// BenchmarkAcknowledged is what each record costs in a healthy relay whose log
// is at info level.
func BenchmarkAcknowledged(b *testing.B) {
	log := telemetry.NewLog(zerolog.New(io.Discard).Level(zerolog.InfoLevel))
	e := event.Envelope{Relay: "relay-a", At: start, Event: event.RecordAcknowledged{Bucket: 1, Sequence: 2}}
	b.ReportAllocs()
	for b.Loop() {
		log.Observe(e)
	}
}
