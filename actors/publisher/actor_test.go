package publisher_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// liveRuntime is the least that the actor needs of a real process.
type liveRuntime struct {
	system *actor.ActorSystem
	start  time.Time
}

func (r liveRuntime) Now() actors.Instant {
	return actors.Instant{Wall: time.Duration(time.Now().UnixNano()), Mono: time.Since(r.start)}
}

func (liveRuntime) Rand(string) *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func (r liveRuntime) After(to *actor.PID, d time.Duration, m any) func() {
	t := time.AfterFunc(d, func() { r.system.Root.Send(to, m) })
	return func() { t.Stop() }
}

func (liveRuntime) Do(*actor.PID, store.Request, uint64) {
	panic("the publisher asks nothing of the table")
}

func (liveRuntime) Emit(event.Event) {}

func (liveRuntime) Props(p actor.Producer, o ...actor.PropsOption) *actor.Props {
	return actor.PropsFromProducer(p, o...)
}

// promptFactory opens producers that acknowledge everything at once, from a
// goroutine of their own.
type promptFactory struct {
	mu     sync.Mutex
	opened int
	closed int
	burst  bool // Close panics
}

type promptProducer struct {
	factory *promptFactory
	number  int
	sink    publisher.Sink
}

func (f *promptFactory) Open(o publisher.Options, sink publisher.Sink) (publisher.Producer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened++
	go sink(publisher.Reached{Producer: o.Number})
	return &promptProducer{f, o.Number, sink}, nil
}

func (p *promptProducer) Produce(_ publisher.Record, t publisher.Token) error {
	go p.sink(publisher.Reported{Producer: p.number, Reports: []publisher.Report{{Token: t}}})
	return nil
}

func (p *promptProducer) Purge() {}

func (p *promptProducer) Describe(topic string) {
	go p.sink(publisher.Described{Producer: p.number, Topic: topic, Partitions: 3})
}

func (p *promptProducer) Close() {
	p.factory.mu.Lock()
	defer p.factory.mu.Unlock()
	p.factory.closed++
	if p.factory.burst {
		panic("the client is broken")
	}
}

// spawn starts a publisher and an actor that passes on what it is sent.
func spawn(t *testing.T, f *promptFactory) (system *actor.ActorSystem, pub, bucket *actor.PID, inbox chan any) {
	system = actor.NewActorSystem()
	t.Cleanup(system.Shutdown)
	r := liveRuntime{system, time.Now()}
	inbox = make(chan any, 100)
	bucket = system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.PID:
			ctx.Watch(m)
		case publisher.Published, publisher.Connected, *actor.Terminated:
			inbox <- m
		}
	}))
	pub = system.Root.Spawn(r.Props(publisher.New(publisher.Config{Factory: f, Listener: bucket}, r),
		actor.WithSupervisor(actors.StopOnPanic())))
	system.Root.Send(bucket, pub)
	return system, pub, bucket, inbox
}

// The actor publishes: a coordinator hears that a broker is there before any
// message is, and a bucket gets its answer.
func TestActorAnswersABatch(t *testing.T) {
	f := &promptFactory{}
	system, pub, bucket, inbox := spawn(t, f)
	if m := <-inbox; m != (publisher.Connected{}) {
		t.Fatalf("first came %#v", m)
	}
	var rows []outbox.Row
	for i := range 50 {
		rows = append(rows, outbox.Row{Sequence: int64(i + 1), Message: outbox.NewMessage("orders", []byte{byte(i)}, nil)})
	}
	later := time.Duration(time.Now().Add(time.Hour).UnixNano())
	system.Root.Send(pub, publisher.Publish{Bucket: 3, Batch: 9, Rows: rows, ReplyTo: bucket,
		NotAfter: actors.Instant{Wall: later, Mono: time.Hour}})
	answer := (<-inbox).(publisher.Published)
	if answer.Bucket != 3 || answer.Batch != 9 || len(answer.Results) != 50 ||
		slices.ContainsFunc(answer.Results, func(r publisher.Result) bool { return r.Outcome != publisher.Acknowledged }) {
		t.Errorf("the answer is %+v", answer)
	}
	stopped(t, system, pub, inbox)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opened != f.closed {
		t.Errorf("%d producers were opened, %d closed", f.opened, f.closed)
	}
}

// A client that panics while it is closed must not leave an actor that neither
// lives nor dies: its watchers hear of its end.
func TestActorEndsThoughAClientPanics(t *testing.T) {
	system, pub, _, inbox := spawn(t, &promptFactory{burst: true})
	<-inbox
	stopped(t, system, pub, inbox)
}

func stopped(t *testing.T, system *actor.ActorSystem, pub *actor.PID, inbox chan any) {
	t.Helper()
	system.Root.Stop(pub)
	if m, ok := (<-inbox).(*actor.Terminated); !ok || !m.Who.Equal(pub) {
		t.Errorf("after the stop came %v", m)
	}
}
