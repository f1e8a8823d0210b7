package main

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// linesThatAsk are two command lines, which may be the same, for each command that asks the table.
func linesThatAsk(t *testing.T) map[string][2]string {
	t.Helper()
	asksNoTable := append(withoutContent(), "cost", "version", "table cloudformation", "table terraform")
	lines := map[string][2]string{}
	for command, arguments := range canaryLines(t) {
		if !slices.Contains(asksNoTable, command) {
			lines[command] = [2]string{command + " " + arguments[0], command + " " + arguments[len(arguments)-1]}
		}
	}
	lines["table iam"] = [2]string{"table iam --table orders --role operator", "table iam --table orders --role relay --output json"}
	return lines
}

// Whoever asks a table that takes connections and says nothing learns so when the time
// is over that the command has, and whether anything was changed.
func TestEveryCommandGivesUpATableThatNeverAnswers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts: connections are made all the same
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "key")
	for command, lines := range linesThatAsk(t) {
		for _, line := range lines {
			t.Run(line, func(t *testing.T) {
				var stdout, stderr strings.Builder
				args := append(strings.Fields(line), "--timeout", "50ms", "--dynamodb-endpoint", "http://"+silent.Addr().String())
				code := execute(t.Context(), args, nil, strings.NewReader(""), &stdout, &stderr)
				if code != exitFailed || !strings.Contains(stdout.String()+stderr.String(), "(--timeout)") {
					t.Errorf("exit %d\n%s\n%s", code, &stdout, &stderr)
				}
				changes := strings.Contains(line, "--yes") || strings.Contains(line, "--dry-run")
				if changes && command != "doctor" && !strings.Contains(stderr.String(), "\n  nothing was changed\n") ||
					command == "message enqueue" && !strings.Contains(stderr.String(), "\n  nothing was stored") {
					t.Errorf("it does not say that nothing was changed:\n%s", &stderr)
				}
			})
		}
	}
}

// stalling is a table that takes so many writes, and has answers for no more of them. Each
// further one takes a while, and then its connection breaks, or, without a while, hangs.
type stalling struct {
	store.API
	writes int
	while  time.Duration
}

// stalls waits, unless the write is one of the first.
func (s *stalling) stalls(ctx context.Context) error {
	if s.writes--; s.writes >= 0 {
		return nil
	}
	if s.while == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := pause(ctx, s.while); err != nil {
		return err
	}
	return errReset
}

func (s *stalling) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if err := s.stalls(ctx); err != nil {
		return nil, err
	}
	return s.API.PutItem(ctx, in, o...)
}

func (s *stalling) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := s.stalls(ctx); err != nil {
		return nil, err
	}
	return s.API.UpdateItem(ctx, in, o...)
}

func (s *stalling) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	if err := s.stalls(ctx); err != nil {
		return nil, err
	}
	return s.API.DeleteItem(ctx, in, o...)
}

func (s *stalling) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := s.stalls(ctx); err != nil {
		return nil, err
	}
	return s.API.TransactWriteItems(ctx, in, o...)
}

// changeable is a table on which every command finds something to change.
func changeable(t *testing.T) *console {
	c := asideExample(t)
	c.fill(t, samples()...)
	broken := schema.EncodeMessage(outbox.NewMessage("placed", nil, nil), 3, 9)
	delete(broken, outbox.AttrTopic)
	c.put(t, broken)
	lease := owned("gone", -time.Hour)
	lease["PausedUntilUtc"] = ticksValue(inFuture(time.Hour))
	c.lease(t, 3, lease)
	return c
}

