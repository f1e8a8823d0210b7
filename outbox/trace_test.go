package outbox_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/bucketbrigade/relay/outbox"
)

const (
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	tracestate  = "shop=42"
)

// inTrace is a context within the span that traceparent names.
func inTrace(t testing.TB) context.Context {
	t.Helper()
	carried := propagation.MapCarrier{"traceparent": traceparent, "tracestate": tracestate}
	ctx := propagation.TraceContext{}.Extract(t.Context(), carried)
	if !trace.SpanContextFromContext(ctx).IsValid() {
		t.Fatal("the test's own trace is not valid")
	}
	return ctx
}

// storedHeaders are the headers of all messages in the table, by the message's value.
func storedHeaders(t *testing.T, f *fakeTable) map[string][]outbox.Header {
	t.Helper()
	stored := map[string][]outbox.Header{}
	for _, item := range f.items {
		row, err := outbox.Schema{Table: "outbox"}.DecodeMessage(item)
		if err == nil {
			stored[string(row.Message.Value)] = row.Message.Headers
		}
	}
	return stored
}

func tracingWriter(t testing.TB, api outbox.API, p propagation.TextMapPropagator) *outbox.Writer {
	t.Helper()
	w, err := outbox.NewWriter(api, outbox.Options{Table: "outbox", Propagator: p})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A message carries the trace in which it was written, behind its own headers, unless it
// brings a trace of its own: then not a byte of it is changed. Whichever call stores it.
func TestMessagesCarryTheTraceInWhichTheyAreWritten(t *testing.T) {
	w3c := []outbox.Header{{Key: "tracestate", Value: []byte(tracestate)}, {Key: "traceparent", Value: []byte(traceparent)}}
	kind := outbox.Header{Key: "kind", Value: []byte("order")}
	for name, c := range map[string]struct{ own, want []outbox.Header }{
		"without headers":        {nil, w3c},
		"with others":            {[]outbox.Header{kind}, append([]outbox.Header{kind}, w3c...)},
		"with a trace":           {[]outbox.Header{{Key: "traceparent", Value: []byte("its own")}, kind}, nil},
		"with a part of one":     {[]outbox.Header{{Key: "tracestate"}}, nil},
		"with another spelling":  {[]outbox.Header{{Key: "TraceParent", Value: []byte("its own")}}, nil},
		"with what looks alike":  {[]outbox.Header{{Key: "x-traceparent"}}, append([]outbox.Header{{Key: "x-traceparent"}}, w3c...)},
		"with room in the slice": {append(make([]outbox.Header, 0, 8), kind), append([]outbox.Header{kind}, w3c...)},
	} {
		if c.want == nil {
			c.want = c.own
		}
		message := outbox.NewMessage("placed", nil, []byte("v"))
		message.Headers = c.own
		for call, store := range map[string]func(*outbox.Writer, *fakeTable) error{
			"Enqueue": func(w *outbox.Writer, _ *fakeTable) error { return w.Enqueue(inTrace(t), message) },
			"Commit": func(w *outbox.Writer, _ *fakeTable) error {
				return w.Commit(inTrace(t), &dynamodb.TransactWriteItemsInput{}, message)
			},
			"TransactItem": func(w *outbox.Writer, f *fakeTable) error {
				put, err := w.TransactItem(inTrace(t), message)
				if err != nil {
					return err
				}
				_, err = f.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put}})
				return err
			},
		} {
			table := newFakeTable()
			if err := store(tracingWriter(t, table, propagation.TraceContext{}), table); err != nil {
				t.Fatal(err)
			}
			if got := storedHeaders(t, table)["v"]; !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s %s: stored %q, want %q", call, name, got, c.want)
			}
		}
		if extra := c.own[:min(cap(c.own), len(c.own)+1)]; len(extra) > len(c.own) && extra[len(c.own)].Key != "" {
			t.Errorf("%s: the caller's slice was written to", name)
		}
	}
}

