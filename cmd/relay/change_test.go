package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// flaky is a table of which some answers to writes are lost or late: after is nil for a
// request that is applied and answered.
type flaky struct {
	store.API
	before, after []error // what the nth write gets instead of being applied, or of its answer
	writes        int
}

func (f *flaky) fault(faults []error) error {
	if f.writes <= len(faults) {
		return faults[f.writes-1]
	}
	return nil
}

func (f *flaky) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	f.writes++
	if err := f.fault(f.before); err != nil {
		return nil, err
	}
	out, err := f.API.PutItem(ctx, in, o...)
	return out, errors.Join(err, f.fault(f.after))
}

func (f *flaky) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	f.writes++
	if err := f.fault(f.before); err != nil {
		return nil, err
	}
	out, err := f.API.DeleteItem(ctx, in, o...)
	return out, errors.Join(err, f.fault(f.after))
}

var (
	errThrottled = &smithy.GenericAPIError{Code: "ThrottlingException"}
	errConflict  = &types.TransactionConflictException{}
	errReset     = errors.New("connection reset")
	errDenied    = &smithy.GenericAPIError{Code: "AccessDeniedException"}
)

// A table without capacity, and a transaction of the owner, delay a change; they do not
// spoil it.
func TestAChangeIsSentAgainUntilItIsThrough(t *testing.T) {
	c := newConsole(t)
	f := &flaky{API: c.table, before: []error{errThrottled, errConflict, errReset}}
	c.through = func(store.API) store.API { return f }
	got := c.run("message", "park", "--table", "orders", "--bucket-count=1", "--topic", "t", "--yes")
	if got.code != exitDone || f.writes != 4 || c.paused != 3 || len(c.rung(t)) != 1 {
		t.Errorf("%+v after %d writes and %d pauses", got, f.writes, c.paused)
	}
}

func TestAChangeThatCannotBeMadeSaysHowFarItCame(t *testing.T) {
	c := newConsole(t)
	c.through = func(store.API) store.API { return &flaky{API: c.table, before: []error{nil, errDenied}} }
	got := c.run("message", "park", "--table", "orders", "--bucket-count=2", "--topic", "t", "--yes")
	want := "done: set aside all of topic t in bucket 0\ndone: tell the owner of bucket 0\n" +
		"failed: set aside all of topic t in bucket 1\nnot sent: tell the owner of bucket 1\n"
	if got.code != exitFailed || got.stdout != want || !strings.Contains(got.stderr, "after 2 of 4 requests: set aside all of topic t in bucket 1") ||
		!strings.Contains(got.stderr, "check the credentials") {
		t.Errorf("%+v", got)
	}
	if c.paused != 0 {
		t.Error("what credentials forbid was sent again")
	}
}

func TestAChangeThatIsNeverAnsweredFails(t *testing.T) {
	c := newConsole(t)
	f := &flaky{API: c.table, before: []error{errReset, errReset, errReset, errReset, errReset, errReset}}
	c.through = func(store.API) store.API { return f }
	got := c.run("message", "park", "--table", "orders", "--topic", "t", "--yes")
	if got.code != exitFailed || f.writes != sendAttempts || !strings.HasPrefix(got.stdout, "unknown: set aside all of topic t in bucket 0\nnot sent: ") ||
		!strings.Contains(got.stderr, "it may have been done") {
		t.Errorf("%+v after %d writes", got, f.writes)
	}
}

// What was sent once without an answer may have been done, whatever is said of it later;
// only what was turned away each time has failed.
func TestAChangeOfWhichAnAnswerIsMissingIsUnknown(t *testing.T) {
	for want, before := range map[string][]error{
		outcomeUnknown: {errReset, errDenied},
		outcomeFailed:  {errThrottled, errDenied},
	} {
		c := newConsole(t)
		c.through = func(store.API) store.API { return &flaky{API: c.table, before: before} }
		got := c.run("message", "park", "--table", "orders", "--topic", "t", "--yes", "--output=json")
		if got.code != exitFailed || !strings.Contains(got.stdout, `"outcome": "`+want+`"`) || !strings.Contains(got.stderr, "check the credentials") {
			t.Errorf("%s: %+v", want, got)
		}
	}
}

// Whoever interrupts a change does not learn how the request ended that was on its way.
func TestAnInterruptedChangeIsUnknown(t *testing.T) {
	c := newConsole(t)
	ctx, interrupt := context.WithCancel(t.Context())
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: io.Discard, pause: pause, timeout: defaultPatience}
	api := &interrupted{c.table, interrupt}
	client := store.NewClient(schema, api, api)
	err := a.carryOut(ctx, client, change{requests: []store.Request{store.SetAside{Marker: store.Marker{Topic: "t"}}}}, consent{yes: true}, formatText)
	if !errors.Is(err, context.Canceled) || out.String() != "unknown: set aside all of topic t in bucket 0\n" {
		t.Errorf("%v: %s", err, out.String())
	}
}

// interrupted is a table whose writes are applied while the caller gives up.
type interrupted struct {
	store.API
	interrupt func()
}

func (i *interrupted) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	_, err := i.API.PutItem(ctx, in, o...)
	i.interrupt()
	return nil, errors.Join(err, ctx.Err())
}

// A discard whose answer is lost finds nothing when it is sent again: it was the one.
func TestADiscardWithoutAnAnswerIsDone(t *testing.T) {
	c := newConsole(t)
	c.putAside(t, 1, keyA, 7, outbox.Message{Topic: "placed"})
	c.through = func(store.API) store.API { return &flaky{API: c.table, after: []error{errReset}} }
	got := c.run("parked", "discard", "--table", "orders", keyA, "7", "--yes")
	if got.code != exitDone || !strings.HasPrefix(got.stdout, "done: discard row 7") || len(c.rung(t)) != 1 {
		t.Errorf("%+v", got)
	}
}

