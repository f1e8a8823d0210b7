package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
var ErrExport = errors.New("telemetry export")

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
	sent, err := metricsExporter(ctx, o.environment())
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

// environment looks variables up, and finds none without an Environment.
func (o ExportOptions) environment() func(string) string {
	if o.Environment == nil {
		return func(string) string { return "" }
	}
	return o.Environment
}

// signal is what OpenTelemetry's variables call metrics or traces.
type signal struct {
	name    string   // in variables
	others  []string // exporters, besides otlp, that its variable may name
	choices string   // all of them, for people
}

// metricsSignal allows Prometheus, which the admin address has in any case.
func metricsSignal() signal {
	return signal{"METRICS", []string{"prometheus", "none"}, "otlp, prometheus or none"}
}

func spanSignal() signal { return signal{"TRACES", []string{"none"}, "otlp or none"} }

// metricsExporter is the exporter that the environment asks for; nil when it asks
// for none.
func metricsExporter(ctx context.Context, environment func(string) string) (sdk.Exporter, error) {
	wanted, err := wantsOTLP(environment, metricsSignal())
	if err != nil || !wanted {
		return nil, err
	}
	protocol, err := otlpProtocol(environment, metricsSignal())
	if err != nil {
		return nil, err
	}
	var exporter sdk.Exporter
	if protocol == protocolGRPC {
		exporter, err = otlpmetricgrpc.New(ctx)
	} else {
		exporter, err = otlpmetrichttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("otlp exporter: %w", err)
	}
	return exporter, nil
}

// The protocols of OTLP.
const (
	protocolHTTP = "http/protobuf"
	protocolGRPC = "grpc"
)

func otlpProtocol(environment func(string) string, s signal) (string, error) {
	protocol := first(environment, "OTEL_EXPORTER_OTLP_"+s.name+"_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	switch protocol {
	case protocolHTTP, protocolGRPC:
		return protocol, nil
	case "":
		return protocolHTTP, nil
	default:
		return "", fmt.Errorf("%w: OTEL_EXPORTER_OTLP_PROTOCOL %q: must be %s or %s", ErrExport, protocol, protocolHTTP, protocolGRPC)
	}
}

func wantsOTLP(environment func(string) string, s signal) (wanted bool, err error) {
	if strings.EqualFold(environment("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	variable := "OTEL_" + s.name + "_EXPORTER"
	named := environment(variable)
	if named == "" {
		return first(environment, "OTEL_EXPORTER_OTLP_"+s.name+"_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") != "", nil
	}
	for name := range strings.SplitSeq(named, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "otlp":
			wanted = true
		case name == "" || slices.Contains(s.others, name):
		default:
			return false, fmt.Errorf("%w: %s %q: must be %s", ErrExport, variable, name, s.choices)
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
