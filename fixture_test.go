package relay_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	relay "github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

var schema = outbox.Schema{Table: "orders"}.WithDefaults()

// newTable is an empty table.
func newTable(t testing.TB) *memtable.DB {
	t.Helper()
	db := memtable.New(memtable.Options{})
	if err := store.CreateTable(context.Background(), db, schema); err != nil {
		t.Fatal(err)
	}
	return db
}

// config is a relay's on a table, with a broker.
func config(db store.API, b *broker) relay.Config {
	return relay.Config{Table: schema.Table, DynamoDB: db, Coordination: db, Producers: b}
}

// missingTopic is one that the broker does not have.
const missingTopic = "nowhere"

// broker takes every record, and acknowledges it unless it is told to hold its
// answers back. It is a publisher.Factory.
type broker struct {
	appended chan publisher.Record

	mu    sync.Mutex
	holds bool     // guarded by mu
	held  []func() // guarded by mu
	panic int      // how many calls of Produce still panic; guarded by mu
	ids   []string // transactional ids of the producers that were opened; guarded by mu
}

func newBroker() *broker { return &broker{appended: make(chan publisher.Record, 10_000)} }

func (b *broker) Open(o publisher.Options, sink publisher.Sink) (publisher.Producer, error) {
	sink(publisher.Reached{Producer: o.Number})
	if o.TransactionalID == "" {
		return producer{b, o.Number, sink}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids = append(b.ids, o.TransactionalID)
	return transactional{producer{b, o.Number, sink}}, nil
}

// transactional is a producer whose calls are done at once.
type transactional struct{ producer }

func (p transactional) Begin() error             { return nil }
func (p transactional) Initialize(time.Duration) { p.done(publisher.Initialize) }
func (p transactional) Commit(time.Duration)     { p.done(publisher.Commit) }
func (p transactional) Abort(time.Duration)      { p.done(publisher.Abort) }

func (p transactional) done(call publisher.Call) {
	p.sink(publisher.Concluded{Producer: p.number, Call: call})
}

// hold keeps acknowledgements back from now on; release hands them out, and those
// that follow at once.
func (b *broker) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds = true
}

func (b *broker) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds = false
	for _, acknowledge := range b.held {
		acknowledge()
	}
	b.held = nil
}

type producer struct {
	broker *broker
	number int
	sink   publisher.Sink
}

func (p producer) Produce(r publisher.Record, token publisher.Token) error {
	b := p.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.panic > 0 {
		b.panic--
		panic("produce")
	}
	acknowledge := func() {
		p.sink(publisher.Reported{Producer: p.number, Reports: []publisher.Report{{Token: token}}})
	}
	b.appended <- r
	if b.holds {
		b.held = append(b.held, acknowledge)
	} else {
		acknowledge()
	}
	return nil
}

func (p producer) Describe(topic string) {
	described := publisher.Described{Producer: p.number, Topic: topic, Partitions: 4}
	if topic == missingTopic {
		described = publisher.Described{Producer: p.number, Topic: topic, Fault: &publisher.Fault{
			Class: publisher.Retriable, Code: publisher.CodeUnknownTopic, Text: "there is no such topic",
		}}
	}
	p.sink(described)
}

func (p producer) Purge() {}
func (p producer) Close() {}

// running is a relay that runs.
type running struct {
	*relay.Relay
	t      *testing.T
	cancel context.CancelFunc
	ended  chan error
}

// run starts a relay; the test stops it, or waits for its end.
func run(t *testing.T, cfg relay.Config) *running {
	t.Helper()
	r, err := relay.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &running{r, t, cancel, make(chan error, 1)}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		x.ended <- r.Run(ctx)
	}()
	t.Cleanup(func() { // for a test that has failed before it stopped the relay
		cancel()
		<-gone
	})
	return x
}

// stop asks it to drain, and waits for its end, which must be a clean one.
func (r *running) stop() {
	r.t.Helper()
	r.cancel()
	if err := receive(r.t, r.ended); err != nil {
		r.t.Errorf("Run ended with %v", err)
	}
}

