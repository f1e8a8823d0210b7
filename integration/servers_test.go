//go:build integration

package integration

import (
	"context"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/kafka"
)

// servers are the bootstrap servers of a Kafka cluster, by which a test reaches it.
type servers []string

// brokers are the servers of the cluster that all tests share.
func brokers(t testing.TB) servers {
	t.Helper()
	addresses := os.Getenv("INTEGRATION_BROKERS")
	if addresses == "" {
		t.Fatal("INTEGRATION_BROKERS is not set; start the services and set it with: " +
			"scripts/services start && eval \"$(scripts/services env)\"")
	}
	list := strings.Split(addresses, ",")
	for _, address := range list {
		if connection, err := net.DialTimeout("tcp", address, 5*time.Second); err == nil {
			connection.Close()
			return list
		}
	}
	t.Fatalf("no broker answers at INTEGRATION_BROKERS=%s", addresses)
	return nil
}

func (s servers) String() string { return strings.Join(s, ",") }

// administer calls a function with a client that may change the cluster, and a
// time within which it must have done so.
func (s servers) administer(t testing.TB, change func(ctx context.Context, admin *ck.AdminClient)) {
	t.Helper()
	admin, err := ck.NewAdminClient(&ck.ConfigMap{"bootstrap.servers": s.String()})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	change(ctx, admin)
}

// create makes a topic and waits until the brokers know it.
func (s servers) create(t testing.TB, topic ck.TopicSpecification) {
	t.Helper()
	s.administer(t, func(ctx context.Context, admin *ck.AdminClient) {
		results, err := admin.CreateTopics(ctx, []ck.TopicSpecification{topic}, ck.SetAdminOperationTimeout(20*time.Second))
		wantChanged(t, results, err)
	})
}

// grow gives a topic more partitions, so that it has that many.
func (s servers) grow(t testing.TB, topic string, partitions int) {
	t.Helper()
	s.administer(t, func(ctx context.Context, admin *ck.AdminClient) {
		results, err := admin.CreatePartitions(ctx, []ck.PartitionsSpecification{{Topic: topic, IncreaseTo: partitions}},
			ck.SetAdminOperationTimeout(20*time.Second))
		wantChanged(t, results, err)
	})
}

func wantChanged(t testing.TB, results []ck.TopicResult, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Error.Code() != ck.ErrNoError {
			t.Fatalf("change topic %s: %v", r.Topic, r.Error)
		}
	}
}

// configure sets one property of a topic.
func (s servers) configure(t testing.TB, topic, name, value string) {
	t.Helper()
	s.administer(t, func(ctx context.Context, admin *ck.AdminClient) {
		results, err := admin.IncrementalAlterConfigs(ctx, []ck.ConfigResource{{Type: ck.ResourceTopic, Name: topic,
			Config: []ck.ConfigEntry{{Name: name, Value: value, IncrementalOperation: ck.AlterConfigOpTypeSet}}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Error.Code() != ck.ErrNoError {
				t.Fatalf("configure topic %s: %v", topic, r.Error)
			}
		}
	})
}

// read is all that a topic has, by partition, then offset.
func (s servers) read(t testing.TB, topic string) []kafka.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	records, err := kafka.ReadTopic(ctx, kafka.Config{Brokers: s}, topic)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// await reads topics until every message was seen, or for as long as is bearable;
// what is missing then is check's to say.
func (s servers) await(t testing.TB, messages []sent, partitions map[string]int) {
	t.Helper()
	missing := make(map[uuid.UUID]bool, len(messages))
	for _, m := range messages {
		missing[m.message.ID] = true
	}
	consumer, err := ck.NewConsumer(&ck.ConfigMap{
		"bootstrap.servers": s.String(), "group.id": "relay-test", "enable.auto.commit": false,
		"log_level": 0, // brokers that are away are no news here
	})
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	var assigned []ck.TopicPartition
	for name, count := range partitions {
		for p := range count {
			assigned = append(assigned, ck.TopicPartition{Topic: &name, Partition: int32(p), Offset: ck.OffsetBeginning})
		}
	}
	if err := consumer.Assign(assigned); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); len(missing) > 0 && time.Now().Before(deadline); {
		message, err := consumer.ReadMessage(time.Until(deadline))
		if err != nil || len(message.Headers) == 0 {
			continue
		}
		if id, err := uuid.ParseBytes(message.Headers[len(message.Headers)-1].Value); err == nil {
			delete(missing, id)
		}
	}
	if len(missing) > 0 {
		t.Errorf("%d messages were not delivered within %v", len(missing), patience)
	}
}

// createTopic makes a topic on the shared cluster; without a limit of its own for 0.
func createTopic(t testing.TB, topic string, partitions, maxMessageBytes int) {
	t.Helper()
	specification := ck.TopicSpecification{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1, Config: map[string]string{}}
	if maxMessageBytes > 0 {
		specification.Config["max.message.bytes"] = strconv.Itoa(maxMessageBytes)
	}
	brokers(t).create(t, specification)
}

// readTopic is all that a topic of the shared cluster has.
func readTopic(t testing.TB, topic string) []kafka.Record {
	t.Helper()
	return brokers(t).read(t, topic)
}

// awaitDelivery waits for messages in topics of the shared cluster.
func awaitDelivery(t testing.TB, messages []sent, partitions map[string]int) {
	t.Helper()
	brokers(t).await(t, messages, partitions)
}

// with are the records of these messages, in their order; without are the others.
func with(messages []sent, records []kafka.Record) (with, without []kafka.Record) {
	ids := map[uuid.UUID]bool{}
	for _, m := range messages {
		ids[m.message.ID] = true
	}
	for _, r := range records {
		if ids[idOf(r)] {
			with = append(with, r)
		} else {
			without = append(without, r)
		}
	}
	return with, without
}

// only some of the messages.
func filter(messages []sent, wanted func(sent) bool) []sent {
	return slices.DeleteFunc(slices.Clone(messages), func(m sent) bool { return !wanted(m) })
}
