package store

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// values collects an expression's values.
type values map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number[T ~int64](n T) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
}

func (c *Client) heartbeat(ctx context.Context, api API, r Heartbeat) Reply {
	item := c.schema.Key(c.schema.CoordinationKey(), outbox.RelaySortKey(r.Relay))
	item[outbox.AttrLastSeenUtc] = number(r.LastSeen)
	if r.Incarnation != "" {
		item[outbox.AttrIncarnation] = text(r.Incarnation)
	}
	if r.Mode != "" {
		item[outbox.AttrMode] = text(r.Mode)
	}
	out, err := api.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           &c.schema.Table,
		Item:                                item,
		ConditionExpression:                 aws.String("attribute_not_exists(#seen) OR #seen <= :now"),
		ExpressionAttributeNames:            map[string]string{"#seen": outbox.AttrLastSeenUtc},
		ExpressionAttributeValues:           values{":now": number(r.LastSeen)},
		ReturnValues:                        types.ReturnValueAllOld,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
	})
	if old, refused := refusedBy(err); refused {
		return Reply{Class: Refused, Err: wrap(r, ErrConditionFailed, err), Result: HeartbeatResult{Previous: c.record(old)}, Date: dateOfError(err)}
	}
	if err != nil {
		return failedWrite(r, err)
	}
	return Reply{
		Result:   HeartbeatResult{Previous: c.record(out.Attributes)},
		Capacity: unitsOf(out.ConsumedCapacity), Date: dateOf(out.ResultMetadata),
	}
}

// record is a relay record as far as it can be read; nil for no item.
func (c *Client) record(item map[string]types.AttributeValue) *RelayRecord {
	if len(item) == 0 {
		return nil
	}
	record, _ := decodeRelay(c.schema, item)
	return &record
}

func (c *Client) readCoordination(ctx context.Context, api API, r ReadCoordination) Reply {
	in := &dynamodb.QueryInput{
		TableName: &c.schema.Table,
		// Leases and relays are all that there is. That the sort key is named has a
		// second use: a table with another one is found out by the very first read.
		KeyConditionExpression:   aws.String("#pk = :pk AND #sk >= :first"),
		ExpressionAttributeNames: map[string]string{"#pk": c.schema.PartitionKey, "#sk": c.schema.SortKey},
		ExpressionAttributeValues: values{
			":pk": text(c.schema.CoordinationKey()), ":first": text(outbox.LeaseSortKeyPrefix),
		},
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if r.After != "" {
		in.ExclusiveStartKey = c.schema.Key(c.schema.CoordinationKey(), r.After)
	}
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	page := decodeCoordination(c.schema, out.Items)
	page.Next = stringOf(out.LastEvaluatedKey[c.schema.SortKey])
	return Reply{Result: page, Capacity: unitsOf(out.ConsumedCapacity), Date: dateOf(out.ResultMetadata)}
}

func (c *Client) claim(ctx context.Context, api API, r Claim) Reply {
	in := c.leaseUpdate(r.Bucket)
	in.UpdateExpression = aws.String("SET #owner = :me, #expires = :expiry, #incarnation = :incarnation, #claim = :claim")
	in.ConditionExpression = aws.String("attribute_not_exists(#owner) OR attribute_not_exists(#expires) OR #expires <= :now")
	in.ExpressionAttributeNames = leaseNames()
	in.ExpressionAttributeValues = values{
		":me":          text(r.Relay),
		":expiry":      number(r.Expires),
		":incarnation": text(r.Incarnation),
		":claim":       number(r.Claim),
		":now":         number(r.Now),
	}
	return c.writeLease(ctx, api, r, in, func(old Lease) bool {
		return old.Owner == r.Relay && old.Incarnation == r.Incarnation && old.Claim == r.Claim && old.Expires == r.Expires
	})
}

func (c *Client) keep(ctx context.Context, api API, r Keep) Reply {
	in := c.leaseUpdate(r.Bucket)
	in.UpdateExpression = aws.String("SET #expires = :expiry, #incarnation = :incarnation, #claim = :claim")
	in.ConditionExpression = aws.String("#owner = :me AND #expires = :seen")
	in.ExpressionAttributeNames = leaseNames()
	in.ExpressionAttributeValues = values{
		":me":          text(r.Relay),
		":expiry":      number(r.Expires),
		":incarnation": text(r.Incarnation),
		":claim":       number(r.Claim),
		":seen":        number(r.Seen),
	}
	return c.writeLease(ctx, api, r, in, func(old Lease) bool {
		return old.Owner == r.Relay && old.Incarnation == r.Incarnation && old.Claim == r.Claim && old.Expires == r.Expires
	})
}

func (c *Client) release(ctx context.Context, api API, r Release) Reply {
	in := c.leaseUpdate(r.Bucket)
	in.UpdateExpression = aws.String("SET #expires = :now REMOVE #owner")
	in.ConditionExpression = aws.String("#owner = :me AND #expires = :seen")
	in.ExpressionAttributeNames = map[string]string{"#owner": outbox.AttrOwner, "#expires": outbox.AttrExpiresAtUtc}
	in.ExpressionAttributeValues = values{":me": text(r.Relay), ":seen": number(r.Seen), ":now": number(r.Now)}
	return c.writeLease(ctx, api, r, in, func(old Lease) bool { return old.Owner != r.Relay })
}

func leaseNames() map[string]string {
	return map[string]string{
		"#owner":       outbox.AttrOwner,
		"#expires":     outbox.AttrExpiresAtUtc,
		"#incarnation": outbox.AttrIncarnation,
		"#claim":       outbox.AttrClaim,
	}
}

func (c *Client) leaseUpdate(bucket int) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           &c.schema.Table,
		Key:                                 c.schema.Key(c.schema.CoordinationKey(), outbox.LeaseSortKey(bucket)),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
	}
}

