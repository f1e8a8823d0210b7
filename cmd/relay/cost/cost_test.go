package cost_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/cmd/relay/cost"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/simulation"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// Ids in the simulation are like relay-1.
const simulatedIDBytes = 7

// workload is that of a simulated fleet without messages.
func workload(o simulation.Options) cost.Workload {
	o = o.WithDefaults()
	return cost.Workload{
		Schema: outbox.Schema{Table: "outbox", BucketCount: o.Buckets}, Relays: o.Relays, RelayIDBytes: simulatedIDBytes,
		PollInterval: o.PollInterval, LeaseDuration: o.LeaseDuration, LeaseRenewInterval: o.LeaseRenewInterval,
		BatchSize: o.BatchSize, MaxBatchBytes: 8 << 20,
	}
}

// counted is what a simulated fleet without faults has sent from an instant on until
// the end of the run's Duration, by request.
type counted struct {
	requests               map[string]float64
	shares                 []float64 // messages committed, by bucket
	transactions, messages float64
	window                 time.Duration
}

// count simulates a fleet, and leaves out its start and what follows Duration.
func count(t *testing.T, o simulation.Options) counted {
	t.Helper()
	const settled = time.Minute
	c := counted{requests: map[string]float64{}, shares: make([]float64, o.Buckets), window: o.Duration - settled}
	o.Observe = func(e simulation.Event) {
		switch {
		case e.At < settled || e.At >= o.Duration:
		case e.Name == "request.applied":
			c.requests[reflect.ValueOf(e.Detail).FieldByName("Request").String()]++
		case e.Name == "messages.committed":
			n := float64(reflect.ValueOf(e.Detail).FieldByName("Messages").Int())
			c.shares[e.Bucket()] += n
			c.transactions, c.messages = c.transactions+1, c.messages+n
		}
	}
	if report := simulation.Run(o); !report.OK {
		t.Fatalf("the run is broken: %v", report.Violations)
	}
	return c
}

// noMessages is a rate at which none comes within a run.
const noMessages = 1e-9

// What an idle fleet sends is known to the request, but for those that each timer has
// sent just before or after the ends of the window, and for the milliseconds by which a
// look at a bucket is late: none in 200.
func TestIdleFleet(t *testing.T) {
	for name, o := range map[string]simulation.Options{
		"by default":         {},
		"one relay":          {Relays: 1, Buckets: 4},
		"many buckets":       {Relays: 3, Buckets: 48, LeaseDuration: 12 * time.Second},
		"more than buckets":  {Relays: 9, Buckets: 3},
		"quick and far away": {Relays: 2, Buckets: 8, PollInterval: 250 * time.Millisecond, LeaseDuration: 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o.Rate, o.Duration = noMessages, 4*time.Minute
			o = o.WithDefaults()
			c, w := count(t, o), workload(o)
			for _, l := range w.Idle().For(c.window) {
				timers := float64(w.Schema.BucketCount)
				if l.Request == "heartbeat" || l.Request == "readCoordination" {
					timers = float64(w.Relays)
				}
				if l.Request == "discover" {
					timers += l.Requests / 200
				}
				if math.Abs(c.requests[l.Request]-l.Requests) > timers {
					t.Errorf("%s: sent %v, reckoned %.1f", l.Request, c.requests[l.Request], l.Requests)
				}
				delete(c.requests, l.Request)
			}
			if len(c.requests) > 0 {
				t.Errorf("sent, and not reckoned: %v", c.requests)
			}
		})
	}
}

// near demands a figure to some hundredths.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	t.Logf("%s: counted %.0f, reckoned %.0f (%+.1f %%)", what, got, want, 100*(want/got-1))
	if math.Abs(got-want) > tolerance*got {
		t.Errorf("%s: counted %.0f, reckoned %.0f: %+.1f %%", what, got, want, 100*(want/got-1))
	}
}

