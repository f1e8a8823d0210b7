package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// cancelled is the error of a transaction with these reasons.
func cancelled(codes ...string) error {
	reasons := make([]types.CancellationReason, len(codes))
	for i, c := range codes {
		reasons[i] = types.CancellationReason{Code: aws.String(c)}
		if c != "None" {
			reasons[i].Message = aws.String("because")
		}
	}
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "TransactWriteItems",
		Err: &types.TransactionCanceledException{Message: aws.String("cancelled"), CancellationReasons: reasons}}
}

// A move of two rows of one key has these items, by position: lease, marker, and of
// each row its put and its delete.
func TestWhatACancelledTransactionMeans(t *testing.T) {
	const (
		none, condition, conflict = "None", "ConditionalCheckFailed", "TransactionConflict"
		throttled, invalid        = "ThrottlingError", "ValidationError"
	)
	move := store.Move{Tenure: tenure, Token: "x", Markers: []store.Marker{{KeyID: keyID, ParkedAt: 1}}, Rows: []store.Moving{
		{KeyID: keyID, Row: outbox.Row{Sequence: 1, Item: item{}}}, {KeyID: keyID, Row: outbox.Row{Sequence: 2, Item: item{}}},
	}}
	for name, test := range map[string]struct {
		reasons []string
		class   store.Class
		refusal store.Refusal
		fault   error
	}{
		"the lease":              {[]string{condition, none, none, none, none, none}, store.Refused, store.LeaseRefused, store.ErrConditionFailed},
		"a marker":               {[]string{none, condition, none, none, none, none}, store.Refused, store.MarkerRefused, store.ErrConditionFailed},
		"a row set aside before": {[]string{none, none, none, none, condition, none}, store.Refused, store.RowRefused, store.ErrConditionFailed},
		"a row that is gone":     {[]string{none, none, none, none, none, condition}, store.Refused, store.RowRefused, store.ErrConditionFailed},
		"all of them":            {[]string{condition, condition, condition, condition, none, none}, store.Refused, store.LeaseRefused, store.ErrConditionFailed},
		"marker and row":         {[]string{none, condition, none, condition, none, none}, store.Refused, store.MarkerRefused, store.ErrConditionFailed},

		"a conflict":  {[]string{none, none, none, conflict, none, none}, store.Retriable, 0, store.ErrConflict},
		"no capacity": {[]string{none, none, throttled, none, none, none}, store.Retriable, 0, store.ErrThrottled},
		"no capacity, by the old name": {[]string{none, none, "ProvisionedThroughputExceeded", none, none, none},
			store.Retriable, 0, store.ErrThrottled},
		"an item too large":            {[]string{none, none, invalid, none, none, none}, store.Retriable, 0, store.ErrInvalid},
		"a collection too large":       {[]string{none, none, "ItemCollectionSizeLimitExceeded", none, none, none}, store.Retriable, 0, store.ErrInvalid},
		"a reason that nobody knows":   {[]string{none, none, "Whim", none, none, none}, store.Retriable, 0, store.ErrUnavailable},
		"no reason at all":             {[]string{none, none, none, none, none, none}, store.Retriable, 0, store.ErrUnavailable},
		"reasons of something else":    {[]string{condition}, store.Retriable, 0, store.ErrUnavailable},
		"conflict before no capacity":  {[]string{none, none, throttled, conflict, none, none}, store.Retriable, 0, store.ErrConflict},
		"no capacity before too large": {[]string{none, none, invalid, throttled, none, none}, store.Retriable, 0, store.ErrThrottled},

		// The lease of a tenure that is over never comes back; other refusals are
		// believed only when every item was looked at.
		"the lease, beside a conflict":      {[]string{condition, none, none, conflict, none, none}, store.Refused, store.LeaseRefused, store.ErrConditionFailed},
		"the lease, without capacity":       {[]string{condition, none, throttled, none, none, none}, store.Refused, store.LeaseRefused, store.ErrConditionFailed},
		"a marker, beside a conflict":       {[]string{none, condition, none, conflict, none, none}, store.Retriable, 0, store.ErrConflict},
		"a row, beside one in conflict":     {[]string{none, none, none, condition, none, conflict}, store.Retriable, 0, store.ErrConflict},
		"a row, without capacity":           {[]string{none, none, none, condition, none, throttled}, store.Retriable, 0, store.ErrThrottled},
		"a row, beside the unknown":         {[]string{none, none, none, condition, none, "Whim"}, store.Retriable, 0, store.ErrUnavailable},
		"a row, beside an item too large":   {[]string{none, none, invalid, none, none, condition}, store.Refused, store.RowRefused, store.ErrConditionFailed},
		"the lease, beside a row too large": {[]string{condition, none, invalid, none, none, none}, store.Refused, store.LeaseRefused, store.ErrConditionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			sdk := cancelled(test.reasons...)
			reply := store.NewClient(schemas["default"], failing(sdk), nil).Do(t.Context(), move)
			if reply.Class != test.class || !errors.Is(reply.Err, test.fault) || !errors.Is(reply.Err, sdk) {
				t.Errorf("got %s, %v; want %s, %v", reply.Class, reply.Err, test.class, test.fault)
			}
			result, _ := reply.Result.(store.MoveResult)
			if result.Refusal != test.refusal || (reply.Result != nil) != (test.class == store.Refused) {
				t.Errorf("got the result %v, want %s", reply.Result, test.refusal)
			}
		})
	}
}

