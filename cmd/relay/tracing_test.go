package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
)

// collector is an OTLP collector that keeps what it is sent.
type collector struct {
	*httptest.Server
	answer int // the status of its answers

	mu   sync.Mutex
	sent map[string][]byte // by path; guarded by mu
}

// startCollector starts one, and names it in the standard variables; OpenTelemetry's
// exporters read the process's own.
func startCollector(t *testing.T, answer int) *collector {
	t.Helper()
	c := &collector{answer: answer, sent: map[string][]byte{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent[r.URL.Path] = append(c.sent[r.URL.Path], body...)
		w.WriteHeader(c.answer)
	}))
	t.Cleanup(c.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	return c
}

// environ is what a command must see to send to it.
func (c *collector) environ() []string { return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL} }

func (c *collector) at(path string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.sent[path])
}

// One trace goes all the way: from the span in which a service writes, through the table,
// to the consumer that goes on with it; and the relay's span of the batch links to it.
func TestATraceGoesFromWriterToConsumer(t *testing.T) {
	c := newConsole(t)
	spans := startCollector(t, http.StatusOK)
	broker, err := kafka.StartMock(kafka.Topic{Name: "placed", Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	writer, err := outbox.NewWriter(c.table, outbox.Options{Table: "orders", Propagator: propagation.TraceContext{}})
	if err != nil {
		t.Fatal(err)
	}
	service := sdk.NewTracerProvider()
	writing, span := service.Tracer("service").Start(t.Context(), "place order")
	if err := writer.Enqueue(writing, outbox.NewMessage("placed", []byte("order-7"), []byte("{}"))); err != nil {
		t.Fatal(err)
	}
	span.End()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stderr := &stderrLines{on: func(event string) {
		if event == "batch.removed" {
			cancel()
		}
	}}
	a := &app{
		args: []string{"run", "--table", "orders", "--brokers", strings.Join(broker.Config().Brokers, ","), "--admin-addr", "off",
			"--poll-interval", "50ms", "--log-level", "trace", "--log-format", "json"},
		environ: spans.environ(), stdout: io.Discard, stderr: stderr, now: time.Now,
		dial: func(context.Context, *settings.Settings) (clients, error) {
			return clients{messages: c.table, coordination: c.table, tables: c.table, region: "nowhere"}, nil
		},
	}
	if code := a.execute(ctx); code != exitDone {
		t.Fatalf("exit %d:\n%s", code, stderr.String())
	}

	records, err := kafka.ReadTopic(t.Context(), broker.Config(), "placed")
	if err != nil || len(records) != 1 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	carrier := propagation.MapCarrier{}
	for _, h := range records[0].Headers {
		carrier[h.Key] = string(h.Value)
	}
	received := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), carrier))
	written := span.SpanContext()
	if received.TraceID() != written.TraceID() || received.SpanID() != written.SpanID() || !received.IsSampled() {
		t.Errorf("the consumer goes on with %v, written was %v", received, written)
	}
	sent, traceID, spanID := spans.at("/v1/traces"), written.TraceID(), written.SpanID()
	if !bytes.Contains(sent, traceID[:]) || !bytes.Contains(sent, spanID[:]) || !bytes.Contains(sent, []byte("send placed")) {
		t.Errorf("no span of the relay links to the writer's: %q", sent)
	}
	if bytes.Contains(sent, []byte("order-7")) {
		t.Error("a span has a key")
	}
}

// Without a word in the environment a relay tells of no traces, whatever the headers are.
func TestTracingIsOffUnlessItIsAskedFor(t *testing.T) {
	c := newConsole(t)
	c.run("message", "enqueue", "--table", "orders", "--topic", "placed", "--header", "traceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	got := runRelay(t, c.table, "batch.removed", "--log-level", "trace")
	if got.code != exitDone || strings.Contains(got.stderr, "batch.traced") {
		t.Errorf("exit %d:\n%s", got.code, got.stderr)
	}
}
