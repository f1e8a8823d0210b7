package store

import (
	"context"
	"maps"
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// setAside carries out the requests about what is set aside.
func (c *Client) setAside(ctx context.Context, api API, r Request) Reply {
	switch r := r.(type) {
	case ReadMarkers:
		return c.readMarkers(ctx, api, r)
	case FetchParked:
		return c.fetchParked(ctx, api, r)
	case Mark:
		return c.mark(ctx, api, r)
	case Move:
		return c.move(ctx, api, r)
	case RemoveParked:
		return c.removeParked(ctx, api, r)
	case Unmark:
		return c.unmark(ctx, api, r)
	case EndRetry:
		return c.endRetry(ctx, api, r)
	default:
		return c.operate(ctx, api, r)
	}
}

// parkedQuery is a strongly consistent query of the parked partition of a bucket.
func (c *Client) parkedQuery(bucket int, condition string, bounds values) *dynamodb.QueryInput {
	bounds[":pk"] = text(c.schema.ParkedKey(bucket))
	return &dynamodb.QueryInput{
		TableName:                 &c.schema.Table,
		KeyConditionExpression:    aws.String("#pk = :pk AND " + condition),
		ExpressionAttributeNames:  map[string]string{"#pk": c.schema.PartitionKey, "#sk": c.schema.SortKey},
		ExpressionAttributeValues: bounds,
		ConsistentRead:            aws.Bool(true),
		ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
	}
}

func (c *Client) readMarkers(ctx context.Context, api API, r ReadMarkers) Reply {
	in := c.parkedQuery(r.Bucket, "#sk < :rows", values{":rows": text(outbox.ParkedRowSortKeyPrefix)})
	if r.After != "" {
		in.ExclusiveStartKey = c.schema.Key(c.schema.ParkedKey(r.Bucket), r.After)
	}
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	page := MarkersPage{Next: stringOf(out.LastEvaluatedKey[c.schema.SortKey])}
	for _, item := range out.Items {
		marker, err := decodeMarker(c.schema, item)
		if err != nil {
			page.Unreadable = append(page.Unreadable, err)
			continue
		}
		page.Markers = append(page.Markers, marker)
	}
	return Reply{Result: page, Capacity: unitsOf(out.ConsumedCapacity)}
}

// decodeMarker reads the marker of a topic, or of a key, whose Topic may be absent:
// that of a row whose topic could not be read has none. Without ParkedAtUtc no
// transaction could name the marker that it means.
func decodeMarker(schema outbox.Schema, item map[string]types.AttributeValue) (Marker, error) {
	a := &attributes{schema: schema, item: item}
	key := stringOf(item[schema.SortKey])
	var marker Marker
	if topic, ofTopic := strings.CutPrefix(key, outbox.ParkedTopicSortKeyPrefix); ofTopic && topic != "" {
		marker.Topic = topic
		marker.PausedUntil = Ticks(a.number(outbox.AttrPausedUntilUtc))
		marker.PausedBy = a.text(outbox.AttrPausedBy)
	} else if keyID, ofKey := strings.CutPrefix(key, outbox.ParkedKeySortKeyPrefix); ofKey && outbox.ValidKeyID(keyID) {
		marker.KeyID = keyID
		marker.Topic = a.text(outbox.AttrTopic)
		marker.Attempts = int(a.number(outbox.AttrAttempts))
	} else {
		a.fail(schema.SortKey, "is neither of a topic nor of a key set aside")
	}
	marker.Reason = a.text(outbox.AttrReason)
	marker.ParkedAt = Ticks(a.number(outbox.AttrParkedAtUtc))
	marker.RetryAt = Ticks(a.number(outbox.AttrRetryAtUtc))
	if marker.ParkedAt <= 0 {
		a.fail(outbox.AttrParkedAtUtc, "is missing")
	}
	return marker, a.fault
}

func (c *Client) fetchParked(ctx context.Context, api API, r FetchParked) Reply {
	out, err := api.Query(ctx, c.parkedRows(r.Bucket, r.KeyID, r.After, r.Limit))
	if err != nil {
		return failedRead(r, err)
	}
	return c.fetched(out, c.schema.DecodeParkedRow)
}

// parkedRows is a query of the rows of one key, from after a sequence on; 0: from the
// first. From the first row on, everything with the prefix is read, so that what is no
// row there is reported. Behind a row, the bound is the prefix with the character that
// follows "#".
func (c *Client) parkedRows(bucket int, keyID string, after int64, limit int) *dynamodb.QueryInput {
	prefix := outbox.ParkedRowSortKeyPrefix + keyID
	in := c.parkedQuery(bucket, "begins_with(#sk, :rows)", values{":rows": text(prefix + "#")})
	if after > 0 {
		next := min(after, math.MaxInt64-1) + 1
		in = c.parkedQuery(bucket, "#sk BETWEEN :next AND :end", values{
			":next": text(outbox.ParkedRowSortKey(keyID, next)), ":end": text(prefix + "$"),
		})
	}
	in.Limit = aws.Int32(int32(min(limit, math.MaxInt32)))
	return in
}

func (c *Client) mark(ctx context.Context, api API, r Mark) Reply {
	x := c.underLease(r.Tenure)
	for _, marker := range r.Markers {
		x.put(MarkerRefused, types.Put{
			TableName:                &c.schema.Table,
			Item:                     c.markerItem(r.Tenure.Bucket, marker),
			ConditionExpression:      aws.String("attribute_not_exists(#pk)"),
			ExpressionAttributeNames: map[string]string{"#pk": c.schema.PartitionKey},
		})
	}
	return c.transact(ctx, api, r, r.Token, x)
}

func (c *Client) move(ctx context.Context, api API, r Move) Reply {
	x := c.underLease(r.Tenure)
	for _, marker := range r.Markers {
		x.check(MarkerRefused, types.ConditionCheck{
			TableName:                 &c.schema.Table,
			Key:                       c.markerKey(r.Tenure.Bucket, marker),
			ConditionExpression:       aws.String("#parked = :known"),
			ExpressionAttributeNames:  map[string]string{"#parked": outbox.AttrParkedAtUtc},
			ExpressionAttributeValues: values{":known": number(marker.ParkedAt)},
		})
	}
	for _, moving := range r.Rows {
		x.put(RowRefused, c.movedRow(r.Tenure.Bucket, moving.Row.Item, outbox.ParkedRowSortKey(moving.KeyID, moving.Row.Sequence)))
		x.remove(RowRefused, types.Delete{
			TableName:                &c.schema.Table,
			Key:                      c.schema.Key(c.schema.MessagesKey(r.Tenure.Bucket), outbox.SequenceSortKey(moving.Row.Sequence)),
			ConditionExpression:      aws.String("attribute_exists(#pk)"),
			ExpressionAttributeNames: map[string]string{"#pk": c.schema.PartitionKey},
		})
	}
	return c.transact(ctx, api, r, r.Token, x)
}

// movedRow puts an item into the parked partition: all its attributes are as they
// were, those that we do not know too, except the keys. Another row there is not
// replaced, but the same message is: a writer's put that the SDK repeated after the
// row was moved has brought it back, and it is set aside once more.
func (c *Client) movedRow(bucket int, item map[string]types.AttributeValue, sortKey string) types.Put {
	moved := maps.Clone(item)
	maps.Copy(moved, c.schema.Key(c.schema.ParkedKey(bucket), sortKey))
	put := types.Put{
		TableName:                &c.schema.Table,
		Item:                     moved,
		ConditionExpression:      aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames: map[string]string{"#pk": c.schema.PartitionKey},
	}
	if id := item[outbox.AttrMessageId]; id != nil {
		put.ConditionExpression = aws.String("attribute_not_exists(#pk) OR #id = :id")
		put.ExpressionAttributeNames["#id"] = outbox.AttrMessageId
		put.ExpressionAttributeValues = values{":id": id}
	}
	return put
}

func (c *Client) removeParked(ctx context.Context, api API, r RemoveParked) Reply {
	x := c.underLease(r.Tenure)
	for _, sequence := range r.Sequences {
		// Without a condition: an operator may have discarded the row meanwhile.
		x.remove(RowRefused, types.Delete{
			TableName: &c.schema.Table,
			Key:       c.schema.Key(c.schema.ParkedKey(r.Tenure.Bucket), outbox.ParkedRowSortKey(r.KeyID, sequence)),
		})
	}
	return c.transact(ctx, api, r, r.Token, x)
}

func (c *Client) unmark(ctx context.Context, api API, r Unmark) Reply {
	x := c.underLease(r.Tenure)
	condition, names, values := unchanged(r.Marker)
	x.remove(MarkerRefused, types.Delete{
		TableName:                 &c.schema.Table,
		Key:                       c.markerKey(r.Tenure.Bucket, r.Marker),
		ConditionExpression:       &condition,
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: values,
	})
	return c.transact(ctx, api, r, r.Token, x)
}

func (c *Client) endRetry(ctx context.Context, api API, r EndRetry) Reply {
	x := c.underLease(r.Tenure)
	condition, names, values := unchanged(r.Marker)
	set := "SET #reason = :reason"
	names["#reason"], values[":reason"] = outbox.AttrReason, text(r.Reason)
	if r.Marker.KeyID != "" {
		set += ", #attempts = :attempts"
		names["#attempts"], values[":attempts"] = outbox.AttrAttempts, number(int64(r.Attempts))
	}
	x.update(MarkerRefused, types.Update{
		TableName:                 &c.schema.Table,
		Key:                       c.markerKey(r.Tenure.Bucket, r.Marker),
		UpdateExpression:          aws.String(set + " REMOVE #retry"),
		ConditionExpression:       &condition,
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: values,
	})
	return c.transact(ctx, api, r, r.Token, x)
}

// unchanged is the condition that a marker is the one that was read: set aside at the
// same instant, the same retry, or none, was asked for, and none has failed since. The
// last tells a marker whose retry was asked for and has failed from what it was before:
// else an Unmark that was refused in between, and reached the table once more after
// that, would take the marker from rows that are set aside.
func unchanged(m Marker) (condition string, names map[string]string, bound values) {
	names = map[string]string{"#parked": outbox.AttrParkedAtUtc, "#retry": outbox.AttrRetryAtUtc}
	bound = values{":parked": number(m.ParkedAt)}
	condition = "#parked = :parked AND attribute_not_exists(#retry)"
	if m.RetryAt != 0 {
		condition = "#parked = :parked AND #retry = :retry"
		bound[":retry"] = number(m.RetryAt)
	}
	if m.KeyID == "" {
		return condition, names, bound
	}
	names["#attempts"], bound[":known"] = outbox.AttrAttempts, number(int64(m.Attempts))
	if m.Attempts == 0 {
		return condition + " AND (attribute_not_exists(#attempts) OR #attempts = :known)", names, bound
	}
	return condition + " AND #attempts = :known", names, bound
}

func markerSortKey(m Marker) string {
	if m.KeyID != "" {
		return outbox.ParkedKeySortKey(m.KeyID)
	}
	return outbox.ParkedTopicSortKey(m.Topic)
}

func (c *Client) markerKey(bucket int, m Marker) map[string]types.AttributeValue {
	return c.schema.Key(c.schema.ParkedKey(bucket), markerSortKey(m))
}

// markerItem is a marker as it is stored. The marker of a topic has its topic in the
// sort key alone, and counts no attempts.
func (c *Client) markerItem(bucket int, m Marker) map[string]types.AttributeValue {
	item := c.markerKey(bucket, m)
	item[outbox.AttrReason] = text(m.Reason)
	item[outbox.AttrParkedAtUtc] = number(m.ParkedAt)
	if m.RetryAt != 0 {
		item[outbox.AttrRetryAtUtc] = number(m.RetryAt)
	}
	if m.KeyID != "" {
		item[outbox.AttrTopic] = text(m.Topic)
		item[outbox.AttrAttempts] = number(int64(m.Attempts))
	}
	if m.PausedUntil != 0 {
		item[outbox.AttrPausedUntilUtc], item[outbox.AttrPausedBy] = number(m.PausedUntil), text(m.PausedBy)
	}
	return item
}
