package simulation

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/actors/publisher/publishertest"
)

// The model broker keeps the promises that real producers are held to. It is the
// same suite that librdkafka passes on its mock cluster, on kfake and on Apache
// Kafka; the model lacks nothing of it.
func TestModelBrokerConforms(t *testing.T) {
	publishertest.Run(t, modelHarness)
}

// modelHarness is a model broker in virtual time of its own.
func modelHarness(*testing.T) publishertest.Harness {
	clock := &brokerTime{}
	broker := NewBroker(BrokerConfig{Clock: clock, Rand: rand.New(rand.NewPCG(1, 2))})
	return publishertest.Harness{
		Factory: broker.Factory("suite"),
		CreateTopic: func(_ testing.TB, topic string, partitions int32, maxMessageBytes int) {
			broker.CreateTopic(topic, int(partitions), maxMessageBytes)
		},
		Grow: func(_ testing.TB, topic string, partitions int32) {
			broker.AddPartitions(topic, int(partitions)-len(broker.topics[topic].partitions))
		},
		Read: func(_ testing.TB, topic string) []publishertest.Record { return consumed(broker, topic) },
		Now:  func() time.Time { return recordTime(clock.now) },
		Step: clock.step,
		Hold: func(testing.TB) func() {
			broker.SetFaults(BrokerFaults{
				Request: func(BrokerRequest) BrokerFault { return BrokerFault{Delay: time.Hour} },
			})
			return func() { broker.SetFaults(BrokerFaults{}) }
		},
	}
}

// step lets time go on to what happens next.
func (c *brokerTime) step() bool {
	if len(c.dues) == 0 {
		return false
	}
	next := heap.Pop(&c.dues).(*due)
	c.now = next.at
	next.do()
	return true
}

// consumed are a topic's records as a consumer sees them, by partition.
func consumed(broker *Broker, topic string) []publishertest.Record {
	records := broker.Records(topic)
	slices.SortStableFunc(records, func(a, b BrokerRecord) int { return int(a.Partition - b.Partition) })
	var out []publishertest.Record
	for _, r := range records {
		out = append(out, publishertest.Record{
			Partition: r.Partition, Timestamp: recordTime(r.At).Truncate(time.Millisecond),
			Key: r.Record.Key, Value: r.Record.Value, Headers: r.Record.Headers,
		})
	}
	return out
}

func recordTime(at time.Duration) time.Time { return time.Unix(0, int64(epoch+at)).UTC() }

// Each producer of the suite is the model's own: no case passes for want of one.
var _ publisher.Producer = (*brokerProducer)(nil)
