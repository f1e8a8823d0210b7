package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// patience is for how long a writer may wait before it tries again, or commits
// what it has reserved long ago.
const patience = 20 * time.Second

// decide lets a transaction, whose numbers are reserved, come to its end: soon,
// as nearly all do, or in one of the ways that writers and networks have.
func (w *writers) decide(x transaction) {
	dice := w.fleet.dice
	struck := func(kind Fault) bool { return dice.strikes(kind, "writer", "") }
	switch {
	case struck(Abandoned):
		x.key.busy = false
	case struck(LateCommit): // long after later numbers
		w.after(dice.of(LateCommit).between(0, patience), func() { w.commit(x) })
	case struck(OptimisticRetry): // another was faster: its numbers stay unused
		w.after(dice.of(OptimisticRetry).between(0, time.Second), func() {
			x.first = w.reserve(x.bucket, len(x.messages))
			w.decide(x)
		})
	case struck(AmbiguousCommit):
		s := dice.of(AmbiguousCommit)
		w.after(s.between(0, time.Second), func() {
			w.put(w.fleet.schema, x.bucket, x.first, x.messages, x.token())
			w.after(s.between(0, patience), func() { w.repeat(x, s) })
		})
	case len(x.messages) == 1 && struck(RepeatedPut):
		s := dice.of(RepeatedPut)
		w.after(s.between(0, time.Second), func() {
			w.commit(x)
			w.after(s.between(0, patience), func() { w.putAgain(x) })
		})
	default:
		w.after(w.rand.between(0, 5*time.Millisecond), func() { w.commit(x) })
	}
}

// after lets something happen without which the run is not over.
func (w *writers) after(d time.Duration, do func()) {
	w.open++
	w.fleet.At(d, func() {
		w.open--
		do()
	})
}

func (x transaction) token() string { return x.messages[0].ID.String() }

// commit writes the messages, and wakes the owner. Numbers that are in use are
// refused, which only a counter that was set back can bring about: the writer
// gives up.
func (w *writers) commit(x transaction) {
	err := w.put(w.fleet.schema, x.bucket, x.first, x.messages, x.token())
	var canceled *types.TransactionCanceledException
	if err != nil && !(errors.As(err, &canceled) && w.setBack) {
		panic(fmt.Errorf("a writer's transaction was refused: %w", err))
	}
	x.key.busy = false
	w.fleet.notify(x.bucket)
}

// repeat is what a writer does that was not answered. The SDK's repetition is
// known by its token. A repetition of its own takes new numbers, and is refused by
// the business item, which has changed: they stay unused.
func (w *writers) repeat(x transaction, s source) {
	if s.chance(0.5) {
		w.reserve(x.bucket, len(x.messages))
		x.key.busy = false
		return
	}
	w.commit(x)
}

// putAgain is the SDK's repetition of a put of one message without a
// transaction: it has no token. When the message was relayed meanwhile, it is in
// the table again, and is delivered again. A put that was refused, for a number in
// use, was answered, and is not repeated.
func (w *writers) putAgain(x transaction) {
	f := w.fleet
	if _, committed := w.byID[x.messages[0].ID]; !committed {
		return
	}
	_, err := f.db.PutItem(context.Background(), &dynamodb.PutItemInput{
		TableName:                &f.schema.Table,
		Item:                     f.schema.EncodeMessage(x.messages[0], x.bucket, x.first),
		ConditionExpression:      aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames: map[string]string{"#pk": f.schema.PartitionKey},
	})
	var refused *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		f.record("writer", messagesWritten, committed{x.bucket, x.first, 1})
		w.again = append(w.again, rowName{x.bucket, x.first})
	case !errors.As(err, &refused):
		panic(err)
	}
}

// setCounterBack is what nobody must do: a bucket's numbers are given out again.
func (w *writers) setCounterBack(s source) {
	w.setBack = true
	bucket := s.IntN(len(w.highest))
	w.setCounter(bucket, s.Int64N(w.highest[bucket]+1))
}

// repairCounters raises all counters above all numbers that were in use.
func (w *writers) repairCounters() {
	for bucket, highest := range w.highest {
		if w.setBack && highest > 0 {
			w.setCounter(bucket, highest)
		}
	}
}

func (w *writers) setCounter(bucket int, n int64) {
	s := w.fleet.schema
	counter := s.Key(s.SequenceKey(bucket), outbox.CounterSortKey)
	counter[outbox.AttrSequence] = &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
	if _, err := w.fleet.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &s.Table, Item: counter}); err != nil {
		panic(err)
	}
}
