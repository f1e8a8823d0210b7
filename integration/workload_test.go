//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/bucketbrigade/relay/outbox"
)

// authors is how many services write at once. Each has keys of its own, since
// only a key's serialized commits have an order.
const authors = 8

// workload is a number of services that write business items and messages.
type workload struct {
	client  *dynamodb.Client
	writer  *outbox.Writer
	schema  outbox.Schema
	orders  string // the table of the business items
	topics  []topic
	authors []*author

	mu      sync.Mutex
	written int                   // guarded by mu
	marks   map[int]chan struct{} // guarded by mu; closed when so many are written
}

// topic is one of the topics that are written to.
type topic struct {
	name       string
	partitions int
}

func newWorkload(t testing.TB, client *dynamodb.Client, schema outbox.Schema, topics []topic) *workload {
	t.Helper()
	w := &workload{
		client: client, writer: newWriter(t, client, schema), schema: schema, topics: topics,
		orders: freshTable(t, client, outbox.Schema{}).Table, marks: map[int]chan struct{}{},
	}
	for number := range authors {
		w.authors = append(w.authors, &author{
			workload: w, number: number, random: rand.New(rand.NewPCG(1, uint64(number))), reserved: map[int]int64{},
		})
	}
	return w
}

// write commits n messages, all authors at once, and returns when they are
// committed. n is a multiple of the number of authors.
func (w *workload) write(ctx context.Context, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, a := range w.authors {
		group.Go(func() error { return a.write(ctx, n/authors) })
	}
	return group.Wait()
}

// reached is closed once n messages are committed.
func (w *workload) reached(n int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	mark := make(chan struct{})
	if w.written >= n {
		close(mark)
		return mark
	}
	w.marks[n] = mark
	return mark
}

func (w *workload) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written += n
	for at, mark := range w.marks {
		if w.written >= at {
			close(mark)
			delete(w.marks, at)
		}
	}
}

// committed is every message of all authors, those of each stream in the order
// of their commits, and how many calls of which kind committed them. It is to be
// called when no write is under way.
func (w *workload) committed() (messages []sent, calls calls) {
	for _, a := range w.authors {
		messages = append(messages, a.committed...)
		calls.enqueued += a.calls.enqueued
		calls.transactions += a.calls.transactions
		calls.foreign += a.calls.foreign
		calls.refused += a.calls.refused
		calls.unstamped += a.calls.unstamped
	}
	return messages, calls
}

// reserved is how many numbers of each bucket were handed out at least.
func (w *workload) reserved() map[int]int64 {
	sum := map[int]int64{}
	for _, a := range w.authors {
		for bucket, n := range a.reserved {
			sum[bucket] += n
		}
	}
	return sum
}

// calls counts the ways in which messages were written.
type calls struct {
	enqueued     int // Enqueue
	transactions int // Commit with a business item
	foreign      int // transactions of a writer that stamps no bucket count, with a business item
	unstamped    int // messages of the foreign ones
	refused      int // Commits whose business item was refused, so that nothing may arrive
}

// kinds says how many messages there are of each kind.
func kinds(messages []sent) string {
	count := func(is func(m outbox.Message) bool) int {
		n := 0
		for _, m := range messages {
			if is(m.message) {
				n++
			}
		}
		return n
	}
	return fmt.Sprintf("keys: %d empty, %d none; values: %d empty, %d absent; %d with headers; %d with an explicit partition, %d of them without a key",
		count(func(m outbox.Message) bool { return m.Key != nil && len(m.Key) == 0 }),
		count(func(m outbox.Message) bool { return m.Key == nil }),
		count(func(m outbox.Message) bool { return m.Value != nil && len(m.Value) == 0 }),
		count(func(m outbox.Message) bool { return m.Value == nil }),
		count(func(m outbox.Message) bool { return len(m.Headers) > 0 }),
		count(func(m outbox.Message) bool { return m.Partition != nil }),
		count(func(m outbox.Message) bool { return m.Partition != nil && m.Key == nil }))
}

// author is one service: it writes one call after another.
type author struct {
	*workload
	number    int
	random    *rand.Rand
	committed []sent
	reserved  map[int]int64 // by bucket
	calls     calls
	business  int // business items written
}

// maxCall is how many messages a call has at most.
const maxCall = 40

func (a *author) write(ctx context.Context, n int) error {
	for n > 0 {
		began := time.Now()
		batch := make([]sent, min(n, 1+a.random.IntN(maxCall)))
		messages := make([]outbox.Message, len(batch))
		for i := range batch {
			batch[i] = a.next(began)
			messages[i] = batch[i].message
		}
		if err := a.commit(ctx, messages); err != nil {
			return fmt.Errorf("author %d: %w", a.number, err)
		}
		a.committed = append(a.committed, batch...)
		a.count(len(batch))
		n -= len(batch)
	}
	return nil
}

