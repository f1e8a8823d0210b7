package outbox_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/bucketbrigade/relay/outbox"
)

// Case D-02 (b): the write was applied, its answer lost, its token forgotten. The SDK's repetition finds
// the very rows that it wants to write, and the caller's own condition false, since it came true. This is
// a success, notified once, and each row is stored once.
func TestOwnRowsFoundBySDKsRepetitionAreASuccess(t *testing.T) {
	for name, write := range map[string]func(*outbox.Writer) error{
		"Enqueue of one": func(w *outbox.Writer) error { return w.Enqueue(t.Context(), messageIn(3)) },
		"Enqueue of two": func(w *outbox.Writer) error { return w.Enqueue(t.Context(), messageIn(3), messageIn(3)) },
		"Commit": func(w *outbox.Writer) error {
			return w.Commit(t.Context(), transaction(order("1"), order("2")), messageIn(3), messageIn(3))
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := newFakeTable()
			w, notes := newWriter(t, table)
			table.answers = []answer{repeated}
			if err := write(w); err != nil {
				t.Fatal(err)
			}
			want := 2
			if name == "Enqueue of one" {
				want = 1
			}
			if got := len(table.ids(t, 3)); got != want {
				t.Errorf("%d rows, want %d", got, want)
			}
			if !reflect.DeepEqual(notes.calls, [][]int{{3}}) {
				t.Errorf("notified %v, want bucket 3 once", notes.calls)
			}
		})
	}
}

// A row keeps the spelling of whoever wrote it.
func TestOwnRowIsKnownWhateverTheCaseOfItsID(t *testing.T) {
	table := newFakeTable()
	w, _ := newWriter(t, table)
	m := messageIn(0)
	table.answers = []answer{failing(&types.ConditionalCheckFailedException{
		Item: item{"MessageId": text(strings.ToUpper(m.ID.String()))},
	})}
	if err := w.Enqueue(t.Context(), m); err != nil {
		t.Error(err)
	}
}

func reason(code string, found item) types.CancellationReason {
	return types.CancellationReason{Code: aws.String(code), Item: found}
}

// Case D-02 (c), and point 8 of section 2: when the refusals do not all say the same, it is an error,
// and one that says what is known.
func TestRefusalThatIsNotAllOurs(t *testing.T) {
	a, b := messageIn(1), messageIn(2)
	own := func(m outbox.Message) item { return item{"MessageId": text(m.ID.String())} }
	const refused, none, conflict, throttled = "ConditionalCheckFailed", "None", "TransactionConflict", "ThrottlingError"
	type because = []types.CancellationReason
	for name, test := range map[string]struct {
		reasons           because // of an order, then of the two messages
		ambiguous, behind bool
	}{
		"one row was relayed meanwhile":      {because{reason(none, nil), reason(refused, own(a)), reason(none, nil)}, true, false},
		"the other one was":                  {because{reason(refused, nil), reason(none, nil), reason(refused, own(b))}, true, false},
		"one row cannot be seen":             {because{reason(none, nil), reason(refused, own(a)), reason(refused, nil)}, true, false},
		"no row can be seen":                 {because{reason(none, nil), reason(refused, nil), reason(refused, nil)}, true, false},
		"the rows are each other's":          {because{reason(none, nil), reason(refused, own(b)), reason(refused, own(a))}, false, true},
		"one row is another's":               {because{reason(none, nil), reason(refused, own(messageIn(1))), reason(none, nil)}, false, true},
		"one row is ours, one another's":     {because{reason(none, nil), reason(refused, own(a)), reason(refused, own(messageIn(1)))}, true, true},
		"one row is no message":              {because{reason(none, nil), reason(refused, item{"PK": text("x")}), reason(none, nil)}, false, true},
		"only the caller's item is refused":  {because{reason(refused, nil), reason(none, nil), reason(none, nil)}, false, false},
		"the caller's item looks like ours":  {because{reason(refused, own(a)), reason(none, nil), reason(none, nil)}, false, false},
		"everything conflicts":               {because{reason(conflict, nil), reason(conflict, nil), reason(conflict, nil)}, false, false},
		"there are too few reasons":          {because{reason(refused, nil)}, false, false},
		"there are no reasons":               {nil, false, false},
		"a reason has no code and no facts":  {make(because, 3), false, false},
		"a throttled item beside ours found": {because{reason(throttled, nil), reason(refused, own(a)), reason(throttled, nil)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			table := newFakeTable()
			w, notes := newWriter(t, table)
			canceled := &types.TransactionCanceledException{CancellationReasons: test.reasons}
			table.answers = []answer{failing(canceled)}
			err := w.Commit(t.Context(), transaction(order("1")), a, b)
			if !errors.Is(err, canceled) {
				t.Errorf("got %v, which hides the reasons", err)
			}
			if errors.Is(err, outbox.ErrAmbiguous) != test.ambiguous || errors.Is(err, outbox.ErrSequenceBehind) != test.behind {
				t.Errorf("got %v, want ambiguous %t, behind %t", err, test.ambiguous, test.behind)
			}
			if test.ambiguous && !strings.Contains(err.Error(), "ambiguous") {
				t.Errorf("%q does not say ambiguous", err)
			}
			if len(notes.calls) != 0 {
				t.Errorf("notified %v", notes.calls)
			}
		})
	}
}

