//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/actors/publisher/publishertest"
	"github.com/bucketbrigade/relay/kafka"
)

// The real broker keeps what the mock cluster, kfake and the simulation's broker
// keep.
func TestProducerConformance(t *testing.T) {
	for name, properties := range map[string]map[string]string{
		"default requests":     nil,
		"one record a request": {"linger.ms": "0", "batch.num.messages": "1"},
	} {
		t.Run(name, func(t *testing.T) {
			publishertest.Run(t, func(t *testing.T) publishertest.Harness { return kafkaHarness(t, properties) })
		})
	}
}

func kafkaHarness(t *testing.T, properties map[string]string) publishertest.Harness {
	config := kafka.Config{Brokers: brokers(t), Properties: properties}
	return publishertest.Harness{
		Factory: newFactory(t, config),
		Topic:   uniqueTopic(t),
		CreateTopic: func(t testing.TB, topic string, partitions int32, maxMessageBytes int) {
			createTopic(t, topic, int(partitions), maxMessageBytes)
		},
		Grow: func(t testing.TB, topic string, partitions int32) { brokers(t).grow(t, topic, int(partitions)) },
		Read: func(t testing.TB, topic string) []publishertest.Record {
			var records []publishertest.Record
			for _, r := range readTopic(t, topic) {
				records = append(records, publishertest.Record{Partition: r.Partition, Timestamp: r.Timestamp,
					Key: r.Key, Value: r.Value, Headers: r.Headers})
			}
			return records
		},
		Now: time.Now,
		Lacks: map[publishertest.Ability]string{
			publishertest.Holding: "a real broker answers what it is asked",
		},
	}
}

// TestOrderAcrossARejectedRecord shows the first four rows of kafka.md's table,
// in the relay's own settings: 30 rows of one partition, one row a request, of
// which one is larger than the topic allows.
func TestOrderAcrossARejectedRecord(t *testing.T) {
	const rows = 30
	for _, c := range []struct {
		name    string
		options publisher.Options
		used    bool // the partition has another producer's data already
		primed  bool // the partition's first row is sent alone and acknowledged
		guilty  int
		// promised says what must be in the topic; nil: not promised, only shown.
		promised func(appended []int) bool
	}{
		{name: "careful", options: publisher.Options{Careful: true}, used: true, guilty: 1,
			promised: func(appended []int) bool { return len(appended) == rows-1 && !slices.Contains(appended, 1) }},
		{name: "gap-less, on a partition without data", guilty: 1},
		{name: "gap-less, not primed, first row rejected", used: true, guilty: 0},
		{name: "gap-less, primed", used: true, primed: true, guilty: 1,
			promised: func(appended []int) bool { return slices.Equal(appended, []int{0}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			topic := uniqueTopic(t)
			createTopic(t, topic, 1, 2_000)
			factory := newFactory(t, kafka.Config{Brokers: brokers(t), Properties: map[string]string{"linger.ms": "0", "batch.num.messages": "1"}})
			if c.used {
				send(t, factory, publisher.Options{Careful: true}, topic, []string{"another producer's"}, false)
			}
			values := make([]string, rows)
			for n := range values {
				values[n] = strconv.Itoa(n)
				if n == c.guilty {
					values[n] += strings.Repeat(".", 5_000)
				}
			}
			outcomes := send(t, factory, c.options, topic, values, c.primed)
			appended := numbersIn(readTopic(t, topic))
			t.Logf("outcomes %v, appended %v", outcomes, appended)
			if c.promised != nil && !c.promised(appended) {
				t.Errorf("appended %v", appended)
			}
		})
	}
}

// send publishes values and returns how many had which outcome. Once a fatal
// error came, it purges until every report is in.
func send(t *testing.T, factory *kafka.Factory, o publisher.Options, topic string, values []string, primed bool) map[string]int {
	t.Helper()
	messages := make(chan any, 10_000)
	o.Number = 1
	producer, err := factory.Open(o, func(msg any) { messages <- msg })
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	outcomes, outstanding := make(map[string]int), 0
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	settle := func() {
		for outstanding > 0 {
			select {
			case msg := <-messages:
				switch m := msg.(type) {
				case publisher.Reported:
					outstanding -= len(m.Reports)
					for _, r := range m.Reports {
						outcomes[outcomeOf(r.Fault)]++
					}
				case publisher.Fataled:
					outcomes["fatal error "+m.Fault.Code]++
					producer.Purge()
				}
			case <-deadline.C:
				t.Fatalf("%d records have no report; %v", outstanding, outcomes)
			}
		}
	}
	for n, value := range values {
		err := producer.Produce(publisher.Record{Topic: topic, Value: []byte(value)}, publisher.Token{Sequence: int64(n)})
		if err != nil {
			outcomes["refused: "+err.(*publisher.Fault).Code]++
			continue
		}
		outstanding++
		if n == 0 && primed {
			settle()
		}
	}
	settle()
	return outcomes
}

func outcomeOf(f *publisher.Fault) string {
	if f == nil {
		return "acknowledged"
	}
	return f.Class.String() + " " + f.Code
}

// numbersIn are the numbers that values begin with, in the topic's order.
func numbersIn(records []kafka.Record) []int {
	numbers := []int{}
	for _, r := range records {
		if n, err := strconv.Atoi(strings.TrimRight(string(r.Value), ".")); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func newFactory(t testing.TB, c kafka.Config) *kafka.Factory {
	t.Helper()
	factory, err := kafka.NewFactory(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		if _, err := factory.Close(ctx); err != nil {
			t.Errorf("close factory: %v", err)
		}
	})
	return factory
}

// uniqueTopic is a name that no other test and no other run uses.
func uniqueTopic(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("relay-test-%d-%d", os.Getpid(), time.Now().UnixNano())
}
