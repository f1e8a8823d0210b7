//go:build integration

package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// What is moved in each of the rounds, once by each contestant.
const (
	benchMessages   = 20_000
	benchValueBytes = 300
	benchKeys       = 1_000
	benchPartitions = 8
	benchRounds     = 3
)

// TestThroughputBesideABareLoop measures one relay beside a loop that does only
// what cannot be left out, with the same two clients on the same kind of table:
// query 500 rows, produce them, wait for the reports, delete them 25 at a time.
// The loop goes from bucket to bucket; a second one has a loop for each bucket,
// as the relay does. The relay runs in both of its modes. All take turns, and what counts is the time of all rounds.
// Nothing is asserted but that everything was moved: machines differ.
func TestThroughputBesideABareLoop(t *testing.T) {
	contestants := []struct {
		name string
		move func(*bench) time.Duration
	}{
		{"bare loop", (*bench).bareLoop},
		{"bare loop per bucket", (*bench).bareLoopPerBucket},
		{"relay", func(b *bench) time.Duration { return b.relay(relay.ModeOrdered) }},
		{"relay, fenced", func(b *bench) time.Duration { return b.relay(relay.ModeFenced) }},
	}
	warm := uniqueTopic(t) + "-warm"
	createTopic(t, warm, 1, 0)
	total := map[string]time.Duration{}
	for range benchRounds {
		for _, c := range contestants {
			b := newBench(t, warm)
			took := c.move(b)
			total[c.name] += took
			t.Logf("%-21s %6.0f messages/s", c.name, benchMessages/took.Seconds())
			b.wantMoved()
		}
	}
	for _, c := range contestants {
		t.Logf("%-21s %6.0f messages/s in all rounds", c.name, benchRounds*benchMessages/total[c.name].Seconds())
	}
	for _, c := range contestants[:2] {
		t.Logf("relay / %s = %.2f", c.name, total[c.name].Seconds()/total["relay"].Seconds())
	}
	t.Logf("fenced / ordered = %.2f", total["relay"].Seconds()/total["relay, fenced"].Seconds())
}

// bench is a table full of messages, a topic, and the clients to move them with.
type bench struct {
	t      *testing.T
	client *dynamodb.Client
	schema outbox.Schema
	topic  string
	warm   string // a topic to which producers of a loop send a record before the start
}

