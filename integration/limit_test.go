//go:build integration

package integration

import (
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/kafka"
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
	says string // its event when it has dealt with the record
	// waits tells which rows may not be in the topic until it takes the record.
	waits func(position) bool
	// waitsIn is where they are meanwhile.
	waitsIn func(survey) int
	// letters tells which rows never come to their topic, but to the one for letters.
	letters func(position) bool
	// resume are the arguments of the command by which a person has the rows
	// delivered when the topic takes the record; nil: they are by themselves.
	resume []string
}

func none(position) bool { return false }

// poisons are the policies.
func poisons() []poison {
	return []poison{{
		name:    "block",
		says:    "bucket.blocked",
		waits:   func(p position) bool { return p.ofBucket && (p.guilty || p.behind) },
		waitsIn: func(s survey) int { return s.messages },
		letters: none,
	}, {
		name:    "park",
		says:    "record.parked",
		waits:   func(p position) bool { return p.ofKey && (p.guilty || p.behind) },
		waitsIn: func(s survey) int { return s.messages + s.parked }, // the last may be on their way
		letters: none,
		resume:  []string{"parked", "retry", "--all", "--yes"},
	}, {
		name:    "dead-letter",
		says:    "letter.published",
		waits:   none,
		waitsIn: func(s survey) int { return s.messages },
		letters: func(p position) bool { return p.guilty },
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
	letters := topic + "-letters"
	partitions := map[string]int{topic: 2}
	createTopic(t, topic, partitions[topic], limitBytes)
	createTopic(t, letters, 1, 0)
	rows := limitedMessages(topic)
	guilty := rows[guiltyRow]
	write(t, newWriter(t, client, schema), rows)
	relay := start(t, "relay", relayArgs(t, schema.Table, "relay", slices.Concat(
		[]string{"--log-level", "debug", "--poison", p.name, "--dead-letter-topic", letters}, args)...)...)
	t.Log(relay.await(p.says, nil).text)

	more := limitedMessages(topic)[:2*limitedKeys] // of the same keys, all later
	write(t, newWriter(t, client, schema), more)
	var held, free, all []sent // all but those that never come
	for i, m := range append(rows, more...) {
		at := position{
			guilty: i == guiltyRow, behind: i > guiltyRow,
			ofKey:    m.stream == guilty.stream,
			ofBucket: m.message.Bucket(schema.BucketCount) == guilty.message.Bucket(schema.BucketCount),
		}
		switch {
		case p.letters(at):
			continue
		case p.waits(at):
			held = append(held, m)
		default:
			free = append(free, m)
		}
		all = append(all, m)
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
		command := start(t, "resume", append(p.resume, "--table", schema.Table, "--dynamodb-endpoint", endpoint(t))...)
		if code := command.exit(); code != 0 {
			t.Errorf("%v ended with %d: %s", p.resume, code, command.output())
		}
	}
	awaitDelivery(t, all, partitions)
	relay.stop()
	verdict = check(all, readTopic(t, topic), partitions, time.Now())
	t.Logf("%v", &verdict)
	if !verdict.sound() {
		t.Errorf("%v", &verdict)
	}
	s := inspect(scan(t, client, schema.Table))
	if s.messages+s.parked != 0 || len(s.problems) > 0 {
		t.Errorf("left in the table: %v; %v", &s, s.problems)
	}
	wantLetters(t, readTopic(t, letters), len(rows)+len(more)-len(all), guilty)
}

// wantLetters wants so many letters, each of the guilty message, with its content.
func wantLetters(t *testing.T, letters []kafka.Record, count int, guilty sent) {
	t.Helper()
	if len(letters) < count || count == 0 && len(letters) > 0 {
		t.Errorf("%d letters, want %d", len(letters), count)
	}
	for _, l := range letters {
		if idOf(l) != guilty.message.ID || !same(l.Key, guilty.message.Key) || !same(l.Value, guilty.message.Value) {
			t.Errorf("%s is not the letter of the row", place(l))
		}
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
