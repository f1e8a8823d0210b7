package store_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// drawValue is an attribute value of any type, often one that some attribute has.
func drawValue(t *rapid.T) types.AttributeValue {
	switch rapid.IntRange(0, 10).Draw(t, "kind") {
	case 0, 1, 2:
		return &types.AttributeValueMemberN{Value: rapid.OneOf(
			rapid.SampledFrom([]string{"0", "1", "-1", "8", "639000000000000000", "9223372036854775807", "9223372036854775808", "1E5", ""}),
			rapid.StringN(0, 40, -1)).Draw(t, "number")}
	case 3, 4, 5:
		return &types.AttributeValueMemberS{Value: rapid.OneOf(
			rapid.SampledFrom([]string{
				"", "A", "LEASE#0000000003", "LEASE#", "LEASE#-000000001", "LEASE#9999999999", "RELAY#", "RELAY#A",
				"0000000000000000001", "ALL#", "ALL#t", "KEY#", "KEY#" + keyID, "ROW#" + keyID + "#0000000000000000001", "b9f5a6c8-5a38-4d0c-8d2f-6f3a51f0f0aa",
			}), rapid.String()).Draw(t, "text")}
	case 6, 7:
		return &types.AttributeValueMemberB{Value: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")}
	case 8:
		return rapid.SampledFrom([]types.AttributeValue{
			&types.AttributeValueMemberB{}, &types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberBOOL{},
			&types.AttributeValueMemberL{}, &types.AttributeValueMemberM{}, &types.AttributeValueMemberSS{},
			&types.AttributeValueMemberNS{}, &types.AttributeValueMemberBS{},
		}).Draw(t, "other")
	default:
		return &types.UnknownUnionMember{Tag: "Z"}
	}
}

// drawItem is an item with any of our attributes, each of any type.
func drawItem(t *rapid.T) item {
	names := []string{
		"PK", "SK", outbox.AttrMessageId, outbox.AttrTopic, outbox.AttrKey, outbox.AttrValue, outbox.AttrHeaders, outbox.AttrPartition,
		outbox.AttrCreatedAtUtc, outbox.AttrBucketCount, outbox.AttrOwner, outbox.AttrExpiresAtUtc, outbox.AttrIncarnation,
		outbox.AttrClaim, outbox.AttrAttention, outbox.AttrPausedUntilUtc, outbox.AttrPausedBy, outbox.AttrPauseReason,
		outbox.AttrLastSeenUtc, outbox.AttrStoppedAtUtc, outbox.AttrMode,
		outbox.AttrReason, outbox.AttrAttempts, outbox.AttrParkedAtUtc, outbox.AttrRetryAtUtc, "Unknown",
	}
	i := item{}
	for _, name := range names {
		if rapid.Bool().Draw(t, name) {
			i[name] = drawValue(t)
		}
	}
	return i
}

// readAnything reads items of any shape, wherever the store reads items, and
// demands that each is either read or told of.
func readAnything(t *rapid.T) {
	items := []map[string]types.AttributeValue{drawItem(t), drawItem(t)}
	api := scripted{
		query: func(*dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
			return &dynamodb.QueryOutput{Items: items, LastEvaluatedKey: items[0]}, nil
		},
		put: func(in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
			if _, marks := in.Item[outbox.AttrParkedAtUtc]; marks {
				return nil, &types.ConditionalCheckFailedException{Item: items[0]}
			}
			return &dynamodb.PutItemOutput{Attributes: items[0]}, nil
		},
		update: func(*dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			return nil, &types.ConditionalCheckFailedException{Item: items[0]}
		},
		remove: func(*dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error) {
			return nil, &types.ConditionalCheckFailedException{Item: items[0]}
		},
		batch: func(*dynamodb.BatchWriteItemInput) (*dynamodb.BatchWriteItemOutput, error) {
			return &dynamodb.BatchWriteItemOutput{UnprocessedItems: map[string][]types.WriteRequest{
				"orders": {{DeleteRequest: &types.DeleteRequest{Key: items[0]}}},
			}}, nil
		},
		transact: func(in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
			return nil, &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{Item: items[0]}}}
		},
	}
	client := store.NewClient(schemas["default"], api, api)
	for _, r := range requests() {
		reply := client.Do(t.Context(), r)
		if (reply.Class == store.Done) != (reply.Err == nil) {
			t.Fatalf("%s: %s with the error %v", r.RequestName(), reply.Class, reply.Err)
		}
		switch result := reply.Result.(type) {
		case store.Fetched:
			if (len(result.Rows) == len(items)) != (result.Malformed == nil) {
				t.Fatalf("%d of %d rows, and the fault %v", len(result.Rows), len(items), result.Malformed)
			}
			if result.Malformed != nil && !errors.As(result.Malformed, new(*outbox.ItemError)) {
				t.Fatalf("the fault is a %T", result.Malformed)
			}
		case store.MarkersPage:
			if len(result.Markers)+len(result.Unreadable) != len(items) {
				t.Fatalf("%d markers and %d faults of %d items", len(result.Markers), len(result.Unreadable), len(items))
			}
		case store.CoordinationPage:
			for _, lease := range result.Leases {
				if lease.Bucket < 0 || lease.Unreadable && len(result.Unreadable) == 0 {
					t.Fatalf("read the lease %+v, unreadable %v", lease, result.Unreadable)
				}
			}
		}
	}
}

