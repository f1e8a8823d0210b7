package store

import (
	"context"
	"errors"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// bucketQuery is a query of all of one bucket's rows. A row whose sort key is
// no sequence is among them, and blocks its bucket.
func (c *Client) bucketQuery(bucket int) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName:                 &c.schema.Table,
		KeyConditionExpression:    aws.String("#pk = :pk"),
		ExpressionAttributeNames:  map[string]string{"#pk": c.schema.PartitionKey},
		ExpressionAttributeValues: values{":pk": text(c.schema.MessagesKey(bucket))},
		ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
	}
}

func (c *Client) discover(ctx context.Context, api API, r Discover) Reply {
	in := c.bucketQuery(r.Bucket)
	in.Limit = aws.Int32(1)
	in.Select = types.SelectCount
	in.ConsistentRead = aws.Bool(false)
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	return Reply{Result: Discovered{Waiting: out.Count > 0}, Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) fetch(ctx context.Context, api API, r Fetch) Reply {
	in := c.bucketQuery(r.Bucket)
	in.ConsistentRead = aws.Bool(true)
	in.Limit = aws.Int32(int32(min(r.Limit, math.MaxInt32)))
	if r.After > 0 {
		in.KeyConditionExpression = aws.String("#pk = :pk AND #sk > :after")
		in.ExpressionAttributeNames["#sk"] = c.schema.SortKey
		in.ExpressionAttributeValues[":after"] = text(outbox.SequenceSortKey(r.After))
	}
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	return c.fetched(out, c.schema.DecodeMessage)
}

// fetched is a page of rows, up to the first that cannot be read.
func (c *Client) fetched(out *dynamodb.QueryOutput, decode func(map[string]types.AttributeValue) (outbox.Row, error)) Reply {
	fetched := Fetched{Rows: make([]outbox.Row, 0, len(out.Items)), More: len(out.LastEvaluatedKey) > 0}
	for _, item := range out.Items {
		row, err := decode(item)
		if err != nil {
			fetched.Malformed = err
			break
		}
		fetched.Rows = append(fetched.Rows, row)
	}
	return Reply{Result: fetched, Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) probe(ctx context.Context, api API, r Probe) Reply {
	in := c.bucketQuery(r.Bucket)
	in.KeyConditionExpression = aws.String("#pk = :pk AND #sk BETWEEN :from AND :to")
	in.ExpressionAttributeNames["#sk"] = c.schema.SortKey
	in.ExpressionAttributeValues[":from"] = text(outbox.SequenceSortKey(r.From))
	in.ExpressionAttributeValues[":to"] = text(outbox.SequenceSortKey(r.To))
	in.ConsistentRead = aws.Bool(true)
	in.Select = types.SelectCount
	in.Limit = aws.Int32(1)
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	return Reply{Result: Probed{Filled: out.Count > 0}, Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) delete(ctx context.Context, api API, r Delete) Reply {
	writes := make([]types.WriteRequest, 0, len(r.Sequences))
	for _, sequence := range r.Sequences {
		key := c.schema.Key(c.schema.MessagesKey(r.Bucket), outbox.SequenceSortKey(sequence))
		writes = append(writes, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}})
	}
	out, err := api.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
		RequestItems:           map[string][]types.WriteRequest{c.schema.Table: writes},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return failedWrite(r, err)
	}
	unprocessed, err := c.unprocessed(r, out.UnprocessedItems[c.schema.Table])
	if err != nil {
		return Reply{Class: Ambiguous, Err: wrap(r, ErrUnavailable, err)}
	}
	return Reply{Result: Deleted{Unprocessed: unprocessed}, Capacity: units(out.ConsumedCapacity...)}
}

// unprocessed are the sequences of the deletes that the service left undone,
// in the request's order.
func (c *Client) unprocessed(r Delete, left []types.WriteRequest) ([]int64, error) {
	if len(left) == 0 {
		return nil, nil
	}
	undone := make(map[int64]bool, len(left))
	for _, write := range left {
		if write.DeleteRequest == nil {
			return nil, errors.New("an unprocessed item is no delete")
		}
		sequence, err := outbox.ParseSequence(stringOf(write.DeleteRequest.Key[c.schema.SortKey]))
		if err != nil {
			return nil, err
		}
		undone[sequence] = true
	}
	var sequences []int64
	for _, sequence := range r.Sequences {
		if undone[sequence] {
			sequences = append(sequences, sequence)
		}
	}
	return sequences, nil
}
