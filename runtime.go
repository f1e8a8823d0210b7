package relay

import (
	"context"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

const (
	// messageRequests is how many requests for messages are under way at once.
	messageRequests = 64
	// messageTimeout bounds one request for messages, the SDK's retries included.
	messageTimeout = 10 * time.Second
)

// live is the actors' runtime in the real world: the process's clocks, one
// goroutine a request, protoactor's own dispatcher and mailboxes.
type live struct {
	relay     atomic.Pointer[string] // our id, which changes with RelayRenamed
	system    *actor.ActorSystem
	client    *store.Client
	observers []event.Observer
	began     time.Time
	seed      uint64

	lanes    [2]chan struct{} // a token for each request under way
	timeouts [2]time.Duration

	ctx      context.Context // ends when the relay has ended
	cancel   context.CancelFunc
	requests sync.WaitGroup

	mu       sync.Mutex
	failures actors.Failures // guarded by mu
}

var _ actors.Runtime = (*live)(nil)

func newLive(cfg Config, id string, observers []event.Observer) *live {
	silent := func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }
	l := &live{
		// protoactor counts dead letters for its log in a goroutine that lasts one
		// interval; its log is silent here, and a relay that has ended leaves none.
		system:    actor.NewActorSystem(actor.WithLoggerFactory(silent), actor.WithDeadLetterThrottleInterval(time.Millisecond)),
		client:    store.NewClient(cfg.schema(), cfg.DynamoDB, cfg.Coordination),
		observers: observers,
		began:     time.Now(),
		seed:      rand.Uint64(),
	}
	shrinkRegistry(l.system)
	l.relay.Store(&id)
	l.lanes[store.Messages] = make(chan struct{}, messageRequests)
	l.lanes[store.Coordination] = make(chan struct{}, cfg.MaxConcurrency)
	l.timeouts[store.Messages] = messageTimeout
	l.timeouts[store.Coordination] = cfg.LeaseRenewInterval / 2
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// shrinkRegistry leaves protoactor's registry of processes one map in place of
// 1,024, each of which has 32 parts: they take 3 MB, a fifth of what a relay at
// work has live, for a few actors a bucket. For a system that has no actors yet.
func shrinkRegistry(system *actor.ActorSystem) {
	small := &actor.SliceMap{LocalPIDs: []cmap.ConcurrentMap{cmap.New()}}
	for _, part := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
		for name, process := range part.Items() {
			small.GetBucket(name).Set(name, process)
		}
	}
	system.ProcessRegistry.LocalPIDs = small
}

// Now implements actors.Runtime.
func (l *live) Now() actors.Instant {
	now := time.Now()
	return actors.Instant{Wall: time.Duration(now.UnixNano()), Mono: now.Sub(l.began)}
}

// Rand implements actors.Runtime.
func (l *live) Rand(name string) *rand.Rand {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	return rand.New(rand.NewPCG(l.seed, hash.Sum64()))
}

// After implements actors.Runtime.
func (l *live) After(to *actor.PID, d time.Duration, msg any) (cancel func()) {
	timer := time.AfterFunc(d, func() { l.system.Root.Send(to, msg) })
	return func() { timer.Stop() }
}

// Do implements actors.Runtime.
func (l *live) Do(to *actor.PID, r store.Request, token uint64) {
	l.requests.Go(func() {
		replied := l.roundTrip(r)
		replied.Token = token
		l.system.Root.Send(to, replied)
	})
}

// roundTrip carries out a request, and says what came of it.
func (l *live) roundTrip(r store.Request) actors.Replied {
	replied := l.send(r)
	if !replied.Sent.IsZero() {
		l.note(replied)
	}
	return replied
}

// send waits for a place in the request's lane and sends it, unless its deadline
// has passed by then.
func (l *live) send(r store.Request) actors.Replied {
	notSent := actors.Replied{Request: r, Reply: store.NotSent(r)}
	lane := r.Lane()
	select {
	case l.lanes[lane] <- struct{}{}:
		defer func() { <-l.lanes[lane] }()
	case <-l.ctx.Done():
		return notSent
	}
	timeout := l.timeouts[lane]
	if deadline := r.Deadline(); !deadline.IsZero() {
		left := l.Now().Until(deadline)
		if left <= 0 {
			return notSent
		}
		timeout = min(timeout, left)
	}
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	sent := l.Now()
	reply := l.client.Do(ctx, r)
	return actors.Replied{Request: r, Reply: reply, Sent: sent, Received: l.Now()}
}

func (l *live) note(replied actors.Replied) {
	r := replied.Request
	l.Emit(event.RequestCompleted{
		Request:  r.RequestName(),
		Bucket:   r.ConcernsBucket(),
		Outcome:  replied.Reply.Class.String(),
		Took:     replied.Received.Mono - replied.Sent.Mono,
		Capacity: replied.Reply.Capacity,
	})
	// Told under the lock: of two requests that end at once, one that has failed and one
	// that shows that the table answers again, the observers hear in the order in which
	// they were noted. Else the failure might be the last word, and nothing would end it.
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.failures.Note(r, replied.Reply) {
		l.Emit(e)
	}
}

// Emit implements actors.Runtime.
func (l *live) Emit(e event.Event) {
	now := time.Now()
	envelope := event.Envelope{Relay: *l.relay.Load(), At: now, Elapsed: now.Sub(l.began), Event: e}
	for _, o := range l.observers {
		o.Observe(envelope)
	}
	if renamed, ok := e.(event.RelayRenamed); ok {
		l.relay.Store(&renamed.Relay)
	}
}

// Props implements actors.Runtime.
func (l *live) Props(p actor.Producer, opts ...actor.PropsOption) *actor.Props {
	return actor.PropsFromProducer(p, opts...)
}

// close ends what is under way and waits for it.
func (l *live) close() {
	l.cancel()
	l.requests.Wait()
	l.system.Shutdown()
}
