package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/outbox"
)

// Record is one record as a consumer sees it.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp time.Time       // milliseconds; of publishing, unless the topic says otherwise
	Key       []byte          // nil: null
	Value     []byte          // nil: null (tombstone)
	Headers   []outbox.Header // in the producer's order; nil values: null
}

// ReadTopic reads a topic from its beginning to the end that it has now, as a
// consumer that sees committed records only, and returns its records by
// partition, then offset. All of them are held in memory: it is made for demos
// and tests. A topic that does not exist is an error. Of the configuration, the
// brokers and the properties are used; they are not validated.
func ReadTopic(ctx context.Context, c Config, topic string) ([]Record, error) {
	records, err := readTopic(ctx, c, topic)
	if err != nil {
		return nil, fmt.Errorf("read topic %q: %w", topic, err)
	}
	slices.SortFunc(records, func(a, b Record) int {
		if a.Partition != b.Partition {
			return int(a.Partition) - int(b.Partition)
		}
		return int(a.Offset - b.Offset)
	})
	return records, nil
}

// pollMillis is how long one poll waits, and so how late a context's end is seen.
const pollMillis = 100

func readTopic(ctx context.Context, c Config, topic string) ([]Record, error) {
	if fault := inspectTopic(topic); fault != nil {
		return nil, errors.New(fault.Text)
	}
	consumer, err := ck.NewConsumer(consumerSettings(c))
	if err != nil {
		return nil, errors.New(scrub(err.Error(), c.Properties))
	}
	defer consumer.Close()

	ends, err := topicEnds(ctx, consumer, topic)
	if err != nil {
		return nil, err
	}
	partitions := make([]ck.TopicPartition, 0, len(ends))
	for _, partition := range slices.Sorted(maps.Keys(ends)) {
		partitions = append(partitions, ck.TopicPartition{Topic: &topic, Partition: partition, Offset: ck.OffsetBeginning})
	}
	if err := consumer.Assign(partitions); err != nil {
		return nil, errors.New(err.Error())
	}

	var records []Record
	for len(ends) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch e := consumer.Poll(pollMillis).(type) {
		case *ck.Message:
			end, reading := ends[e.TopicPartition.Partition]
			offset := int64(e.TopicPartition.Offset)
			if reading && offset < end {
				records = append(records, recordOf(topic, e))
			}
			if offset >= end-1 {
				delete(ends, e.TopicPartition.Partition)
			}
		case ck.PartitionEOF:
			delete(ends, e.Partition) // also when only markers of transactions come before the end
		}
	}
	return records, nil
}

func consumerSettings(c Config) *ck.ConfigMap {
	settings := ck.ConfigMap{"client.id": "bucket-brigade-reader"}
	for name, value := range c.Properties {
		settings[name] = value
	}
	for name, value := range map[string]ck.ConfigValue{
		"bootstrap.servers":      strings.Join(c.Brokers, ","),
		"group.id":               "bucket-brigade-reader", // required; no group is joined, nothing is committed
		"enable.auto.commit":     "false",
		"enable.partition.eof":   "true",
		"auto.offset.reset":      "earliest",
		"go.logs.channel.enable": true, // unread; at this level nothing is written to it
		"log_level":              "0",
		"fetch.wait.max.ms":      "50",
	} {
		settings[name] = value
	}
	return &settings
}

// topicEnds is the present end offset of every partition that is not empty.
func topicEnds(ctx context.Context, consumer *ck.Consumer, topic string) (map[int32]int64, error) {
	timeout := int(attemptTimeout.Milliseconds()) * patience
	if deadline, has := ctx.Deadline(); has {
		timeout = max(1, min(timeout, int(time.Until(deadline).Milliseconds())))
	}
	metadata, err := consumer.GetMetadata(&topic, false, timeout)
	if err != nil {
		return nil, errors.New(err.Error())
	}
	described := metadata.Topics[topic]
	if described.Error.Code() != ck.ErrNoError {
		return nil, errors.New(described.Error.Error())
	}
	ends := make(map[int32]int64)
	for _, p := range described.Partitions {
		low, high, err := consumer.QueryWatermarkOffsets(topic, p.ID, timeout)
		if err != nil {
			return nil, fmt.Errorf("partition %d: %s", p.ID, err)
		}
		if low < high {
			ends[p.ID] = high
		}
	}
	return ends, nil
}

func recordOf(topic string, m *ck.Message) Record {
	r := Record{
		Topic: topic, Partition: m.TopicPartition.Partition, Offset: int64(m.TopicPartition.Offset),
		Timestamp: m.Timestamp, Key: m.Key, Value: m.Value,
	}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, outbox.Header{Key: h.Key, Value: h.Value})
	}
	return r
}
