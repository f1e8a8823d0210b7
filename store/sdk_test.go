package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// These tests send requests through the SDK's own client, whose HTTP a script
// answers, to see that its repetitions and errors are the ones that the package
// knows.

// answer is what becomes of one HTTP request.
type answer func() (*http.Response, error)

// wire answers HTTP requests one by one.
type wire struct {
	answers []answer
	sent    int
}

func (w *wire) Do(*http.Request) (*http.Response, error) {
	next := w.answers[w.sent]
	w.sent++
	return next()
}

func respond(status int, body map[string]any) answer {
	return func() (*http.Response, error) {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw)),
		}, nil
	}
}

func refusal(status int, code string, more map[string]any) answer {
	body := map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": "no"}
	for name, value := range more {
		body[name] = value
	}
	return respond(status, body)
}

func broken(err error) answer { return func() (*http.Response, error) { return nil, err } }

// over is a client over the SDK with three attempts and no pauses.
func over(w *wire) *store.Client {
	api := dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: w,
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = 3
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		}),
	})
	return store.NewClient(schemas["default"], api, api)
}

func TestOverTheSDK(t *testing.T) {
	var (
		ok       = respond(200, map[string]any{})
		throttle = refusal(400, "ProvisionedThroughputExceededException", nil)
		failing  = refusal(500, "InternalServerError", nil)
		gateway  = respond(502, nil)
		reset    = broken(&net.OpError{Op: "read", Err: syscall.ECONNRESET})
		noDial   = broken(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
		applied  = refusal(400, "ConditionalCheckFailedException", map[string]any{"Item": map[string]any{
			"PK": map[string]any{"S": "OUTBOX#COORDINATION"}, "SK": map[string]any{"S": lease3},
			"Owner": map[string]any{"S": "A"}, "Incarnation": map[string]any{"S": "A1"},
			"Claim": map[string]any{"N": "7"}, "ExpiresAtUtc": map[string]any{"N": strconv.FormatInt(int64(claim.Expires), 10)},
		}})
		taken = refusal(400, "ConditionalCheckFailedException", map[string]any{"Item": map[string]any{
			"PK": map[string]any{"S": "OUTBOX#COORDINATION"}, "SK": map[string]any{"S": lease3}, "Owner": map[string]any{"S": "B"},
		}})
	)
	fetch, remove := store.Fetch{Bucket: 3, Limit: 5}, store.Delete{Bucket: 3, Sequences: []int64{1}}
	for name, test := range map[string]struct {
		request store.Request
		answers []answer
		class   store.Class
		err     error // nil: none
	}{
		"applied":                                  {claim, []answer{ok}, store.Done, nil},
		"D-01: applied, unanswered, repeated":      {claim, []answer{reset, applied}, store.Done, nil},
		"unanswered, and a peer was first":         {claim, []answer{reset, taken}, store.Refused, store.ErrConditionFailed},
		"throttled, then applied":                  {claim, []answer{throttle, ok}, store.Done, nil},
		"throttled to the end":                     {claim, []answer{throttle, throttle, throttle}, store.Ambiguous, store.ErrThrottled},
		"no answer to the end":                     {claim, []answer{reset, reset, reset}, store.Ambiguous, store.ErrUnavailable},
		"the service fails to the end":             {remove, []answer{failing, failing, failing}, store.Ambiguous, store.ErrUnavailable},
		"an answer that is not DynamoDB's":         {remove, []answer{gateway, gateway, gateway}, store.Ambiguous, store.ErrUnavailable},
		"no connection to the end":                 {remove, []answer{noDial, noDial, noDial}, store.Ambiguous, store.ErrUnavailable},
		"no such table":                            {claim, []answer{refusal(400, "ResourceNotFoundException", nil)}, store.Retriable, store.ErrTableMissing},
		"other keys":                               {claim, []answer{refusal(400, "ValidationException", nil)}, store.Retriable, store.ErrInvalid},
		"not allowed":                              {claim, []answer{refusal(400, "AccessDeniedException", nil)}, store.Retriable, store.ErrDenied},
		"a transaction holds the item":             {claim, []answer{refusal(400, "TransactionConflictException", nil)}, store.Retriable, store.ErrConflict},
		"a read, throttled to the end":             {fetch, []answer{throttle, throttle, throttle}, store.Retriable, store.ErrThrottled},
		"a read, no answer to the end":             {fetch, []answer{reset, reset, reset}, store.Retriable, store.ErrUnavailable},
		"a read of a table that is not there":      {fetch, []answer{refusal(400, "ResourceNotFoundException", nil)}, store.Retriable, store.ErrTableMissing},
		"a read, unanswered, repeated, then shown": {fetch, []answer{reset, ok}, store.Done, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wire{answers: test.answers}
			reply := over(w).Do(t.Context(), test.request)
			if reply.Class != test.class || !errors.Is(reply.Err, test.err) {
				t.Errorf("got %s, %v; want %s, %v", reply.Class, reply.Err, test.class, test.err)
			}
			if w.sent != len(test.answers) {
				t.Errorf("%d of %d answers were asked for", w.sent, len(test.answers))
			}
		})
	}
}

