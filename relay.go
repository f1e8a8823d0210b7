package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/actors/coordinator"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
)

// Errors with which Run ends.
var (
	// ErrBucketCount: a message is stamped with another bucket count. Nothing of
	// its bucket was deleted. Drain the table with the old count, then change it
	// for all writers and relays.
	ErrBucketCount = coordinator.ErrBucketCount
	// ErrTable: at the start, the table did not exist, had other key attributes,
	// or refused our credentials. It wraps what the store says.
	ErrTable = coordinator.ErrTable
	// ErrDeadLetterTopic: at the start, the dead-letter topic did not exist. Create it.
	ErrDeadLetterTopic = coordinator.ErrDeadLetterTopic
	// ErrReplaced: another process runs under our RelayID. Give each its own.
	ErrReplaced = coordinator.ErrReplaced
	// ErrBroken: the coordinator died of a broken invariant. Leases lapse; start
	// the process again, and report it.
	ErrBroken = errors.New("relay broke")
	// ErrStarted: Run was called before. Make a new Relay.
	ErrStarted = errors.New("relay was run before")
)

// coordinatorName names the coordinator's actor, also when it failed.
const coordinatorName = "coordinator"

// stopGrace is what Run waits beyond the shutdown timeout for actors to end.
const stopGrace = 2 * time.Second

// Relay is one relay. It is safe for concurrent use.
type Relay struct {
	cfg         Config
	newID       func(*rand.Rand) string // nil: the id was configured
	status      *status
	started     atomic.Bool
	coordinator atomic.Pointer[handle]
}

// handle reaches the running coordinator.
type handle struct {
	system *actor.ActorSystem
	pid    *actor.PID
}

