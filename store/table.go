package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// tableWait bounds how long CreateTable waits for the table to become active.
const tableWait = 2 * time.Minute

// CreateTableInput is the definition of the schema's table: two string key
// attributes, on-demand billing, nothing else.
func CreateTableInput(schema outbox.Schema) *dynamodb.CreateTableInput {
	schema = schema.WithDefaults()
	return &dynamodb.CreateTableInput{
		TableName:   &schema.Table,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: &schema.PartitionKey, AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: &schema.SortKey, AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: &schema.PartitionKey, KeyType: types.KeyTypeHash},
			{AttributeName: &schema.SortKey, KeyType: types.KeyTypeRange},
		},
	}
}

// CreateTable creates the schema's table unless it exists, waits until it is
// active (two minutes at most), and checks its keys. It is safe when several
// callers do it at once. An existing table with other keys is ErrInvalid.
func CreateTable(ctx context.Context, api TableAPI, schema outbox.Schema) error {
	schema = schema.WithDefaults()
	if err := schema.Validate(); err != nil {
		return err
	}
	_, err := api.CreateTable(ctx, CreateTableInput(schema))
	if err != nil && !errors.As(err, new(*types.ResourceInUseException)) {
		_, sentinel := classify(err)
		return fmt.Errorf("create table %s: %w: %w", schema.Table, sentinel, err)
	}
	out, err := dynamodb.NewTableExistsWaiter(api, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 100*time.Millisecond, 5*time.Second
	}).WaitForOutput(ctx, &dynamodb.DescribeTableInput{TableName: &schema.Table}, tableWait)
	if err != nil {
		return fmt.Errorf("wait for table %s: %w", schema.Table, err)
	}
	return CheckKeys(schema, out.Table)
}

// DescribeTable is what DynamoDB says of the schema's table. A table that is not there
// is ErrTableMissing.
func DescribeTable(ctx context.Context, api TableAPI, schema outbox.Schema) (*types.TableDescription, error) {
	out, err := api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &schema.Table})
	if err != nil {
		_, sentinel := classify(err)
		return nil, fmt.Errorf("describe table %s: %w: %w", schema.Table, sentinel, err)
	}
	return out.Table, nil
}

// KeysOf are the keys of a table in words, "PK (S, HASH), SK (S, RANGE)", and those that
// the schema wants.
func KeysOf(table *types.TableDescription, schema outbox.Schema) (found, wanted string) {
	input := CreateTableInput(schema)
	return describeKeys(table.KeySchema, table.AttributeDefinitions), describeKeys(input.KeySchema, input.AttributeDefinitions)
}

// CheckKeys compares a table's keys with the schema's: ErrInvalid, with both, when they
// differ.
func CheckKeys(schema outbox.Schema, table *types.TableDescription) error {
	found, wanted := KeysOf(table, schema)
	if found == wanted {
		return nil
	}
	return fmt.Errorf("table %s: %w: it has %s, the settings say %s", schema.Table, ErrInvalid, found, wanted)
}

// describeKeys is a key schema in words: "PK (S, HASH), SK (S, RANGE)".
func describeKeys(keys []types.KeySchemaElement, definitions []types.AttributeDefinition) string {
	kinds := make(map[string]types.ScalarAttributeType, len(definitions))
	for _, d := range definitions {
		kinds[aws.ToString(d.AttributeName)] = d.AttributeType
	}
	var words string
	for i, k := range keys {
		if i > 0 {
			words += ", "
		}
		name := aws.ToString(k.AttributeName)
		words += fmt.Sprintf("%s (%s, %s)", name, kinds[name], k.KeyType)
	}
	return words
}
