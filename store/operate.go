package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// operate carries out the requests of an operator.
func (c *Client) operate(ctx context.Context, api API, r Request) Reply {
	switch r := r.(type) {
	case SetAside:
		return c.writeMarker(ctx, api, r)
	case AskRetry:
		return c.askRetry(ctx, api, r)
	case DiscardParked:
		return c.discardParked(ctx, api, r)
	case Ring:
		return c.ring(ctx, api, r)
	case FindParkedKey:
		return c.findParkedKey(ctx, api, r)
	case CountParked:
		return c.countParked(ctx, api, r)
	case ReadRow:
		return c.readRow(ctx, api, r)
	case MoveUnreadable:
		return c.moveUnreadable(ctx, api, r)
	case Pause:
		return c.pauseBucket(ctx, api, r)
	case Resume:
		return c.resumeBucket(ctx, api, r)
	case PauseTopic:
		return c.pauseTopic(ctx, api, r)
	case CallOff:
		return c.callOff(ctx, api, r)
	default:
		panic(fmt.Sprintf("store: unknown request %T", r))
	}
}

func (c *Client) writeMarker(ctx context.Context, api API, r SetAside) Reply {
	return c.putMarker(ctx, api, r, &dynamodb.PutItemInput{
		TableName:                           &c.schema.Table,
		Item:                                c.markerItem(r.Bucket, r.Marker),
		ConditionExpression:                 aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames:            map[string]string{"#pk": c.schema.PartitionKey},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
	}, r.Marker)
}

// putMarker sends a conditional put of a marker.
func (c *Client) putMarker(ctx context.Context, api API, r Request, in *dynamodb.PutItemInput, marker Marker) Reply {
	out, err := api.PutItem(ctx, in)
	if err == nil {
		return Reply{Result: SetAsideResult{}, Capacity: unitsOf(out.ConsumedCapacity)}
	}
	return c.markerRefused(r, err, marker)
}

// markerRefused is the end of a write of a marker that was not carried out. A refusal by
// the very marker that it writes is the SDK's repetition of an applied write.
func (c *Client) markerRefused(r Request, err error, marker Marker) Reply {
	item, refused := refusedBy(err)
	if !refused {
		return failedWrite(r, err)
	}
	if len(item) == 0 { // the marker that was seen is gone
		return Reply{Class: Refused, Err: wrap(r, ErrConditionFailed, err), Result: SetAsideResult{}}
	}
	existing, fault := decodeMarker(c.schema, item)
	switch {
	case fault != nil:
		return Reply{Class: Refused, Err: wrap(r, ErrConditionFailed, err), Result: SetAsideResult{}}
	case existing == marker:
		return Reply{Result: SetAsideResult{Repeated: true}}
	default:
		return Reply{Class: Refused, Err: wrap(r, ErrConditionFailed, err), Result: SetAsideResult{Existing: &existing}}
	}
}