// A table that stops to answer in the middle of a change holds nobody for longer than the
// time that a request has, however often it is sent; what was done until then, what may
// have been, and what was not, is said.
func TestAChangeGivesUpATableThatStopsToAnswer(t *testing.T) {
	for _, test := range []struct {
		line    string
		allowed int // writes that are answered
		want    string
	}{
		{"message park --topic t --bucket-count 2", 0, "unknown: set aside all of topic t in bucket 0\nnot sent: tell the owner of bucket 0\n" +
			"not sent: set aside all of topic t in bucket 1\nnot sent: tell the owner of bucket 1\n"},
		{"message park --topic t --bucket-count 2", 3, "done: set aside all of topic t in bucket 0\ndone: tell the owner of bucket 0\n" +
			"done: set aside all of topic t in bucket 1\nunknown: tell the owner of bucket 1\n"},
		{"message park --bucket 3 --sequence 2", 1, "done: set aside key "},
		{"message park --bucket 3 --sequence 9", 0, "unknown: move row 9, which cannot be read, aside "},
		{"parked retry " + keyB, 1, "done: ask for a retry of key " + keyB + " of topic cancelled in bucket 5\nunknown: tell the owner of bucket 5\n"},
		{"parked retry --call-off " + keyA, 0, "unknown: call off the retry of key " + keyA},
		{"parked discard " + keyA + " 1", 1, "done: discard row 1 of key " + keyA + " in bucket 3\nunknown: tell the owner of bucket 3\n"},
		{"pause --all --reason r --bucket-count 3", 1, "done: pause bucket 0, until resumed\nunknown: pause bucket 1, until resumed\n" +
			"not sent: pause bucket 2, until resumed\n"},
		{"pause --topic t --reason r --bucket-count 1", 0, "unknown: pause all of topic t in bucket 0, until resumed\nnot sent: tell "},
		{"resume --bucket 3", 0, "unknown: let bucket 3 go on\n"},
		{"resume --topic plcaed --bucket-count 1", 1, "done: ask for a retry of all of topic plcaed in bucket 0\nunknown: tell the owner of bucket 0\n"},
		{"lease release --bucket 3", 0, "unknown: free the lease of bucket 3, held by gone\n"},
	} {
		for _, while := range []time.Duration{0, 4 * time.Second} {
			t.Run(test.line, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := changeable(t)
					c.through = func(api store.API) store.API { return &stalling{API: api, writes: test.allowed, while: while} }
					began := time.Now()
					got := c.run(append(strings.Fields(test.line), "--table=orders", "--yes")...)
					if took := time.Since(began); took != defaultPatience {
						t.Errorf("it took %v", took)
					}
					if got.code != exitFailed || !strings.HasPrefix(got.stdout, test.want) {
						t.Errorf("%+v", got)
					}
					if !strings.Contains(got.stderr, "no answer within 15s (--timeout)") || !strings.Contains(got.stderr, "it may have been done") ||
						strings.Contains(got.stderr, "nothing was changed") {
						t.Errorf("stderr:\n%s", got.stderr)
					}
				})
			})
		}
	}
}

// So with the two commands that change something in their own way.
func TestARepairAndAnEnqueueGiveUpATableThatStopsToAnswer(t *testing.T) {
	for _, test := range []struct {
		line, want string
		allowed    int
	}{
		{"doctor --repair-sequence --bucket 3 --yes", "raise the counter (to repeat the command does no harm)", 0},
		{"message enqueue --topic t", "\n  nothing was stored", 0},
		{"message enqueue --topic t", "\n  look for it with: relay message list --table orders --bucket ", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := changeable(t)
			c.through = func(api store.API) store.API { return &stalling{API: api, writes: test.allowed} }
			began := time.Now()
			got := c.run(append(strings.Fields(test.line), "--table=orders")...)
			if took := time.Since(began); took != defaultPatience || got.code != exitFailed ||
				!strings.Contains(got.stderr, test.want) || !strings.Contains(got.stderr, "no answer within 15s (--timeout)") {
				t.Errorf("%s: after %v: %+v", test.line, took, got)
			}
		})
	}
}

// mute is a table that has no answer to what is asked of messages.
type mute struct{ store.API }

func (m mute) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if pk := in.ExpressionAttributeValues[":pk"].(*types.AttributeValueMemberS); pk.Value != schema.CoordinationKey() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.API.Query(ctx, in, opts...)
}

// A picture of many buckets does not wait for each of them.
func TestStatusGivesUpATableThatStopsToAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsole(t)
		c.through = func(api store.API) store.API { return mute{api} }
		began := time.Now()
		got := c.run("status", "--table", "orders", "--bucket-count", "100")
		if took := time.Since(began); took != defaultPatience || got.code != exitFailed || !strings.Contains(got.stdout, "buckets 0-99 could not be read") ||
			!strings.Contains(got.stderr, "no answer within 15s (--timeout)") {
			t.Errorf("after %v: %+v", took, got)
		}
	})
}
