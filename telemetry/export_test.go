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
	"testing"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/telemetry"
)

// A collector that the standard variables name gets the metrics, at the latest when
// the export ends, and learns who sends them.
func TestOTLP(t *testing.T) {
	received := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/metrics" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		received <- body
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=shop")

	export, err := telemetry.NewExport(t.Context(), telemetry.ExportOptions{
		Environment: os.Getenv, Service: "relay", Instance: "relay-a",
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := telemetry.NewMetrics(export.Provider(), "billing")
	if err != nil {
		t.Fatal(err)
	}
	m.Observe(event.Envelope{Relay: "relay-a", Event: event.RecordAcknowledged{Topic: "invoices"}})
	if err := export.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	body := <-received
	for _, part := range []string{"outbox.messages.published", "invoices", "billing", "service.name", "relay-a", "shop"} {
		if !bytes.Contains(body, []byte(part)) {
			t.Errorf("the collector was not told %q", part)
		}
	}
}

// What is asked for and cannot be had is said at the start, by variable and value;
// without a word in the environment nothing is sent anywhere.
func TestWhichExportIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		environment map[string]string
		fault       string
	}{
		{nil, ""},
		{map[string]string{"OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1"}, ""},
		{map[string]string{"OTEL_METRICS_EXPORTER": "prometheus, otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ""},
		{map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "morse"}, ""},
		{map[string]string{"OTEL_METRICS_EXPORTER": "console"}, `OTEL_METRICS_EXPORTER "console": must be otlp, prometheus or none`},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
			`OTEL_EXPORTER_OTLP_PROTOCOL "http/json": must be http/protobuf or grpc`},
		{map[string]string{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "morse"}, `PROTOCOL "morse"`},
	} {
		export, err := telemetry.NewExport(t.Context(), telemetry.ExportOptions{
			Environment: func(name string) string { return c.environment[name] },
		})
		if c.fault == "" {
			if err != nil {
				t.Errorf("%v: %v", c.environment, err)
				continue
			}
			over, cancel := context.WithCancel(context.Background())
			cancel() // what nobody listens to need not be waited for
			_ = export.Close(over)
			continue
		}
		if !errors.Is(err, telemetry.ErrExport) || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%v: got %v, want %s", c.environment, err, c.fault)
		}
	}
}