// Case D-02 (d): an earlier sending is still being applied. The same request is sent again under the same
// token until DynamoDB knows its end; the pauses grow.
func TestTransactionInProgressIsAskedAboutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newFakeTable()
		w, notes := newWriter(t, table)
		progress := failing(&types.TransactionInProgressException{})
		table.answers = []answer{progress, progress, progress}
		start := time.Now()
		if err := w.Enqueue(t.Context(), messageIn(3), messageIn(3)); err != nil {
			t.Fatal(err)
		}
		if len(table.transactions) != 4 || len(table.reservations) != 1 {
			t.Fatalf("%d sendings, %d reservations, want 4 and 1", len(table.transactions), len(table.reservations))
		}
		for _, sent := range table.transactions {
			if !reflect.DeepEqual(sent, table.transactions[0]) {
				t.Error("not the same request, or not the same token")
			}
		}
		if took := time.Since(start); took < 175*time.Millisecond || took > 350*time.Millisecond {
			t.Errorf("took %s, want half to all of 50 + 100 + 200 ms", took)
		}
		if !reflect.DeepEqual(notes.calls, [][]int{{3}}) || len(table.ids(t, 3)) != 2 {
			t.Errorf("notified %v, %d rows", notes.calls, len(table.ids(t, 3)))
		}
	})
}

func TestTransactionInProgressForTooLongIsAmbiguous(t *testing.T) {
	progress := &types.TransactionInProgressException{}
	for name, test := range map[string]struct {
		end    answer // after the first answer, which is in progress
		within time.Duration
		want   error
	}{
		"for ever":                 {failing(progress), time.Hour, progress},
		"until the caller gave up": {failing(progress), 300 * time.Millisecond, context.DeadlineExceeded},
		"then it is not allowed":   {failing(&smithy.GenericAPIError{Code: "AccessDeniedException"}), time.Hour, progress},
		"then the answer is lost":  {lost, time.Hour, errLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := newFakeTable()
				w, notes := newWriter(t, table)
				table.answers = []answer{failing(progress)}
				for range 20 {
					table.answers = append(table.answers, test.end)
				}
				ctx, cancel := context.WithTimeout(t.Context(), test.within)
				defer cancel()
				start := time.Now()
				err := w.Commit(ctx, transaction(order("1")), messageIn(3))
				if !errors.Is(err, outbox.ErrAmbiguous) || !errors.Is(err, test.want) {
					t.Errorf("got %v, want it ambiguous, and %v", err, test.want)
				}
				if took := time.Since(start); took > min(test.within, 16*time.Second) {
					t.Errorf("took %s", took)
				}
				if len(notes.calls) != 0 {
					t.Errorf("notified %v", notes.calls)
				}
			})
		})
	}
}

// A transaction that was in progress and then turns out to be canceled was not applied.
func TestTransactionInProgressThenCanceledIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newFakeTable()
		w, _ := newWriter(t, table)
		table.items["ORDER 1"] = order("1").Put.Item
		table.answers = []answer{failing(&types.TransactionInProgressException{})}
		err := w.Commit(t.Context(), transaction(order("1")), messageIn(3))
		var canceled *types.TransactionCanceledException
		if !errors.As(err, &canceled) || errors.Is(err, outbox.ErrAmbiguous) {
			t.Errorf("got %v", err)
		}
	})
}

// Who is told "ambiguous" must find out, or store a second time; who is not may rely on that nothing
// was written.
func TestErrorsSayWhetherTheWriteCanHaveBeenApplied(t *testing.T) {
	throttled := &types.ProvisionedThroughputExceededException{}
	for name, test := range map[string]struct {
		err       error
		ambiguous bool
	}{
		"no answer":                  {errLost, true},
		"given up while it was sent": {&smithy.CanceledError{Err: context.Canceled}, true},
		"the service failed":         {&types.InternalServerError{}, true},
		"a gateway in between failed": {&smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusServiceUnavailable}},
			Err:      &smithy.GenericAPIError{Code: "UnknownError"},
		}, true},
		"a token that is used for other data": {&types.IdempotentParameterMismatchException{}, true},
		"the last of several sendings":        {&retry.MaxAttemptsError{Attempt: 3, Err: throttled}, true},
		"throttled":                           {throttled, false},
		"throttled, sent once":                {&retry.MaxAttemptsError{Attempt: 1, Err: throttled}, false},
		"over the account's limit":            {&types.RequestLimitExceeded{}, false},
		"no such table":                       {&types.ResourceNotFoundException{}, false},
		"not allowed":                         {&smithy.GenericAPIError{Code: "AccessDeniedException"}, false},
		"not valid":                           {&smithy.GenericAPIError{Code: "ValidationException", Fault: smithy.FaultClient}, false},
		"a conflict with a transaction":       {&types.TransactionConflictException{}, false},
	} {
		for _, messages := range [][]outbox.Message{{messageIn(1)}, {messageIn(1), messageIn(2)}} {
			table := newFakeTable()
			w, notes := newWriter(t, table)
			table.answers = []answer{failing(test.err)}
			err := w.Enqueue(t.Context(), messages...)
			if !errors.Is(err, test.err) || errors.Is(err, outbox.ErrAmbiguous) != test.ambiguous {
				t.Errorf("%s, %d messages: got %v, want ambiguous %t", name, len(messages), err, test.ambiguous)
			}
			if len(notes.calls) != 0 {
				t.Errorf("%s: notified %v", name, notes.calls)
			}
		}
	}
}

// A single put that is refused without the row that refused it may be ours or not.
func TestRefusedPutWithoutItsRowIsAmbiguous(t *testing.T) {
	table := newFakeTable()
	w, _ := newWriter(t, table)
	table.answers = []answer{failing(&types.ConditionalCheckFailedException{})}
	if err := w.Enqueue(t.Context(), messageIn(1)); !errors.Is(err, outbox.ErrAmbiguous) {
		t.Errorf("got %v", err)
	}
}
