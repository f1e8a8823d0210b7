package outbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/bucketbrigade/relay/outbox"
)

// These tests run the Writer over the SDK's own client, whose requests a script answers, to see that the
// repetitions and errors of the real thing are the ones that the Writer knows.

type exchange struct {
	operation string
	body      map[string]any
}

// script answers HTTP requests: reservations by themselves, other requests one by one.
type script struct {
	exchanges []exchange
	answers   []func(body map[string]any) (*http.Response, error)
}

func (s *script) Do(request *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	e := exchange{operation: strings.TrimPrefix(request.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")}
	if err := json.Unmarshal(raw, &e.body); err != nil {
		return nil, err
	}
	if e.operation == "UpdateItem" {
		return respond(http.StatusOK, map[string]any{"Attributes": map[string]any{"Sequence": map[string]any{"N": "2"}}})
	}
	s.exchanges = append(s.exchanges, e)
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next(e.body)
}

func respond(status int, body map[string]any) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw)),
	}, nil
}

func noAnswer(map[string]any) (*http.Response, error) { return nil, errLost }

func succeeds(map[string]any) (*http.Response, error) {
	return respond(http.StatusOK, map[string]any{})
}

func fails(status int, code string) func(map[string]any) (*http.Response, error) {
	return func(map[string]any) (*http.Response, error) {
		return respond(status, map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": "no"})
	}
}

// ownRows refuses a transaction because of the rows that it puts, all of which are there.
func ownRows(body map[string]any) (*http.Response, error) {
	var reasons []any
	for _, i := range body["TransactItems"].([]any) {
		put := i.(map[string]any)["Put"].(map[string]any)
		reasons = append(reasons, map[string]any{"Code": "ConditionalCheckFailed", "Item": put["Item"]})
	}
	return respond(http.StatusBadRequest, map[string]any{
		"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "CancellationReasons": reasons,
	})
}

// ownRow does so for a single put.
func ownRow(body map[string]any) (*http.Response, error) {
	return respond(http.StatusBadRequest, map[string]any{
		"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "Item": body["Item"],
	})
}

// canceledFor cancels a transaction for a reason that all its items have.
func canceledFor(code string) func(map[string]any) (*http.Response, error) {
	return func(body map[string]any) (*http.Response, error) {
		reasons := make([]any, len(body["TransactItems"].([]any)))
		for i := range reasons {
			reasons[i] = map[string]any{"Code": code}
		}
		return respond(http.StatusBadRequest, map[string]any{
			"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "CancellationReasons": reasons,
		})
	}
}

func clientOver(s *script) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: s,
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = 3
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		}),
	})
}

