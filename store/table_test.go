package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// The table has two string keys of the configured names and nothing else: no
// index, and billing by request.
func TestCreateTableMakesTheTable(t *testing.T) {
	for name, schema := range schemas {
		db := memtable.New(memtable.Options{})
		if err := store.CreateTable(t.Context(), db, schema); err != nil {
			t.Fatal(err)
		}
		out, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &schema.Table})
		if err != nil {
			t.Fatal(err)
		}
		schema = schema.WithDefaults()
		keys := out.Table.KeySchema
		if len(keys) != 2 || *keys[0].AttributeName != schema.PartitionKey || *keys[1].AttributeName != schema.SortKey ||
			out.Table.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
			t.Errorf("%s: got %+v", name, out.Table)
		}
	}
}

// Several relays of one deployment create the table at once: all succeed.
func TestCreateTableAtOnce(t *testing.T) {
	db := memtable.New(memtable.Options{})
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() { errs[i] = store.CreateTable(t.Context(), db, schemas["custom"]) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// A table of that name with other keys is not ours: the error names what it has and
// what the settings say, and nothing is changed.
func TestCreateTableWithOtherKeys(t *testing.T) {
	for name, other := range map[string]outbox.Schema{
		"names":   {Table: "orders", PartitionKey: "pk", SortKey: "sk"},
		"swapped": {Table: "orders", PartitionKey: "SK", SortKey: "PK"},
	} {
		db := memtable.New(memtable.Options{})
		if err := store.CreateTable(t.Context(), db, other); err != nil {
			t.Fatal(err)
		}
		wantBothKeys(t, name, store.CreateTable(t.Context(), db, schemas["default"]),
			other.PartitionKey+" (S, HASH)", "PK (S, HASH), SK (S, RANGE)")
	}
	db := memtable.New(memtable.Options{})
	in := store.CreateTableInput(schemas["default"])
	in.AttributeDefinitions[1].AttributeType = types.ScalarAttributeTypeN
	if _, err := db.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	wantBothKeys(t, "type", store.CreateTable(t.Context(), db, schemas["default"]), "SK (N, RANGE)", "SK (S, RANGE)")

	db = memtable.New(memtable.Options{})
	in = store.CreateTableInput(schemas["default"])
	in.KeySchema, in.AttributeDefinitions = in.KeySchema[:1], in.AttributeDefinitions[:1]
	if _, err := db.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	wantBothKeys(t, "no sort key", store.CreateTable(t.Context(), db, schemas["default"]), "it has PK (S, HASH),", "SK (S, RANGE)")
}

func wantBothKeys(t *testing.T, name string, err error, has, wants string) {
	t.Helper()
	if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), has) || !strings.Contains(err.Error(), wants) {
		t.Errorf("%s: got %v, want an error that names %q and %q", name, err, has, wants)
	}
}

// A schema at fault is refused before anything is sent; what the service refuses
// keeps its sentinel.
func TestCreateTableFails(t *testing.T) {
	if err := store.CreateTable(t.Context(), nil, outbox.Schema{}); err == nil || !strings.Contains(err.Error(), "Table") {
		t.Errorf("no table name: got %v", err)
	}
	denied := refusing{err: code("AccessDeniedException")}
	if err := store.CreateTable(t.Context(), denied, schemas["default"]); !errors.Is(err, store.ErrDenied) {
		t.Errorf("not allowed: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	exists := refusing{err: &types.ResourceInUseException{}, describe: &types.TableDescription{
		TableName: aws.String("orders"), TableStatus: types.TableStatusCreating,
	}}
	if err := store.CreateTable(ctx, exists, schemas["default"]); err == nil || !strings.Contains(err.Error(), "orders") {
		t.Errorf("a table that is never active: got %v", err)
	}
}

// refusing is a store.TableAPI whose CreateTable fails.
type refusing struct {
	err      error
	describe *types.TableDescription
}

func (r refusing) CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return nil, r.err
}

func (r refusing) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: r.describe}, nil
}
