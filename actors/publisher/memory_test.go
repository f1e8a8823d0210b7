package publisher_test

import (
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/simulation"
)

// Two records wait for a partition that is away for longer than brokers remember a
// producer. The first one is rejected when it is back: the second one must not be taken
// for the first of a producer that nobody knows.
func TestOrderOutlastsTheBrokersMemory(t *testing.T) {
	const away = 30 * time.Minute
	w := newWorld(1)
	w.broker = simulation.NewBroker(simulation.BrokerConfig{Clock: w, Rand: w.random, RequestRecords: 1, Memory: 10 * time.Minute})
	w.broker.CreateTopic("orders", 1, 0)
	w.broker.SetFaults(simulation.BrokerFaults{Reject: poisonous})
	w.open(publisher.Config{Listener: listener, Buckets: 1})
	b := &tenant{w: w, aside: map[string]bool{}, due: map[uint64]int{}, limit: 10, batches: new(uint64), quiet: true}
	w.answered = b.published
	add := func(values ...string) func() {
		return func() {
			for _, value := range values {
				b.add(w.message("orders", []byte("key"), []byte(value)), value == "poison")
			}
			b.publish()
		}
	}
	w.At(0, add("first"))
	w.At(time.Second, w.broker.Leave)
	w.At(2*time.Second, add("poison", "behind it"))
	w.At(away, w.broker.Return)
	w.run(time.Hour, func() bool { return w.now > away && drained([]*tenant{b}) })
	judge(w, []*tenant{b})
	if len(w.wrong) > 0 {
		t.Fatal(w.wrong)
	}
	if !drained([]*tenant{b}) {
		t.Fatal("rows are left")
	}
}
