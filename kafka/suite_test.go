package kafka_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/bucketbrigade/relay/actors/publisher/publishertest"
	"github.com/bucketbrigade/relay/kafka"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// oneARecord makes requests of one record each, so that a rejected record is
// alone in its request.
var oneARecord = map[string]string{"linger.ms": "0", "batch.num.messages": "1"}

func TestOnMockCluster(t *testing.T) {
	publishertest.Run(t, func(t *testing.T) publishertest.Harness {
		t.Parallel()
		return mockHarness(t)
	})
}

func TestOnKfake(t *testing.T) {
	publishertest.Run(t, func(t *testing.T) publishertest.Harness {
		t.Parallel()
		return kfakeHarness(t, nil)
	})
}

func TestOnKfakeOneRecordARequest(t *testing.T) {
	publishertest.Run(t, func(t *testing.T) publishertest.Harness {
		t.Parallel()
		return kfakeHarness(t, oneARecord)
	})
}

func mockHarness(t *testing.T) publishertest.Harness {
	mock := startMock(t)
	return publishertest.Harness{
		Factory: newFactory(t, mock.Config()),
		CreateTopic: func(t testing.TB, topic string, partitions int32, _ int) {
			if err := mock.CreateTopic(kafka.Topic{Name: topic, Partitions: int(partitions)}); err != nil {
				t.Fatal(err)
			}
		},
		Read: reader(mock.Config().Brokers),
		Now:  time.Now,
		Hold: func(t testing.TB) func() {
			if err := mock.Delay(time.Hour); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := mock.Delay(0); err != nil {
					t.Error(err)
				}
			}
		},
		Lacks: map[publishertest.Ability]string{
			publishertest.Limits:       "librdkafka's mock cluster takes records of any size",
			publishertest.Descriptions: "librdkafka's mock cluster does not implement DescribeConfigs",
			publishertest.Growing:      "librdkafka's mock cluster does not implement CreatePartitions",
			publishertest.Isolation:    "librdkafka's mock cluster shows consumers aborted records too",
			publishertest.Fencing:      "librdkafka's mock cluster lets every producer of an id commit",
		},
	}
}

func kfakeHarness(t *testing.T, properties map[string]string) publishertest.Harness {
	cluster := startKfake(t)
	return publishertest.Harness{
		Factory: newFactory(t, kafka.Config{Brokers: cluster.ListenAddrs(), Properties: properties}),
		CreateTopic: func(t testing.TB, topic string, partitions int32, maxMessageBytes int) {
			if err := cluster.CreateTopic(topic, partitions, topicConfig(maxMessageBytes)); err != nil {
				t.Fatal(err)
			}
		},
		Grow: func(t testing.TB, topic string, partitions int32) { grow(t, cluster, topic, partitions) },
		Read: reader(cluster.ListenAddrs()),
		Now:  time.Now,
		Hold: func(testing.TB) func() {
			release := make(chan struct{})
			cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				cluster.SleepControl(func() { <-release })
				return nil, nil, false
			})
			return func() { close(release) }
		},
	}
}

func grow(t testing.TB, cluster *kfake.Cluster, topic string, partitions int32) {
	t.Helper()
	admin, err := ck.NewAdminClient(&ck.ConfigMap{"bootstrap.servers": strings.Join(cluster.ListenAddrs(), ",")})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	results, err := admin.CreatePartitions(t.Context(), []ck.PartitionsSpecification{{Topic: topic, IncreaseTo: int(partitions)}})
	if err != nil {
		t.Fatal(err)
	}
	if code := results[0].Error.Code(); code != ck.ErrNoError {
		t.Fatal(code)
	}
}

func topicConfig(maxMessageBytes int) map[string]string {
	if maxMessageBytes == 0 {
		return nil
	}
	return map[string]string{"max.message.bytes": strconv.Itoa(maxMessageBytes)}
}

func startMock(t testing.TB, topics ...kafka.Topic) *kafka.Mock {
	t.Helper()
	mock, err := kafka.StartMock(topics...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mock.Close)
	return mock
}

func startKfake(t testing.TB, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

// newFactory makes a factory that the test's end closes, within a bound.
func newFactory(t testing.TB, c kafka.Config) *kafka.Factory {
	t.Helper()
	factory, err := kafka.NewFactory(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := factory.Close(ctx); err != nil {
			t.Errorf("close factory: %v", err)
		}
	})
	return factory
}

func reader(brokers []string) func(testing.TB, string) []publishertest.Record {
	return func(t testing.TB, topic string) []publishertest.Record {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		records, err := kafka.ReadTopic(ctx, kafka.Config{Brokers: brokers}, topic)
		if err != nil {
			t.Fatal(err)
		}
		var out []publishertest.Record
		for _, r := range records {
			out = append(out, publishertest.Record{Partition: r.Partition, Timestamp: r.Timestamp,
				Key: r.Key, Value: r.Value, Headers: r.Headers})
		}
		return out
	}
}
