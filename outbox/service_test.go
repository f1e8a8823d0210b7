package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// These tests are services that use the Writer on a table that behaves as DynamoDB does, transactions,
// conditions and tokens included. They are what docs/writing.md says.

// service is a table with an account, which services change, and the outbox beside it.
type service struct {
	*memtable.DB
	client *store.Client
	// loses says of each transaction whether its answer is lost; nil: none is.
	loses func() bool
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{DB: memtable.New(memtable.Options{})}
	if err := store.CreateTable(t.Context(), s.DB, schema); err != nil {
		t.Fatal(err)
	}
	s.client = store.NewClient(schema, s.DB, s.DB)
	return s
}

// TransactWriteItems loses the answer to what was applied, when it is to.
func (s *service) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := s.DB.TransactWriteItems(ctx, in, opts...)
	if s.loses != nil && s.loses() {
		return nil, errLost
	}
	return out, err
}

// version is what the account, the business item, has.
func (s *service) version() int {
	stored := s.Peek(schema.Table, "ACCOUNT", "1")
	if stored == nil {
		return 0
	}
	version, _ := strconv.Atoi(stored["Version"].(*types.AttributeValueMemberN).Value)
	return version
}

// made tells whether a change was made, by the item that is written with it. The account itself would not
// say it: somebody else may have changed it since.
func (s *service) made(change string) bool { return s.Peek(schema.Table, "CHANGE", change) != nil }

// change is the transaction that makes a version of the account, if the one before is still there.
func (s *service) change(name string, version int) *dynamodb.TransactWriteItemsInput {
	put := func(i item, condition string, values item) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(schema.Table), Item: i,
			ConditionExpression: aws.String(condition), ExpressionAttributeValues: values}}
	}
	return transaction(
		put(item{"PK": text("ACCOUNT"), "SK": text("1"), "Version": number(strconv.Itoa(version))},
			"attribute_not_exists(Version) OR Version = :seen", item{":seen": number(strconv.Itoa(version - 1))}),
		put(item{"PK": text("CHANGE"), "SK": text(name)}, "attribute_not_exists(PK)", nil))
}

// rows are the values of bucket 3's rows, in the order in which relays publish them.
func (s *service) rows(t *testing.T) []string {
	t.Helper()
	reply := s.client.Do(t.Context(), store.Fetch{Bucket: 3, Limit: 10_000})
	fetched, ok := reply.Result.(store.Fetched)
	if !ok || fetched.Malformed != nil || fetched.More {
		t.Fatalf("%+v", reply)
	}
	values := make([]string, len(fetched.Rows))
	for i, row := range fetched.Rows {
		values[i] = string(row.Message.Value)
	}
	return values
}

// deposit changes the account once: it reads, commits with a message that tells the new version, and, when
// it has lost the race or does not know whether it has, reads again.
func (s *service) deposit(ctx context.Context, w *outbox.Writer, name string) error {
	message := messageIn(3)
	for !s.made(name) {
		version := s.version() + 1
		message.Value = []byte(strconv.Itoa(version))
		err := w.Commit(ctx, s.change(name, version), message)
		switch {
		case err == nil, errors.Is(err, outbox.ErrAmbiguous), errors.As(err, new(*types.TransactionCanceledException)):
		default:
			return err
		}
	}
	return nil
}

// Cases O-06 and O-19. Many services change one item at once, each in a loop that reads again when another was
// first; some answers are lost. The messages stand in the order of the versions, each version once.
func TestOptimisticRetriesLeaveMessagesInTheOrderOfTheirVersions(t *testing.T) {
	const services, changes = 8, 15
	s := newService(t)
	var sent atomic.Int64
	s.loses = func() bool { return sent.Add(1)%7 == 0 }
	w, err := outbox.NewWriter(s, outbox.Options{Table: schema.Table})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for n := range services {
		running.Go(func() {
			for i := range changes {
				if err := s.deposit(t.Context(), w, fmt.Sprintf("%d-%d", n, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	rows := s.rows(t)
	if len(rows) != services*changes {
		t.Errorf("%d messages, want %d", len(rows), services*changes)
	}
	for i, version := range rows {
		if version != strconv.Itoa(i+1) {
			t.Fatalf("message %d is of version %s; all: %v", i+1, version, rows)
		}
	}
	t.Logf("%d transactions for %d changes", sent.Load(), services*changes)
}

// Whoever does not know whether an Enqueue was applied repeats it under the same ids. At worst the messages are
// stored twice, and a consumer that looks at the ids sees them once.
func TestAmbiguousEnqueueIsRepeatedUnderTheSameIDs(t *testing.T) {
	s := newService(t)
	w, notes := newWriter(t, s)
	first, second := messageIn(3), messageIn(3)
	s.loses = func() bool { return true }
	if err := w.Enqueue(t.Context(), first, second); !errors.Is(err, outbox.ErrAmbiguous) {
		t.Fatalf("got %v", err)
	}
	s.loses = nil
	if err := w.Enqueue(t.Context(), first, second); err != nil {
		t.Fatal(err)
	}
	fetched := s.client.Do(t.Context(), store.Fetch{Bucket: 3, Limit: 100}).Result.(store.Fetched)
	seen := map[string]int{}
	for _, row := range fetched.Rows {
		seen[row.Message.ID.String()]++
	}
	if len(seen) != 2 || seen[first.ID.String()] != 2 || seen[second.ID.String()] != 2 {
		t.Errorf("the rows' ids are %v", seen)
	}
	if len(notes.calls) != 1 {
		t.Errorf("notified %v, want only what is known to be committed", notes.calls)
	}
}

// A counter that was set back stops the writers of its bucket, and no others, until it is raised; nothing is
// overwritten, the business item neither. Then they go on behind all rows.
func TestWritersGoOnWhenACounterWasRaised(t *testing.T) {
	s := newService(t)
	w, _ := newWriter(t, s)
	for n := range 5 {
		if err := s.deposit(t.Context(), w, strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String(schema.Table), Key: schema.Key(schema.SequenceKey(3), outbox.CounterSortKey)}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := w.Commit(t.Context(), s.change("refused", 6), messageIn(3))
		if !errors.Is(err, outbox.ErrSequenceBehind) || errors.Is(err, outbox.ErrAmbiguous) || s.version() != 5 || s.made("refused") {
			t.Errorf("got %v; the account has version %d", err, s.version())
		}
	}
	if err := w.Enqueue(t.Context(), messageIn(4)); err != nil {
		t.Errorf("another bucket: %v", err)
	}
	if reply := s.client.Do(t.Context(), store.RaiseCounter{Bucket: 3, To: 5}); reply.Class != store.Done {
		t.Fatalf("%+v", reply)
	}
	if err := s.deposit(t.Context(), w, "after"); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(s.rows(t)); got != "[1 2 3 4 5 6]" {
		t.Errorf("the rows are %s", got)
	}
}