// What random runs need is what is reckoned for the rate that their writers had in
// each bucket. Writers there tell a relay of every third commit, if it is in the right
// process.
func TestLoadedFleet(t *testing.T) {
	for name, o := range map[string]simulation.Options{
		"by default":    {Rate: 8},
		"more relays":   {Relays: 6, Buckets: 12, Rate: 8},
		"small batches": {Relays: 2, Buckets: 2, Rate: 12, BatchSize: 8},
		"slow polls":    {Relays: 2, Buckets: 4, Rate: 8, PollInterval: 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o.Duration = max(o.Duration, 4*time.Minute)
			o = o.WithDefaults()
			c, w := count(t, o), workload(o)
			w.Rate, w.Shares = c.messages/c.window.Seconds(), c.shares
			w.PerTransaction = c.messages / c.transactions
			w.Notified = 1.0 / 3 / float64(o.Relays)
			for _, l := range slices.Concat(w.Idle(), w.Load()).For(c.window) {
				if l.Request != "discover" {
					near(t, l.Request, c.requests[l.Request], l.Requests, 0.05)
				} else if n := c.requests[l.Request]; l.Requests > 0 && (n > l.Requests || n < 0.9*l.Requests) {
					t.Errorf("discover: counted %v, reckoned %v: must be fewer, by a tenth at most", n, l.Requests)
				}
			}
		})
	}
}

// Larger rows cost more, unit by unit: what is reckoned for messages of one size, which
// come at random, is what the table counts.
func TestLargerRows(t *testing.T) {
	for name, one := range map[string]struct {
		bytes, batch int
		rate         float64 // of one bucket
		seconds      float64
	}{
		"of a unit":         {bytes: 300, batch: 500, rate: 1, seconds: 400},
		"of some units":     {bytes: 3000, batch: 500, rate: 0.7, seconds: 600},
		"of many":           {bytes: 40_000, batch: 500, rate: 2, seconds: 150},
		"of several pages":  {bytes: 300_000, batch: 500, rate: 6, seconds: 25},
		"in small batches":  {bytes: 3000, batch: 4, rate: 6, seconds: 100},
		"in chunks deleted": {bytes: 300, batch: 500, rate: 40, seconds: 50},
	} {
		t.Run(name, func(t *testing.T) {
			const buckets = 2
			var script strings.Builder
			fmt.Fprintf(&script, "# Rows of one size\n# They come at random.\nbuckets %d\nbatch %d\nstart A\nwithin 10s A owns %d buckets\n", buckets, one.batch, buckets)
			random := rand.New(rand.NewPCG(1, uint64(one.bytes)))
			messages := 0
			for at := 10.0; ; messages++ {
				if at += random.ExpFloat64() / one.rate / buckets; at > 10+one.seconds {
					break
				}
				fmt.Fprintf(&script, "at %.3fs commit m%d in bucket %d of %d bytes\n", at, messages, random.IntN(buckets), one.bytes)
			}
			fmt.Fprintf(&script, "at %.0fs\nwithin 10s no rows\nend open\n", 10+one.seconds)
			s, err := simulation.ParseScenario("rows", strings.NewReader(script.String()))
			if err != nil {
				t.Fatal(err)
			}
			report := s.Run()
			if !report.OK {
				t.Fatal(report.Violations)
			}
			w := workload(s.Options)
			w.Rate = float64(messages) / one.seconds
			w.MessageBytes = len("orders") + len("bucket-0") + one.bytes
			for _, l := range w.Idle() {
				if l.Request == "discover" {
					continue
				}
				each, got := (l.Read+l.Write)/l.Requests, report.Units[l.Request]/float64(report.Requests[l.Request])
				if math.Abs(got-each) > 0.05*each {
					t.Errorf("%s: %v units each, reckoned %v", l.Request, got, each)
				}
			}
			window := time.Duration(one.seconds * float64(time.Second))
			for _, l := range w.Load().For(window) {
				if l.Request == "discover" {
					looks := w.Idle().For(report.Virtual)[3]
					near(t, "discover's units", report.Units[l.Request], looks.Read+l.Read, 0.05)
					continue
				}
				near(t, l.Request, float64(report.Requests[l.Request]), l.Requests, 0.05)
				near(t, l.Request+"'s units", report.Units[l.Request], l.Read+l.Write, 0.05)
			}
		})
	}
}

