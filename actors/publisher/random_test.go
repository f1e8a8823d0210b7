package publisher_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/simulation"
)

// mutant is a bug that is planted to see that the checks find it.
type mutant string

const (
	none         mutant = ""
	noPriming    mutant = "no priming"
	notGapless   mutant = "producers are not gap-less"
	countsAcks   mutant = "acknowledgements are counted, not their prefix"
	passesRefuse mutant = "rows pass one that was refused at once"
)

const (
	randomBuckets  = 4
	randomMaxBytes = 16 << 10
	faultyTime     = 90 * time.Second
	healedTime     = 40 * time.Minute
)

// Whatever the broker does: what is acknowledged is in the log, first deliveries
// are in order per topic and key and per bucket and partition, no innocent row is
// refused, every Publish is answered once, the budget holds; and once the broker
// behaves, everything is delivered or set aside.
func TestOrderIsKeptWhateverTheBrokerDoes(t *testing.T) {
	from, to := seeds(t, 500)
	for seed := from; seed < to; seed++ {
		if wrong := randomRun(seed, none, false).wrong; len(wrong) > 0 {
			t.Fatalf("seed %d: %v\nreplay: PUBLISHER_SEED=%d go test -run %s ./actors/publisher", seed, wrong, seed, t.Name())
		}
	}
}

// The same holds in fenced mode, where others take the fence now and then, commits
// hang and aborts stick.
func TestFencedOrderIsKeptWhateverTheBrokerDoes(t *testing.T) {
	from, to := seeds(t, 200)
	for seed := from; seed < to; seed++ {
		if wrong := randomRun(seed, none, true).wrong; len(wrong) > 0 {
			t.Fatalf("seed %d: %v\nreplay: PUBLISHER_SEED=%d go test -run %s ./actors/publisher", seed, wrong, seed, t.Name())
		}
	}
}

// The checks are worth something only if they find what breaks the promise.
func TestPlantedBugsAreFound(t *testing.T) {
	for _, m := range []mutant{noPriming, notGapless, countsAcks, passesRefuse} {
		t.Run(string(m), func(t *testing.T) {
			const enough = 500
			for seed := range uint64(enough) {
				if wrong := randomRun(seed, m, false).wrong; len(wrong) > 0 {
					t.Logf("found with seed %d: %s", seed, wrong[0])
					return
				}
			}
			t.Errorf("not found with %d seeds", enough)
		})
	}
}

