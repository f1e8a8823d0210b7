package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/bucketbrigade/relay/event"
)

// DefaultTraceLinks is how many links a span has at most unless
// OTEL_SPAN_LINK_COUNT_LIMIT says less: OpenTelemetry's own default.
const DefaultTraceLinks = 128

// Spans is the event.Observer that records one span for each batch that was published,
// with links to the spans in which its messages were written; docs/tracing.md has what is
// in one. Relays tell of batches only when relay.Config.TraceLinks asks for it. One may
// observe several relays of a process.
type Spans struct {
	tracer trace.Tracer
	name   attribute.KeyValue
}

// NewSpans records spans with a tracer of the provider, each with the attribute
// outbox.name; empty: DefaultMetricsName. An embedding service passes its own provider,
// such as otel.GetTracerProvider(); the command makes one with NewSpanExport.
func NewSpans(provider trace.TracerProvider, name string) *Spans {
	if name == "" {
		name = DefaultMetricsName
	}
	return &Spans{
		tracer: provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		name:   attribute.String("outbox.name", name),
	}
}

// Observe records the span of a batch. It is safe for concurrent use and never waits for
// an export.
func (s *Spans) Observe(e event.Envelope) {
	if batch, ok := e.Event.(event.BatchTraced); ok {
		s.record(e, batch)
	}
}

// record makes a span of what is over already. Its kind is that of a client and not of a
// producer, since the message's context, which consumers go on with, is its writer's.
func (s *Spans) record(e event.Envelope, batch event.BatchTraced) {
	name := "send"
	if batch.Topic != "" {
		name += " " + batch.Topic
	}
	// No span of this process is its parent: a batch is its own beginning.
	_, span := s.tracer.Start(context.Background(), name,
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(e.At.Add(-batch.Batch.Took)),
		trace.WithLinks(links(batch.Traces)...), trace.WithAttributes(s.attributes(e, batch)...))
	if batch.Class != "" {
		span.SetAttributes(semconv.ErrorTypeKey.String(batch.Code))
		span.SetStatus(codes.Error, batch.Class+": "+batch.Code)
	}
	span.End(trace.WithTimestamp(e.At))
}

func (s *Spans) attributes(e event.Envelope, batch event.BatchTraced) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		s.name,
		semconv.MessagingSystemKafka,
		semconv.MessagingOperationTypeSend,
		semconv.MessagingOperationName("send"),
		semconv.MessagingBatchMessageCount(batch.Batch.Rows),
		attribute.String("outbox.relay", e.Relay),
		attribute.Int("outbox.bucket", batch.Bucket),
		attribute.Int("outbox.batch.acknowledged", batch.Batch.Acknowledged),
	}
	if batch.Topic != "" {
		attributes = append(attributes, semconv.MessagingDestinationName(batch.Topic))
	}
	if batch.Unlinked > 0 {
		attributes = append(attributes, attribute.Int("outbox.batch.unlinked", batch.Unlinked))
	}
	return attributes
}

func links(traces []event.Trace) []trace.Link {
	made := make([]trace.Link, len(traces))
	for i, t := range traces {
		made[i].SpanContext = trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: t.ID, SpanID: t.Span, TraceFlags: trace.FlagsSampled, Remote: true,
		})
	}
	return made
}