// metered asks the table for what each write of a writer has consumed.
type metered struct {
	*memtable.DB
	requests, units float64
}

func (m *metered) note(consumed ...types.ConsumedCapacity) {
	m.requests++
	for _, c := range consumed {
		m.units += *c.CapacityUnits
	}
}

func (m *metered) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.DB.UpdateItem(ctx, in, o...)
	if err == nil {
		m.note(*out.ConsumedCapacity)
	}
	return out, err
}

func (m *metered) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.DB.TransactWriteItems(ctx, in, o...)
	if err == nil {
		m.note(out.ConsumedCapacity...)
	}
	return out, err
}

// However many messages there are, what is reckoned of them stays short, and right: with
// all batches full, one fetch for each batch-size messages.
func TestAnyLoadIsReckonedShortly(t *testing.T) {
	for _, mean := range []float64{1, 1.5, 40, 1e4, 999_999, 1e6, 1e10, 1e15} {
		visits, sum, weighted := 0, 0.0, 0.0
		cost.TruncatedPoisson(mean, func(k int, p float64) { visits, sum, weighted = visits+1, sum+p, weighted+p*float64(k) })
		if visits > 30_000 || math.Abs(sum-1) > 1e-6 || math.Abs(weighted/mean-1) > 1e-6 {
			t.Errorf("mean %v: %d values, of probability %v and mean %v", mean, visits, sum, weighted)
		}
	}
	w := workload(simulation.Options{Relays: 3, Buckets: 10_000, PollInterval: time.Hour})
	w.Rate, w.MessageBytes, w.BatchSize = 1e7, 300, 500
	if fetches := w.Load()[1].Requests; math.Abs(fetches/(w.Rate/500)-1) > 0.01 {
		t.Errorf("%v fetches a second of %v messages", fetches, w.Rate)
	}
}

// What our own writer needs is what is reckoned, to the unit.
func TestWriters(t *testing.T) {
	for _, one := range []struct{ bytes, together int }{{200, 1}, {200, 3}, {900, 2}, {5000, 1}, {5000, 10}} {
		db := &metered{DB: memtable.New(memtable.Options{})}
		schema := outbox.Schema{Table: "outbox"}.WithDefaults()
		if err := store.CreateTable(t.Context(), db, schema); err != nil {
			t.Fatal(err)
		}
		writer, err := outbox.NewWriter(db, outbox.Options{Table: "outbox"})
		if err != nil {
			t.Fatal(err)
		}
		const transactions = 20
		for range transactions {
			var messages []outbox.Message
			for range one.together {
				messages = append(messages, outbox.NewMessage("t", []byte("key"), make([]byte, one.bytes-len("t")-len("key"))))
			}
			if err := writer.Commit(t.Context(), &dynamodb.TransactWriteItemsInput{}, messages...); err != nil {
				t.Fatal(err)
			}
		}
		w := workload(simulation.Options{})
		w.Rate, w.PerTransaction, w.MessageBytes = float64(transactions*one.together), float64(one.together), one.bytes
		total := w.Writers().Total()
		if db.requests != total.Requests || db.units != total.Write || total.Read != 0 {
			t.Errorf("%+v: %v requests and %v units, reckoned %+v", one, db.requests, db.units, total)
		}
	}
}

// Whatever is wrong is said, all at once.
func TestValidate(t *testing.T) {
	good := workload(simulation.Options{})
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	bad := cost.Workload{LeaseDuration: 1, LeaseRenewInterval: 2, SampleInterval: -1, Rate: math.NaN(), PerTransaction: 0.5, Notified: 2,
		Shares: []float64{1}, MessageBytes: 500_000}
	err := fmt.Sprint(bad.Validate())
	for _, field := range []string{"Relays 0", "PollInterval 0s", "LeaseDuration 1ns", "SampleInterval -1ns", "BatchSize 0", "MaxBatchBytes 0", "Rate NaN",
		"PerTransaction 0.5", "Notified 2", "Shares: 1, must be one for each of 8", "MessageBytes 500000"} {
		if !strings.Contains(err, field) {
			t.Errorf("it does not name %s: %s", field, err)
		}
	}
}