// writeLease sends a conditional write of a lease. A refusal by an item that
// is what the write leaves behind is the SDK's repetition of an applied write
// (protocol.md section 3, step 4; case D-01).
func (c *Client) writeLease(ctx context.Context, api API, r Request, in *dynamodb.UpdateItemInput, own func(Lease) bool) Reply {
	out, err := api.UpdateItem(ctx, in)
	item, refused := refusedBy(err)
	switch {
	case err == nil:
		return Reply{Result: LeaseResult{}, Capacity: unitsOf(out.ConsumedCapacity)}
	case !refused:
		return failedWrite(r, err)
	case len(item) == 0 && own(Lease{}): // a release of what is not there
		return Reply{Result: LeaseResult{}}
	case len(item) == 0:
		return Reply{Class: Refused, Err: wrap(r, ErrConditionFailed, err), Result: LeaseResult{}}
	}
	old, _ := decodeLease(c.schema, item)
	if own(old) {
		return Reply{Result: LeaseResult{Repeated: true}}
	}
	return Reply{Class: Refused, Err: wrap(r, ErrConditionFailed, err), Result: LeaseResult{Old: &old}}
}

func (c *Client) stampStopped(ctx context.Context, api API, r StampStopped) Reply {
	out, err := api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           &c.schema.Table,
		Key:                 c.schema.Key(c.schema.CoordinationKey(), outbox.RelaySortKey(r.Relay)),
		UpdateExpression:    aws.String("SET #seen = :at, #stopped = :at"),
		ConditionExpression: aws.String("attribute_not_exists(#incarnation) OR #incarnation = :mine"),
		ExpressionAttributeNames: map[string]string{
			"#seen": outbox.AttrLastSeenUtc, "#stopped": outbox.AttrStoppedAtUtc, "#incarnation": outbox.AttrIncarnation,
		},
		ExpressionAttributeValues: values{":at": number(r.At), ":mine": text(r.Incarnation)},
		ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return endWrite(r, err)
	}
	return Reply{Capacity: unitsOf(out.ConsumedCapacity)}
}

func (c *Client) prune(ctx context.Context, api API, r Prune) Reply {
	out, err := api.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &c.schema.Table,
		Key:       c.schema.Key(c.schema.CoordinationKey(), outbox.RelaySortKey(r.Relay)),
		ConditionExpression: aws.String("attribute_not_exists(#pk) OR #seen < :dead" +
			" OR (attribute_exists(#stoppedAt) AND #seen < :stopped)"),
		ExpressionAttributeNames: map[string]string{
			"#pk": c.schema.PartitionKey, "#seen": outbox.AttrLastSeenUtc, "#stoppedAt": outbox.AttrStoppedAtUtc,
		},
		ExpressionAttributeValues: values{":dead": number(r.Dead), ":stopped": number(r.Stopped)},
		ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return endWrite(r, err)
	}
	return Reply{Capacity: unitsOf(out.ConsumedCapacity)}
}

// endWrite is the reply to a failed write whose old item says nothing.
func endWrite(r Request, err error) Reply {
	if _, refused := refusedBy(err); refused {
		return Reply{Class: Refused, Err: wrap(r, ErrConditionFailed, err)}
	}
	return failedWrite(r, err)
}