// Items are written by anybody. Whatever is in one, nothing panics, and nothing is
// lost without a word.
func TestReadAnything(t *testing.T) { rapid.Check(t, readAnything) }

func FuzzReadAnything(f *testing.F) { f.Fuzz(rapid.MakeFuzz(readAnything)) }

func drawDuration(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(-1<<60, 1<<60).Draw(t, "ns"))
}

// The clock that has gone further decides (case X-18), and ticks are rounded
// downwards.
func TestInstants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) store.Instant {
			return store.Instant{
				Wall: rapid.Custom(drawDuration).Draw(t, name+" wall"), Mono: rapid.Custom(drawDuration).Draw(t, name+" mono"),
			}
		}
		from, to := draw("from"), draw("to")
		elapsed := store.Elapsed(from, to)
		if from.Until(to) > elapsed || elapsed < to.Wall-from.Wall || elapsed < to.Mono-from.Mono {
			t.Fatalf("from %v to %v: elapsed %v, until %v", from, to, elapsed, from.Until(to))
		}
		if passed := from.PassedAt(to); passed != (elapsed > 0) {
			t.Fatalf("%v passed at %v: %t, elapsed %v", from, to, passed, elapsed)
		}
		if d := rapid.Custom(drawDuration).Draw(t, "d"); store.Elapsed(from, from.Add(d)) != d {
			t.Fatalf("%v after %v is %v", d, from, from.Add(d))
		}
		if ticks := from.Ticks(); ticks.Time().After(from.Time()) || from.Time().Sub(ticks.Time()) >= 100 {
			t.Fatalf("%v is %d ticks, which is %v", from.Time(), ticks, ticks.Time())
		}
	})
}

// A moment of any year is before or behind another one, as it should be.
func TestTicksOfAnyYear(t *testing.T) {
	now, day := store.Instant{Wall: 1_700_000_000 * time.Second}.Ticks(), store.Ticks(24*time.Hour/100)
	for _, c := range []struct {
		from, to store.Ticks
		want     time.Duration
	}{
		{now, now + day, 24 * time.Hour},
		{now + day, now, -24 * time.Hour},
		{now, store.NoEnd, math.MaxInt64},
		{store.NoEnd, now, math.MinInt64},
		{now, 0, math.MinInt64},
	} {
		if got := c.to.Sub(c.from); got != c.want {
			t.Errorf("from %d to %d: got %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
