package simulation

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
)

// writers are services that write to the outbox. Each serializes its writes to a
// key: the next is reserved only after the one before was committed or given up.
// What they write is the layout of package outbox; the requests are made here,
// since a writer's reservation and commit must come at instants of their own.
type writers struct {
	fleet   *fleet
	rand    source
	stopped bool
	open    int // transactions that will commit, and repeats that will arrive
	keys    []writerKey
	blamed  map[uuid.UUID]bool          // messages that the broker rejects, or did
	poison  map[uuid.UUID]time.Duration // until when the broker rejects the record
	// committed are all messages that are in the table or were, in commit order.
	committed []commit
	byID      map[uuid.UUID]int // index into committed
	highest   []int64           // number of each bucket that was ever reserved
	setBack   bool              // a counter was: numbers may be given out again
	reused    map[rowName]bool  // numbers that were
	again     []rowName         // rows that were written once more
	made      uint64
}

type writerKey struct {
	topic string
	key   []byte // nil: keyless, never serialized
	// partitions are those of which the writer chooses one for each message of the
	// key, all of one bucket; nil: it chooses none.
	partitions []int32
	busy       bool
}

// commit is one committed message.
type commit struct {
	bucket   int
	sequence int64
	message  outbox.Message
	at       time.Duration
	// misnumbered: the counter had been set back, so that others may have had its
	// number, or higher ones, before it. Nothing is promised for it.
	misnumbered bool
}

// transaction is one of a writer's: messages of one key, with consecutive numbers.
type transaction struct {
	key      *writerKey
	messages []outbox.Message
	bucket   int
	first    int64
}

const keysPerTopic = 12

func newWriters(f *fleet) *writers {
	w := &writers{fleet: f, rand: source{derived(f.o.Seed, "writers")}, highest: make([]int64, f.o.Buckets), reused: map[rowName]bool{}, byID: map[uuid.UUID]int{}, blamed: map[uuid.UUID]bool{}, poison: map[uuid.UUID]time.Duration{}}
	for _, t := range topics {
		for k := range keysPerTopic {
			w.keys = append(w.keys, writerKey{topic: t.name, key: fmt.Appendf(nil, "%s-%d", t.name, k)})
		}
		w.keys = append(w.keys, writerKey{topic: t.name, key: []byte{}}, writerKey{topic: t.name},
			writerKey{topic: t.name, key: []byte("pinned"), partitions: []int32{0}}, writerKey{topic: t.name, partitions: []int32{int32(t.partitions - 1)}})
		if f.o.Buckets == 2 && t.partitions == 3 {
			w.keys = append(w.keys, writerKey{topic: t.name, key: []byte("moving"), partitions: []int32{0, 2}})
		}
	}
	return w
}

// start lets messages be written at random, so many a second on average.
func (w *writers) start() {
	mean := time.Duration(float64(time.Second) / w.fleet.o.Rate)
	var next func()
	next = func() {
		if w.stopped {
			return
		}
		w.write()
		w.fleet.At(w.rand.between(0, 2*mean), next)
	}
	w.fleet.At(w.rand.between(0, 2*mean), next)
}

func (w *writers) stop() { w.stopped = true }

// resume lets messages be written again.
func (w *writers) resume() {
	w.stopped = false
	w.start()
}

// poisonous tells whether the broker rejects the record for now.
func (w *writers) poisonous(r publisher.Record) bool {
	id, ok := messageID(r)
	return ok && w.poison[id] > w.fleet.now
}

// guilty tells whether the message is one that the broker may reject for its own
// sake.
func (w *writers) guilty(m outbox.Message) bool { return w.blamed[m.ID] }

// write begins one transaction of one to three messages of one key.
func (w *writers) write() {
	f, x := w.fleet, transaction{key: &w.keys[w.rand.IntN(len(w.keys))]}
	if x.key.busy {
		return
	}
	x.messages = make([]outbox.Message, 1+w.rand.IntN(3))
	for i := range x.messages {
		x.messages[i] = w.message(x.key)
	}
	if x.key.key == nil {
		x.messages = x.messages[:1]
	}
	x.bucket = x.messages[0].Bucket(f.o.Buckets)
	x.key.busy = x.key.key != nil
	x.first = w.reserve(x.bucket, len(x.messages))
	w.decide(x)
}

