package bucket

import (
	"testing"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/outbox"
)

// tracedBatch is a core with a batch of 500 rows in one trace each.
func tracedBatch(links int) *core {
	c := newCore(Config{TraceLinks: links})
	c.batch = &batch{rows: make([]outbox.Row, 500), solid: 500}
	for i := range c.batch.rows {
		parent := []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		parent[10], parent[11] = "0123456789abcdef"[i%16], "0123456789abcdef"[i/16%16]
		c.batch.rows[i].Message.Headers = []outbox.Header{{Key: event.TraceHeader, Value: parent}}
	}
	return c
}

// A relay that does not trace looks at no header, and makes nothing.
func TestTracingCostsNothingWhenItIsOff(t *testing.T) {
	c := tracedBatch(0)
	if n := testing.AllocsPerRun(100, func() { c.trace(event.BatchPublished{}) }); n != 0 || len(c.effects) != 0 {
		t.Errorf("%v allocations and %d effects for each batch", n, len(c.effects))
	}
}

func BenchmarkTrace(b *testing.B) {
	for name, links := range map[string]int{"off": 0, "on": 128} {
		b.Run(name, func(b *testing.B) {
			c := tracedBatch(links)
			b.ReportAllocs()
			for b.Loop() {
				c.effects = c.effects[:0]
				c.trace(event.BatchPublished{})
			}
		})
	}
}
