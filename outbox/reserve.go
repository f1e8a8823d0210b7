package outbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"
)

// build checks the messages of a call and gives each its number. After an error nothing was written but,
// perhaps, counters; the numbers taken from them are gaps, which do no harm.
func (w *Writer) build(ctx context.Context, messages []Message, own []types.TransactWriteItem) ([]entry, error) {
	trace := w.traceHeaders(ctx)
	entries, err := w.prepare(messages, own, trace)
	if len(trace) > 0 && errors.Is(err, ErrTooLarge) {
		entries, err = w.prepare(messages, own, nil) // a trace must not be what fails a write
	}
	if err != nil {
		return nil, err
	}
	counts := make(map[int]int)
	for _, e := range entries {
		counts[e.bucket]++
	}
	next, err := w.reserveAll(ctx, counts)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		e := &entries[i]
		e.sequence = next[e.bucket]
		next[e.bucket]++
		e.item[w.schema.SortKey] = &types.AttributeValueMemberS{Value: SequenceSortKey(e.sequence)}
	}
	return entries, nil
}

// reserveAll reserves counts[b] numbers in each bucket b and returns the first of each. Requests leave in
// ascending order of the buckets, at most maxConcurrency at once; the first that fails ends the rest.
func (w *Writer) reserveAll(ctx context.Context, counts map[int]int) (map[int]int64, error) {
	buckets := slices.Sorted(maps.Keys(counts))
	firsts := make([]int64, len(buckets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.maxConcurrency)
	for i, bucket := range buckets {
		group.Go(func() (err error) {
			firsts[i], err = w.reserve(ctx, bucket, counts[bucket])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	next := make(map[int]int64, len(buckets))
	for i, bucket := range buckets {
		next[bucket] = firsts[i]
	}
	return next, nil
}

// reserve takes n consecutive numbers from a bucket's counter and returns the first. The counter is
// updated outside of the transaction that uses the numbers: inside it, all writers of a bucket would
// conflict with each other. An update that the SDK repeats takes further numbers.
func (w *Writer) reserve(ctx context.Context, bucket, n int) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("reserve %d numbers of bucket %d: %w", n, bucket, err)
	}
	counter := w.schema.SequenceKey(bucket)
	out, err := w.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String(w.schema.Table),
		Key:                       w.schema.Key(counter, CounterSortKey),
		UpdateExpression:          aws.String("ADD #sequence :n"),
		ExpressionAttributeNames:  map[string]string{"#sequence": AttrSequence},
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": number(int64(n))},
		ReturnValues:              types.ReturnValueUpdatedNew,
	})
	if err != nil {
		return 0, fmt.Errorf("reserve %d numbers of bucket %d: %w", n, bucket, err)
	}
	value, ok := out.Attributes[AttrSequence].(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("reserve %d numbers of bucket %d: the answer has no %s", n, bucket, AttrSequence)
	}
	last, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil || last < int64(n) {
		return 0, fmt.Errorf("reserve %d numbers of bucket %d: counter %s now says %s, which ends no range of positive numbers",
			n, bucket, counter, value.Value)
	}
	return last - int64(n) + 1, nil
}

// puts are the conditional puts of entries that have their numbers. A refused put returns the row that
// it found, by which a repetition of one's own write is told from a number used twice.
func (w *Writer) puts(entries []entry) []types.TransactWriteItem {
	items := make([]types.TransactWriteItem, len(entries))
	for i, e := range entries {
		items[i].Put = &types.Put{
			TableName:                           aws.String(w.schema.Table),
			Item:                                e.item,
			ConditionExpression:                 aws.String(putCondition),
			ExpressionAttributeNames:            w.putNames(),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
	}
	return items
}

const putCondition = "attribute_not_exists(#pk)"

func (w *Writer) putNames() map[string]string { return map[string]string{"#pk": w.schema.PartitionKey} }
