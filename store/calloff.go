package store

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// CallOff sets a topic and key, or a whole topic, aside again whose retry is under way:
// the wish for the retry goes, and a pause that has come to its end too (protocol.md
// section 7). It is refused unless the marker still has the ParkedAt and the RetryAt
// that were read: the retry has ended then, one way or the other, or was asked for anew.
//
// The marker gets another ParkedAt. With the old one it would be again what it was
// before the retry was asked for, and a removal that the owner sent then, and that
// reaches the table only now, would take it from rows that are set aside.
//
// Its result, also when refused, is a SetAsideResult.
type CallOff struct {
	Bucket   int
	Seen     Marker // as it was read
	ParkedAt Ticks  // later than Seen's
	Reason   string // from now on
	NotAfter Instant
}

// RequestName implements Request.
func (CallOff) RequestName() string { return "callOff" }

// Lane implements Request.
func (CallOff) Lane() Lane { return Messages }

// Deadline implements Request.
func (r CallOff) Deadline() Instant { return r.NotAfter }

// ConcernsBucket implements Request.
func (r CallOff) ConcernsBucket() int { return r.Bucket }

// becomes is the marker once its retry is called off.
func (r CallOff) becomes() Marker {
	m := r.Seen
	m.ParkedAt, m.Reason = r.ParkedAt, r.Reason
	m.RetryAt, m.PausedUntil, m.PausedBy = 0, 0, ""
	return m
}

func (c *Client) callOff(ctx context.Context, api API, r CallOff) Reply {
	in := &dynamodb.UpdateItemInput{
		TableName:           &c.schema.Table,
		Key:                 c.markerKey(r.Bucket, r.Seen),
		UpdateExpression:    aws.String("SET #parked = :parked, #reason = :reason REMOVE #retry, #until, #by"),
		ConditionExpression: aws.String("#parked = :seen AND attribute_not_exists(#retry)"),
		ExpressionAttributeNames: map[string]string{
			"#parked": outbox.AttrParkedAtUtc, "#reason": outbox.AttrReason, "#retry": outbox.AttrRetryAtUtc,
			"#until": outbox.AttrPausedUntilUtc, "#by": outbox.AttrPausedBy,
		},
		ExpressionAttributeValues: values{
			":parked": number(r.ParkedAt), ":reason": text(r.Reason), ":seen": number(r.Seen.ParkedAt),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
	}
	if r.Seen.RetryAt != 0 {
		in.ConditionExpression = aws.String("#parked = :seen AND #retry = :asked")
		in.ExpressionAttributeValues[":asked"] = number(r.Seen.RetryAt)
	}
	out, err := api.UpdateItem(ctx, in)
	if err == nil {
		return Reply{Result: SetAsideResult{}, Capacity: unitsOf(out.ConsumedCapacity)}
	}
	return c.markerRefused(r, err, r.becomes())
}