func (w *writers) message(k *writerKey) outbox.Message {
	f := w.fleet
	w.made++
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], f.o.Seed)
	binary.BigEndian.PutUint64(id[8:], w.made)
	m := outbox.Message{ID: id, Topic: k.topic, Key: k.key, CreatedAt: time.Unix(0, int64(epoch+f.now)).UTC()}
	switch w.rand.IntN(8) {
	case 0: // a tombstone
	case 1:
		m.Value = []byte{}
	case 2: // too large for a topic whose limit was lowered
		m.Value = bytes.Repeat([]byte{'x'}, 2*lowLimit)
		w.blamed[id] = true
	default:
		m.Value = fmt.Appendf(nil, "value %d", w.made)
	}
	if n := len(k.partitions); n > 0 {
		m.Partition = &k.partitions[w.rand.IntN(n)]
	}
	switch w.rand.IntN(8) {
	case 0, 1:
		m.Headers = []outbox.Header{{Key: "h", Value: nil}, {Key: "h", Value: []byte{}}}
	case 2: // the first is replaced, the second is not
		m.Headers = []outbox.Header{{Key: "x-outbox-message-id", Value: []byte("mine")}, {Key: "X-Outbox-Message-Id", Value: []byte("too")}}
	}
	if f.dice.roll(BrokerRejects) {
		w.blamed[id] = true
		w.poison[id] = f.now + f.dice.of(BrokerRejects).between(time.Second, time.Minute)
	}
	return m
}

// reserve takes numbers from the bucket's sequence and returns the first.
func (w *writers) reserve(bucket, n int) int64 {
	s := w.fleet.schema
	out, err := w.fleet.db.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName:                 &s.Table,
		Key:                       s.Key(s.SequenceKey(bucket), outbox.CounterSortKey),
		UpdateExpression:          aws.String("ADD #n :n"),
		ExpressionAttributeNames:  map[string]string{"#n": outbox.AttrSequence},
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)}},
		ReturnValues:              types.ReturnValueUpdatedNew,
	})
	if err != nil {
		panic(err)
	}
	var last int64
	fmt.Sscan(out.Attributes[outbox.AttrSequence].(*types.AttributeValueMemberN).Value, &last)
	first := last - int64(n) + 1
	for sequence := first; sequence <= min(last, w.highest[bucket]); sequence++ {
		w.reused[rowName{bucket, sequence}] = true
	}
	w.highest[bucket] = max(w.highest[bucket], last)
	return first
}

// put writes the messages in one transaction of a writer with a schema of its
// own, under a client request token; empty: none.
func (w *writers) put(schema outbox.Schema, bucket int, first int64, messages []outbox.Message, token string) error {
	f := w.fleet
	in := &dynamodb.TransactWriteItemsInput{}
	if token != "" {
		in.ClientRequestToken = &token
	}
	for i, m := range messages {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{
			TableName:                &f.schema.Table,
			Item:                     schema.EncodeMessage(m, bucket, first+int64(i)),
			ConditionExpression:      aws.String("attribute_not_exists(#pk)"),
			ExpressionAttributeNames: map[string]string{"#pk": f.schema.PartitionKey},
		}})
	}
	if _, err := f.db.TransactWriteItems(context.Background(), in); err != nil {
		return err
	}
	if _, known := w.byID[messages[0].ID]; known {
		return nil // repeated
	}
	for i, m := range messages {
		sequence := first + int64(i)
		w.byID[m.ID] = len(w.committed)
		w.committed = append(w.committed, commit{
			bucket: bucket, sequence: sequence, message: m, at: f.now, misnumbered: w.reused[rowName{bucket, sequence}],
		})
	}
	f.record("writer", messagesWritten, committed{bucket, first, len(messages)})
	return nil
}

// messageID is the id in a record's last header.
func messageID(r publisher.Record) (uuid.UUID, bool) {
	if len(r.Headers) == 0 || r.Headers[len(r.Headers)-1].Key != publisher.DefaultMessageIDHeader {
		return uuid.UUID{}, false
	}
	id, err := uuid.ParseBytes(r.Headers[len(r.Headers)-1].Value)
	return id, err == nil
}
