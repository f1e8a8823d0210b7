package telemetry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/bucketbrigade/relay/event"
)

// DefaultMetricsName is the outbox's name in metrics unless another is given.
const DefaultMetricsName = "outbox"

// scope is the instrumentation scope of all instruments.
const scope = "github.com/bucketbrigade/relay"

// Metrics is the event.Observer that counts and measures: docs/metrics.md has
// all instruments. One may observe several relays of a process; gauges are
// their sum then, and outbox.clock.skew the process's.
type Metrics struct {
	name         attribute.KeyValue
	meters       *meters
	registration metric.Registration

	mu      sync.RWMutex
	options map[labels]metric.MeasurementOption // guarded by mu
	held    holdings                            // guarded by mu
	skew    time.Duration                       // guarded by mu
	backlog map[string]event.BacklogSampled     // by the relay that samples; guarded by mu
}

// NewMetrics makes the instruments with a meter of the provider, each with the
// attribute outbox.name; empty: DefaultMetricsName. Give outboxes that share a
// provider different names. An embedding service passes its own provider, such
// as otel.GetMeterProvider(); the command makes one with NewExport. Counters
// stand at zero from then on, for all values of attributes that are known
// beforehand. The error is the provider's.
func NewMetrics(provider metric.MeterProvider, name string) (*Metrics, error) {
	if name == "" {
		name = DefaultMetricsName
	}
	meter := provider.Meter(scope)
	meters, err := newMeters(meter)
	if err != nil {
		return nil, err
	}
	m := &Metrics{
		name:    attribute.String("outbox.name", name),
		meters:  meters,
		options: map[labels]metric.MeasurementOption{},
		held:    holdings{},
		backlog: map[string]event.BacklogSampled{},
	}
	m.registration, err = meter.RegisterCallback(m.collect, meters.observables()...)
	if err != nil {
		return nil, fmt.Errorf("register gauges: %w", err)
	}
	m.zero()
	return m, nil
}

// Close withdraws the gauges from the provider; counters stay as they are. Call
// it when the provider outlives the relays.
func (m *Metrics) Close() error { return m.registration.Unregister() }

// Observe counts and measures one event. It is safe for concurrent use and
// never waits for an export.
func (m *Metrics) Observe(e event.Envelope) {
	switch v := e.Event.(type) {
	case event.RecordAcknowledged:
		m.count(messagesPublished, 1, label("topic", v.Topic))
		m.measure(deliveryLag, max(0, v.Lag.Seconds()), labels{})
	case event.RequestCompleted:
		m.request(v)
	case event.BucketWoken:
		m.count(wakeups, 1, label("cause", v.Cause))
	case event.BatchPublished:
		m.count(batchesPublished, 1, labels{})
		m.measure(batchSize, float64(v.Rows), labels{})
		m.measure(publishDuration, v.Took.Seconds(), labels{})
	case event.BatchFetched:
		m.count(rowsRefetched, v.Refetched, labels{})
	case event.GapProbed:
		m.count(gapsProbed, 1, labels{})
		if v.Filled {
			m.count(gapsFilled, 1, labels{})
		}
	case event.PublishFailed:
		m.count(publishFailures, 1, label("class", v.Class))
	case event.RecordRejected:
		if v.Alone {
			m.count(publishFailures, 1, label("class", "rejected"))
		}
	case event.ProducerRetired:
		m.count(producersRetired, 1, labels{})
	case event.BucketLost:
		m.count(leaseLosses, 1, labels{})
	default:
		m.remember(e)
	}
}

func (m *Metrics) request(v event.RequestCompleted) {
	of := labels{{"request", v.Request}, {"outcome", v.Outcome}}
	m.count(requests, 1, of)
	m.measure(requestDuration, v.Took.Seconds(), of)
	m.meters.units.Add(context.Background(), v.Capacity, m.with(of))
}

// remember keeps what gauges are asked for.
func (m *Metrics) remember(e event.Envelope) {
	switch v := e.Event.(type) {
	case event.StateChanged, event.RelayStopped, event.RelayReplaced, event.RelayRenamed, event.ActorFailed:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.held.note(e)
		if m.held[e.Relay] == nil { // it has ended
			delete(m.backlog, e.Relay)
		}
	case event.BacklogSampled:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.backlog[e.Relay] = v
	case event.BacklogUnknown:
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.backlog, e.Relay)
	case event.RoundCompleted:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.skew = v.Ahead
	case event.ClockSkewed:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.skew = v.Ahead
	}
}

// collect answers for the gauges.
func (m *Metrics) collect(_ context.Context, o metric.Observer) error {
	m.mu.RLock()
	byState, skew, backlogs := m.held.byState(), m.skew, slices.Collect(maps.Values(m.backlog))
	m.mu.RUnlock()
	m.collectBacklog(o, backlogs)
	owned := int64(0)
	for _, state := range heldStates() {
		owned += byState[state]
		o.ObserveInt64(m.meters.gauges[bucketsByState], byState[state], m.with(label("state", string(state))))
	}
	o.ObserveInt64(m.meters.gauges[bucketsOwned], owned, m.with(labels{}))
	o.ObserveFloat64(m.meters.seconds[clockSkew], skew.Seconds(), m.with(labels{}))
	return nil
}

// collectBacklog answers for what waits, if it is known here. Should two relays
// sample for a moment, while bucket 0 moves, the larger figures count.
func (m *Metrics) collectBacklog(o metric.Observer, backlogs []event.BacklogSampled) {
	if len(backlogs) == 0 {
		return
	}
	var messages, rows, keys int
	var oldest time.Duration
	for _, b := range backlogs {
		messages, rows, keys = max(messages, b.Messages), max(rows, b.ParkedRows), max(keys, b.ParkedKeys)
		oldest = max(oldest, b.Oldest)
	}
	for name, n := range map[string]int{pendingMessages: messages, parkedRows: rows, parkedKeys: keys} {
		o.ObserveInt64(m.meters.gauges[name], int64(n), m.with(labels{}))
	}
	o.ObserveFloat64(m.meters.seconds[pendingOldestAge], oldest.Seconds(), m.with(labels{}))
}

func (m *Metrics) count(name string, n int, of labels) {
	m.meters.counters[name].Add(context.Background(), int64(n), m.with(of))
}

func (m *Metrics) measure(name string, value float64, of labels) {
	m.meters.histograms[name].Record(context.Background(), value, m.with(of))
}
