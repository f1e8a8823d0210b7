package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// The requests of who checks and repairs a bucket's counter (protocol.md section
// 2, point 6). No relay sends them: a relay reads rows, and never their counter.

// ReadCounter reads a bucket's counter, strongly consistent. Its result is a
// Counter.
type ReadCounter struct{ Bucket int }

// ReadLast reads the highest number among the messages of a bucket, strongly
// consistent. Its result is a Last.
type ReadLast struct {
	Bucket int
	Before string // sort key of the last item of the page before; empty for the first page
}

// ReadParkedNumbers reads one page of the numbers of the rows that are set aside
// from a bucket, strongly consistent. They sort by their key ids, so that the
// highest is known only after the last page. Its result is a Last.
type ReadParkedNumbers struct {
	Bucket int
	After  string // sort key of the last item of the page before; empty for the first page
}

// RaiseCounter sets a bucket's counter to a number, unless it is there already or
// beyond: it never lowers it. To repeat it does no harm. Its result, done or
// refused, is a Raised.
type RaiseCounter struct {
	Bucket int
	To     int64 // at least 1
}

// Counter is the result of ReadCounter.
type Counter struct {
	// Sequence is the last number handed out; 0: the item is not there, or has none.
	Sequence int64
	// Unreadable is why the item has no number that can be read; nil when it has one
	// or is not there. No writer of the bucket gets a number then.
	Unreadable error
}

// Last is the result of ReadLast and ReadParkedNumbers.
type Last struct {
	Sequence int64 // the highest of this page; 0: the page has none
	// Next is the Before or After of the next page; empty when no page can have a
	// higher number.
	Next string
	// Unreadable is why a message that this page passed over has no number: it stands
	// behind all that have one, where its bucket stops for good. It is an
	// *outbox.ItemError; nil when there is no such message, as of rows set aside.
	Unreadable error
}

// Raised is the result of RaiseCounter.
type Raised struct {
	// Before is where the counter was; known only when it refused the request.
	Before Counter
	// Applied tells that this request has raised it, or an earlier sending of it.
	Applied bool
}

// RequestName implements Request.
func (ReadCounter) RequestName() string       { return "readCounter" }
func (ReadLast) RequestName() string          { return "readLast" }
func (ReadParkedNumbers) RequestName() string { return "readParkedNumbers" }
func (RaiseCounter) RequestName() string      { return "raiseCounter" }

// Lane implements Request.
func (ReadCounter) Lane() Lane       { return Messages }
func (ReadLast) Lane() Lane          { return Messages }
func (ReadParkedNumbers) Lane() Lane { return Messages }
func (RaiseCounter) Lane() Lane      { return Messages }

// Deadline implements Request: a person waits for these, not a lease.
func (ReadCounter) Deadline() Instant       { return Instant{} }
func (ReadLast) Deadline() Instant          { return Instant{} }
func (ReadParkedNumbers) Deadline() Instant { return Instant{} }
func (RaiseCounter) Deadline() Instant      { return Instant{} }

// ConcernsBucket implements Request.
func (r ReadCounter) ConcernsBucket() int       { return r.Bucket }
func (r ReadLast) ConcernsBucket() int          { return r.Bucket }
func (r ReadParkedNumbers) ConcernsBucket() int { return r.Bucket }
func (r RaiseCounter) ConcernsBucket() int      { return r.Bucket }