func TestWriterOverTheSDK(t *testing.T) {
	type answers = []func(map[string]any) (*http.Response, error)
	one, two := []outbox.Message{messageIn(1)}, []outbox.Message{messageIn(1), messageIn(1)}
	var (
		progress = fails(400, "TransactionInProgressException")
		throttle = fails(400, "ProvisionedThroughputExceededException")
		broken   = fails(500, "InternalServerError")
		gateway  = func(map[string]any) (*http.Response, error) { return respond(502, nil) }
		coded    = new(smithy.APIError)
	)
	for name, test := range map[string]struct {
		messages  []outbox.Message
		answers   answers
		want      any // an error that errors.As finds; nil: success
		ambiguous bool
	}{
		"D-02 (a): repeated under the same token":     {two, answers{noAnswer, succeeds}, nil, false},
		"D-02 (b): repeated, the token was forgotten": {two, answers{noAnswer, ownRows}, nil, false},
		"D-02 (d): in progress, asked by the SDK":     {two, answers{progress, succeeds}, nil, false},
		"in progress for longer than the SDK asks":    {two, answers{progress, progress, progress, progress, succeeds}, nil, false},
		"a single put, repeated":                      {one, answers{noAnswer, ownRow}, nil, false},
		"a single put, after the service failed":      {one, answers{broken, ownRow}, nil, false},
		"never an answer":                             {two, answers{noAnswer, noAnswer, noAnswer}, new(*retry.MaxAttemptsError), true},
		"the service fails":                           {one, answers{broken, broken, broken}, new(*types.InternalServerError), true},
		"an answer that is not DynamoDB's":            {one, answers{gateway, gateway, gateway}, new(error), true},
		"no answer, then throttled": {one, answers{noAnswer, throttle, throttle},
			new(*types.ProvisionedThroughputExceededException), true},
		"no answer, then not allowed": {one, answers{noAnswer, fails(400, "AccessDeniedException")}, coded, true},
		"no answer, then moved just now": {one, answers{noAnswer, fails(400, "TransactionConflictException")},
			new(*types.TransactionConflictException), true},
		"no answer, then canceled, no reasons": {two, answers{noAnswer, fails(400, "TransactionCanceledException")},
			new(*types.TransactionCanceledException), true},
		"no answer, then in conflict": {two, answers{noAnswer, canceledFor("TransactionConflict")},
			new(*types.TransactionCanceledException), true},
		"in progress, then not allowed": {two, answers{progress, fails(400, "AccessDeniedException")}, coded, true},
		"throttled, then not allowed":   {one, answers{throttle, fails(400, "AccessDeniedException")}, coded, false},
		"throttled, then in conflict":   {two, answers{throttle, canceledFor("TransactionConflict")}, new(*types.TransactionCanceledException), false},
		"the same token for other data": {two, answers{fails(400, "IdempotentParameterMismatchException")},
			new(*types.IdempotentParameterMismatchException), true},
		"not valid":            {two, answers{fails(400, "ValidationException")}, coded, false},
		"not allowed to write": {two, answers{fails(400, "AccessDeniedException")}, coded, false},
		"no such table":        {one, answers{fails(400, "ResourceNotFoundException")}, new(*types.ResourceNotFoundException), false},
		"canceled, no reasons": {two, answers{fails(400, "TransactionCanceledException")}, new(*types.TransactionCanceledException), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{answers: test.answers}
			w, notes := newWriter(t, clientOver(s))
			err := w.Enqueue(t.Context(), test.messages...)
			if test.want == nil && err != nil {
				t.Errorf("got %v", err)
			}
			if test.want != nil && (!errors.As(err, test.want) || errors.Is(err, outbox.ErrAmbiguous) != test.ambiguous) {
				t.Errorf("got %v, want %T, ambiguous %t", err, test.want, test.ambiguous)
			}
			if len(s.answers) != 0 {
				t.Errorf("%d answers were not asked for", len(s.answers))
			}
			for _, e := range s.exchanges {
				if !reflect.DeepEqual(e, s.exchanges[0]) {
					t.Errorf("sent %v, then %v", s.exchanges[0], e)
				}
			}
			if want := test.want == nil; (len(notes.calls) == 1) != want || len(notes.calls) > 1 {
				t.Errorf("notified %v", notes.calls)
			}
		})
	}
}

// The SDK has a quota of repetitions for all requests of a client. When it is used up, the last answer comes
// without a word of the sendings before it.
func TestQuotaOfTheSDKHidesAnAnswerThatWasLost(t *testing.T) {
	for name, messages := range map[string][]outbox.Message{"a put": {messageIn(1)}, "a transaction": {messageIn(1), messageIn(1)}} {
		s := &script{answers: []func(map[string]any) (*http.Response, error){noAnswer, fails(400, "ThrottlingException")}}
		options := clientOver(s).Options()
		options.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.RateLimiter = ratelimit.NewTokenRateLimit(o.RetryCost)
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
		w, notes := newWriter(t, dynamodb.New(options))
		err := w.Enqueue(t.Context(), messages...)
		if !errors.Is(err, outbox.ErrAmbiguous) || !errors.As(err, new(ratelimit.QuotaExceededError)) {
			t.Errorf("%s: got %v, want it ambiguous", name, err)
		}
		if len(s.answers) != 0 || len(notes.calls) != 0 {
			t.Errorf("%s: %d answers were not asked for, notified %v", name, len(s.answers), notes.calls)
		}
	}
}
