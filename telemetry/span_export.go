package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// ErrSpansUnsent is what OpenTelemetry's error handler gets of spans that a collector did
// not take. They are lost, and nothing else is.
var ErrSpansUnsent = errors.New("spans unsent")

// SpanExport is a tracer provider of our own, for a process that has no other: it sends
// spans over OTLP when the standard variables of OpenTelemetry ask for it.
type SpanExport struct {
	provider *sdk.TracerProvider // nil: nobody asks for spans
}

// NewSpanExport makes the provider. It is on when OTEL_TRACES_EXPORTER is "otlp", or,
// without that variable, when OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set; off with OTEL_SDK_DISABLED=true. Its protocol
// is OTEL_EXPORTER_OTLP_TRACES_PROTOCOL's or OTEL_EXPORTER_OTLP_PROTOCOL's: http/protobuf
// (the default) or grpc. Sampler (OTEL_TRACES_SAMPLER; by default all), limits and batching
// are OpenTelemetry's own. An unreachable collector is no error: what could not be sent
// goes to OpenTelemetry's error handler, as ErrSpansUnsent. The error is ErrExport's or the
// exporter's.
func NewSpanExport(ctx context.Context, o ExportOptions) (*SpanExport, error) {
	environment := o.environment()
	wanted, err := wantsOTLP(environment, spanSignal())
	if err != nil || !wanted {
		return &SpanExport{}, err
	}
	described, err := describe(ctx, o)
	if err != nil {
		return nil, err
	}
	exporter, err := spanExporter(ctx, environment)
	if err != nil {
		return nil, err
	}
	return &SpanExport{provider: sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(described))}, nil
}

func spanExporter(ctx context.Context, environment func(string) string) (sdk.SpanExporter, error) {
	protocol, err := otlpProtocol(environment, spanSignal())
	if err != nil {
		return nil, err
	}
	var exporter sdk.SpanExporter
	if protocol == protocolGRPC {
		exporter, err = otlptracegrpc.New(ctx)
	} else {
		exporter, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("otlp exporter: %w", err)
	}
	return markedExporter{exporter}, nil
}

// Sends tells whether spans are asked for.
func (e *SpanExport) Sends() bool { return e.provider != nil }

// Provider is what tracers are made with; one that records nothing when no spans are
// asked for.
func (e *SpanExport) Provider() trace.TracerProvider {
	if e.provider == nil {
		return noop.NewTracerProvider()
	}
	return e.provider
}

// Close sends what is left and ends the export.
func (e *SpanExport) Close(ctx context.Context) error {
	if e.provider == nil {
		return nil
	}
	if err := e.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("end span export: %w", err)
	}
	return nil
}

// markedExporter tells spans that were not sent from metrics: OpenTelemetry has one error
// handler for all.
type markedExporter struct{ sdk.SpanExporter }

func (m markedExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := m.SpanExporter.ExportSpans(ctx, spans); err != nil {
		return fmt.Errorf("%w: %w", ErrSpansUnsent, err)
	}
	return nil
}