func (c *Client) readCounter(ctx context.Context, api API, r ReadCounter) Reply {
	out, err := api.Query(ctx, &dynamodb.QueryInput{
		TableName:                &c.schema.Table,
		KeyConditionExpression:   aws.String("#pk = :pk AND #sk = :sk"),
		ExpressionAttributeNames: map[string]string{"#pk": c.schema.PartitionKey, "#sk": c.schema.SortKey},
		ExpressionAttributeValues: values{
			":pk": text(c.schema.SequenceKey(r.Bucket)), ":sk": text(outbox.CounterSortKey),
		},
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return failedRead(r, err)
	}
	reply := Reply{Result: Counter{}, Capacity: unitsOf(out.ConsumedCapacity)}
	if len(out.Items) > 0 {
		reply.Result = c.counter(r.Bucket, out.Items[0])
	}
	return reply
}

// counter reads a counter's item.
func (c *Client) counter(bucket int, item map[string]types.AttributeValue) Counter {
	value, exists := item[outbox.AttrSequence]
	if !exists {
		return Counter{}
	}
	digits, ok := value.(*types.AttributeValueMemberN)
	if ok {
		if n, err := strconv.ParseInt(digits.Value, 10, 64); err == nil && n >= 0 {
			return Counter{Sequence: n}
		}
	}
	return Counter{Unreadable: fmt.Errorf("%s of item %s %s is no whole number from 0 on",
		outbox.AttrSequence, c.schema.SequenceKey(bucket), outbox.CounterSortKey)}
}

// lastPage is how many of the last rows are read: more than one, for the sake of
// items whose sort keys are no numbers.
const lastPage = 25

func (c *Client) readLast(ctx context.Context, api API, r ReadLast) Reply {
	in := c.bucketQuery(r.Bucket)
	in.ProjectionExpression = aws.String("#pk, #sk")
	in.ExpressionAttributeNames["#sk"] = c.schema.SortKey
	in.ConsistentRead = aws.Bool(true)
	in.ScanIndexForward = aws.Bool(false)
	in.Limit = aws.Int32(lastPage)
	if r.Before != "" {
		in.ExclusiveStartKey = c.schema.Key(c.schema.MessagesKey(r.Bucket), r.Before)
	}
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	last := Last{Next: stringOf(out.LastEvaluatedKey[c.schema.SortKey])}
	for _, item := range out.Items {
		if n, err := outbox.ParseSequence(stringOf(item[c.schema.SortKey])); err == nil {
			last.Sequence, last.Next = n, ""
			break
		}
		a := &attributes{schema: c.schema, item: item}
		a.fail(c.schema.SortKey, "is no number of 19 digits")
		last.Unreadable = a.fault
	}
	return Reply{Result: last, Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) readParkedNumbers(ctx context.Context, api API, r ReadParkedNumbers) Reply {
	in := &dynamodb.QueryInput{
		TableName:                &c.schema.Table,
		KeyConditionExpression:   aws.String("#pk = :pk AND begins_with(#sk, :row)"),
		ProjectionExpression:     aws.String("#sk"),
		ExpressionAttributeNames: map[string]string{"#pk": c.schema.PartitionKey, "#sk": c.schema.SortKey},
		ExpressionAttributeValues: values{
			":pk": text(c.schema.ParkedKey(r.Bucket)), ":row": text(outbox.ParkedRowSortKeyPrefix),
		},
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if r.After != "" {
		in.ExclusiveStartKey = c.schema.Key(c.schema.ParkedKey(r.Bucket), r.After)
	}
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	last := Last{Next: stringOf(out.LastEvaluatedKey[c.schema.SortKey])}
	for _, item := range out.Items {
		if _, n, err := outbox.ParseParkedRow(stringOf(item[c.schema.SortKey])); err == nil {
			last.Sequence = max(last.Sequence, n)
		}
	}
	return Reply{Result: last, Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) raiseCounter(ctx context.Context, api API, r RaiseCounter) Reply {
	out, err := api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           &c.schema.Table,
		Key:                                 c.schema.Key(c.schema.SequenceKey(r.Bucket), outbox.CounterSortKey),
		UpdateExpression:                    aws.String("SET #sequence = :to"),
		ConditionExpression:                 aws.String("attribute_not_exists(#sequence) OR #sequence < :to"),
		ExpressionAttributeNames:            map[string]string{"#sequence": outbox.AttrSequence},
		ExpressionAttributeValues:           values{":to": number(r.To)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
	})
	if item, refused := refusedBy(err); refused {
		before := c.counter(r.Bucket, item)
		if before.Sequence == r.To { // the SDK's repetition, or somebody else's, of the very same
			return Reply{Result: Raised{Before: before, Applied: true}}
		}
		return Reply{Class: Refused, Err: wrap(r, ErrConditionFailed, err), Result: Raised{Before: before}}
	}
	if err != nil {
		return failedWrite(r, err)
	}
	return Reply{Result: Raised{Applied: true}, Capacity: unitsOf(out.ConsumedCapacity)}
}