func newBench(t *testing.T, warm string) *bench {
	t.Helper()
	b := &bench{t: t, client: dynamo(t), topic: uniqueTopic(t), warm: warm}
	b.schema = freshTable(t, b.client, outbox.Schema{})
	createTopic(t, b.topic, benchPartitions, 0)
	writer := newWriter(t, b.client, b.schema)
	var writers sync.WaitGroup
	for w := range authors {
		writers.Go(func() {
			for first := w * outbox.MaxCallItems; first < benchMessages; first += authors * outbox.MaxCallItems {
				batch := make([]outbox.Message, outbox.MaxCallItems)
				for i := range batch {
					key := fmt.Appendf(nil, "key-%d", (first+i)%benchKeys)
					batch[i] = outbox.NewMessage(b.topic, key, make([]byte, benchValueBytes))
				}
				if err := writer.Enqueue(t.Context(), batch...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	return b
}

// wantMoved wants an empty table, and each message in the topic once.
func (b *bench) wantMoved() {
	b.t.Helper()
	if left := inspect(scan(b.t, b.client, b.schema.Table)).messages; left != 0 {
		b.t.Errorf("%d messages are left in the table", left)
	}
	if records := len(readTopic(b.t, b.topic)); records != benchMessages {
		b.t.Errorf("the topic has %d records, want %d", records, benchMessages)
	}
}

// relay moves all with an embedded relay, in its default settings but for the mode. The time runs
// from its first fetch to its last delete, as the loops' does.
func (b *bench) relay(mode relay.Mode) time.Duration {
	var mu sync.Mutex
	var began, ended time.Duration
	removed, all := 0, make(chan struct{})
	batches, publishing := 0, time.Duration(0)
	observe := func(e event.Envelope) {
		mu.Lock()
		defer mu.Unlock()
		switch v := e.Event.(type) {
		case event.RequestCompleted:
			if v.Request == "fetch" && began == 0 {
				began = e.Elapsed - v.Took
			}
		case event.BatchPublished:
			batches, publishing = batches+1, publishing+v.Took
		case event.BatchRemoved:
			if removed += v.Rows; removed == benchMessages {
				ended = e.Elapsed
				close(all)
			}
		}
	}
	r, err := relay.New(relay.Config{
		Table: b.schema.Table, Mode: mode, DynamoDB: b.client, Coordination: dynamo(b.t),
		Producers: newFactory(b.t, kafka.Config{Brokers: brokers(b.t)}),
		Observers: []event.Observer{event.ObserverFunc(observe)},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(b.t.Context(), patience)
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	select {
	case <-all:
	case <-ctx.Done():
		b.t.Errorf("not all was moved within %v", patience)
	}
	stop()
	if err := <-ran; err != nil {
		b.t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	b.t.Logf("%-21s %6.1f ms from a batch's submission to its last acknowledgement, %d batches",
		mode, float64(publishing.Milliseconds())/float64(max(1, batches)), batches)
	return ended - began
}

// bareLoop moves all, bucket by bucket.
func (b *bench) bareLoop() time.Duration {
	loop := b.newLoop()
	began := time.Now()
	for bucket := range b.schema.BucketCount {
		loop.drain(bucket)
	}
	return time.Since(began)
}

// bareLoopPerBucket moves all buckets at once, each with a producer of its own.
func (b *bench) bareLoopPerBucket() time.Duration {
	loops := make([]*loop, b.schema.BucketCount)
	for bucket := range loops {
		loops[bucket] = b.newLoop()
	}
	var drains sync.WaitGroup
	began := time.Now()
	for bucket, l := range loops {
		drains.Go(func() { l.drain(bucket) })
	}
	drains.Wait()
	return time.Since(began)
}

// loop is the bare loop: it knows no lease, no gap and no failure.
type loop struct {
	*bench
	producer *ck.Producer
}

func (b *bench) newLoop() *loop {
	b.t.Helper()
	producer, err := ck.NewProducer(&ck.ConfigMap{
		"bootstrap.servers": strings.Join(brokers(b.t), ","), "acks": "all", "enable.idempotence": true,
		"partitioner": "murmur2_random", "linger.ms": 5, "go.delivery.report.fields": "none", "go.events.channel.size": 10_000,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(producer.Close)
	if _, err := producer.GetMetadata(&b.topic, false, int(patience.Milliseconds())); err != nil {
		b.t.Fatal(err)
	}
	l := &loop{bench: b, producer: producer}
	if err := producer.Produce(&ck.Message{TopicPartition: ck.TopicPartition{Topic: &b.warm}}, nil); err != nil {
		b.t.Fatal(err)
	}
	l.reports(1)
	return l
}

func (l *loop) drain(bucket int) {
	for {
		out, err := l.client.Query(l.t.Context(), &dynamodb.QueryInput{
			TableName: &l.schema.Table, ConsistentRead: aws.Bool(true), Limit: aws.Int32(relay.DefaultBatchSize),
			KeyConditionExpression:    aws.String("PK = :pk"),
			ExpressionAttributeValues: item{":pk": text(l.schema.MessagesKey(bucket))},
		})
		if err != nil {
			l.t.Error(err)
			return
		}
		if len(out.Items) == 0 {
			return
		}
		if !l.publish(out.Items) || !l.remove(out.Items) {
			return
		}
	}
}

// publish produces the rows and waits for all reports.
func (l *loop) publish(items []item) bool {
	for _, i := range items {
		row, err := l.schema.DecodeMessage(i)
		if err != nil {
			l.t.Error(err)
			return false
		}
		m := row.Message
		err = l.producer.Produce(&ck.Message{
			TopicPartition: ck.TopicPartition{Topic: &m.Topic, Partition: ck.PartitionAny}, Key: m.Key, Value: m.Value,
			Headers: []ck.Header{{Key: idHeader, Value: []byte(m.ID.String())}},
		}, nil)
		if err != nil {
			l.t.Error(err)
			return false
		}
	}
	return l.reports(len(items))
}

// reports waits for this many reports.
func (l *loop) reports(n int) bool {
	deadline := time.After(patience)
	for n > 0 {
		select {
		case e := <-l.producer.Events():
			m, isReport := e.(*ck.Message)
			if !isReport {
				continue
			}
			if m.TopicPartition.Error != nil {
				l.t.Error(m.TopicPartition.Error)
				return false
			}
			n--
		case <-deadline:
			l.t.Errorf("%d records have no report", n)
			return false
		}
	}
	return true
}

// remove deletes the rows, 25 at a time, one request after another.
func (l *loop) remove(items []item) bool {
	for ; len(items) > 0; items = items[min(store.MaxDeletes, len(items)):] {
		var deletes []types.WriteRequest
		for _, i := range items[:min(store.MaxDeletes, len(items))] {
			deletes = append(deletes, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: item{"PK": i["PK"], "SK": i["SK"]}}})
		}
		out, err := l.client.BatchWriteItem(l.t.Context(), &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{l.schema.Table: deletes},
		})
		if err != nil || len(out.UnprocessedItems) > 0 {
			l.t.Errorf("delete: %v, %d unprocessed", err, len(out.UnprocessedItems))
			return false
		}
	}
	return true
}
