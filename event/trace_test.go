package event_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/bucketbrigade/relay/event"
)

// traceparents are headers as they come, and what does not look like one.
var traceparents = []string{
	"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
	"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03",
	"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02",
	"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-the-future-brings",
	"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.",
	"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
	"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	"00-00000000000000000000000000000000-b7ad6b7169203331-01",
	"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
	"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
	"00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
	"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
	"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ",
	"", "00", "00-", "\x00\xff",
}

// OpenTelemetry itself, which the cores do not know, reads every header as we do. Of
// those that it takes, only sampled ones are of use. Two things the standard has
// otherwise than it: flags that have no meaning yet are to be ignored, and nothing may
// follow the flags of the first version, not even a hyphen.
func agrees(t *testing.T, header string) {
	t.Helper()
	if len(header) >= 55 {
		flags, err := strconv.ParseUint(header[53:55], 16, 8)
		if err == nil && flags > 3 || strings.HasPrefix(header, "00-") && len(header) == 56 {
			return
		}
	}
	got, ok := event.ParseTrace([]byte(header))
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{event.TraceHeader: header})
	want := trace.SpanContextFromContext(ctx)
	if ok != want.IsSampled() || ok && (trace.TraceID(got.ID) != want.TraceID() || trace.SpanID(got.Span) != want.SpanID()) {
		t.Errorf("%q is read as %v, %t; OpenTelemetry has %+v", header, got, ok, want)
	}
}

func TestTracesAreReadAsOpenTelemetryDoes(t *testing.T) {
	taken := 0
	for _, header := range traceparents {
		agrees(t, header)
		if _, ok := event.ParseTrace([]byte(header)); ok {
			taken++
		}
	}
	if taken != 4 {
		t.Errorf("%d headers are taken, want 4", taken)
	}
}

func FuzzParseTrace(f *testing.F) {
	for _, header := range traceparents {
		f.Add(header)
	}
	f.Fuzz(agrees)
}

func TestATraceInJSONIsItsIDs(t *testing.T) {
	parsed, _ := event.ParseTrace([]byte(traceparents[0]))
	if text, err := json.Marshal(parsed); err != nil || string(text) != `"0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"` {
		t.Errorf("%s, %v", text, err)
	}
}
