package outbox

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// This file decides what became of a write. There are three ends: applied (nil), not applied (any other
// error), and ErrAmbiguous. Only codes and types of errors count, never their texts.

const conditionFailed = "ConditionalCheckFailed" // a CancellationReason's code

// settlePut is the end of the conditional put of one entry, nil when it was applied.
func (w *Writer) settlePut(err error, e entry, sent *sendings) error {
	if err == nil {
		return nil
	}
	var refused *types.ConditionalCheckFailedException
	if !errors.As(err, &refused) {
		return sent.classify(err)
	}
	switch w.finding(refused.Item, e) {
	case foundOwn:
		return nil
	case foundOther:
		return w.behind(refused.Item, e)
	default:
		return ambiguous(err)
	}
}

// settleTransaction is the end of a transaction that holds the puts of entries behind own items of the
// caller; nil when it was applied, now or before.
//
// A put of ours is refused only when a row has its number, and a number is given to one message once.
// A row with our message's ID is therefore of this very transaction, applied by an earlier sending of it
// whose answer the SDK did not get, and since a transaction is applied as a whole, so were the caller's
// items. It does not matter that their conditions are refused as well this time: "order 7 does not exist"
// is false once order 7 was written. On a first sending it is the other way round: a caller's condition
// may be refused, but our puts are not, and the error stays one.
//
// When only some of our rows are found, a relay has probably published and deleted the others meanwhile.
// Point 8 of section 2 wants that to be an error that says ambiguous, not a success: less than all rows
// is less than the proof above.
//
// A transaction that is refused by a condition of the caller's was not applied before either, or its token
// would be known. One that is canceled for another reason, a conflict, say, may still be overtaken by a
// sending that the SDK has given up.
func (w *Writer) settleTransaction(err error, own int, entries []entry, sent *sendings) error {
	if err == nil {
		return nil
	}
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return sent.classify(err)
	}
	var mine, unknown int
	var taken []error
	for i, e := range entries {
		reason := reasonOf(canceled, own+i)
		if aws.ToString(reason.Code) != conditionFailed {
			continue
		}
		switch w.finding(reason.Item, e) {
		case foundOwn:
			mine++
		case foundOther:
			taken = append(taken, w.behind(reason.Item, e))
		default:
			unknown++
		}
	}
	switch {
	case mine == 0 && unknown == 0 && len(taken) == 0 && sent.doubtful && !refusedByCondition(canceled):
		return ambiguous(err)
	case mine == 0 && unknown == 0 && len(taken) == 0:
		return err
	case mine == len(entries):
		return nil
	case mine == 0 && unknown == 0:
		return errors.Join(append(taken, err)...)
	default:
		return errors.Join(append(taken, ambiguous(err))...)
	}
}

// refusedByCondition tells whether the condition of any item was what canceled a transaction.
func refusedByCondition(canceled *types.TransactionCanceledException) bool {
	return slices.ContainsFunc(canceled.CancellationReasons, func(reason types.CancellationReason) bool {
		return aws.ToString(reason.Code) == conditionFailed
	})
}

// reasonOf is why the item at index was refused; a service that gives fewer reasons has none for it.
func reasonOf(canceled *types.TransactionCanceledException, index int) types.CancellationReason {
	if index >= len(canceled.CancellationReasons) {
		return types.CancellationReason{}
	}
	return canceled.CancellationReasons[index]
}

// finding is what a refused put of an entry found under its key.
type finding int

const (
	foundNothing finding = iota // the answer does not say
	foundOwn                    // the entry itself
	foundOther                  // another message, or no message at all
)

func (w *Writer) finding(item map[string]types.AttributeValue, e entry) finding {
	if len(item) == 0 {
		return foundNothing
	}
	if strings.EqualFold(holder(item), e.id.String()) {
		return foundOwn
	}
	return foundOther
}

// holder is the id of the message in a row, or empty.
func holder(item map[string]types.AttributeValue) string {
	if id, ok := item[AttrMessageId].(*types.AttributeValueMemberS); ok {
		return id.Value
	}
	return ""
}

func (w *Writer) behind(found map[string]types.AttributeValue, e entry) error {
	repair := fmt.Sprintf("raise %s of the item %s %s to at least the highest number in %s, if it is lower, as relay doctor --repair-sequence --bucket %d does",
		AttrSequence, w.schema.SequenceKey(e.bucket), CounterSortKey, w.schema.MessagesKey(e.bucket), e.bucket)
	return fmt.Errorf("%w: bucket %d, number %d of message %s is that of message %q already: %s",
		ErrSequenceBehind, e.bucket, e.sequence, e.id, holder(found), repair)
}

func ambiguous(err error) error { return fmt.Errorf("%w: %w", ErrAmbiguous, err) }

// classify tells, for a write that was sent and for an error that is no refused condition, whether the
// write can have been applied all the same.
func classify(err error) error {
	var (
		mismatch *types.IdempotentParameterMismatchException
		attempts *retry.MaxAttemptsError
		answer   *smithyhttp.ResponseError
		service  smithy.APIError
	)
	switch {
	case inProgress(err):
		// An earlier sending of it is being applied, and nobody saw the end of that.
		return ambiguous(err)
	case errors.As(err, &mismatch):
		// Something else was sent under this token before: a Commit repeated under the caller's own.
		return ambiguous(err)
	case errors.As(err, &attempts) && attempts.Attempt > 1:
		// The SDK shows the last answer only. That of an earlier sending may have been lost.
		return ambiguous(err)
	case errors.As(err, &answer) && answer.HTTPStatusCode() >= http.StatusInternalServerError:
		return ambiguous(err)
	case errors.As(err, &service) && service.ErrorFault() != smithy.FaultServer:
		// The service looked at it and said no: throttled, not allowed, not valid, no such table.
		return err
	default:
		// No answer, or one that says that the service lost its way.
		return ambiguous(err)
	}
}