// Without being asked, or outside of a trace, nothing is added: the table has what the
// peers' writers would store.
func TestNothingIsAddedWithoutATrace(t *testing.T) {
	message := outbox.NewMessage("placed", nil, []byte("v"))
	for name, c := range map[string]struct {
		ctx        context.Context
		propagator propagation.TextMapPropagator
	}{
		"not asked":         {inTrace(t), nil},
		"outside":           {t.Context(), propagation.TraceContext{}},
		"nothing to inject": {inTrace(t), propagation.NewCompositeTextMapPropagator()},
	} {
		table := newFakeTable()
		if err := tracingWriter(t, table, c.propagator).Enqueue(c.ctx, message); err != nil {
			t.Fatal(err)
		}
		for _, item := range table.items {
			if _, has := item["Headers"]; has {
				t.Errorf("%s: headers were added", name)
			}
		}
	}
}

// A trace is worth less than a message: what just fits without it is stored without it.
func TestATraceNeverMakesAMessageTooLarge(t *testing.T) {
	empty := outbox.Schema{Table: "outbox"}.EncodeMessage(outbox.NewMessage("placed", nil, []byte{}), 0, 1)
	fits := outbox.MaxItemBytes - outbox.ItemSize(empty)
	for spare, carries := range map[int]bool{0: false, 40: false, 400: true} {
		table := newFakeTable()
		value := strings.Repeat("x", fits-spare)
		if err := tracingWriter(t, table, propagation.TraceContext{}).Enqueue(inTrace(t), outbox.NewMessage("placed", nil, []byte(value))); err != nil {
			t.Errorf("with %d bytes to spare: %v", spare, err)
		}
		if got := storedHeaders(t, table)[value] != nil; got != carries {
			t.Errorf("with %d bytes to spare the message carries its trace: %t", spare, got)
		}
	}
}

// Who does not trace pays nothing for it.
func TestWritersThatDoNotTracePayNothing(t *testing.T) {
	ctx, own := inTrace(t), []outbox.Header{{Key: "kind"}}
	w := tracingWriter(t, newFakeTable(), nil)
	if n := testing.AllocsPerRun(100, func() { _ = w.Headers(ctx, own) }); n != 0 {
		t.Errorf("%v allocations for each message", n)
	}
}

// A trace and its baggage, as the application has it, go with the message; a consumer
// extracts them and goes on. Any Kafka client will do: headers are names and bytes.
func ExampleOptions_propagator() {
	propagator := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	table := newFakeTable() // or dynamodb.NewFromConfig(cfg)
	writer, err := outbox.NewWriter(table, outbox.Options{Table: "outbox", Propagator: propagator})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := propagator.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent}) // or tracer.Start(ctx, "place order")
	if err := writer.Enqueue(ctx, outbox.NewMessage("orders", []byte("order-7"), []byte("placed"))); err != nil {
		fmt.Println(err)
		return
	}

	// In the consumer:
	carrier := propagation.MapCarrier{}
	for _, h := range table.onlyMessage().Headers { // or the headers of a Kafka record
		carrier[h.Key] = string(h.Value)
	}
	received := trace.SpanContextFromContext(propagator.Extract(context.Background(), carrier))
	fmt.Println("trace", received.TraceID(), "goes on from span", received.SpanID())
	// Output: trace 0af7651916cd43dd8448eb211c80319c goes on from span b7ad6b7169203331
}

// onlyMessage is the one message of the table.
func (f *fakeTable) onlyMessage() outbox.Message {
	for _, item := range f.items {
		if row, err := (outbox.Schema{Table: "outbox"}).DecodeMessage(item); err == nil {
			return row.Message
		}
	}
	return outbox.Message{}
}

func BenchmarkHeaders(b *testing.B) {
	own := []outbox.Header{{Key: "kind", Value: []byte("order")}}
	for name, p := range map[string]propagation.TextMapPropagator{"off": nil, "on": propagation.TraceContext{}} {
		b.Run(name, func(b *testing.B) {
			ctx, w := inTrace(b), tracingWriter(b, newFakeTable(), p)
			b.ReportAllocs()
			for b.Loop() {
				_ = w.Headers(ctx, own)
			}
		})
	}
}
