package simulation

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// scripted is one message of a scenario.
type scripted struct {
	message   outbox.Message
	key       string // its name in the scenario
	bucket    int
	sequence  int64 // that was reserved for it
	committed bool
}

// writing is what a commit or a reservation says of its messages.
type writing struct {
	names   []string
	key     string
	keyless bool
	bucket  int // -1: that of the key
	topic   string
	size    int
	part    int // the partition that the writer chooses; -1: none
	stamp   int // the writer's bucket count; 0: that of the fleet
	each    bool
	refused bool
}

var writingWords = []string{"in", "key", "keyless", "to", "on", "of", "stamped", "each", "refused"}

// readWriting reads "m1..m3 in bucket 2 key a to audit of 700 bytes stamped 16 each".
func readWriting(w *words) writing {
	m := writing{bucket: -1, topic: "orders", part: -1}
	m.names = w.names(writingWords)
	for w.err == nil && w.peek() != "" {
		switch {
		case w.has("in bucket"):
			m.bucket = w.bucket()
		case w.has("key"):
			m.key = w.take("a key")
		case w.has("keyless"):
			m.keyless = true
		case w.has("to"):
			m.topic = w.take("a topic")
		case w.has("on partition"):
			m.part = w.number("a partition")
		case w.has("of"):
			m.size = w.number("the size")
			w.must("bytes")
		case w.has("stamped"):
			m.stamp = w.number("a bucket count")
		case w.has("each"):
			m.each = true
		case w.has("refused"):
			m.refused = true
		default:
			w.take("")
			w.fail("want in bucket, key, keyless, to, on partition, of, stamped, each or refused")
		}
	}
	return m
}

// commit m1..m3 …: one transaction, or one for each. Messages that were reserved
// before get the numbers of then.
func readCommit(p *scenarioParser, w *words) func(*stage) error {
	m := readWriting(w)
	p.written = append(p.written, m.names...)
	return func(t *stage) error {
		if !m.each {
			return t.commit(m, m.names)
		}
		for _, name := range m.names {
			if err := t.commit(m, []string{name}); err != nil {
				return err
			}
		}
		return nil
	}
}

// reserve m1..m3 …: numbers, and nothing more yet.
func readReserve(p *scenarioParser, w *words) func(*stage) error {
	m := readWriting(w)
	p.written = append(p.written, m.names...)
	return func(t *stage) error { return t.reserve(m, m.names) }
}

// abandon 2 numbers in bucket 3: reserved, never committed.
func readAbandon(_ *scenarioParser, w *words) func(*stage) error {
	n := w.number("how many")
	w.must("numbers in bucket")
	bucket := w.bucket()
	return func(t *stage) error {
		t.fleet.writers.reserve(bucket, n)
		return nil
	}
}

// reserve makes the messages that are new, and takes a number for each.
func (t *stage) reserve(m writing, names []string) error {
	var made []*scripted
	for _, name := range names {
		if t.messages[name] != nil {
			return fmt.Errorf("there is a message %s already", name)
		}
		s, err := t.make(m)
		if err != nil {
			return err
		}
		t.messages[name] = s
		t.names[s.message.ID] = name
		if m.size > 0 || m.part >= 0 { // a topic's limit may be lower, or it has no such partition
			t.fleet.writers.blamed[s.message.ID] = true
		}
		made = append(made, s)
		if s.bucket != made[0].bucket {
			return errors.New("messages of one transaction are of one bucket here")
		}
	}
	first := t.fleet.writers.reserve(made[0].bucket, len(made))
	for i, s := range made {
		s.sequence = first + int64(i)
	}
	return nil
}

// commit writes the messages in one transaction.
func (t *stage) commit(m writing, names []string) error {
	if t.messages[names[0]] == nil {
		if err := t.reserve(m, names); err != nil {
			return err
		}
	}
	var messages []outbox.Message
	for _, name := range names {
		s := t.messages[name]
		if s == nil || s.committed || s.bucket != t.messages[names[0]].bucket {
			return fmt.Errorf("%s was not reserved with the others, or is committed already", name)
		}
		messages = append(messages, s.message)
	}
	schema := t.fleet.schema
	if m.stamp > 0 {
		schema.BucketCount = m.stamp
	}
	first := t.messages[names[0]]
	err := t.fleet.writers.put(schema, first.bucket, first.sequence, messages, "")
	var canceled *types.TransactionCanceledException
	switch {
	case m.refused && errors.As(err, &canceled):
		return nil
	case m.refused:
		return errors.New("the transaction was not refused")
	case err != nil:
		return err
	}
	for _, name := range names {
		t.messages[name].committed = true
	}
	return nil
}