// What is in the way is named by its position and by what it is, not by its content.
func TestACancelledTransactionSaysWhich(t *testing.T) {
	api := failing(cancelled("None", "None", "ValidationError", "None"))
	move := store.Move{Tenure: tenure, Markers: []store.Marker{{KeyID: keyID}}, Token: "x",
		Rows: []store.Moving{{KeyID: keyID, Row: outbox.Row{Sequence: 1, Item: item{}}}}}
	reply := store.NewClient(schemas["default"], api, nil).Do(t.Context(), move)
	if want := "item 3 of 4 (row): ValidationError: because"; !strings.Contains(reply.Err.Error(), want) {
		t.Errorf("got %v, want %s in it", reply.Err, want)
	}
}

// An SDK that repeats cancelled transactions hides what became of the earlier sendings;
// a refusal is one all the same, as for leases.
func TestARepeatedTransactionThatIsCancelled(t *testing.T) {
	for code, want := range map[string]store.Class{"TransactionConflict": store.Ambiguous, "ConditionalCheckFailed": store.Refused} {
		api := failing(&retry.MaxAttemptsError{Attempt: 3, Err: cancelled(code, "None")})
		reply := store.NewClient(schemas["default"], api, nil).Do(t.Context(), store.RemoveParked{Tenure: tenure, Sequences: []int64{1}})
		if reply.Class != want {
			t.Errorf("%s: got %s, want %s", code, reply.Class, want)
		}
	}
}

// The SDK sends a transaction without an answer again under its token, and the service
// knows it: applied once, and a success. One that is still under way is repeated too.
func TestTransactionsOverTheSDK(t *testing.T) {
	ok := respond(200, map[string]any{})
	busy := refusal(400, "TransactionInProgressException", nil)
	failed := refusal(500, "InternalServerError", nil)
	because := func(codes ...string) answer {
		var reasons []map[string]any
		for _, c := range codes {
			reasons = append(reasons, map[string]any{"Code": c})
		}
		return refusal(400, "TransactionCanceledException", map[string]any{"CancellationReasons": reasons})
	}
	unmark := store.Unmark{Tenure: tenure, Marker: store.Marker{KeyID: keyID, ParkedAt: 1}, Token: "x"}
	for name, test := range map[string]struct {
		answers []answer
		class   store.Class
		fault   error
	}{
		"no answer, then a success":     {[]answer{failed, ok}, store.Done, nil},
		"under way, then a success":     {[]answer{busy, ok}, store.Done, nil},
		"under way to the end":          {[]answer{busy, busy, busy}, store.Ambiguous, store.ErrConflict},
		"no answer to the end":          {[]answer{failed, failed, failed}, store.Ambiguous, store.ErrUnavailable},
		"no answer, then refused":       {[]answer{failed, because("None", "ConditionalCheckFailed")}, store.Refused, store.ErrConditionFailed},
		"in conflict":                   {[]answer{because("TransactionConflict", "None")}, store.Retriable, store.ErrConflict},
		"a token of other items":        {[]answer{refusal(400, "IdempotentParameterMismatchException", nil)}, store.Ambiguous, store.ErrInvalid},
		"not allowed to check an item":  {[]answer{refusal(400, "AccessDeniedException", nil)}, store.Retriable, store.ErrDenied},
		"throttled, then under its way": {[]answer{refusal(400, "ThrottlingException", nil), ok}, store.Done, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wire{answers: test.answers}
			reply := over(w).Do(t.Context(), unmark)
			if reply.Class != test.class || !errors.Is(reply.Err, test.fault) || w.sent != len(test.answers) {
				t.Errorf("got %s, %v after %d requests", reply.Class, reply.Err, w.sent)
			}
		})
	}
}

// Refusals are printed by their names.
func TestRefusalNames(t *testing.T) {
	var got []string
	for r := store.NotRefused; r <= store.RowRefused; r++ {
		got = append(got, r.String())
	}
	if want := []string{"not refused", "lease", "marker", "row"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
