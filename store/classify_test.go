package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/bucketbrigade/relay/store"
)

// failure is an error of the SDK and what it means.
type failure struct {
	err      error
	sentinel error
	write    store.Class // of a write; a read that failed can always be repeated
}

func code(c string) error { return &smithy.GenericAPIError{Code: c, Message: "no"} }

// failures has every code that the service documents for these operations, and
// the ways in which no answer comes.
func failures() map[string]failure {
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	read := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	all := map[string]failure{
		"refused connection":         {dial, store.ErrUnavailable, store.Retriable},
		"unknown host":               {&net.DNSError{Err: "no such host", Name: "x"}, store.ErrUnavailable, store.Retriable},
		"broken connection":          {read, store.ErrUnavailable, store.Ambiguous},
		"cut answer":                 {io.ErrUnexpectedEOF, store.ErrUnavailable, store.Ambiguous},
		"timeout":                    {context.DeadlineExceeded, store.ErrUnavailable, store.Ambiguous},
		"cancelled":                  {context.Canceled, store.ErrUnavailable, store.Ambiguous},
		"an answer of no known sort": {errors.New("odd"), store.ErrUnavailable, store.Ambiguous},

		"repeated, throttled at last":  {&retry.MaxAttemptsError{Attempt: 3, Err: code("ThrottlingException")}, store.ErrThrottled, store.Ambiguous},
		"repeated, no dial at last":    {&retry.MaxAttemptsError{Attempt: 2, Err: dial}, store.ErrUnavailable, store.Ambiguous},
		"tried once, throttled":        {&retry.MaxAttemptsError{Attempt: 1, Err: code("ThrottlingException")}, store.ErrThrottled, store.Retriable},
		"no quota for another attempt": {errors.Join(code("ThrottlingException"), ratelimit.QuotaExceededError{}), store.ErrThrottled, store.Ambiguous},
	}
	for sentinel, codes := range map[error][]string{
		store.ErrThrottled: {"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException", "Throttling",
			"LimitExceededException"},
		store.ErrConflict:     {"TransactionConflictException"},
		store.ErrTableMissing: {"ResourceNotFoundException"},
		store.ErrInvalid:      {"ValidationException", "SerializationException", "ItemCollectionSizeLimitExceededException"},
		store.ErrDenied: {"AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException",
			"IncompleteSignatureException", "MissingAuthenticationTokenException", "MissingAuthenticationToken",
			"ExpiredTokenException", "InvalidClientTokenId", "NotAuthorized"},
	} {
		for _, c := range codes {
			all[c] = failure{code(c), sentinel, store.Retriable}
		}
	}
	all["an earlier sending is under way"] = failure{code("TransactionInProgressException"), store.ErrConflict, store.Ambiguous}
	all["a token of another transaction"] = failure{code("IdempotentParameterMismatchException"), store.ErrInvalid, store.Ambiguous}
	for _, c := range []string{"InternalServerError", "ServiceUnavailable", "InternalFailure", "SomethingNew"} {
		all[c] = failure{code(c), store.ErrUnavailable, store.Ambiguous}
	}
	return all
}

// Every error of the SDK becomes a class and a sentinel in one place: a write that
// may have been applied is ambiguous, one that was certainly not is retriable, and
// a read can simply be repeated.
func TestClassification(t *testing.T) {
	for name, test := range failures() {
		t.Run(name, func(t *testing.T) {
			// The SDK wraps each error in the operation that it belongs to.
			api := failing(&smithy.OperationError{ServiceID: "DynamoDB", OperationName: "x", Err: test.err})
			client := store.NewClient(schemas["default"], api, api)
			for _, r := range requests() {
				want := test.write
				if isRead(r) {
					want = store.Retriable
				}
				reply := client.Do(t.Context(), r)
				if reply.Class != want || reply.Result != nil {
					t.Errorf("%s: got %s with %v, want %s", r.RequestName(), reply.Class, reply.Result, want)
				}
				if !errors.Is(reply.Err, test.sentinel) || !errors.Is(reply.Err, test.err) {
					t.Errorf("%s: got %v, want %v of %v", r.RequestName(), reply.Err, test.sentinel, test.err)
				}
			}
		})
	}
}

// A condition that failed is refused, also when the SDK had tried before.
func TestConditionsThatFail(t *testing.T) {
	failed := &types.ConditionalCheckFailedException{}
	for _, err := range []error{failed, &retry.MaxAttemptsError{Attempt: 3, Err: failed}} {
		api := failing(err)
		client := store.NewClient(schemas["default"], nil, api)
		for _, r := range requests() {
			if isRead(r) || r.Lane() == store.Messages || r.RequestName() == "release" {
				continue
			}
			reply := client.Do(t.Context(), r)
			if reply.Class != store.Refused || !errors.Is(reply.Err, store.ErrConditionFailed) {
				t.Errorf("%s: got %+v", r.RequestName(), reply)
			}
		}
	}
}

// Only what somebody has to change is unusable: a table that does not exist or has
// other keys, and credentials that do not suffice. An outage never is.
func TestUnusable(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{store.ErrTableMissing, true}, {store.ErrInvalid, true}, {store.ErrDenied, true},
		{store.ErrThrottled, false}, {store.ErrUnavailable, false}, {store.ErrConflict, false},
		{store.ErrNotSent, false}, {store.ErrConditionFailed, false}, {nil, false},
	} {
		if got := store.Unusable(fmt.Errorf("read: %w", test.err)); got != test.want {
			t.Errorf("%v: got %t", test.err, got)
		}
	}
}

// Classes are printed by their names, which metrics carry.
func TestClassNames(t *testing.T) {
	for class, want := range map[store.Class]string{
		store.Done: "done", store.Refused: "refused", store.Retriable: "retriable", store.Ambiguous: "ambiguous",
	} {
		if class.String() != want {
			t.Errorf("got %s, want %s", class, want)
		}
	}
}

// What an error of the table means is found whether this package has wrapped it or the
// SDK alone has; of any other error nothing is made up.
func TestSentinel(t *testing.T) {
	for name, test := range failures() {
		raw := fmt.Errorf("reserve: %w", &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "x", Err: test.err})
		if got := store.Sentinel(raw); got != test.sentinel {
			t.Errorf("%s: got %v, want %v", name, got, test.sentinel)
		}
	}
	cancelled := fmt.Errorf("%w: %w", store.ErrConditionFailed, &types.TransactionCanceledException{})
	if got := store.Sentinel(cancelled); got != store.ErrConditionFailed {
		t.Errorf("what was judged before is judged anew: %v", got)
	}
	for _, other := range []error{nil, errors.New("row 7 does not wait"), context.Canceled} {
		if got := store.Sentinel(other); got != nil {
			t.Errorf("%v: got %v", other, got)
		}
	}
}
