//go:build integration

package integration

import (
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/outbox"
)

// The rows of which one is too large for its topic.
const (
	limitedRows  = 500
	limitedKeys  = 25
	guiltyRow    = 251 // with rows before and behind it in its bucket and key
	limitBytes   = 2_000
	guiltyBytes  = 5_000
	limitedBytes = 300 // the values of the other rows
)

// position is where a row stands to the one that its topic does not take.
type position struct {
	guilty          bool
	behind          bool // it was committed later
	ofKey, ofBucket bool // it has the same key; it is in the same bucket
}

// poison is what a relay does with a record that its topic does not take.
type poison struct {
	name string
	args []string // of the relay
	says string   // its event when it has found the record
	// waits tells which rows may not be in the topic until it takes the record.
	waits func(position) bool
	// waitsIn is where they are meanwhile.
	waitsIn func(survey) int
	// resume is what a person does when the topic takes the record; nil: nothing.
	resume func(t *testing.T, table string)
}

// poisons are the policies of this version.
func poisons() []poison {
	return []poison{{
		name:    "block",
		says:    "bucket.blocked",
		waits:   func(p position) bool { return p.ofBucket && (p.guilty || p.behind) },
		waitsIn: func(s survey) int { return s.messages },
	}}
}

// A topic takes 2,000 bytes, and one of 500 rows has 5,000. What need not wait is
// delivered, nothing that must wait is, and rows that are committed meanwhile fare
// the same. When the topic takes the row, everything arrives, in order. The relay
// foresees the rejection by the topic's limit; with compression it cannot, since the
// limit is on what is compressed, and the broker rejects the record.
func TestRecordThatItsTopicDoesNotTake(t *testing.T) {
	for _, p := range poisons() {
		for found, args := range map[string][]string{
			"foreseen":               nil,
			"rejected by the broker": {"--kafka", "compression.type=lz4"},
		} {
			t.Run(p.name+", "+found, func(t *testing.T) {
				t.Parallel()
				showPoison(t, p, args...)
			})
		}
	}
}

func showPoison(t *testing.T, p poison, args ...string) {
	client := dynamo(t)
	schema := freshTable(t, client, outbox.Schema{})
	topic := uniqueTopic(t)
	partitions := map[string]int{topic: 2}
	createTopic(t, topic, partitions[topic], limitBytes)
	rows := limitedMessages(topic)
	guilty := rows[guiltyRow]
	write(t, newWriter(t, client, schema), rows)
	relay := start(t, "relay", relayArgs(t, schema.Table, "relay", slices.Concat([]string{"--log-level", "debug"}, p.args, args)...)...)
	t.Log(relay.await(p.says, nil).text)

	more := limitedMessages(topic)[:2*limitedKeys] // of the same keys, all later
	write(t, newWriter(t, client, schema), more)
	waits := func(i int, m sent) bool {
		return p.waits(position{
			guilty: i == guiltyRow, behind: i > guiltyRow,
			ofKey:    m.stream == guilty.stream,
			ofBucket: m.message.Bucket(schema.BucketCount) == guilty.message.Bucket(schema.BucketCount),
		})
	}
	all := append(rows, more...)
	var held, free []sent
	for i, m := range all {
		if waits(i, m) {
			held = append(held, m)
		} else {
			free = append(free, m)
		}
	}
	awaitDelivery(t, free, partitions)
	verdict := check(free, readTopic(t, topic), partitions, time.Now())
	if !verdict.sound() { // what must wait would be of no message
		t.Errorf("while the row is rejected: %v", &verdict)
	}
	if left := p.waitsIn(inspect(scan(t, client, schema.Table))); left < len(held) {
		t.Errorf("%d rows wait, want all %d that are not delivered", left, len(held))
	}
	t.Logf("while the row is rejected: %d delivered, %d wait", len(free), len(held))

	brokers(t).configure(t, topic, "max.message.bytes", fmt.Sprint(4*guiltyBytes))
	if p.resume != nil {
		p.resume(t, schema.Table)
	}
	awaitDelivery(t, all, partitions)
	relay.stop()
	verdict = check(all, readTopic(t, topic), partitions, time.Now())
	t.Logf("%v", &verdict)
	if !verdict.sound() {
		t.Errorf("%v", &verdict)
	}
	if left := p.waitsIn(inspect(scan(t, client, schema.Table))); left != 0 {
		t.Errorf("%d rows are left in the table", left)
	}
}

// limitedMessages are the rows, keys in turn, in the order of their commits.
func limitedMessages(topic string) []sent {
	rows := make([]sent, limitedRows)
	for i := range rows {
		size := limitedBytes
		if i == guiltyRow {
			size = guiltyBytes
		}
		value := make([]byte, size)
		rand.Read(value) // it cannot be compressed
		m := outbox.NewMessage(topic, fmt.Appendf(nil, "key-%d", i%limitedKeys), value)
		rows[i] = sent{message: m, stream: string(m.Key), began: m.CreatedAt}
	}
	return rows
}
