package store_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

// schemas are the default layout and one in which every name differs.
var schemas = map[string]outbox.Schema{
	"default": {Table: "orders"},
	"custom":  {Table: "orders", PartitionKey: "hash", SortKey: "range", KeyPrefix: "APP", BucketCount: 16},
}

// The unit of the tests' times: ticks of a day in 2026.
const noon store.Ticks = 639_000_000_000_000_000

func after(d time.Duration) store.Ticks { return noon.Add(d) }

// fixture is a client on a table in memory.
type fixture struct {
	*testing.T
	*store.Client
	db     *memtable.DB
	schema outbox.Schema
}

func newFixture(t *testing.T, schema outbox.Schema) fixture {
	t.Helper()
	db := memtable.New(memtable.Options{})
	if err := store.CreateTable(t.Context(), db, schema); err != nil {
		t.Fatal(err)
	}
	return fixture{t, store.NewClient(schema, db, db), db, schema.WithDefaults()}
}

// onBoth runs a test on both layouts.
func onBoth(t *testing.T, test func(f fixture)) {
	for name, schema := range schemas {
		t.Run(name, func(t *testing.T) { test(newFixture(t, schema)) })
	}
}

// do carries out a request and demands its class.
func (f fixture) do(r store.Request, class store.Class) store.Reply {
	f.Helper()
	reply := f.Do(f.Context(), r)
	if reply.Class != class {
		f.Fatalf("%+v: got %s (%v), want %s", r, reply.Class, reply.Err, class)
	}
	if (reply.Err == nil) != (class == store.Done) {
		f.Fatalf("%+v: %s with the error %v", r, class, reply.Err)
	}
	return reply
}

// coordination is an item of the coordination partition.
func (f fixture) coordination(sortKey string, attributes item) item {
	whole := item{
		f.schema.PartitionKey: str(f.schema.KeyPrefix + "#COORDINATION"),
		f.schema.SortKey:      str(sortKey),
	}
	for name, value := range attributes {
		whole[name] = value
	}
	return whole
}

// put stores items as some other process would.
func (f fixture) put(items ...item) {
	f.Helper()
	for _, i := range items {
		_, err := f.db.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.schema.Table, Item: i})
		if err != nil {
			f.Fatal(err)
		}
	}
}

// wantTable demands that these items are all that the table holds.
func (f fixture) wantTable(want ...item) {
	f.Helper()
	got := f.db.Items(f.schema.Table)
	if len(got) != len(want) {
		f.Fatalf("the table holds %s, want %s", show(got), show(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			f.Errorf("item %d: got %s, want %s", i, show(got[i:i+1]), show(want[i:i+1]))
		}
	}
}

func show(items []item) string {
	var lines []string
	for _, i := range items {
		var fields []string
		for name, value := range i {
			switch v := value.(type) {
			case *types.AttributeValueMemberS:
				fields = append(fields, fmt.Sprintf("%s: %q", name, v.Value))
			case *types.AttributeValueMemberN:
				fields = append(fields, fmt.Sprintf("%s: %s", name, v.Value))
			default:
				fields = append(fields, fmt.Sprintf("%s: %T", name, v))
			}
		}
		lines = append(lines, "{"+strings.Join(fields, ", ")+"}")
	}
	return strings.Join(lines, " ")
}

// scripted is a store.API whose answers a test gives. A call without an answer
// panics.
type scripted struct {
	store.API
	query  func(*dynamodb.QueryInput) (*dynamodb.QueryOutput, error)
	put    func(*dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error)
	update func(*dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error)
	remove func(*dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error)
	batch  func(*dynamodb.BatchWriteItemInput) (*dynamodb.BatchWriteItemOutput, error)
	// transact answers transactions.
	transact func(*dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error)
}

func (s scripted) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return s.query(in)
}

func (s scripted) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return s.put(in)
}

func (s scripted) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return s.update(in)
}

func (s scripted) DeleteItem(_ context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return s.remove(in)
}

func (s scripted) BatchWriteItem(_ context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return s.batch(in)
}

func (s scripted) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return s.transact(in)
}

// failing is an API that always answers with one error.
func failing(err error) scripted {
	return scripted{
		query:  func(*dynamodb.QueryInput) (*dynamodb.QueryOutput, error) { return nil, err },
		put:    func(*dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) { return nil, err },
		update: func(*dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) { return nil, err },
		remove: func(*dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error) { return nil, err },
		batch:  func(*dynamodb.BatchWriteItemInput) (*dynamodb.BatchWriteItemOutput, error) { return nil, err },
		transact: func(*dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
			return nil, err
		},
	}
}
