package store

import (
	"context"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// The requests that measure how much waits. They may be stale, since nothing is
// decided by them, and so cost half a unit for each 4 KB that they read.

// ReadHead reads what the first message of a bucket is and since when it waits: the
// one that a stalled outbox is stuck on. Eventually consistent. Its result is a
// HeadRead.
type ReadHead struct {
	Bucket   int
	NotAfter Instant
}

// Part is a part of what the table has of a bucket.
type Part uint8

// The parts.
const (
	Pending    Part = iota // messages that wait
	ParkedKeys             // markers of keys that are set aside
	ParkedRows             // rows that are set aside
	Parked                 // all of these, and markers of topics
)

// Count counts one page of a part of a bucket, eventually consistent. Its result is
// an ItemsCounted.
type Count struct {
	Bucket   int
	Of       Part
	After    string // Next of the page before; empty for the first page
	Limit    int    // items, 1 to 1,000,000
	NotAfter Instant
}

// HeadRead is the result of ReadHead. It tells of the first message what can be read
// of it: whether a relay can read it as a whole is for ReadRow to say.
type HeadRead struct {
	Waiting     bool
	Sequence    int64  // 0 when it cannot be read, as the others
	Created     Ticks  // CreatedAtUtc
	Topic       string // empty when it cannot be read
	BucketCount int    // the writer's; 0 also when it is not stamped
}

// ItemsCounted is the result of Count.
type ItemsCounted struct {
	Items int
	// Next is the After of the next page; empty on the last. A page ends at its limit,
	// and at 1 MB of items.
	Next string
}

// RequestName implements Request.
func (ReadHead) RequestName() string { return "readHead" }
func (Count) RequestName() string    { return "count" }

// Lane implements Request.
func (ReadHead) Lane() Lane { return Messages }
func (Count) Lane() Lane    { return Messages }

// Deadline implements Request.
func (r ReadHead) Deadline() Instant { return r.NotAfter }
func (r Count) Deadline() Instant    { return r.NotAfter }

// ConcernsBucket implements Request.
func (r ReadHead) ConcernsBucket() int { return r.Bucket }
func (r Count) ConcernsBucket() int    { return r.Bucket }

func (c *Client) readHead(ctx context.Context, api API, r ReadHead) Reply {
	in := c.bucketQuery(r.Bucket)
	in.Limit = aws.Int32(1)
	in.ConsistentRead = aws.Bool(false)
	// A projection costs what the whole row would, but the way of its content.
	in.ProjectionExpression = aws.String("#sk, #created, #topic, #count")
	in.ExpressionAttributeNames["#sk"] = c.schema.SortKey
	in.ExpressionAttributeNames["#created"] = outbox.AttrCreatedAtUtc
	in.ExpressionAttributeNames["#topic"] = outbox.AttrTopic
	in.ExpressionAttributeNames["#count"] = outbox.AttrBucketCount
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	head := HeadRead{Waiting: len(out.Items) > 0}
	if head.Waiting {
		a := &attributes{schema: c.schema, item: out.Items[0]}
		head.Sequence, _ = outbox.ParseSequence(stringOf(out.Items[0][c.schema.SortKey]))
		head.Created = Ticks(a.number(outbox.AttrCreatedAtUtc))
		head.Topic = a.text(outbox.AttrTopic)
		head.BucketCount = int(a.number(outbox.AttrBucketCount))
	}
	return Reply{Result: head, Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) count(ctx context.Context, api API, r Count) Reply {
	in, partition := c.part(r.Bucket, r.Of)
	in.Select = types.SelectCount
	in.ConsistentRead = aws.Bool(false)
	in.Limit = aws.Int32(int32(min(r.Limit, math.MaxInt32)))
	if r.After != "" {
		in.ExclusiveStartKey = c.schema.Key(partition, r.After)
	}
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	counted := ItemsCounted{Items: int(out.Count), Next: stringOf(out.LastEvaluatedKey[c.schema.SortKey])}
	return Reply{Result: counted, Capacity: unitsOf(out.ConsumedCapacity)}
}

// part is a query of a part of a bucket, and the key of its partition.
func (c *Client) part(bucket int, of Part) (in *dynamodb.QueryInput, partition string) {
	prefix := outbox.ParkedKeySortKeyPrefix
	switch of {
	case Pending:
		return c.bucketQuery(bucket), c.schema.MessagesKey(bucket)
	case Parked:
		in = c.bucketQuery(bucket)
		in.ExpressionAttributeValues[":pk"] = text(c.schema.ParkedKey(bucket))
		return in, c.schema.ParkedKey(bucket)
	case ParkedRows:
		prefix = outbox.ParkedRowSortKeyPrefix
	}
	return c.parkedQuery(bucket, "begins_with(#sk, :prefix)", values{":prefix": text(prefix)}), c.schema.ParkedKey(bucket)
}
