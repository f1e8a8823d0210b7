package publisher_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/simulation"
)

// world runs one publisher against the model broker in virtual time.
type world struct {
	now    time.Duration
	number uint64
	queue  timeline
	random *rand.Rand
	broker *simulation.Broker
	desk   *publisher.Desk
	events []event.Event
	// answered gets each Published, by bucket.
	answered func(publisher.Published)
	// given gets each FenceTaken, by bucket.
	given    func(publisher.FenceTaken)
	fenced   bool
	wrong    []string
	appended map[uuid.UUID]bool
	seen     int             // records of the log that are in appended
	renewed  map[string]bool // topics that were deleted and created again
	grew     bool            // a topic has gained partitions
	readOnly bool            // the topic with a small limit may be described, not written
}

type happening struct {
	at     time.Duration
	number uint64
	do     func()
}

type timeline []happening

func (q timeline) Len() int { return len(q) }
func (q timeline) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].number < q[j].number
}
func (q timeline) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *timeline) Push(x any)   { *q = append(*q, x.(happening)) }
func (q *timeline) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// Now and At are the clock of the model broker.
func (w *world) Now() time.Duration { return w.now }

func (w *world) At(d time.Duration, do func()) {
	w.number++
	heap.Push(&w.queue, happening{w.now + d, w.number, do})
}

// run lets things happen until nothing is left, done says so, or the time is up.
func (w *world) run(until time.Duration, done func() bool) {
	for len(w.queue) > 0 && w.queue[0].at <= until && len(w.wrong) == 0 && !done() {
		next := heap.Pop(&w.queue).(happening)
		w.now = next.at
		next.do()
	}
	if !done() {
		w.now = max(w.now, until)
	}
}

func never() bool { return false }

const wallStart = 1_700_000_000 * time.Second

func (w *world) instant() actors.Instant {
	return actors.Instant{Wall: wallStart + w.now, Mono: w.now}
}

func (w *world) fault(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf("at %v: ", w.now)+fmt.Sprintf(format, args...))
}

// newWorld makes a world with a broker; open starts the publisher in it.
func newWorld(seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 7)), appended: map[uuid.UUID]bool{}, renewed: map[string]bool{}, answered: func(publisher.Published) {}}
	w.broker = simulation.NewBroker(simulation.BrokerConfig{Clock: w, Rand: w.random})
	return w
}

func (w *world) open(cfg publisher.Config) {
	if cfg.Factory == nil {
		cfg.Factory = w.broker.Factory("relay-a")
	}
	w.desk = publisher.NewDesk(cfg, w.random, publisher.Ports{
		Now:     w.instant,
		After:   func(d time.Duration, m any) { w.At(d, func() { w.desk.Handle(m) }) },
		Send:    w.deliver,
		Observe: func(e event.Event) { w.events = append(w.events, e) },
		Broken:  func(err error) { w.fault("invariant: %v", err) },
	})
	// A mailbox: what the producers say is handled a little later, in order; in some
	// worlds rather late.
	arrival, slowness := time.Duration(0), []time.Duration{200 * time.Microsecond, 20 * time.Millisecond}[w.random.IntN(2)]
	w.desk.SinkTo(func(m any) {
		arrival = max(arrival, w.now+time.Duration(w.random.Int64N(int64(slowness))))
		w.At(arrival-w.now, func() { w.desk.Handle(m) })
	})
	w.desk.Start()
}

func (w *world) deliver(_ *actor.PID, m any) {
	switch m := m.(type) {
	case publisher.Published:
		w.At(0, func() { w.answered(m) })
	case publisher.FenceTaken:
		w.At(0, func() { w.given(m) })
	}
}

// isAppended tells whether the message is in the log by now, or will be when an
// earlier transaction on its partition has ended.
func (w *world) isAppended(id uuid.UUID) bool {
	log := w.broker.Log()
	for ; w.seen < len(log); w.seen++ {
		w.appended[idOf(log[w.seen])] = true
	}
	return w.appended[id] || w.broker.Unseen(func(r simulation.BrokerRecord) bool { return idOf(r) == id })
}

// idOf is the message id of a record.
func idOf(r simulation.BrokerRecord) uuid.UUID {
	headers := r.Record.Headers
	return uuid.MustParse(string(headers[len(headers)-1].Value))
}

// message makes a message whose id depends on nothing but the world's source.
func (w *world) message(topic string, key, value []byte) outbox.Message {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(w.random.UintN(256))
	}
	return outbox.Message{ID: id, Topic: topic, Key: key, Value: value, CreatedAt: w.instant().Time()}
}

var listener = actor.NewPID("test", "bucket")