// make makes one message.
func (t *stage) make(m writing) (*scripted, error) {
	f := t.fleet
	count := f.o.Buckets
	if m.stamp > 0 {
		count = m.stamp
	}
	key := m.key
	if key == "" && m.bucket >= 0 {
		key = fmt.Sprintf("bucket-%d", m.bucket)
	}
	s := &scripted{message: outbox.Message{Topic: m.topic, CreatedAt: time.Unix(0, int64(epoch+f.now)).UTC()}}
	in := m.bucket
	if m.part >= 0 { // a chosen partition chooses the bucket
		partition := int32(m.part)
		s.message.Partition = &partition
		if m.bucket >= 0 && m.bucket != m.part%count {
			return nil, fmt.Errorf("partition %d is in bucket %d", m.part, m.part%count)
		}
		in = -1
	}
	switch {
	case m.keyless:
		key = ""
	case key == "":
		return nil, errors.New("a message has a key, a bucket, or is keyless")
	default:
		bytes, err := t.keyIn(key, in, count)
		if err != nil {
			return nil, err
		}
		s.message.Key, s.key = bytes, key
	}
	for {
		f.writers.made++
		binary.BigEndian.PutUint64(s.message.ID[:8], f.o.Seed)
		binary.BigEndian.PutUint64(s.message.ID[8:], f.writers.made)
		s.bucket = s.message.Bucket(count)
		if m.bucket < 0 || s.bucket == m.bucket {
			break
		}
	}
	s.message.Value = fmt.Appendf(nil, "value %d", f.writers.made)
	if m.size > 0 {
		s.message.Value = bytes.Repeat([]byte{'x'}, m.size)
	}
	return s, nil
}

// keyIn is a key of a name: the name, and behind it what puts it in the bucket.
func (t *stage) keyIn(name string, bucket, count int) ([]byte, error) {
	key := []byte(name)
	if known := t.keys[name]; known != nil {
		key = known
	}
	in := func(key []byte) int { return outbox.Message{Key: key}.Bucket(count) }
	switch {
	case bucket < 0 || in(key) == bucket:
	case bucket >= count:
		return nil, fmt.Errorf("there are only %d buckets", count)
	case t.keys[name] != nil:
		return nil, fmt.Errorf("key %s is in bucket %d", name, in(key))
	default:
		for n := 0; in(key) != bucket; n++ {
			key = fmt.Appendf(nil, "%s~%d", name, n)
		}
	}
	t.keys[name] = key
	return key, nil
}

// row is the key of a message's row.
func (t *stage) row(name string) (map[string]types.AttributeValue, error) {
	s := t.messages[name]
	if s == nil || !s.committed {
		return nil, fmt.Errorf("no message %s was committed", name)
	}
	schema := t.fleet.schema
	return schema.Key(schema.MessagesKey(s.bucket), outbox.SequenceSortKey(s.sequence)), nil
}

// spoil m1: its row cannot be read any more.
func readSpoil(_ *scenarioParser, w *words) func(*stage) error {
	return rewrite(w, func(item map[string]types.AttributeValue, _ *scripted) {
		item[outbox.AttrTopic] = &types.AttributeValueMemberN{Value: "7"}
	})
}

// mend m1: it can be read again.
func readMend(_ *scenarioParser, w *words) func(*stage) error {
	return rewrite(w, func(item map[string]types.AttributeValue, s *scripted) {
		item[outbox.AttrTopic] = &types.AttributeValueMemberS{Value: s.message.Topic}
	})
}

// rewrite changes the row of a message.
func rewrite(w *words, change func(map[string]types.AttributeValue, *scripted)) func(*stage) error {
	name := w.take("a message")
	return func(t *stage) error {
		key, err := t.row(name)
		if err != nil {
			return err
		}
		table := &t.fleet.schema.Table
		out, err := t.fleet.db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: table, Key: key})
		if err != nil {
			return err
		}
		if out.Item == nil {
			return fmt.Errorf("the row of %s is gone", name)
		}
		change(out.Item, t.messages[name])
		_, err = t.fleet.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: table, Item: out.Item})
		return err
	}
}

// reset counter of bucket 3 to 0: what nobody must do.
func readReset(_ *scenarioParser, w *words) func(*stage) error {
	w.must("counter of bucket")
	bucket := w.bucket()
	w.must("to")
	n := w.number("a number")
	return func(t *stage) error {
		t.fleet.writers.setBack = true
		t.fleet.writers.setCounter(bucket, int64(n))
		return nil
	}
}

// catchUp takes note of the broker's new records.
func (t *stage) catchUp() {
	log := t.fleet.broker.Log()
	for ; t.read < len(log); t.read++ {
		id, _ := messageID(log[t.read].Record)
		if log[t.read].Topic == letterTopic {
			t.letters[t.names[id]]++
			continue
		}
		t.log = append(t.log, t.names[id])
		t.deliveries[t.names[id]]++
	}
}

// delivered are the names of the messages that the broker has, in the order of
// its log, of those that pass.
func (t *stage) delivered(pass func(*scripted) bool) []string {
	t.catchUp()
	var names []string
	for _, name := range t.log {
		if s := t.messages[name]; s != nil && pass(s) {
			names = append(names, name)
		}
	}
	return names
}

// firsts are the names without repetitions.
func firsts(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
