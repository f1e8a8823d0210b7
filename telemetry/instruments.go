package telemetry

import (
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// The kinds of instruments.
const (
	counter   = "counter"
	histogram = "histogram"
	gauge     = "gauge"
)

// Instrument describes one OpenTelemetry instrument of Metrics. All have the
// attribute outbox.name beside their own.
type Instrument struct {
	Name string
	Kind string // "counter", "histogram", "gauge"
	Unit string // a UCUM code: "s", or what is counted, in braces
	Help string
	// Attributes are its own, whose values are few, but for topics: they are as
	// many as the outbox has.
	Attributes []string
	// Bounds are the upper bounds of a histogram's buckets.
	Bounds []float64
}

// Names of the instruments, a contract with dashboards and alerts.
const (
	messagesPublished = "outbox.messages.published"
	publishFailures   = "outbox.publish.failures"
	batchesPublished  = "outbox.batches.published"
	batchSize         = "outbox.batch.size"
	publishDuration   = "outbox.publish.duration"
	deliveryLag       = "outbox.delivery.lag"
	pendingMessages   = "outbox.pending.messages"
	pendingOldestAge  = "outbox.pending.oldest.age"
	parkedRows        = "outbox.parked.rows"
	parkedKeys        = "outbox.parked.keys"
	bucketsOwned      = "outbox.buckets.owned"
	bucketsByState    = "outbox.buckets"
	leaseLosses       = "outbox.lease.losses"
	requests          = "outbox.requests"
	requestDuration   = "outbox.request.duration"
	capacityUnits     = "outbox.capacity.units"
	gapsProbed        = "outbox.gaps.probed"
	gapsFilled        = "outbox.gaps.filled"
	rowsRefetched     = "outbox.rows.refetched"
	wakeups           = "outbox.wakeups"
	clockSkew         = "outbox.clock.skew"
	producersRetired  = "outbox.producers.retired"
)

// Instruments lists what Metrics has, in the order of docs/metrics.md: for
// dashboards and alerts, to be checked against.
func Instruments() []Instrument {
	return []Instrument{
		{Name: messagesPublished, Kind: counter, Unit: "{message}", Attributes: []string{"topic"},
			Help: "Messages that the broker has acknowledged."},
		{Name: publishFailures, Kind: counter, Unit: "{failure}", Attributes: []string{"class"},
			Help: "Batches of which rows came back without an acknowledgement, by the class of the first fault; with rejected, records refused for their own sake."},
		{Name: batchesPublished, Kind: counter, Unit: "{batch}",
			Help: "Batches of which each row has an outcome."},
		{Name: batchSize, Kind: histogram, Unit: "{message}",
			Help:   "Rows of a published batch.",
			Bounds: []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500}},
		{Name: publishDuration, Kind: histogram, Unit: "s",
			Help:   "From the submission of a batch to the outcome of its last row.",
			Bounds: []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120}},
		{Name: deliveryLag, Kind: histogram, Unit: "s",
			Help:   "From a message's creation to its acknowledgement, by the clocks of writer and relay.",
			Bounds: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400}},
		{Name: pendingMessages, Kind: gauge, Unit: "{message}",
			Help: "Messages that wait in all buckets, of each at most pending-count-limit. Only the owner of bucket 0 has it."},
		{Name: pendingOldestAge, Kind: gauge, Unit: "s",
			Help: "Age of the oldest of the buckets' first messages, 0 without one. Only the owner of bucket 0 has it."},
		{Name: parkedRows, Kind: gauge, Unit: "{row}",
			Help: "Rows that are set aside, of each bucket at most pending-count-limit. Only the owner of bucket 0 has it."},
		{Name: parkedKeys, Kind: gauge, Unit: "{key}",
			Help: "Keys that are set aside, of each bucket at most pending-count-limit. Only the owner of bucket 0 has it."},
		{Name: bucketsOwned, Kind: gauge, Unit: "{bucket}",
			Help: "Buckets whose lease this relay holds."},
		{Name: bucketsByState, Kind: gauge, Unit: "{bucket}", Attributes: []string{"state"},
			Help: "Buckets whose lease this relay holds, by what they do."},
		{Name: leaseLosses, Kind: counter, Unit: "{lease}",
			Help: "Leases that were ours and are seen to be another's, or nobody's. An unreachable table is no loss."},
		{Name: requests, Kind: counter, Unit: "{request}", Attributes: []string{"request", "outcome"},
			Help: "Requests to the table."},
		{Name: requestDuration, Kind: histogram, Unit: "s", Attributes: []string{"request", "outcome"},
			Help:   "How long requests to the table took, the SDK's retries included.",
			Bounds: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}},
		{Name: capacityUnits, Kind: counter, Unit: "{unit}", Attributes: []string{"request", "outcome"},
			Help: "Capacity units that requests have consumed, as the service reported them."},
		{Name: gapsProbed, Kind: counter, Unit: "{gap}",
			Help: "Gaps in the sequence that were looked into."},
		{Name: gapsFilled, Kind: counter, Unit: "{gap}",
			Help: "Gaps in which a message had appeared by then."},
		{Name: rowsRefetched, Kind: counter, Unit: "{row}",
			Help: "Rows that were read again although the same tenure had read them before."},
		{Name: wakeups, Kind: counter, Unit: "{wakeup}", Attributes: []string{"cause"},
			Help: "Looks for messages in a bucket."},
		{Name: clockSkew, Kind: gauge, Unit: "s",
			Help: "By how much the wall clock is ahead of the table's, negative: behind; as exact as the dates of its answers, about half a second."},
		{Name: producersRetired, Kind: counter, Unit: "{producer}",
			Help: "Producers that were given up with records whose fate is unknown."},
	}
}