// The same seed is the same run, to the last record and event.
func TestSameSeedIsTheSameRun(t *testing.T) {
	for seed := range uint64(20) {
		fenced := seed%2 == 1
		a, b := randomRun(seed, none, fenced), randomRun(seed, none, fenced)
		if x, y := fmt.Sprint(a.broker.Log(), a.events), fmt.Sprint(b.broker.Log(), b.events); x != y {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

// seeds are the seeds to run: one that the environment names, or the first few.
func seeds(t *testing.T, count uint64) (from, to uint64) {
	if s := os.Getenv("PUBLISHER_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("PUBLISHER_SEED: %v", err)
		}
		return seed, seed + 1
	}
	if s := os.Getenv("PUBLISHER_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("PUBLISHER_SEEDS: %v", err)
		}
		count = n
	}
	return 0, count
}

func randomRun(seed uint64, m mutant, fenced bool) *world {
	w := newWorld(seed)
	w.fenced = fenced
	w.broker.CreateTopic("orders", 3, 0)
	w.broker.CreateTopic("small", 2, 2000)
	w.broker.SetFaults(w.randomFaults())
	cfg := publisher.Config{Factory: plant(w, m), Listener: listener, Buckets: randomBuckets, MaxBytes: randomMaxBytes,
		Producers: 1 + w.random.IntN(2), CarefulProducers: 1 + w.random.IntN(3)}
	if fenced {
		cfg.Fencing = &publisher.Fencing{TransactionalIDPrefix: "outbox", LeaseValidity: tenantLease, LeaseRenewInterval: tenantLease / 2}
		w.rival()
	}
	w.open(cfg)
	tenants := make([]*tenant, randomBuckets)
	batches := new(uint64)
	for i := range tenants {
		tenants[i] = &tenant{w: w, number: i, aside: map[string]bool{}, due: map[uint64]int{}, limit: 1 + w.random.IntN(30), batches: batches, countOnly: m == countsAcks}
	}
	w.answered = func(p publisher.Published) { tenants[p.Bucket].published(p) }
	w.given = func(f publisher.FenceTaken) { tenants[f.Bucket].fenceTaken(f) }
	w.commitAtRandom(tenants)
	w.misbehave()
	w.budgetHolds()
	w.run(faultyTime, never)
	w.heal(tenants)
	w.run(faultyTime+healedTime, func() bool { return drained(tenants) })
	if len(w.wrong) == 0 && !drained(tenants) {
		w.fault("rows are left %v after the broker was healed", healedTime)
	}
	if len(w.wrong) == 0 {
		judge(w, tenants)
	}
	return w
}

func drained(tenants []*tenant) bool {
	for _, b := range tenants {
		if len(b.rows) > 0 || len(b.due) > 0 {
			return false
		}
	}
	return true
}

// commitAtRandom spreads the services' commits over the faulty time.
func (w *world) commitAtRandom(tenants []*tenant) {
	for _, b := range tenants {
		for range 6 + w.random.IntN(6) {
			w.At(time.Duration(w.random.Int64N(int64(faultyTime))), func() {
				for range 1 + w.random.IntN(10) {
					m, guilty := w.randomMessage(b.number)
					b.add(m, guilty)
				}
				b.publish()
			})
		}
	}
}

func (w *world) randomMessage(bucket int) (m outbox.Message, guilty bool) {
	topic := []string{"orders", "orders", "small", "late"}[w.random.IntN(4)]
	if topic == "late" && bucket > 0 {
		topic = "orders" // only one bucket waits for the topic that is missing
	}
	key := fmt.Appendf(nil, "bucket %d key %d", bucket, w.random.IntN(3))
	if w.random.IntN(4) == 0 {
		key = nil
	}
	value := make([]byte, w.random.IntN(300))
	switch w.random.IntN(60) {
	case 0:
		value, guilty = []byte("poison"), true
	case 1:
		value = make([]byte, 5000)
		guilty = topic == "small"
	case 2:
		value = make([]byte, 1000)
		guilty = topic == "small" // its limit may be lowered below that
	case 3:
		value = make([]byte, 1880+w.random.IntN(20)) // fits the small topic, not its pool
		guilty = topic == "small"
	}
	m = w.message(topic, key, value)
	switch w.random.IntN(12) {
	case 0, 1:
		partition := int32(w.random.IntN(2))
		m.Partition = &partition
	case 2:
		if w.random.IntN(4) == 0 {
			partition := int32(1000)
			m.Partition, guilty = &partition, true
		}
	}
	return m, guilty
}

func (w *world) randomFaults() simulation.BrokerFaults {
	often := w.random.IntN(40)
	return simulation.BrokerFaults{
		Reject: func(r publisher.Record) string {
			if w.readOnly && r.Topic == "small" {
				return "TOPIC_AUTHORIZATION_FAILED"
			}
			return poisonous(r)
		},
		Conclude: func(string, publisher.Call) (f simulation.BrokerFault) {
			if w.random.IntN(100) >= often {
				return f
			}
			switch w.random.IntN(4) {
			case 0:
				f.Delay = time.Duration(w.random.Int64N(int64(20 * time.Second)))
			case 1:
				f.LoseRequest = true
			default:
				f.LoseAnswer = true
			}
			return f
		},
		Mute: func(publisher.Token) bool { return w.random.IntN(10) == 0 },
		Request: func(r simulation.BrokerRequest) (f simulation.BrokerFault) {
			f.Forget = r.Idle > 10*time.Minute
			if w.random.IntN(100) >= often {
				return f
			}
			switch w.random.IntN(6) {
			case 0:
				f.Delay = time.Duration(w.random.Int64N(int64(200 * time.Millisecond)))
			case 1:
				f.Delay = time.Duration(w.random.Int64N(int64(time.Minute)))
			case 2:
				f.LoseRequest = true
			case 3:
				f.LoseAnswer = true
			case 4:
				f.FailOver = true
			}
			return f
		},
	}
}

func poisonous(r publisher.Record) string {
	if string(r.Value) == "poison" {
		return "INVALID_RECORD"
	}
	return ""
}

// misbehave plans what happens to the whole cluster.
func (w *world) misbehave() {
	within := func() time.Duration { return time.Duration(w.random.Int64N(int64(faultyTime))) }
	if w.random.IntN(2) == 0 {
		at := within()
		w.At(at, w.broker.Leave)
		w.At(at+time.Duration(w.random.Int64N(int64(time.Minute))), w.broker.Return)
	}
	for range w.random.IntN(4) {
		limit := 900 + 600*w.random.IntN(3)
		w.At(within(), func() { w.broker.LimitTopic("small", limit) })
	}
	if w.random.IntN(4) == 0 {
		at := within()
		w.At(at, func() { w.readOnly = true })
		w.At(at+20*time.Second, func() { w.readOnly = false })
	}
	if w.random.IntN(4) == 0 {
		at := within()
		w.At(at, func() { w.broker.DeleteTopic("orders") })
		w.At(at+10*time.Second, func() {
			w.renewed["orders"] = true
			w.broker.CreateTopic("orders", 2+w.random.IntN(3), 0)
		})
	}
	if w.random.IntN(3) == 0 {
		at := within()
		w.At(at, func() { w.broker.ForbidTopic("small") })
		w.At(at+20*time.Second, func() { w.broker.AllowTopic("small") })
	}
	if w.random.IntN(3) == 0 {
		w.At(within(), func() {
			w.grew = true
			w.broker.AddPartitions("orders", 2)
		})
	}
}

// budgetHolds looks at the budget every now and then.
func (w *world) budgetHolds() {
	const aboveShare = randomBuckets * 5500 // one row for each bucket
	if n := w.desk.OutstandingBytes(); n > randomMaxBytes+aboveShare {
		w.fault("%d bytes are outstanding", n)
	}
	if w.now < faultyTime {
		w.At(100*time.Millisecond, w.budgetHolds)
	}
}

// heal ends all faults but the records' own.
func (w *world) heal(tenants []*tenant) {
	w.broker.SetFaults(simulation.BrokerFaults{Reject: poisonous})
	w.broker.Return()
	w.broker.AllowTopic("small")
	w.broker.CreateTopic("late", 2, 0)
	for _, b := range tenants {
		b.quiet = true
		w.At(time.Second, b.publish)
	}
}

// plant is the broker's factory with a bug before it.
func plant(w *world, m mutant) publisher.Factory {
	honest := w.broker.Factory("relay-a")
	return factoryFunc(func(o publisher.Options, sink publisher.Sink) (publisher.Producer, error) {
		switch m {
		case noPriming:
			if !o.Careful {
				w.desk.SkipPriming(o.Number, "orders", 5)
				w.desk.SkipPriming(o.Number, "small", 2)
			}
		case notGapless:
			o.Careful = true
		case passesRefuse, countsAcks, none:
		}
		if w.now < faultyTime && w.random.IntN(8) == 0 {
			return nil, errors.New("no more threads")
		}
		p, err := honest.Open(o, w.forgetful(sink))
		h := &hurried{Producer: p, w: w, passes: m == passesRefuse}
		if t, transactional := p.(publisher.Transactional); transactional {
			return &hurriedTransactional{Transactional: t, hurried: h}, err
		}
		return h, err
	})
}

// forgetful is a sink that is not always told a topic's limit.
func (w *world) forgetful(sink publisher.Sink) publisher.Sink {
	return func(message any) {
		if d, described := message.(publisher.Described); described && w.now < faultyTime && w.random.IntN(4) == 0 {
			d.MaxMessageBytes = 0
			message = d
		}
		sink(message)
	}
}

type factoryFunc func(publisher.Options, publisher.Sink) (publisher.Producer, error)

func (f factoryFunc) Open(o publisher.Options, s publisher.Sink) (publisher.Producer, error) {
	return f(o, s)
}

// hurried is a producer that refuses a record now and then. As a planted bug it
// takes it and hands it on behind those that came later.
type hurried struct {
	publisher.Producer
	w      *world
	passes bool
}

func (h *hurried) Produce(r publisher.Record, t publisher.Token) error {
	if h.w.now < faultyTime && h.w.random.IntN(50) == 0 {
		if h.passes {
			h.w.At(time.Millisecond, func() { _ = h.Producer.Produce(r, t) })
			return nil
		}
		code := publisher.CodeQueueFull
		if h.w.random.IntN(4) == 0 {
			code = "_UNKNOWN_TOPIC"
		}
		return &publisher.Fault{Class: publisher.Retriable, Code: code, Text: "not now"}
	}
	return h.Producer.Produce(r, t)
}

// hurriedTransactional is the same with transactions.
type hurriedTransactional struct {
	publisher.Transactional
	hurried *hurried
}

func (h *hurriedTransactional) Produce(r publisher.Record, t publisher.Token) error {
	return h.hurried.Produce(r, t)
}

// rival takes a bucket's fence now and then, as a zombie does that wakes between its
// look at the clock and its request.
func (w *world) rival() {
	factory := w.broker.Factory("zombie")
	for range w.random.IntN(6) {
		w.At(time.Duration(w.random.Int64N(int64(faultyTime))), func() {
			id := fmt.Sprint("outbox-", w.random.IntN(randomBuckets))
			p, err := factory.Open(publisher.Options{Number: 1, TransactionalID: id}, func(any) {})
			if err != nil {
				w.fault("the rival: %v", err)
				return
			}
			p.(publisher.Transactional).Initialize(10 * time.Second)
			w.At(10*time.Second, p.Close)
		})
	}
}
