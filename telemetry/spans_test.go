package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/telemetry"
)

func traced(batch event.BatchTraced) event.Envelope {
	return event.Envelope{Relay: "relay-a", At: noon, Event: batch}
}

// recorded are the spans that come of events.
func recorded(t *testing.T, events ...event.Envelope) tracetest.SpanStubs {
	t.Helper()
	memory := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(memory))
	spans := telemetry.NewSpans(provider, "billing")
	for _, e := range events {
		spans.Observe(e)
	}
	return memory.GetSpans()
}

func attributesOf(span tracetest.SpanStub) map[string]any {
	values := map[string]any{}
	for _, a := range span.Attributes {
		values[string(a.Key)] = a.Value.AsInterface()
	}
	return values
}

// One batch is one span, as long as the batch took, linked to the spans in which its
// messages were written, and named as OpenTelemetry's conventions have it.
func TestABatchIsASpan(t *testing.T) {
	first, second := event.Trace{ID: [16]byte{1}, Span: [8]byte{2}}, event.Trace{ID: [16]byte{3}, Span: [8]byte{4}}
	spans := recorded(t, traced(event.BatchTraced{
		Bucket: 3, Topic: "orders", Traces: []event.Trace{first, second}, Unlinked: 7,
		Batch: event.BatchPublished{Bucket: 3, Rows: 500, Acknowledged: 500, Took: 40 * time.Millisecond},
	}))
	if len(spans) != 1 {
		t.Fatalf("%d spans", len(spans))
	}
	span := spans[0]
	if span.Name != "send orders" || span.SpanKind != trace.SpanKindClient || span.Parent.IsValid() || span.Status.Code != codes.Unset {
		t.Errorf("%s of kind %s, parent %v, status %v", span.Name, span.SpanKind, span.Parent, span.Status)
	}
	if !span.StartTime.Equal(noon.Add(-40*time.Millisecond)) || !span.EndTime.Equal(noon) {
		t.Errorf("from %v to %v", span.StartTime, span.EndTime)
	}
	if len(span.Links) != 2 {
		t.Fatalf("%d links", len(span.Links))
	}
	for i, want := range []event.Trace{first, second} {
		got := span.Links[i].SpanContext
		if got.TraceID() != want.ID || got.SpanID() != want.Span || !got.IsSampled() || !got.IsRemote() {
			t.Errorf("link %d: %+v", i, got)
		}
	}
	for name, want := range map[string]any{
		"messaging.system": "kafka", "messaging.operation.type": "send", "messaging.operation.name": "send",
		"messaging.batch.message_count": int64(500), "messaging.destination.name": "orders", "outbox.name": "billing",
		"outbox.relay": "relay-a", "outbox.bucket": int64(3), "outbox.batch.acknowledged": int64(500), "outbox.batch.unlinked": int64(7),
	} {
		if got := attributesOf(span)[name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// A batch that was not acknowledged as a whole is an error, with the fault that every
// other reader has.
func TestAFailedBatchIsAnErrorSpan(t *testing.T) {
	span := recorded(t, traced(event.BatchTraced{Class: "retriable", Code: "_TIMED_OUT",
		Batch: event.BatchPublished{Rows: 5, Acknowledged: 3}}))[0]
	values := attributesOf(span)
	if span.Name != "send" || span.Status != (sdk.Status{Code: codes.Error, Description: "retriable: _TIMED_OUT"}) || values["error.type"] != "_TIMED_OUT" {
		t.Errorf("%s: %v, %v", span.Name, span.Status, values)
	}
	if _, named := values["messaging.destination.name"]; named {
		t.Error("a batch of several topics has one topic")
	}
}

// Nothing else makes spans: batches of relays that do not trace are no BatchTraced.
func TestOnlyTracedBatchesAreSpans(t *testing.T) {
	var events []event.Envelope
	for _, e := range samples() {
		if _, isTraced := e.(event.BatchTraced); !isTraced {
			events = append(events, event.Envelope{Event: e})
		}
	}
	if spans := recorded(t, events...); len(spans) != 0 {
		t.Errorf("%d spans", len(spans))
	}
}

// A collector that the standard variables name gets the spans with their links, at the
// latest when the export ends.
func TestSpansOverOTLP(t *testing.T) {
	received := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		received <- body
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	export, err := telemetry.NewSpanExport(t.Context(), telemetry.ExportOptions{Environment: os.Getenv, Service: "relay", Instance: "relay-a"})
	if err != nil || !export.Sends() {
		t.Fatalf("sends: %t, %v", export.Sends(), err)
	}
	link := event.Trace{ID: [16]byte([]byte("sixteen bytes of")), Span: [8]byte([]byte("a trace."))}
	telemetry.NewSpans(export.Provider(), "billing").Observe(traced(event.BatchTraced{Topic: "invoices", Traces: []event.Trace{link}}))
	if err := export.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	body := <-received
	for _, part := range []string{"send invoices", "sixteen bytes of", "a trace.", "billing", "service.name", "relay-a", "https://opentelemetry.io/schemas/"} {
		if !bytes.Contains(body, []byte(part)) {
			t.Errorf("the collector was not told %q", part)
		}
	}
}

// Spans are sent when they are asked for, and not by accident; what cannot be had is said
// at the start.
func TestWhenSpansAreSent(t *testing.T) {
	for _, c := range []struct {
		environment map[string]string
		sends       bool
		fault       string
	}{
		{nil, false, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1"}, true, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:1"}, true, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://localhost:1"}, false, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_TRACES_EXPORTER": "none"}, false, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, true, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, false, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "console"}, false, `OTEL_TRACES_EXPORTER "console": must be otlp or none`},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "morse"}, false, `"morse": must be http/protobuf or grpc`},
	} {
		export, err := telemetry.NewSpanExport(t.Context(), telemetry.ExportOptions{Environment: func(name string) string { return c.environment[name] }})
		if c.fault != "" {
			if !errors.Is(err, telemetry.ErrExport) || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%v: %v, want %s", c.environment, err, c.fault)
			}
			continue
		}
		if err != nil || export.Sends() != c.sends {
			t.Errorf("%v: sends: %t, %v", c.environment, export.Sends(), err)
		}
		_, span := export.Provider().Tracer("test").Start(t.Context(), "a span")
		if span.IsRecording() != c.sends {
			t.Errorf("%v: records: %t", c.environment, span.IsRecording())
		}
		over, cancel := context.WithCancel(context.Background())
		cancel() // what nobody listens to need not be waited for
		_ = export.Close(over)
	}
}

// errorsHeard collects what OpenTelemetry complains of.
type errorsHeard struct {
	mu   sync.Mutex
	errs []error // guarded by mu
}

func (h *errorsHeard) Handle(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, err)
}

// Spans that a collector does not take are told from metrics.
func TestSpansThatAreNotTakenAreSaid(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	var heard errorsHeard
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(&heard)
	defer otel.SetErrorHandler(before)
	export, err := telemetry.NewSpanExport(t.Context(), telemetry.ExportOptions{Environment: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	telemetry.NewSpans(export.Provider(), "").Observe(traced(event.BatchTraced{}))
	_ = export.Close(t.Context())
	heard.mu.Lock()
	defer heard.mu.Unlock()
	if len(heard.errs) != 1 || !errors.Is(heard.errs[0], telemetry.ErrSpansUnsent) {
		t.Errorf("heard %v", heard.errs)
	}
}

// What a span costs who records it is bounded, however large the batch.
func BenchmarkSpans(b *testing.B) {
	traces := make([]event.Trace, telemetry.DefaultTraceLinks)
	for i := range traces {
		traces[i] = event.Trace{ID: [16]byte{byte(i), 1}, Span: [8]byte{byte(i), 1}}
	}
	batch := traced(event.BatchTraced{Topic: "orders", Traces: traces})
	for name, provider := range map[string]trace.TracerProvider{
		"recorded": sdk.NewTracerProvider(), "not sampled": sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample())),
	} {
		b.Run(name, func(b *testing.B) {
			spans := telemetry.NewSpans(provider, "")
			b.ReportAllocs()
			for b.Loop() {
				spans.Observe(batch)
			}
		})
	}
}
