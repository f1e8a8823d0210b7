package store

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// NoEnd as the end of a pause: it has none. It is the last tick of the year 9999, the
// last that a peer's clock can name.
const NoEnd Ticks = 3_155_378_975_999_999_999

// Pause pauses a bucket, whoever owns it, now and later (protocol.md section 7). It is
// refused unless the lease item has the end of a pause that was seen before, or none:
// of two operators the second learns of the first. The owner hears it in its next
// round, without being rung for. Its result, also when refused, is a LeaseResult.
type Pause struct {
	Bucket   int
	Seen     Ticks // Lease.PausedUntil as it was read; 0: there was none
	Until    Ticks // NoEnd: until it is resumed
	By       string
	Reason   string // no content: it is logged and shown
	NotAfter Instant
}

// Resume ends the pause of a bucket that was seen, be it over by itself or not. It is
// refused when there is another. Its result, also when refused, is a LeaseResult.
type Resume struct {
	Bucket   int
	Seen     Ticks // Lease.PausedUntil as it was read
	NotAfter Instant
}

// PauseTopic sets a whole topic aside in one bucket, with who and until when, or sets
// another end to a pause that is still on. It is refused when the topic's marker is not
// the one that was seen, or its retry is under way. A new end comes with a new ParkedAt:
// an owner that was about to remove the marker, since the pause that it knew is over, is
// refused then. Its result, also when refused, is a SetAsideResult.
type PauseTopic struct {
	Bucket   int
	Seen     Ticks  // Marker.ParkedAt as it was read; 0: there was none
	Marker   Marker // of a topic, with PausedUntil and PausedBy
	NotAfter Instant
}

// RequestName implements Request.
func (Pause) RequestName() string      { return "pause" }
func (Resume) RequestName() string     { return "resume" }
func (PauseTopic) RequestName() string { return "pauseTopic" }

// Lane implements Request.
func (Pause) Lane() Lane      { return Messages }
func (Resume) Lane() Lane     { return Messages }
func (PauseTopic) Lane() Lane { return Messages }

// Deadline implements Request.
func (r Pause) Deadline() Instant      { return r.NotAfter }
func (r Resume) Deadline() Instant     { return r.NotAfter }
func (r PauseTopic) Deadline() Instant { return r.NotAfter }

// ConcernsBucket implements Request.
func (r Pause) ConcernsBucket() int      { return r.Bucket }
func (r Resume) ConcernsBucket() int     { return r.Bucket }
func (r PauseTopic) ConcernsBucket() int { return r.Bucket }

func (c *Client) pauseBucket(ctx context.Context, api API, r Pause) Reply {
	in := c.leaseUpdate(r.Bucket)
	in.UpdateExpression = aws.String("SET #until = :until, #by = :by, #reason = :reason")
	in.ExpressionAttributeNames = pauseNames()
	in.ExpressionAttributeValues = values{":until": number(r.Until), ":by": text(r.By), ":reason": text(r.Reason)}
	in.ConditionExpression = aws.String("attribute_not_exists(#until)")
	if r.Seen != 0 {
		in.ConditionExpression = aws.String("#until = :seen")
		in.ExpressionAttributeValues[":seen"] = number(r.Seen)
	}
	return c.writeLease(ctx, api, r, in, func(old Lease) bool {
		return old.PausedUntil == r.Until && old.PausedBy == r.By && old.PauseReason == r.Reason
	})
}

func (c *Client) resumeBucket(ctx context.Context, api API, r Resume) Reply {
	in := c.leaseUpdate(r.Bucket)
	in.UpdateExpression = aws.String("REMOVE #until, #by, #reason")
	in.ConditionExpression = aws.String("#until = :seen")
	in.ExpressionAttributeNames = pauseNames()
	in.ExpressionAttributeValues = values{":seen": number(r.Seen)}
	return c.writeLease(ctx, api, r, in, func(old Lease) bool { return old.PausedUntil == 0 })
}

func pauseNames() map[string]string {
	return map[string]string{
		"#until": outbox.AttrPausedUntilUtc, "#by": outbox.AttrPausedBy, "#reason": outbox.AttrPauseReason,
	}
}

func (c *Client) pauseTopic(ctx context.Context, api API, r PauseTopic) Reply {
	in := &dynamodb.PutItemInput{
		TableName:                           &c.schema.Table,
		Item:                                c.markerItem(r.Bucket, r.Marker),
		ConditionExpression:                 aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames:            map[string]string{"#pk": c.schema.PartitionKey},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
	}
	if r.Seen != 0 {
		in.ConditionExpression = aws.String("#parked = :seen AND attribute_not_exists(#retry)")
		in.ExpressionAttributeNames = map[string]string{"#parked": outbox.AttrParkedAtUtc, "#retry": outbox.AttrRetryAtUtc}
		in.ExpressionAttributeValues = values{":seen": number(r.Seen)}
	}
	return c.putMarker(ctx, api, r, in, r.Marker)
}