// meters are the instruments, made.
type meters struct {
	counters   map[string]metric.Int64Counter
	units      metric.Float64Counter // capacity comes in fractions
	histograms map[string]metric.Float64Histogram
	gauges     map[string]metric.Int64ObservableGauge
	seconds    map[string]metric.Float64ObservableGauge
}

func newMeters(meter metric.Meter) (*meters, error) {
	m := &meters{
		counters:   map[string]metric.Int64Counter{},
		histograms: map[string]metric.Float64Histogram{},
		gauges:     map[string]metric.Int64ObservableGauge{},
		seconds:    map[string]metric.Float64ObservableGauge{},
	}
	for _, i := range Instruments() {
		if err := m.add(meter, i); err != nil {
			return nil, fmt.Errorf("instrument %s: %w", i.Name, err)
		}
	}
	return m, nil
}

func (m *meters) add(meter metric.Meter, i Instrument) (err error) {
	unit, help := metric.WithUnit(i.Unit), metric.WithDescription(i.Help)
	switch {
	case i.Name == capacityUnits:
		m.units, err = meter.Float64Counter(i.Name, unit, help)
	case i.Kind == counter:
		m.counters[i.Name], err = meter.Int64Counter(i.Name, unit, help)
	case i.Kind == histogram:
		m.histograms[i.Name], err = meter.Float64Histogram(i.Name, unit, help, metric.WithExplicitBucketBoundaries(i.Bounds...))
	case i.Unit == "s":
		m.seconds[i.Name], err = meter.Float64ObservableGauge(i.Name, unit, help)
	default:
		m.gauges[i.Name], err = meter.Int64ObservableGauge(i.Name, unit, help)
	}
	return err
}

// observables are the instruments that are asked instead of told.
func (m *meters) observables() []metric.Observable {
	var all []metric.Observable
	for _, i := range Instruments() {
		if g, found := m.gauges[i.Name]; found {
			all = append(all, g)
		}
		if g, found := m.seconds[i.Name]; found {
			all = append(all, g)
		}
	}
	return all
}
