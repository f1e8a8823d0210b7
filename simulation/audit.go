package simulation

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/store"
)

// audit is the table as the relays reach it: it looks at how they ask. A table in
// memory answers strongly consistent reads and others alike, DynamoDB does not.
type audit struct {
	store.API
	fleet *fleet
}

// Query checks the form of a read: all are strongly consistent but the look for
// messages, which asks for one key and costs half.
func (a audit) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	c := a.fleet.checker
	counts := in.Select == types.SelectCount
	ranged := strings.Contains(aws.ToString(in.KeyConditionExpression), " AND ")
	look := counts && !ranged
	switch {
	case look == aws.ToBool(in.ConsistentRead):
		c.violated("I-21", "a query %q is strongly consistent: %t", aws.ToString(in.KeyConditionExpression), look)
	case counts && aws.ToInt32(in.Limit) != 1:
		c.violated("I-21", "a query that counts reads %d rows", aws.ToInt32(in.Limit))
	case in.IndexName != nil || in.FilterExpression != nil || !aws.ToBool(in.ScanIndexForward) && in.ScanIndexForward != nil:
		c.violated("I-21", "a query uses an index, a filter, or goes backwards")
	}
	return a.API.Query(ctx, in, opts...)
}

// BatchWriteItem lets only deletes pass.
func (a audit) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	for _, write := range in.RequestItems[a.fleet.schema.Table] {
		if write.DeleteRequest == nil {
			a.fleet.checker.violated("I-21", "a batch write puts an item")
		}
	}
	return a.API.BatchWriteItem(ctx, in, opts...)
}
