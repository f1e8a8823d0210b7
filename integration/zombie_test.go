//go:build integration

package integration

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
)

// zombieMessages wait in the table when the first relay starts; it is suspended
// long before they are moved.
const zombieMessages = 20_000

// oldHeader is the message id header of the relay that becomes a zombie: so each
// record tells whose it is.
const oldHeader = "x-published-by-the-old-owner"

// A relay is suspended, past its lease, while its batches are on their way, and
// wakes when another has taken its buckets. In both modes nothing is lost and first
// deliveries are in order. In fenced mode, besides, a consumer of committed records
// sees no record of the old owner after the first of the new one's.
func TestZombie(t *testing.T) {
	for _, mode := range []string{"ordered", "fenced"} {
		t.Run(mode, func(t *testing.T) {
			const partitions = 3
			topics := map[string]int{uniqueTopic(t) + "-" + mode: partitions}
			var name string
			for name = range topics {
				createTopic(t, name, partitions, 0)
			}
			client := dynamo(t)
			schema := freshTable(t, client, outbox.Schema{})
			workload := newWorkload(t, client, schema, []topic{{name, partitions}})
			if err := workload.write(t.Context(), zombieMessages); err != nil {
				t.Fatal(err)
			}
			messages, _ := workload.committed()
			run := func(id string, more ...string) *process {
				args := append([]string{"--mode", mode, "--batch-size", "100", "--log-level", "trace"}, more...)
				return start(t, id, relayArgs(t, schema.Table, id, args...)...)
			}

			zombie := run("old", "--message-id-header", oldHeader)
			zombie.await("batch.removed", nil)
			zombie.awaitFrom(zombie.now(), "batch.fetched", nil)
			zombie.signal(syscall.SIGSTOP)
			successor := run("new")
			claimed := 0
			successor.await("bucket.claimed", func(line) bool {
				claimed++
				return claimed == schema.BucketCount
			})
			successor.await("batch.removed", nil)
			woken := zombie.now()
			zombie.signal(syscall.SIGCONT)
			lost := 0
			zombie.awaitFrom(woken, "bucket.lost", func(line) bool {
				lost++
				return lost == schema.BucketCount
			})
			zombie.signal(syscall.SIGKILL) // before it gets buckets anew: then its records would be another owner's
			awaitDelivery(t, messages, topics)
			successor.stop()

			records := readTopic(t, name)
			late, old := lateOfOldOwner(messages, records)
			verdict := check(messages, named(records), topics, time.Now())
			t.Logf("%v", &verdict)
			t.Logf("%d records of the old owner, %d of them after the first of the new one's; %d records were appended and never seen",
				old, late, len(readUncommitted(t, name))-len(records))
			if !verdict.sound() || verdict.sent != zombieMessages {
				t.Errorf("%v", &verdict)
			}
			if late > 0 && mode == "fenced" {
				t.Errorf("%d records of the old owner come after the first of the new one's", late)
			}
			if left := inspect(scan(t, client, schema.Table)).messages; left != 0 {
				t.Errorf("%d messages are left in the table", left)
			}
		})
	}
}

// lateOfOldOwner counts the records of the old owner, and those of them that come,
// on their partition, after one of their bucket of the new owner.
func lateOfOldOwner(messages []sent, records []kafka.Record) (late, old int) {
	buckets := make(map[uuid.UUID]int, len(messages))
	for _, m := range messages {
		buckets[m.message.ID] = m.message.Bucket(8)
	}
	taken := map[string]bool{} // by bucket and partition: the new owner was seen
	for _, r := range records {
		header := r.Headers[len(r.Headers)-1]
		id, err := uuid.ParseBytes(header.Value)
		if err != nil {
			continue // check finds it
		}
		place := fmt.Sprint(buckets[id], r.Topic, r.Partition)
		switch {
		case header.Key != oldHeader:
			taken[place] = true
		case taken[place]:
			late++
			old++
		default:
			old++
		}
	}
	return late, old
}

// named are the records with the message id under its usual name, in place of a
// caller's header.
func named(records []kafka.Record) []kafka.Record {
	for i, r := range records {
		last := len(r.Headers) - 1
		if r.Headers[last].Key != oldHeader {
			continue
		}
		id := r.Headers[last].Value
		headers := slices.DeleteFunc(slices.Clone(r.Headers[:last]), func(h outbox.Header) bool { return h.Key == idHeader })
		records[i].Headers = append(headers, outbox.Header{Key: idHeader, Value: id})
	}
	return records
}

// readUncommitted are all records of a topic, those of aborted transactions too.
func readUncommitted(t testing.TB, topic string) []kafka.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	records, err := kafka.ReadTopic(ctx, kafka.Config{
		Brokers: brokers(t), Properties: map[string]string{"isolation.level": "read_uncommitted"}}, topic)
	if err != nil {
		t.Fatal(err)
	}
	return records
}
