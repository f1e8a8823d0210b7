package outbox

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
)

var (
	// ErrTooLarge refuses a call before anything was sent: the item of a message, or all items of the
	// call together, are larger than what can be stored and moved. Nothing was written and repeating
	// the call cannot help. Store the payload elsewhere and send a reference to it, or, when it is the
	// sum that is too large, split the call. errors.As with a *SizeError gives message, size and limit.
	ErrTooLarge = errors.New("outbox: too large")

	// ErrAmbiguous says that it is unknown whether the write was applied: all of it, or nothing. It was
	// sent and no answer said which, or what is found in the table allows both. So is a write that the
	// SDK sent until it gave up (throttled, say), and one that was refused by the service when it was sent
	// again, since an earlier sending had no answer. errors.As still finds the last answer. Nothing is lost
	// and nothing was notified; relays find by polling what was stored. After Commit, read the business item
	// to learn whether the transaction was applied; after Enqueue, enqueue the same messages again under the
	// same IDs. At worst they are then stored twice, and a consumer that deduplicates on the message ID sees
	// them once.
	ErrAmbiguous = errors.New("outbox: ambiguous: the write may or may not have been applied")

	// ErrSequenceBehind says that nothing was written (unless the error is ErrAmbiguous too), since another
	// message already has the number that was reserved: the bucket's counter was deleted or set back,
	// against section 2, point 6 of the protocol. The error names bucket, number and counter. Every write
	// to the bucket will fail, one by one, until the counter has passed the rows. Repair it, with
	//
	//	relay doctor --table TABLE --repair-sequence --bucket BUCKET
	//
	// or by an update of the counter's Sequence to at least the number of the bucket's highest row, on
	// condition that it is lower; then repeat the call. Never lower or delete a counter: a late delete of an
	// old row would destroy a new one of its number.
	ErrSequenceBehind = errors.New("outbox: sequence is behind")
)

// SizeError is an ErrTooLarge with its facts.
type SizeError struct {
	Index int       // position in the call's messages
	ID    uuid.UUID // the message's ID
	Size  int       // bytes by DynamoDB's rules, see ItemSize
	Limit int       // MaxItemBytes for the message's item; MaxCallBytes for all items of the call
}

func (e *SizeError) Error() string {
	what := "its item has"
	if e.Limit == MaxCallBytes {
		what = "with it the items of the call are too large: all have"
	}
	return fmt.Sprintf("%s: %s %d bytes, the limit is %d", describe(e.Index, e.ID), what, e.Size, e.Limit)
}

// Unwrap makes every SizeError an ErrTooLarge.
func (e *SizeError) Unwrap() error { return ErrTooLarge }

// describe names a message of a call for people.
func describe(index int, id uuid.UUID) string { return fmt.Sprintf("message %d (%s)", index, id) }
