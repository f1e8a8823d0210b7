//go:build integration

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/outbox"
)

// A topic gains partitions while a relay is at work. A row with a partition that is
// still to come blocks its bucket, with that policy, and no other one, and is delivered as soon as
// the partition is there. From then on keys go where Java's client sends them with
// the new count. Order holds before and after; across the change nobody can promise
// it, since a key may have another partition.
func TestTopicThatGainsPartitions(t *testing.T) {
	t.Parallel()
	const few, many, late, keys, each = 2, 6, 4, 20, 10
	client := dynamo(t)
	schema := freshTable(t, client, outbox.Schema{})
	topic := uniqueTopic(t)
	createTopic(t, topic, few, 0)
	writer := newWriter(t, client, schema)
	keyed := func(age string) []sent {
		var messages []sent
		for n := range keys * each {
			m := outbox.NewMessage(topic, fmt.Appendf(nil, "key-%d", n%keys), fmt.Appendf(nil, "%s %d", age, n))
			messages = append(messages, sent{message: m, stream: string(m.Key), began: m.CreatedAt})
		}
		return messages
	}
	early := outbox.NewMessage(topic, []byte("pinned"), []byte("early"))
	early.Partition = new(int32(late))
	bucket := early.Bucket(schema.BucketCount)

	relay := start(t, "relay", relayArgs(t, schema.Table, "relay", "--poison", "block", "--log-level", "debug")...)
	write(t, writer, []sent{{message: early}})
	t.Log(relay.await("bucket.blocked", func(l line) bool { return l.Bucket != nil && *l.Bucket == bucket }).text)
	first := keyed("before")
	before := filter(first, func(m sent) bool { return m.message.Bucket(schema.BucketCount) != bucket })
	behind := filter(first, func(m sent) bool { return m.message.Bucket(schema.BucketCount) == bucket })
	write(t, writer, first)
	awaitDelivery(t, before, map[string]int{topic: few})
	if records := readTopic(t, topic); len(records) != len(before) {
		t.Errorf("%d records while the bucket is blocked, want the %d of the other buckets", len(records), len(before))
	}

	brokers(t).grow(t, topic, many)
	relay.await("bucket.unblocked", func(l line) bool { return l.Bucket != nil && *l.Bucket == bucket })
	after := append([]sent{{message: early, stream: "pinned", began: early.CreatedAt}}, behind...)
	after = append(after, keyed("after")...)
	write(t, writer, after[1+len(behind):])
	awaitDelivery(t, after, map[string]int{topic: many})
	relay.stop()

	old, young := with(before, readTopic(t, topic))
	for _, c := range []struct {
		when    string
		verdict verdict
	}{
		{"before", check(before, old, map[string]int{topic: few}, time.Now())},
		{"afterwards", check(after, young, map[string]int{topic: many}, time.Now())},
	} {
		t.Logf("%s: %v", c.when, &c.verdict)
		if !c.verdict.sound() || c.verdict.duplicates > 0 {
			t.Errorf("%s: %v", c.when, &c.verdict)
		}
	}
	if left := inspect(scan(t, client, schema.Table)).messages; left != 0 {
		t.Errorf("%d messages are left in the table", left)
	}
}
