package publisher

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/outbox"
)

// A machine was suspended: one of the clocks stood still, the other says that the
// lease has lapsed. No row is handed over (case X-18), whichever clock it is.
func TestLeaseLapsesByEitherClock(t *testing.T) {
	start0 := actors.Instant{Wall: time.Hour, Mono: time.Hour}
	for name, now := range map[string]actors.Instant{
		"monotonic clock stood still": {Wall: start0.Wall + time.Minute, Mono: start0.Mono},
		"wall clock was set back":     {Wall: start0.Wall - time.Minute, Mono: start0.Mono + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(Config{}.WithDefaults(), rand.New(rand.NewPCG(1, 1)))
			c.step(start0, start{})
			c.step(start0, opened{1})
			c.step(start0, Publish{Bucket: 1, Batch: 1, NotAfter: start0.Add(30 * time.Second),
				Rows: []outbox.Row{{Sequence: 1, Message: outbox.Message{Topic: "orders"}}}})
			effects := c.step(now, Described{Producer: 1, Topic: "orders", Partitions: 1})
			if slices.ContainsFunc(effects, func(e effect) bool { _, is := e.(produce); return is }) {
				t.Error("a row was handed over after the lease")
			}
			if !slices.ContainsFunc(effects, func(e effect) bool { _, is := e.(answer); return is }) {
				t.Error("the batch was not answered")
			}
		})
	}
}

// BenchmarkCore is what the core costs a row, with everything acknowledged in
// bursts of one batch.
func BenchmarkCore(b *testing.B) {
	const size = 500
	c := newCore(Config{}.WithDefaults(), rand.New(rand.NewPCG(1, 1)))
	now := actors.Instant{Wall: time.Hour, Mono: time.Hour}
	for _, m := range []any{start{}, opened{1}, opened{2}} {
		c.step(now, m)
	}
	rows := make([]outbox.Row, size)
	for i := range rows {
		rows[i] = outbox.Row{Message: outbox.NewMessage("orders", []byte{byte(i)}, make([]byte, 300))}
	}
	b.ReportAllocs()
	for batch := range b.N/size + 1 {
		for i := range rows {
			rows[i].Sequence = int64(batch*size + i + 1)
		}
		effects := c.step(now, Publish{Batch: uint64(batch), Rows: rows, NotAfter: now.Add(time.Hour)})
		for len(effects) > 0 {
			var next []effect
			reported := map[int][]Report{}
			for _, e := range effects {
				switch e := e.(type) {
				case describe:
					next = append(next, c.step(now, Described{Producer: e.producer, Topic: e.topic, Partitions: 8})...)
				case produce:
					reported[e.producer] = append(reported[e.producer], Report{Token: e.token})
				}
			}
			for number := 1; number <= 2; number++ {
				if len(reported[number]) > 0 {
					next = append(next, c.step(now, Reported{number, reported[number]})...)
				}
			}
			effects = next
		}
	}
}
