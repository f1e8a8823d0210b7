package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// How long a transaction is asked about that DynamoDB says is still in progress: 12 pauses, from 50 ms
// doubling to 2 s, each shortened by up to a half at random; some 15 seconds at most.
const (
	progressPauses     = 12
	firstProgressPause = 50 * time.Millisecond
	maxProgressPause   = 2 * time.Second
)

// put writes one entry alone.
func (w *Writer) put(ctx context.Context, e entry) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("put message: %w", err)
	}
	var sent sendings
	_, err := w.api.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           aws.String(w.schema.Table),
		Item:                                e.item,
		ConditionExpression:                 aws.String(putCondition),
		ExpressionAttributeNames:            w.putNames(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, sent.watch)
	if err := w.settlePut(err, e, &sent); err != nil {
		return fmt.Errorf("put message: %w", err)
	}
	return nil
}

// transact sends a transaction whose last items are the puts of entries, until it is known what became
// of it or the pauses are used up. The request has a token, so that sending it again cannot apply it
// twice.
func (w *Writer) transact(ctx context.Context, request *dynamodb.TransactWriteItemsInput, entries []entry) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("write transaction: %w", err)
	}
	var sent sendings
	_, err := w.api.TransactWriteItems(ctx, request, sent.watch)
	pause := firstProgressPause
	for n := 0; n < progressPauses && inProgress(err); n++ {
		progress := err
		if err = wait(ctx, jitter(pause)); err == nil {
			_, err = w.api.TransactWriteItems(ctx, request, sent.watch)
		}
		if err != nil && !inProgress(err) {
			// Both answers decide: a refusal by a condition is final, but after any other error the
			// sending that was in progress may yet be applied.
			err = fmt.Errorf("%w, after: %w", err, progress)
			break
		}
		pause = min(2*pause, maxProgressPause)
	}
	own := len(request.TransactItems) - len(entries)
	if err := w.settleTransaction(err, own, entries, &sent); err != nil {
		return fmt.Errorf("write transaction: %w", err)
	}
	return nil
}

func inProgress(err error) bool {
	var progress *types.TransactionInProgressException
	return errors.As(err, &progress)
}

// jitter is a random part of pause, from a half to all of it.
func jitter(pause time.Duration) time.Duration {
	return pause/2 + rand.N(pause/2+1)
}

// wait returns nil after the pause, or the context's error as soon as that has ended.
func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