// endsWith waits for an end that was not asked for.
func (r *running) endsWith(want error) error {
	r.t.Helper()
	defer r.cancel()
	err := receive(r.t, r.ended)
	if !errors.Is(err, want) {
		r.t.Errorf("Run ended with %v, want %v", err, want)
	}
	return err
}

// observed is an observer that hands out the events of one type.
func observed[E event.Event]() (chan E, event.Observer) {
	events := make(chan E, 10_000)
	return events, event.ObserverFunc(func(e event.Envelope) {
		if wanted, ok := e.Event.(E); ok {
			events <- wanted
		}
	})
}

// enqueue writes one message for each key, one after another.
func enqueue(t *testing.T, db *memtable.DB, notify func(...int), keys ...string) []outbox.Message {
	t.Helper()
	w, err := outbox.NewWriter(db, outbox.Options{Table: schema.Table, Notify: notify})
	if err != nil {
		t.Fatal(err)
	}
	var messages []outbox.Message
	for _, key := range keys {
		m := outbox.NewMessage("orders", []byte(key), []byte("v"))
		if err := w.Enqueue(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	return messages
}

// ids are the message ids of records, by the header that carries them.
func ids(records []publisher.Record) []string {
	var all []string
	for _, r := range records {
		last := r.Headers[len(r.Headers)-1]
		if last.Key != relay.DefaultMessageIDHeader {
			return []string{"the last header is " + last.Key}
		}
		all = append(all, string(last.Value))
	}
	return all
}

// take waits for n records.
func (b *broker) take(t *testing.T, n int) []publisher.Record {
	t.Helper()
	records := make([]publisher.Record, n)
	for i := range records {
		records[i] = receive(t, b.appended)
	}
	return records
}

// receive waits for a word, and not for ever: in virtual time two hours are soon
// over.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case word := <-from:
		return word
	case <-time.After(2 * time.Hour):
		t.Fatal("nothing has come for two hours")
		panic("not reached")
	}
}

// raw is what a scan of the table shows: rows, owners by bucket, and which relays
// are stamped as stopped.
type raw struct {
	rows    int
	owners  map[string]string
	stopped map[string]bool
	mode    string // that the relay records say
}

func scan(db *memtable.DB) raw {
	r := raw{owners: map[string]string{}, stopped: map[string]bool{}}
	for _, item := range db.Items(schema.Table) {
		pk, sk := item["PK"].(*types.AttributeValueMemberS).Value, item["SK"].(*types.AttributeValueMemberS).Value
		switch {
		case strings.HasPrefix(pk, "OUTBOX#MESSAGES#"):
			r.rows++
		case strings.HasPrefix(sk, "LEASE#"):
			if owner, owned := item["Owner"].(*types.AttributeValueMemberS); owned {
				r.owners[sk] = owner.Value
			}
		case strings.HasPrefix(sk, "RELAY#"):
			_, r.stopped[strings.TrimPrefix(sk, "RELAY#")] = item["StoppedAtUtc"]
			if mode, says := item[outbox.AttrMode].(*types.AttributeValueMemberS); says {
				r.mode = mode.Value
			}
		}
	}
	return r
}

// wantHandedBack demands that the relays are stamped as stopped and own nothing.
func wantHandedBack(t *testing.T, db *memtable.DB, relays ...string) {
	t.Helper()
	r := scan(db)
	if len(r.owners) > 0 || !slices.Equal(slices.Sorted(maps.Keys(r.stopped)), relays) || slices.Contains(slices.Collect(maps.Values(r.stopped)), false) {
		t.Errorf("the relays %v, by whether they are stopped; leases of %v", r.stopped, r.owners)
	}
}

// inBubble runs a test in virtual time. Its end checks that no goroutine is left,
// but for one of protoactor's that ends by itself, a second after a dead letter.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(2 * time.Second) })
		test(t)
	})
}
