package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// mostLabels is how many combinations of attributes are kept ready; also the
// limit of an instrument's series, beyond which OpenTelemetry puts all others
// into one. Only topics could be that many.
const mostLabels = 2000

// labels are the attributes of one measurement beside outbox.name; unused ones
// are empty.
type labels [2]struct{ key, value string }

func label(key, value string) labels { return labels{{key, value}} }

// with is the option that carries the attributes. Making it costs more than
// counting, so that each is made once.
func (m *Metrics) with(of labels) metric.MeasurementOption {
	m.mu.RLock()
	option, found := m.options[of]
	m.mu.RUnlock()
	if found {
		return option
	}
	attributes := []attribute.KeyValue{m.name}
	for _, l := range of {
		if l.key != "" {
			attributes = append(attributes, attribute.String(l.key, l.value))
		}
	}
	option = metric.WithAttributeSet(attribute.NewSet(attributes...))
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.options) < mostLabels {
		m.options[of] = option
	}
	return option
}

// Values of attributes that are known before they occur. What their owners have,
// which this package may not ask, a test at the root compares.

func requestNames() []string {
	return []string{
		"heartbeat", "readCoordination", "claim", "keep", "release", "stampStopped", "prune",
		"discover", "fetch", "probe", "delete",
		"readHead", "count",
		"readMarkers", "fetchParked", "mark", "move", "removeParked", "unmark", "endRetry",
	}
}

func outcomes() []string { return []string{"done", "refused", "retriable", "ambiguous"} }

func failureClasses() []string {
	return []string{"rejected", "retriable", "ambiguous", "fatal", "fenced"}
}

func wakeupCauses() []string {
	return []string{"poll", "notification", "full batch", "attention", "retry", "check", "drain"}
}

// zero makes all counters appear, so that a rate is right from the first event
// on and an alert can tell "never" from "not measured".
func (m *Metrics) zero() {
	for _, i := range Instruments() {
		if i.Kind != counter {
			continue
		}
		for _, of := range knownLabels(i.Attributes) {
			if i.Name == capacityUnits {
				m.meters.units.Add(context.Background(), 0, m.with(of))
				continue
			}
			m.count(i.Name, 0, of)
		}
	}
}

// knownLabels are the combinations of values that are known of the attributes.
// Topics are not: a series without a topic stands in for them.
func knownLabels(attributes []string) []labels {
	all := []labels{{}}
	for position, key := range attributes {
		values := map[string]func() []string{
			"request": requestNames, "outcome": outcomes, "class": failureClasses, "cause": wakeupCauses,
		}[key]
		if values == nil {
			continue
		}
		var further []labels
		for _, of := range all {
			for _, value := range values() {
				of[position].key, of[position].value = key, value
				further = append(further, of)
			}
		}
		all = further
	}
	return all
}
