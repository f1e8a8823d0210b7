package store

import (
	"errors"
	"net"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Errors that a Reply carries. A caller branches on them with errors.Is; the
// error itself also says what the service said.
var (
	// ErrConditionFailed: the item is not as the request requires. The reply's
	// result says what is; of a transaction, which part was refused.
	ErrConditionFailed = errors.New("condition failed")
	// ErrThrottled: the table or the account gives no capacity. Back off.
	ErrThrottled = errors.New("throttled")
	// ErrConflict: a transaction holds the item, or another request one of the
	// transaction's. Repeat soon, a transaction under the same token.
	ErrConflict = errors.New("in conflict with a transaction")
	// ErrUnavailable: the service did not answer, or answered that it cannot.
	ErrUnavailable = errors.New("service unavailable")
	// ErrNotSent: the request's deadline passed before it could be sent.
	ErrNotSent = errors.New("not sent: its deadline has passed")
	// ErrTableMissing: there is no such table here. Create it, or correct the
	// name, region or endpoint.
	ErrTableMissing = errors.New("table does not exist")
	// ErrInvalid: the service does not accept the request as it is; for these
	// requests that means that the table's key attributes are not those of the
	// schema. Of a transaction that sets rows aside it may also mean that an item
	// would be too large, or that its token was used for another transaction
	// before (Ambiguous then): the text says which.
	ErrInvalid = errors.New("request does not fit the table's key schema")
	// ErrDenied: the credentials are wrong or lack a permission.
	ErrDenied = errors.New("access denied")
)

// Unusable tells whether the error says that the table cannot be used as the
// settings have it, so that repeating the request is in vain until somebody
// changes something.
func Unusable(err error) bool {
	return errors.Is(err, ErrTableMissing) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrDenied)
}

// sentinels are the errors that a Reply carries.
func sentinels() []error {
	return []error{ErrConditionFailed, ErrThrottled, ErrConflict, ErrUnavailable, ErrNotSent, ErrTableMissing, ErrInvalid, ErrDenied}
}

// Sentinel is the error of this package that an error stands for: the one that it wraps,
// or the meaning of an error of the SDK, as requests that are no Request have it: a
// writer's, or the description of a table. Nil: it is an error of something else.
func Sentinel(err error) error {
	for _, sentinel := range sentinels() {
		if errors.Is(err, sentinel) {
			return sentinel
		}
	}
	if !errors.As(err, new(*smithy.OperationError)) && !errors.As(err, new(smithy.APIError)) {
		return nil
	}
	_, sentinel := classify(err)
	return sentinel
}

// classify turns an error of the SDK into a class and the sentinel that it
// stands for. Condition failures are the requests' own to judge.
func classify(err error) (Class, error) {
	applied, sentinel := kind(err)
	if applied == possibly || repeated(err) {
		return Ambiguous, sentinel
	}
	return Retriable, sentinel
}

// certainty is whether a failed request may have been applied all the same.
type certainty uint8

const (
	never certainty = iota
	possibly
)

// codes are the service's error codes that say that the request was not
// applied, and what they mean.
var codes = map[string]error{
	"ProvisionedThroughputExceededException":   ErrThrottled,
	"RequestLimitExceeded":                     ErrThrottled,
	"ThrottlingException":                      ErrThrottled,
	"Throttling":                               ErrThrottled,
	"LimitExceededException":                   ErrThrottled,
	"TransactionConflictException":             ErrConflict,
	"ResourceNotFoundException":                ErrTableMissing,
	"ValidationException":                      ErrInvalid,
	"SerializationException":                   ErrInvalid,
	"AccessDeniedException":                    ErrDenied,
	"UnrecognizedClientException":              ErrDenied,
	"InvalidSignatureException":                ErrDenied,
	"IncompleteSignatureException":             ErrDenied,
	"MissingAuthenticationTokenException":      ErrDenied,
	"MissingAuthenticationToken":               ErrDenied,
	"ExpiredTokenException":                    ErrDenied,
	"InvalidClientTokenId":                     ErrDenied,
	"NotAuthorized":                            ErrDenied,
	"ItemCollectionSizeLimitExceededException": ErrInvalid,
}

// uncertain are the codes that say that a transaction of this token was sent before.
var uncertain = map[string]error{
	// It is being applied right now.
	"TransactionInProgressException": ErrConflict,
	// It had other items. This request was not applied, but a token is of one
	// transaction alone, so that the caller has lost count of what it sent, and the
	// other one may be applied still. Ambiguous keeps the bucket from going on as if
	// nothing were under way; the service forgets the token after ten minutes, which
	// ends it.
	"IdempotentParameterMismatchException": ErrInvalid,
}

func kind(err error) (certainty, error) {
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return never, ErrConditionFailed
	}
	var answer smithy.APIError
	if errors.As(err, &answer) {
		if sentinel, known := codes[answer.ErrorCode()]; known {
			return never, sentinel
		}
		if sentinel, known := uncertain[answer.ErrorCode()]; known {
			return possibly, sentinel
		}
		// 5xx and whatever is not known: it may have been applied.
		return possibly, ErrUnavailable
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return never, ErrUnavailable
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return never, ErrUnavailable
	}
	// A connection that broke, a timeout, an answer that cannot be read.
	return possibly, ErrUnavailable
}

// repeated tells whether the SDK tried more than once, so that an earlier
// attempt may have been applied whatever the last one was told.
func repeated(err error) bool {
	var attempts *retry.MaxAttemptsError
	if errors.As(err, &attempts) && attempts.Attempt > 1 {
		return true
	}
	return errors.As(err, new(ratelimit.QuotaExceededError))
}