// The SDK has a quota of repetitions for all requests of a client. When it is used
// up, a request ends after fewer attempts, and is as uncertain as after three.
func TestQuotaOfTheSDK(t *testing.T) {
	w := &wire{}
	for range 2000 {
		w.answers = append(w.answers, refusal(500, "InternalServerError", nil))
	}
	client := over(w)
	for range 500 {
		sent := w.sent
		reply := client.Do(t.Context(), claim)
		if reply.Class != store.Ambiguous || !errors.Is(reply.Err, store.ErrUnavailable) {
			t.Fatalf("got %s, %v", reply.Class, reply.Err)
		}
		if w.sent-sent < 3 {
			return
		}
	}
	t.Error("the quota was never used up")
}

// A request whose time is up before an answer came may have been applied.
func TestTimeoutOfTheSDK(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &wire{answers: []answer{func() (*http.Response, error) {
		cancel()
		return nil, ctx.Err()
	}}}
	reply := over(w).Do(ctx, claim)
	if reply.Class != store.Ambiguous || !errors.Is(reply.Err, store.ErrUnavailable) || !errors.Is(reply.Err, context.Canceled) {
		t.Errorf("a write: got %s, %v", reply.Class, reply.Err)
	}
	if reply := over(&wire{}).Do(ctx, store.Fetch{Limit: 1}); reply.Class != store.Retriable {
		t.Errorf("a read: got %s, %v", reply.Class, reply.Err)
	}
}

// An answer to a heartbeat or to the coordination read has the service's time, be
// it good news or a refusal.
func TestDateOfAnswers(t *testing.T) {
	dated := func(next answer) answer {
		return func() (*http.Response, error) {
			response, err := next()
			response.Header.Set("Date", "Thu, 01 Jan 2026 00:01:30 GMT")
			return response, err
		}
	}
	ok := respond(200, map[string]any{})
	refused := refusal(400, "ConditionalCheckFailedException", nil)
	reset := broken(&net.OpError{Op: "read", Err: syscall.ECONNRESET})
	beat := store.Heartbeat{Relay: "A", Incarnation: "A1", LastSeen: 5}
	when := store.Ticks(outbox.Ticks(time.Date(2026, 1, 1, 0, 1, 30, 0, time.UTC)))
	for name, test := range map[string]struct {
		request store.Request
		answers []answer
		want    store.Ticks
	}{
		"a heartbeat":              {beat, []answer{dated(ok)}, when},
		"a refused heartbeat":      {beat, []answer{dated(refused)}, when},
		"a read":                   {store.ReadCoordination{}, []answer{dated(ok)}, when},
		"a read that was repeated": {store.ReadCoordination{}, []answer{reset, dated(ok)}, when},
		"an answer without a date": {store.ReadCoordination{}, []answer{ok}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if reply := over(&wire{answers: test.answers}).Do(t.Context(), test.request); reply.Date != test.want {
				t.Errorf("got %v, want %v", reply.Date, test.want)
			}
		})
	}
}
