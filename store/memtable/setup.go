package memtable

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// CreateTable makes a table that is active at once. Indexes and streams are
// not served.
func (db *DB) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return call(ctx, db, "CreateTable", func() (*dynamodb.CreateTableOutput, error) {
		if err := demand("CreateTable", required{"TableName", in.TableName != nil}); err != nil {
			return nil, err
		}
		if in.GlobalSecondaryIndexes != nil || in.LocalSecondaryIndexes != nil || in.StreamSpecification != nil {
			return nil, unserved("an index or a stream")
		}
		if len(*in.TableName) < 3 || len(*in.TableName) > 255 {
			return nil, invalid("TableName must be at least 3 characters long and at most 255 characters long")
		}
		t, err := newTable(in)
		if err != nil {
			return nil, err
		}
		if _, exists := db.tables[*in.TableName]; exists {
			return nil, &types.ResourceInUseException{Message: aws.String("Table already exists: " + *in.TableName)}
		}
		db.tables[*in.TableName] = t
		return &dynamodb.CreateTableOutput{TableDescription: t.describe()}, nil
	})
}

// DescribeTable describes the table; ItemCount is exact, unlike the service's.
func (db *DB) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return call(ctx, db, "DescribeTable", func() (*dynamodb.DescribeTableOutput, error) {
		if err := demand("DescribeTable", required{"TableName", in.TableName != nil}); err != nil {
			return nil, err
		}
		t, found := db.tables[*in.TableName]
		if !found {
			return nil, &types.ResourceNotFoundException{
				Message: aws.String("Requested resource not found: Table: " + *in.TableName + " not found")}
		}
		return &dynamodb.DescribeTableOutput{Table: t.describe()}, nil
	})
}

func newTable(in *dynamodb.CreateTableInput) (*table, error) {
	t := &table{
		partitions: make(map[string]*partition),
		description: types.TableDescription{
			TableName:            aws.String(*in.TableName),
			TableArn:             aws.String("arn:aws:dynamodb:us-east-1:000000000000:table/" + *in.TableName),
			KeySchema:            slices.Clone(in.KeySchema),
			AttributeDefinitions: slices.Clone(in.AttributeDefinitions),
			TableStatus:          types.TableStatusActive,
		},
	}
	if err := t.price(in); err != nil {
		return nil, err
	}
	if len(in.KeySchema) < 1 || len(in.KeySchema) > 2 || in.KeySchema[0].KeyType != types.KeyTypeHash {
		return nil, invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	}
	if len(in.AttributeDefinitions) != len(in.KeySchema) {
		return nil, invalid("One or more parameter values were invalid: " +
			"Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	hash, err := keyAttributeOf(in, 0, maxHashKey)
	if err != nil {
		return nil, err
	}
	t.hash = *hash
	if len(in.KeySchema) == 1 {
		return t, nil
	}
	if in.KeySchema[1].KeyType != types.KeyTypeRange {
		return nil, invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	}
	if t.sort, err = keyAttributeOf(in, 1, maxSortKey); err != nil {
		return nil, err
	}
	if t.sort.name == t.hash.name {
		return nil, invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name")
	}
	return t, nil
}

// price checks billing mode and throughput, which change nothing here.
func (t *table) price(in *dynamodb.CreateTableInput) error {
	if in.BillingMode == types.BillingModePayPerRequest {
		if in.ProvisionedThroughput != nil {
			return invalid("One or more parameter values were invalid: " +
				"Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
		}
		t.description.BillingModeSummary = &types.BillingModeSummary{BillingMode: in.BillingMode}
		return nil
	}
	if in.ProvisionedThroughput == nil {
		return invalid("One or more parameter values were invalid: " +
			"ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	}
	t.description.ProvisionedThroughput = &types.ProvisionedThroughputDescription{
		ReadCapacityUnits:  aws.Int64(aws.ToInt64(in.ProvisionedThroughput.ReadCapacityUnits)),
		WriteCapacityUnits: aws.Int64(aws.ToInt64(in.ProvisionedThroughput.WriteCapacityUnits)),
	}
	return nil
}

// keyAttributeOf finds the definition of the schema's element.
func keyAttributeOf(in *dynamodb.CreateTableInput, element, limit int) (*keyAttribute, error) {
	name := aws.ToString(in.KeySchema[element].AttributeName)
	for _, d := range in.AttributeDefinitions {
		if aws.ToString(d.AttributeName) == name && name != "" {
			return &keyAttribute{name: name, kind: d.AttributeType, limit: limit}, nil
		}
	}
	return nil, invalid("Invalid KeySchema: Some index key attribute have no definition")
}

func (t *table) describe() *types.TableDescription {
	d := t.description
	d.KeySchema = slices.Clone(d.KeySchema)
	d.AttributeDefinitions = slices.Clone(d.AttributeDefinitions)
	var count, size int64
	for _, p := range t.partitions {
		count += int64(len(p.rows))
		for _, r := range p.rows {
			size += int64(r.size)
		}
	}
	d.ItemCount, d.TableSizeBytes = aws.Int64(count), aws.Int64(size)
	return &d
}