// New makes a relay, or returns all faults of the configuration, joined. Nothing
// is sent until Run.
func New(cfg Config) (*Relay, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	r := &Relay{cfg: cfg}
	if cfg.RelayID == "" {
		r.newID = newRelayID
		r.cfg.RelayID = newRelayID(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	}
	r.status = newStatus(r.cfg)
	return r, nil
}

// newRelayID is the host's name and a random part.
func newRelayID(r *rand.Rand) string {
	host, err := os.Hostname()
	if err != nil || !validRelayID(host) {
		host = "relay"
	}
	return fmt.Sprintf("%s-%08x", host[:min(len(host), 100)], r.Uint32())
}

// Run relays messages until ctx is cancelled, then drains for ShutdownTimeout at
// most and returns nil. It returns early with one of this package's errors when
// the relay cannot go on. It can be called once.
func (r *Relay) Run(ctx context.Context) error {
	if r.started.Swap(true) {
		return ErrStarted
	}
	observers := append([]event.Observer{r.status}, r.cfg.Observers...)
	sampler := newSampler(r.cfg)
	if r.cfg.MetricsInterval > 0 {
		observers = append(observers, sampler)
	}
	runtime := newLive(r.cfg, r.cfg.RelayID, observers)
	defer runtime.close()
	if r.cfg.MetricsInterval > 0 {
		runtime.requests.Go(func() { sampler.run(runtime.ctx, runtime) })
	}

	root := &root{
		cfg:     r.coordinatorConfig(),
		runtime: runtime,
		spawned: make(chan *actor.PID, 1),
		ended:   make(chan error, 1),
		gone:    make(chan struct{}),
	}
	root.cfg.Ended = root.end
	runtime.system.Root.Spawn(runtime.Props(func() actor.Actor { return root }, actor.WithSupervisor(root.strategy())))
	r.coordinator.Store(&handle{system: runtime.system, pid: <-root.spawned})
	defer r.coordinator.Store(nil)

	err := r.untilEnded(ctx, root)
	select {
	case <-root.gone: // the children have ended too
	case <-time.After(stopGrace):
	}
	return err
}

// untilEnded waits for the coordinator, and asks it to stop when ctx ends.
func (r *Relay) untilEnded(ctx context.Context, root *root) error {
	select {
	case err := <-root.ended:
		return err
	case <-ctx.Done():
	}
	r.send(coordinator.Stop{})
	select {
	case err := <-root.ended:
		return err
	case <-time.After(r.cfg.ShutdownTimeout + stopGrace):
		return fmt.Errorf("%w: it did not stop within %v", ErrBroken, r.cfg.ShutdownTimeout+stopGrace)
	}
}

func (r *Relay) coordinatorConfig() coordinator.Config {
	c := r.cfg
	return coordinator.Config{
		Relay:              c.RelayID,
		NewID:              r.newID,
		Mode:               string(c.Mode),
		BucketCount:        c.BucketCount,
		LeaseDuration:      c.LeaseDuration,
		LeaseRenewInterval: c.LeaseRenewInterval,
		ShutdownTimeout:    c.ShutdownTimeout,
		MaxConcurrency:     c.MaxConcurrency,
		Bucket: bucket.Config{
			BatchSize:          c.BatchSize,
			MaxBatchBytes:      c.MaxBatchBytes,
			PollInterval:       c.PollInterval,
			ErrorBackoff:       c.ErrorBackoff,
			Poison:             bucket.Poison(c.Poison),
			PoisonAfter:        c.PoisonAfter,
			DeadLetterTopic:    c.DeadLetterTopic,
			LeaseDuration:      c.LeaseDuration,
			LeaseRenewInterval: c.LeaseRenewInterval,
			MaxClockSkew:       c.MaxClockSkew,
			Fenced:             c.Mode == ModeFenced,
			TraceLinks:         c.TraceLinks,
		},
		Publisher: publisher.Config{
			Factory:         c.Producers,
			Buckets:         c.BucketCount,
			MessageIDHeader: c.MessageIDHeader,
			PositionHeaders: c.PositionHeaders,
			DeadLetterTopic: c.letterTopic(),
			Fencing:         c.fencing(),
		},
	}
}

// fencing are the publisher's settings of fenced mode; nil in ordered mode.
func (c Config) fencing() *publisher.Fencing {
	if c.Mode != ModeFenced {
		return nil
	}
	return &publisher.Fencing{
		TransactionalIDPrefix: c.TransactionalIDPrefix,
		LeaseValidity:         c.LeaseDuration - c.MaxClockSkew,
		LeaseRenewInterval:    c.LeaseRenewInterval,
	}
}

// Notify says that messages were committed to these buckets, so that the ones
// that this relay owns are looked at now instead of at the next poll. It never
// blocks; buckets of other relays are ignored. It fits outbox.Options.Notify.
func (r *Relay) Notify(buckets ...int) {
	r.send(coordinator.Notify{Buckets: slices.Clone(buckets)})
}

// Status is what the relay is doing now.
func (r *Relay) Status() Status { return r.status.snapshot() }

func (r *Relay) send(message any) {
	if h := r.coordinator.Load(); h != nil {
		h.system.Root.Send(h.pid, message)
	}
}

// root is the actor above the coordinator: it tells Run of its end, however it
// came.
type root struct {
	cfg     coordinator.Config
	runtime *live
	spawned chan *actor.PID
	ended   chan error
	gone    chan struct{}
}

// Receive implements actor.Actor.
func (r *root) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		props := r.runtime.Props(coordinator.New(r.cfg, r.runtime), actor.WithSupervisor(actors.StopOnPanic()))
		pid, err := ctx.SpawnNamed(props, coordinatorName)
		if err != nil {
			r.end(fmt.Errorf("%w: %w", ErrBroken, err))
		}
		r.spawned <- pid
	case *actor.Terminated:
		r.end(fmt.Errorf("%w: the coordinator died", ErrBroken))
		close(r.gone)
	}
}

// strategy stops a coordinator that panicked, and says why.
func (r *root) strategy() actor.SupervisorStrategy {
	return actor.NewOneForOneStrategy(0, 0, func(reason any) actor.Directive {
		text := strings.TrimSpace(fmt.Sprint(reason))
		r.runtime.Emit(event.ActorFailed{Actor: coordinatorName, Bucket: -1, Reason: text})
		r.end(fmt.Errorf("%w: %s", ErrBroken, text))
		return actor.StopDirective
	})
}

// end tells Run of the first end.
func (r *root) end(err error) {
	select {
	case r.ended <- err:
	default:
	}
}
