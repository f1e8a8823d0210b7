package storetest

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/store"
)

// Client is what the suite runs on: the two ports of package store and the
// scan by which the suite sees what was really written. *dynamodb.Client and
// *memtable.DB fit.
type Client interface {
	store.API
	store.TableAPI
	Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// Run runs the suite, each case as a subtest with a new table of its own. The
// tables have unique names and are left behind: open may return the same
// client each time.
func Run(t *testing.T, open func(t *testing.T) Client) {
	groups := []struct {
		name  string
		cases []testCase
	}{
		{"Tables", tableCases},
		{"Leases", leaseCases},
		{"Conditions", conditionCases},
		{"Expressions", expressionCases},
		{"Updates", updateCases},
		{"Queries", queryCases},
		{"Pages", pageCases},
		{"Batches", batchCases},
		{"Transactions", transactionCases},
		{"Tokens", tokenCases},
		{"Parking", parkingCases},
		{"Values", valueCases},
		{"Keys", keyCases},
		{"Capacity", capacityCases},
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, one := range group.cases {
				t.Run(one.name, func(t *testing.T) {
					f := &fixture{T: t, Client: open(t), table: "suite-" + uuid.NewString()}
					f.create(f.table)
					one.run(f)
				})
			}
		})
	}
}

// testCase is one promise; its name says what must be true.
type testCase struct {
	name string
	run  func(f *fixture)
}

// fixture is one case's client and table, with string keys PK and SK.
type fixture struct {
	*testing.T
	Client
	table string
}

// create makes a table as the relay's setup does and waits until it is there.
func (f *fixture) create(name string) {
	f.Helper()
	if _, err := f.CreateTable(f.Context(), tableInput(name)); err != nil {
		f.Fatalf("create table: %v", err)
	}
	waiter := dynamodb.NewTableExistsWaiter(f.Client)
	if err := waiter.Wait(f.Context(), &dynamodb.DescribeTableInput{TableName: &name}, waitLimit); err != nil {
		f.Fatalf("wait for table: %v", err)
	}
}

func tableInput(name string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName:   &name,
		BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("SK"), KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("PK"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("SK"), AttributeType: types.ScalarAttributeTypeS},
		},
	}
}

// each runs one row of a case's table, on the case's table.
func (f *fixture) each(name string, run func(f *fixture)) {
	f.Helper()
	f.Run(name, func(t *testing.T) { run(&fixture{T: t, Client: f.Client, table: f.table}) })
}