// A row that somebody else discards between the question and the answer.
func TestADiscardOfARowThatHasGone(t *testing.T) {
	c := newConsole(t)
	c.putAside(t, 1, keyA, 7, outbox.Message{Topic: "placed"})
	c.through = func(store.API) store.API { return &vanishing{c.table} }
	got := c.run("parked", "discard", "--table", "orders", keyA, "7", "--yes")
	if got.code != exitFailed || !strings.Contains(got.stdout, "gone: discard row 7") || !strings.Contains(got.stderr, "it is not there any more") {
		t.Errorf("%+v", got)
	}
}

// vanishing is a table whose items are gone when they are to be deleted.
type vanishing struct{ store.API }

func (vanishing) DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return nil, &types.ConditionalCheckFailedException{}
}

// --dry-run shows every request and sends none, whatever else is said.
func TestADryRunSendsNothing(t *testing.T) {
	c := asideExample(t)
	c.fill(t, samples()...)
	broken := schema.EncodeMessage(outbox.NewMessage("placed", nil, nil), 3, 9)
	delete(broken, "Topic")
	c.put(t, broken)
	nameless := schema.EncodeMessage(outbox.NewMessage("placed", []byte("k"), nil), 3, 10)
	delete(nameless, "MessageId")
	c.put(t, nameless)
	c.through = func(store.API) store.API { return readOnly{c.table} }
	var texts strings.Builder
	for _, line := range []string{
		"message park --bucket 3 --sequence 2 --reason r", "message park --bucket 3 --sequence 9",
		"message park --bucket 3 --sequence 10", "message park --topic t --bucket-count 1",
		"parked retry --topic plcaed --bucket-count 1", "parked retry " + keyB, "parked discard " + keyA + " 1 --yes",
	} {
		got := c.run(append(strings.Fields(line), "--table=orders", "--dry-run")...)
		if got.code != exitDone {
			t.Errorf("%s: %+v", line, got)
		}
		fitsWidth(t, "dry_run.txt", got.stderr+got.stdout)
		texts.WriteString("$ relay " + line + "\n" + got.stderr + got.stdout)
	}
	golden(t, "dry_run.txt", texts.String())
	got := c.run("parked", "discard", keyA, "1", "--table=orders", "--dry-run", "--output=json")
	golden(t, "dry_run.json", got.stdout)
}

// readOnly is a table that must not be written to.
type readOnly struct{ store.API }

func (readOnly) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	panic("a dry run puts an item")
}

func (readOnly) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	panic("a dry run updates an item")
}

func (readOnly) DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	panic("a dry run deletes an item")
}

func (readOnly) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	panic("a dry run sends a transaction")
}

func TestOnlyYesIsYes(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "yes\n": true, "Y": true, " Yes \r\n": true, "": false, "\n": false, "n\n": false, "yess\n": false, "no, y\n": false} {
		var asked bytes.Buffer
		a := &app{stdin: strings.NewReader(answer), stderr: &asked}
		if err := a.confirm(context.Background(), "discard it"); (err == nil) != want || !strings.HasPrefix(asked.String(), "discard it? [y/N] ") {
			t.Errorf("%q: %v, asked %q", answer, err, asked.String())
		}
	}
}

// A signal ends a command that waits for an answer.
func TestAQuestionEndsWithTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	stdin, typed := io.Pipe()
	defer typed.Close()
	a := &app{stdin: stdin, stderr: io.Discard}
	if err := a.confirm(ctx, "discard it"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A value that is typed, or comes from another command, need not come to its end: who
// interrupts the command is heard at once.
func TestEnqueueIsInterruptedWhileItReads(t *testing.T) {
	c := newConsole(t)
	stdin, typing := io.Pipe()
	defer typing.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	a := &app{args: []string{"message", "enqueue", "--table", "orders", "--topic", "t", "-"}, stdin: stdin, stdout: io.Discard, stderr: &stderr,
		now:  func() time.Time { return noon },
		dial: func(context.Context, *settings.Settings) (clients, error) { return clients{messages: c.table}, nil }}
	go func() {
		_, _ = typing.Write([]byte("half of "))
		interrupt()
	}()
	if code := a.execute(ctx); code != exitFailed || stderr.String() != "relay: interrupted\n" || c.rows(t) != 0 {
		t.Errorf("exit %d: %s", code, &stderr)
	}
}

// Who interrupts a message on its way learns that it may be there, and how to find out.
func TestAnInterruptedEnqueueIsUnknown(t *testing.T) {
	c := newConsole(t)
	ctx, interrupt := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	a := &app{args: []string{"message", "enqueue", "--table", "orders", "--topic", "t", "--value", "v"}, stdout: io.Discard, stderr: &stderr,
		now: func() time.Time { return noon },
		dial: func(context.Context, *settings.Settings) (clients, error) {
			return clients{messages: &interrupted{c.table, interrupt}}, nil
		}}
	code := a.execute(ctx)
	if said := stderr.String(); code != exitFailed || c.rows(t) != 1 || !strings.HasPrefix(said, "relay: interrupted: ") ||
		!strings.Contains(said, "look for it with: relay message list --table orders --bucket ") {
		t.Errorf("exit %d, %d rows: %s", code, c.rows(t), said)
	}
}
