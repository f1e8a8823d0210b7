package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	prometheusexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Limits of one scrape.
const (
	scrapesAtOnce = 4
	scrapeTimeout = 10 * time.Second
)

// ErrExport: the OTEL_* variables ask for an export that is not in this build.
// Correct the variable that is named.
var ErrExport = errors.New("metrics export")

// Export is a meter provider of our own, for a process that has no other: it is
// read by Prometheus through Handler, and sends over OTLP when the standard
// variables of OpenTelemetry ask for it.
type Export struct {
	provider *sdk.MeterProvider
	handler  http.Handler
	sends    bool
}

// ExportOptions say who exports.
type ExportOptions struct {
	// Environment looks a variable up, as os.Getenv does; nil: none is set. It
	// decides whether OTLP is on and by which protocol; OpenTelemetry's exporters
	// read their endpoint, headers and timeouts from the process's own environment.
	Environment func(string) string
	// Service and Instance are service.name and service.instance.id unless
	// OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES say otherwise.
	Service, Instance string
}

// NewExport makes the provider. OTLP is on when OTEL_METRICS_EXPORTER has
// "otlp", or, without that variable, when OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is set; off with OTEL_SDK_DISABLED=true.
// Its protocol is OTEL_EXPORTER_OTLP_METRICS_PROTOCOL's or
// OTEL_EXPORTER_OTLP_PROTOCOL's: http/protobuf (the default) or grpc. An
// unreachable collector is no error: what could not be sent goes to
// OpenTelemetry's error handler. The error is ErrExport's or the exporter's.
func NewExport(ctx context.Context, o ExportOptions) (*Export, error) {
	if o.Environment == nil {
		o.Environment = func(string) string { return "" }
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	scraped, err := prometheusexporter.New(
		prometheusexporter.WithRegisterer(registry), prometheusexporter.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("prometheus exporter: %w", err)
	}
	described, err := describe(ctx, o)
	if err != nil {
		return nil, err
	}
	options := []sdk.Option{
		sdk.WithReader(scraped), sdk.WithResource(described),
		sdk.WithCardinalityLimit(mostLabels), sdk.WithExemplarFilter(exemplar.AlwaysOffFilter),
	}
	sent, err := otlpExporter(ctx, o.Environment)
	if err != nil {
		return nil, err
	}
	if sent != nil {
		options = append(options, sdk.WithReader(sdk.NewPeriodicReader(sent)))
	}
	return &Export{
		sends:    sent != nil,
		provider: sdk.NewMeterProvider(options...),
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{
			MaxRequestsInFlight: scrapesAtOnce, Timeout: scrapeTimeout,
		}),
	}, nil
}

// Provider is what instruments are made with.
func (e *Export) Provider() metric.MeterProvider { return e.provider }

// Handler answers a scrape of Prometheus, in its text format. It also has the
// metrics of the Go runtime and the process.
func (e *Export) Handler() http.Handler { return e.handler }

// Sends tells whether OTLP is on.
func (e *Export) Sends() bool { return e.sends }

// Close sends what is left over OTLP and ends the export.
func (e *Export) Close(ctx context.Context) error {
	if err := e.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("end metrics export: %w", err)
	}
	return nil
}

// describe says who exports; the environment has the last word.
func describe(ctx context.Context, o ExportOptions) (*resource.Resource, error) {
	var attributes []attribute.KeyValue
	for key, value := range map[string]string{"service.name": o.Service, "service.instance.id": o.Instance} {
		if value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	r, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("%w: OTEL_RESOURCE_ATTRIBUTES: %w", ErrExport, err)
	}
	return r, nil
}

// otlpExporter is the exporter that the environment asks for; nil when it asks
// for none.
func otlpExporter(ctx context.Context, environment func(string) string) (sdk.Exporter, error) {
	wanted, err := wantsOTLP(environment)
	if err != nil || !wanted {
		return nil, err
	}
	var exporter sdk.Exporter
	switch protocol := first(environment, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "", "http/protobuf":
		exporter, err = otlpmetrichttp.New(ctx)
	case "grpc":
		exporter, err = otlpmetricgrpc.New(ctx)
	default:
		return nil, fmt.Errorf("%w: OTEL_EXPORTER_OTLP_PROTOCOL %q: must be http/protobuf or grpc", ErrExport, protocol)
	}
	if err != nil {
		return nil, fmt.Errorf("otlp exporter: %w", err)
	}
	return exporter, nil
}

func wantsOTLP(environment func(string) string) (wanted bool, err error) {
	if strings.EqualFold(environment("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	named := environment("OTEL_METRICS_EXPORTER")
	if named == "" {
		return first(environment, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") != "", nil
	}
	for name := range strings.SplitSeq(named, ",") {
		switch strings.TrimSpace(name) {
		case "otlp":
			wanted = true
		case "prometheus", "none", "": // the admin address has the former in any case
		default:
			return false, fmt.Errorf("%w: OTEL_METRICS_EXPORTER %q: must be otlp, prometheus or none", ErrExport, name)
		}
	}
	return wanted, nil
}

// first is the value of the first variable that is set.
func first(environment func(string) string, variables ...string) string {
	for _, variable := range variables {
		if value := environment(variable); value != "" {
			return value
		}
	}
	return ""
}
