package outbox

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/propagation"
)

// carrier collects as headers what a propagator has to say.
type carrier []Header

var _ propagation.TextMapCarrier = (*carrier)(nil)

// Get implements propagation.TextMapCarrier.
func (c *carrier) Get(key string) string {
	for _, h := range *c {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c *carrier) Set(key, value string) {
	for i, h := range *c {
		if h.Key == key {
			(*c)[i].Value = []byte(value)
			return
		}
	}
	*c = append(*c, Header{Key: key, Value: []byte(value)})
}

// Keys implements propagation.TextMapCarrier.
func (c *carrier) Keys() []string {
	keys := make([]string, len(*c))
	for i, h := range *c {
		keys[i] = h.Key
	}
	return keys
}

// traceHeaders are the headers that tell consumers of the trace that ctx is in; none without a
// propagator, or outside of a trace.
func (w *Writer) traceHeaders(ctx context.Context) []Header {
	if w.propagator == nil {
		return nil
	}
	var c carrier
	w.propagator.Inject(ctx, &c)
	return c
}

// withTrace is the headers of a message with those of a trace behind them. Headers that already have a
// word of the propagator's stay as they are: whoever has written it knows better which trace the message
// is of, and two contexts in one message would leave the choice to the consumer. Names are compared
// without regard to case, as they may have come from HTTP.
func (w *Writer) withTrace(own, trace []Header) []Header {
	if len(trace) == 0 {
		return own
	}
	fields := w.propagator.Fields()
	for _, h := range own {
		if slices.ContainsFunc(fields, func(field string) bool { return strings.EqualFold(field, h.Key) }) {
			return own
		}
	}
	return slices.Concat(own, trace) // the caller keeps its slice
}