func (c *Client) askRetry(ctx context.Context, api API, r AskRetry) Reply {
	out, err := api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &c.schema.Table,
		Key:                       c.markerKey(r.Bucket, Marker{KeyID: r.KeyID, Topic: r.Topic}),
		UpdateExpression:          aws.String("SET #retry = :at"),
		ConditionExpression:       aws.String("attribute_exists(#pk)"),
		ExpressionAttributeNames:  map[string]string{"#pk": c.schema.PartitionKey, "#retry": outbox.AttrRetryAtUtc},
		ExpressionAttributeValues: values{":at": number(r.At)},
		ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return endWrite(r, err)
	}
	return Reply{Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) discardParked(ctx context.Context, api API, r DiscardParked) Reply {
	out, err := api.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                &c.schema.Table,
		Key:                      c.schema.Key(c.schema.ParkedKey(r.Bucket), outbox.ParkedRowSortKey(r.KeyID, r.Sequence)),
		ConditionExpression:      aws.String("attribute_exists(#pk)"),
		ExpressionAttributeNames: map[string]string{"#pk": c.schema.PartitionKey},
		ReturnConsumedCapacity:   types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return endWrite(r, err)
	}
	return Reply{Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) ring(ctx context.Context, api API, r Ring) Reply {
	out, err := api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &c.schema.Table,
		Key:                       c.schema.Key(c.schema.CoordinationKey(), outbox.LeaseSortKey(r.Bucket)),
		UpdateExpression:          aws.String("SET #attention = :at"),
		ExpressionAttributeNames:  map[string]string{"#attention": outbox.AttrAttention},
		ExpressionAttributeValues: values{":at": number(r.At)},
		ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return failedWrite(r, err)
	}
	return Reply{Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) countParked(ctx context.Context, api API, r CountParked) Reply {
	in := c.parkedRows(r.Bucket, r.KeyID, r.After, r.Limit)
	in.Select = types.SelectCount
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	counted := Counted{Rows: int(out.Count)}
	if last := stringOf(out.LastEvaluatedKey[c.schema.SortKey]); last != "" {
		if _, counted.Next, err = outbox.ParseParkedRow(last); err != nil {
			return Reply{Class: Retriable, Err: wrap(r, ErrUnavailable, err)}
		}
	}
	return Reply{Result: counted, Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) readRow(ctx context.Context, api API, r ReadRow) Reply {
	in := c.bucketQuery(r.Bucket)
	in.KeyConditionExpression = aws.String("#pk = :pk AND #sk = :sk")
	in.ExpressionAttributeNames["#sk"] = c.schema.SortKey
	in.ExpressionAttributeValues[":sk"] = text(outbox.SequenceSortKey(r.Sequence))
	in.ConsistentRead = aws.Bool(true)
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	var read RowRead
	for _, item := range out.Items {
		read.Item = item
		read.Row, read.Malformed = c.schema.DecodeMessage(item)
	}
	return Reply{Result: read, Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) moveUnreadable(ctx context.Context, api API, r MoveUnreadable) Reply {
	var x transaction
	x.update(MarkerRefused, types.Update{
		TableName:        &c.schema.Table,
		Key:              c.markerKey(r.Bucket, r.Marker),
		UpdateExpression: aws.String("SET #topic = :topic, #parked = :parked, #reason = if_not_exists(#reason, :reason), #attempts = if_not_exists(#attempts, :attempts)"),
		ExpressionAttributeNames: map[string]string{
			"#topic": outbox.AttrTopic, "#parked": outbox.AttrParkedAtUtc, "#reason": outbox.AttrReason, "#attempts": outbox.AttrAttempts,
		},
		ExpressionAttributeValues: values{
			":topic": text(r.Marker.Topic), ":parked": number(r.Marker.ParkedAt),
			":reason": text(r.Marker.Reason), ":attempts": number(int64(r.Marker.Attempts)),
		},
	})
	x.put(RowRefused, c.movedRow(r.Bucket, r.Item, outbox.ParkedRowSortKey(r.Marker.KeyID, r.Sequence)))
	condition, names, values := c.asRead(r.Item)
	x.remove(RowRefused, types.Delete{
		TableName:                 &c.schema.Table,
		Key:                       c.schema.Key(c.schema.MessagesKey(r.Bucket), outbox.SequenceSortKey(r.Sequence)),
		ConditionExpression:       &condition,
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: values,
	})
	return c.transact(ctx, api, r, r.Token, x)
}

// asRead is the condition that an item exists and is, in all attributes of a message,
// the one that was read.
func (c *Client) asRead(item map[string]types.AttributeValue) (condition string, names map[string]string, bound values) {
	names = map[string]string{"#pk": c.schema.PartitionKey}
	clauses := []string{"attribute_exists(#pk)"}
	for i, attribute := range outbox.MessageAttributes() {
		name, placeholder := fmt.Sprintf("#a%d", i), fmt.Sprintf(":a%d", i)
		names[name] = attribute
		value, present := item[attribute]
		if !present {
			clauses = append(clauses, fmt.Sprintf("attribute_not_exists(%s)", name))
			continue
		}
		if bound == nil {
			bound = values{}
		}
		bound[placeholder] = value
		clauses = append(clauses, name+" = "+placeholder)
	}
	return strings.Join(clauses, " AND "), names, bound
}
