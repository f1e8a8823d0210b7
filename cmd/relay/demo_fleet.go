package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/kafka"
)

// The demo's relays hand buckets over within a second or two.
const (
	demoPoll       = 100 * time.Millisecond
	demoLease      = 3 * time.Second
	demoRenew      = 500 * time.Millisecond
	demoClockSkew  = 200 * time.Millisecond
	demoStopWithin = 10 * time.Second
	demoSample     = 2 * time.Second
)

// fleet is the relays of the demo, each as a service would embed it.
type fleet struct {
	base      relay.Config // without id, producers and observers
	producers *kafka.Factory
	observe   event.ObserverFunc
	failures  chan error // the first failure of a relay that was not told to stop
	// look opens what a relay shows of itself; nil: nothing.
	look func(context.Context) (*outlook, error)

	members []*member
}

// member is one relay of the fleet.
type member struct {
	id      string
	relay   *relay.Relay
	outlook *outlook // nil: it shows nothing
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // how it ended; read only after done
}

func newFleet(base relay.Config, producers *kafka.Factory, observe event.ObserverFunc) *fleet {
	base.PollInterval, base.ErrorBackoff = demoPoll, demoPoll
	base.LeaseDuration, base.LeaseRenewInterval, base.MaxClockSkew = demoLease, demoRenew, demoClockSkew
	base.ShutdownTimeout = demoStopWithin
	return &fleet{base: base, producers: producers, observe: observe, failures: make(chan error, 1)}
}

// start adds a relay and returns when it is ready.
func (f *fleet) start(ctx context.Context) (*member, error) {
	ready := make(chan struct{})
	var once sync.Once
	config := f.base
	config.RelayID = fmt.Sprintf("relay-%d", len(f.members)+1)
	config.Producers = f.producers
	config.Observers = []event.Observer{f.observe, event.ObserverFunc(func(e event.Envelope) {
		if _, isReady := e.Event.(event.RelayReady); isReady {
			once.Do(func() { close(ready) })
		}
	})}
	m := &member{id: config.RelayID, done: make(chan struct{})}
	if f.look != nil {
		var err error
		if m.outlook, err = f.look(ctx); err != nil {
			return nil, err
		}
		config.Observers = append(config.Observers, m.outlook.observers()...)
		config.MetricsInterval, config.TraceLinks = m.outlook.interval(demoSample), m.outlook.traceLinks()
	}
	r, err := relay.New(config)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", config.RelayID, err)
	}
	if m.relay = r; m.outlook != nil {
		m.outlook.show(r, nil)
	}
	running, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	f.members = append(f.members, m)
	go f.run(running, m)
	select {
	case <-ready:
		return m, nil
	case <-m.done:
		return nil, fmt.Errorf("run %s: %w", m.id, m.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fleet) run(ctx context.Context, m *member) {
	defer close(m.done)
	m.err = m.relay.Run(ctx)
	if ctx.Err() == nil {
		select {
		case f.failures <- fmt.Errorf("%s stopped by itself: %w", m.id, m.err):
		default: // the first failure is told
		}
	}
}

// stop tells a relay to drain and waits for its end.
func (m *member) stop() error {
	m.cancel()
	<-m.done
	var errs []error
	if m.outlook != nil {
		errs = append(errs, m.outlook.close())
	}
	if m.err != nil {
		errs = append(errs, fmt.Errorf("stop %s: %w", m.id, m.err))
	}
	return errors.Join(errs...)
}

// stopped tells whether it has ended.
func (m *member) stopped() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// stop ends all relays at once. Stopping again does nothing.
func (f *fleet) stop() error {
	errs := make([]error, len(f.members))
	var stops sync.WaitGroup
	for i, m := range f.members {
		stops.Go(func() { errs[i] = m.stop() })
	}
	stops.Wait()
	f.members = nil
	return errors.Join(errs...)
}

// drained tells when as many rows were removed as were enqueued. It is an
// observer of the relays.
type drained struct {
	removed atomic.Int64
	changed chan struct{} // holds at most one token: something was removed
}

func newDrained() *drained { return &drained{changed: make(chan struct{}, 1)} }

func (d *drained) observe(e event.Envelope) {
	if removed, ok := e.Event.(event.BatchRemoved); ok {
		d.removed.Add(int64(removed.Rows))
		select {
		case d.changed <- struct{}{}:
		default:
		}
	}
}

// errStalled ends a demo in which nothing moves any more.
var errStalled = errors.New("nothing was removed from the outbox for a long time")

// wait returns when total rows were removed, with an error when a relay failed,
// ctx ended, or nothing was removed for patience.
func (d *drained) wait(ctx context.Context, total int, patience time.Duration, failures <-chan error) error {
	stalled := time.NewTimer(patience)
	defer stalled.Stop()
	for d.removed.Load() < int64(total) {
		select {
		case <-d.changed:
			stalled.Reset(patience)
		case <-stalled.C:
			return errStalled
		case err := <-failures:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
