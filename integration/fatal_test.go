//go:build integration

package integration

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/outbox"
)

// A broker rejects a record for its own sake in a way that nobody can foresee: a
// record without a key, for a topic that is compacted. With it fails its whole
// request, which has rows of other buckets too, and its producer is finished. The
// other buckets publish again soon, through a careful producer at first; the guilty
// one stays at its row until the topic takes it. Everything arrives in order. The
// simulation measures the same over many seeds; here it is Kafka's and librdkafka's
// own time.
func TestOtherBucketsPublishSoonAfterAFatalError(t *testing.T) {
	t.Parallel()
	const guiltyBuckets = 4 // of 8: the first two are of different producers
	client := dynamo(t)
	schema := freshTable(t, client, outbox.Schema{})
	topic := uniqueTopic(t)
	partitions := map[string]int{topic: 1}
	brokers(t).create(t, ck.TopicSpecification{Topic: topic, NumPartitions: 1, ReplicationFactor: 1,
		Config: map[string]string{"cleanup.policy": "compact"}})
	// A long linger puts rows of all buckets into one request.
	relay := start(t, "relay", relayArgs(t, schema.Table, "relay", "--poison", "block", "--error-backoff", "1s", "--kafka", "linger.ms=100", "--log-level", "trace")...)
	load := steadily(t, newWriter(t, client, schema), topic)
	load.awaitAll(t, allBuckets(8))

	var poisons []sent
	var took []time.Duration
	for guilty := range guiltyBuckets {
		mark := relay.now()
		m := keylessIn(topic, guilty, schema.BucketCount)
		poisons = append(poisons, sent{message: m, began: m.CreatedAt})
		enqueue(t, client, schema, m)
		relay.awaitFrom(mark, "bucket.blocked", nil)
		load.awaitAll(t, allBuckets(8)[guilty+1:])
		took = append(took, recoveriesIn(relay.said(func(line) bool { return true })[mark:], guilty)...)
	}
	brokers(t).configure(t, topic, "cleanup.policy", "delete")
	all := append(load.end(), poisons...)
	awaitDelivery(t, all, partitions)
	relay.stop()

	verdict := check(all, readTopic(t, topic), partitions, time.Now())
	t.Logf("%v", &verdict)
	if !verdict.sound() {
		t.Errorf("%v", &verdict)
	}
	if left := inspect(scan(t, client, schema.Table)).messages; left != 0 {
		t.Errorf("%d messages are left in the table", left)
	}
	slices.Sort(took)
	if len(took) == 0 {
		t.Fatal("no bucket but the guilty ones lost rows")
	}
	t.Logf("after %d fatal errors %d innocent buckets had an acknowledgement again after: median %v, max %v",
		guiltyBuckets, len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	if took[len(took)-1] > 3*time.Second {
		t.Errorf("one was without for %v, want 3 s at most", took[len(took)-1])
	}
}

// recoveriesIn are, of a relay's lines from a fatal error on, the times until the
// buckets that had lost rows to it, but for the guilty one, had their next
// acknowledgement.
func recoveriesIn(lines []line, guilty int) (took []time.Duration) {
	failed := slices.IndexFunc(lines, func(l line) bool { return l.Event == "producer.failed" })
	if failed < 0 {
		return nil
	}
	without := map[int]bool{}
	for _, l := range lines[failed:] {
		switch {
		case l.Bucket == nil || *l.Bucket == guilty:
		case l.Event == "publish.failed":
			without[*l.Bucket] = true
		case l.Event == "record.acknowledged" && without[*l.Bucket]:
			took = append(took, l.Time.Sub(lines[failed].Time))
			delete(without, *l.Bucket)
		}
	}
	return took
}

// keylessIn is a message without a key that lands in the given bucket.
func keylessIn(topic string, bucket, count int) outbox.Message {
	for {
		if m := outbox.NewMessage(topic, nil, []byte("without a key")); m.Bucket(count) == bucket {
			return m
		}
	}
}

// steady is a load that has each bucket at work all the time.
type steady struct {
	topic string
	end   func() []sent // ends it and returns all that was written

	mu      sync.Mutex
	latest  []outbox.Message // guarded by mu; of the last commit, by bucket
	changed chan struct{}    // guarded by mu; closed and replaced with each commit
}

// steadyPause is the time between two commits of a steady load, each of which has
// one message for each of 8 buckets.
const steadyPause = 50 * time.Millisecond

func steadily(t *testing.T, writer *outbox.Writer, topic string) *steady {
	t.Helper()
	l := &steady{topic: topic, changed: make(chan struct{})}
	keys := make([][]byte, 8)
	for b := range keys {
		keys[b] = inBucket(topic, b, len(keys)).Key
	}
	done, ended := make(chan struct{}), make(chan struct{})
	var written []sent
	go func() {
		defer close(ended)
		pace := time.NewTicker(steadyPause)
		defer pace.Stop()
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-pace.C:
			}
			batch := make([]outbox.Message, len(keys))
			for b, key := range keys {
				batch[b] = outbox.NewMessage(topic, key, fmt.Append(nil, n))
				written = append(written, sent{message: batch[b], stream: string(key), began: batch[b].CreatedAt})
			}
			if err := writer.Enqueue(t.Context(), batch...); err != nil {
				if t.Context().Err() == nil {
					t.Errorf("write messages: %v", err)
				}
				return
			}
			l.mu.Lock()
			l.latest = batch
			close(l.changed)
			l.changed = make(chan struct{})
			l.mu.Unlock()
		}
	}()
	l.end = sync.OnceValue(func() []sent {
		close(done)
		<-ended
		return written
	})
	t.Cleanup(func() { l.end() })
	return l
}

// awaitAll waits for the messages of the next commit that are in these buckets.
func (l *steady) awaitAll(t *testing.T, buckets []int) {
	t.Helper()
	l.mu.Lock()
	changed := l.changed
	l.mu.Unlock()
	select {
	case <-changed:
	case <-time.After(patience):
		t.Fatalf("nothing was written within %v", patience)
	}
	l.mu.Lock()
	latest := l.latest
	l.mu.Unlock()
	var wanted []sent
	for _, b := range buckets {
		wanted = append(wanted, sent{message: latest[b]})
	}
	awaitDelivery(t, wanted, map[string]int{l.topic: 1})
}