// commit stores messages in one of the ways in which services do.
func (a *author) commit(ctx context.Context, messages []outbox.Message) error {
	switch a.random.IntN(10) {
	case 0, 1, 2, 3:
		a.calls.enqueued++
		a.reserve(messages)
		return a.writer.Enqueue(ctx, messages...)
	case 4, 5, 6:
		a.calls.transactions++
		a.business++
		a.reserve(messages)
		return a.writer.Commit(ctx, a.order(a.business), messages...)
	case 7, 8:
		a.calls.foreign++
		a.calls.unstamped += len(messages)
		a.business++
		return a.commitUnstamped(ctx, messages)
	default:
		if err := a.commitRefused(ctx, messages); err != nil {
			return err
		}
		return a.commit(ctx, messages) // as a service does that has lost a race
	}
}

// order is a transaction that creates a business item, which must not exist.
func (a *author) order(number int) *dynamodb.TransactWriteItemsInput {
	return &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{
		TableName: &a.orders,
		Item: item{"PK": text(fmt.Sprintf("ORDER#%d#%d", a.number, number)), "SK": text("ORDER"),
			"State": text("placed")},
		ConditionExpression: aws.String("attribute_not_exists(PK)"),
	}}}}
}

// commitUnstamped writes rows without the bucket count, as other writers may.
func (a *author) commitUnstamped(ctx context.Context, messages []outbox.Message) error {
	a.reserve(messages)
	puts, err := a.writer.TransactItems(ctx, messages)
	if err != nil {
		return err
	}
	for _, p := range puts {
		delete(p.Put.Item, "BucketCount")
	}
	in := a.order(a.business)
	in.TransactItems = append(in.TransactItems, puts...)
	_, err = a.client.TransactWriteItems(ctx, in)
	return err
}

// commitRefused commits under a business item that exists already. It leaves
// gaps in the sequences, and not a message.
func (a *author) commitRefused(ctx context.Context, messages []outbox.Message) error {
	if a.business == 0 {
		return nil // there is none yet that could refuse it
	}
	a.calls.refused++
	a.reserve(messages)
	err := a.writer.Commit(ctx, a.order(a.business), messages...)
	if !errors.As(err, new(*types.TransactionCanceledException)) {
		return fmt.Errorf("a commit under an item that exists: %v, want it cancelled", err)
	}
	return nil
}

func (a *author) reserve(messages []outbox.Message) {
	for _, m := range messages {
		a.reserved[m.Bucket(a.schema.BucketCount)]++
	}
}

// next is a message of one of the kinds that there are.
func (a *author) next(began time.Time) sent {
	to := a.topics[a.random.IntN(len(a.topics))]
	var key []byte
	var partition *int32
	stream := ""
	switch kind := a.random.IntN(100); {
	case kind < 60:
		key = fmt.Appendf(nil, "customer\x00%d-%d", a.number, a.random.IntN(12))
	case kind < 68 && a.number == 0: // the empty key has one author, like any other
		key = []byte{}
	case kind < 78: // a key that always goes to one partition
		p := int32(a.random.IntN(to.partitions))
		partition, key = &p, fmt.Appendf(nil, "pinned %d-%d", a.number, p)
	case kind < 86 && a.number < to.partitions: // no key, but a partition, and its only author
		p := int32(a.number)
		partition, stream = &p, to.name+" partition "+strconv.Itoa(int(p))
	}
	if key != nil {
		stream = fmt.Sprintf("%s key %q", to.name, key)
	}
	m := outbox.NewMessage(to.name, key, a.value())
	m.Partition, m.Headers = partition, a.headers()
	if a.random.IntN(3) == 0 {
		m.CreatedAt = began.AddDate(0, 0, -100) // long past the topic's retention
	}
	return sent{message: m, stream: stream, began: began}
}

// secret begins every value that is not empty; no log may have it.
const secret = "not-for-the-log-"

func (a *author) value() []byte {
	size := 1 + a.random.IntN(600)
	switch kind := a.random.IntN(1000); {
	case kind < 100:
		return nil
	case kind < 200:
		return []byte{}
	case kind < 202: // so that a page of the table is full before it has its rows
		size = 50_000 + a.random.IntN(30_000)
	}
	value := []byte(secret)
	for range size {
		value = append(value, byte(a.random.Uint32()))
	}
	return value
}

func (a *author) headers() []outbox.Header {
	switch a.random.IntN(6) {
	case 0:
		return []outbox.Header{{Key: "trace", Value: []byte{0, 1, 0xff}}}
	case 1:
		return []outbox.Header{{Key: "null"}, {Key: "empty", Value: []byte{}}, {Key: "null"}}
	case 2:
		return []outbox.Header{{Key: "twice", Value: []byte("b")}, {Key: "once"}, {Key: "twice", Value: []byte("a")}, {Key: "ключ", Value: []byte("значение")}}
	case 3: // the relay's own name, which it replaces, and one that only resembles it
		return []outbox.Header{{Key: idHeader, Value: []byte("caller's")}, {Key: "X-Outbox-Message-Id", Value: []byte("kept")}}
	default:
		return nil
	}
}
