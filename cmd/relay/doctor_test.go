package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// setCounter leaves bucket 3's counter at a number, as a restored backup might.
func (c *console) setCounter(t *testing.T, n int64) {
	t.Helper()
	item := schema.Key(schema.SequenceKey(3), outbox.CounterSortKey)
	item[outbox.AttrSequence] = &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	c.put(t, item)
}

// counter is where bucket 3's counter is.
func (c *console) counter(t *testing.T) int64 {
	t.Helper()
	for _, item := range c.table.Items("orders") {
		if key := item["PK"].(*types.AttributeValueMemberS).Value; key == schema.SequenceKey(3) {
			n, err := strconv.ParseInt(item[outbox.AttrSequence].(*types.AttributeValueMemberN).Value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// waits puts a row of bucket 3 with this number.
func (c *console) waits(t *testing.T, sequence int64) {
	t.Helper()
	c.put(t, schema.EncodeMessage(outbox.NewMessage("placed", []byte("k"), nil), 3, sequence))
}

// isSetAside puts a row of bucket 3 with this number where rows are set aside.
func (c *console) isSetAside(t *testing.T, sequence int64) {
	t.Helper()
	m := outbox.NewMessage("placed", []byte("poison"), nil)
	item := schema.EncodeMessage(m, 3, sequence)
	c.setAside(t, 3, store.Marker{KeyID: outbox.ParkedKeyID(&m), Topic: m.Topic, Reason: "r", ParkedAt: 1})
	item["PK"] = &types.AttributeValueMemberS{Value: schema.ParkedKey(3)}
	item["SK"] = &types.AttributeValueMemberS{Value: outbox.ParkedRowSortKey(outbox.ParkedKeyID(&m), sequence)}
	c.put(t, item)
}

// into3 is a message for bucket 3.
func into3() outbox.Message {
	three := int32(3)
	m := outbox.NewMessage("placed", []byte("k"), []byte("v"))
	m.Partition = &three
	return m
}

func (c *console) writer(t *testing.T) *outbox.Writer {
	t.Helper()
	w, err := outbox.NewWriter(c.table, outbox.Options{Table: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A counter behind a row, waiting or set aside, fails the check and is named with
// the command that repairs it; one that is not there, without rows, is fine.
func TestDoctorFindsCountersBehindTheirRows(t *testing.T) {
	c := newConsole(t)
	e := c.examine(t)
	e.wants(t, checkSequence, statusOK, "8 buckets")
	if e.code != exitDone || e.stderr != "" {
		t.Errorf("an empty outbox: %+v", e.outcome)
	}
	if err := c.writer(t).Enqueue(t.Context(), into3(), into3()); err != nil {
		t.Fatal(err)
	}
	if e := c.examine(t); e.code != exitDone {
		t.Errorf("a sound outbox: %+v", e.outcome)
	}
	c.setCounter(t, 1)
	c.isSetAside(t, 41)
	e = c.examine(t)
	e.wants(t, checkSequence, statusFailure, "bucket 3", "the counter is at 1, the highest row is 41", "--repair-sequence --bucket 3")
	e.wants(t, checkSequence, statusOK, "7 buckets")
	if !strings.Contains(e.stderr, fmt.Sprintf("1 of %d checks failed", len(e.Checks))) {
		t.Errorf("stderr %q", e.stderr)
	}
	got := c.run("doctor", "--table", "orders", "--output", "json", "--bucket", "3")
	if got.code != exitFailed {
		t.Errorf("%+v", got)
	}
	golden(t, "doctor.json", got.stdout)
}

// Nothing is changed before a yes; then the counter is at the highest row, waiting
// or set aside, and writers go on behind it.
func TestRepairAsksFirst(t *testing.T) {
	c := newConsole(t)
	c.waits(t, 41)
	c.isSetAside(t, 40)
	c.setCounter(t, 2)
	for _, answer := range []string{"", "n\n", "what\n"} {
		got := c.runWith(answer, nil, "doctor", "--table", "orders", "--repair-sequence", "--bucket", "3")
		if got.code != exitFailed || c.counter(t) != 2 || !strings.Contains(got.stderr, "raise the counter to 41? [y/N]") || !strings.Contains(got.stderr, "nothing was changed") {
			t.Errorf("%q: counter %d, %+v", answer, c.counter(t), got)
		}
	}
	got := c.runWith("", nil, "doctor", "--table", "orders", "--repair-sequence", "--bucket", "3", "--dry-run")
	if got.code != exitFailed || c.counter(t) != 2 {
		t.Errorf("a dry run: counter %d, %+v", c.counter(t), got)
	}
	golden(t, "doctor_dry_run.txt", got.stdout)
	got = c.runWith("y\n", nil, "doctor", "--table", "orders", "--repair-sequence", "--bucket", "3")
	if got.code != exitDone || c.counter(t) != 41 {
		t.Errorf("yes: counter %d, %+v", c.counter(t), got)
	}
	golden(t, "doctor_repaired.txt", got.stdout)
	if err := c.writer(t).Enqueue(t.Context(), into3()); err != nil || c.counter(t) != 42 {
		t.Errorf("a writer afterwards: counter %d, %v", c.counter(t), err)
	}
}

// A counter that is at its rows, or beyond, is left alone and nobody is asked;
// one that is missing is made; a number that only people know counts too.
func TestRepairOnlyRaises(t *testing.T) {
	for _, test := range []struct {
		name             string
		counter, highest int64
		args             []string
		want             int64
	}{
		{"beyond the rows", 50, 41, nil, 50},
		{"at the highest row", 41, 41, nil, 41},
		{"no rows", 5, 0, nil, 5},
		{"missing", -1, 41, []string{"--yes"}, 41},
		{"behind", 2, 41, []string{"--yes"}, 41},
		{"a number that is known", 41, 41, []string{"--yes", "--at-least", "500"}, 500},
		{"a number below the rows", 2, 41, []string{"--yes", "--at-least", "7"}, 41},
		{"a number below the counter", 50, 41, []string{"--at-least", "45"}, 50},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newConsole(t)
			if test.highest > 0 {
				c.waits(t, test.highest)
			}
			if test.counter >= 0 {
				c.setCounter(t, test.counter)
			}
			got := c.run(append([]string{"doctor", "--table", "orders", "--repair-sequence", "--bucket", "3"}, test.args...)...)
			if got.code != exitDone || got.stderr != "" || c.counter(t) != test.want {
				t.Errorf("counter %d, want %d; %+v", c.counter(t), test.want, got)
			}
		})
	}
}

func TestRepairLeavesACounterThatIsNoNumberToPeople(t *testing.T) {
	c := newConsole(t)
	c.waits(t, 41)
	item := schema.Key(schema.SequenceKey(3), outbox.CounterSortKey)
	item[outbox.AttrSequence] = &types.AttributeValueMemberS{Value: "7"}
	c.put(t, item)
	var d doctorDocument
	got := c.run("doctor", "--table", "orders", "--repair-sequence", "--bucket", "3", "--yes", "--output", "json")
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != exitFailed || d.OK || !strings.Contains(d.Checks[0].Advice, "at least 41") {
		t.Errorf("%+v, %v", got, err)
	}
}

// meddled calls a function before each request of a command.
type meddled struct {
	store.API
	before func(request int)
	after  func()
	count  int
}

func (m *meddled) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	m.count++
	m.before(m.count)
	defer m.after()
	return m.API.Query(ctx, in, opts...)
}

func (m *meddled) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	m.count++
	m.before(m.count)
	defer m.after()
	return m.API.UpdateItem(ctx, in, opts...)
}

// Writers that are at work meanwhile, and rows that are set aside, are no reason
// for an alarm: no counter is behind at any moment.
func TestDoctorRaisesNoFalseAlarm(t *testing.T) {
	c := newConsole(t)
	writer := c.writer(t)
	c.through = func(api store.API) store.API {
		return &meddled{API: api, after: func() {}, before: func(int) {
			if err := writer.Enqueue(t.Context(), into3()); err != nil {
				t.Error(err)
			}
			c.isSetAside(t, c.counter(t))
		}}
	}
	for range 3 {
		if got := c.run("doctor", "--table", "orders", "--bucket", "3"); got.code != exitDone {
			t.Errorf("%+v", got)
		}
	}
}

// Writers reserve and commit at any moment of a repair: before each of its
// requests, some messages at once or many, and a transaction may commit late that
// reserved long ago. The counter never goes back, no row is overwritten, and at the
// end it is at or beyond every row, so that every later write succeeds.
func TestRepairWhileWritersReserve(t *testing.T) {
	for _, messages := range []int{1, 30, 60} {
		for moment := 1; moment <= 7; moment++ { // 3 reads, the update, 3 reads
			t.Run(fmt.Sprintf("%d messages before request %d", messages, moment), func(t *testing.T) {
				c := newConsole(t)
				c.waits(t, 41)
				c.setCounter(t, 2)
				late := schema.EncodeMessage(into3(), 3, 45) // reserved when the counter was right
				var lowest int64
				written := 0
				c.through = func(api store.API) store.API {
					return &meddled{API: api, after: func() {
						if now := c.counter(t); now < lowest {
							t.Errorf("the counter went back from %d to %d", lowest, now)
						}
						lowest = c.counter(t)
					}, before: func(request int) {
						if request != moment {
							return
						}
						c.put(t, late)
						batch := make([]outbox.Message, messages)
						for i := range batch {
							batch[i] = into3()
						}
						switch err := c.writer(t).Enqueue(t.Context(), batch...); {
						case err == nil:
							written = messages
						case !errors.Is(err, outbox.ErrSequenceBehind):
							t.Errorf("a writer meanwhile: %v", err)
						}
					}}
				}
				got := c.run("doctor", "--table", "orders", "--repair-sequence", "--bucket", "3", "--yes")
				if got.code != exitDone {
					t.Fatalf("%+v", got)
				}
				if err := c.writer(t).Enqueue(t.Context(), into3()); err != nil {
					t.Errorf("a writer afterwards: %v", err)
				}
				if rows, want := c.rows(t), 2+written+1; rows != want {
					t.Errorf("%d rows, want %d: one was overwritten", rows, want)
				}
			})
		}
	}
}

// rows is how many messages are in the table.
func (c *console) rows(t *testing.T) int {
	t.Helper()
	n := 0
	for _, item := range c.table.Items("orders") {
		if _, err := schema.DecodeMessage(item); err == nil {
			n++
		}
	}
	return n
}

// Of one bucket alone, a table that cannot be reached is an error with advice, and no
// check.
func TestDoctorOfABucketWithoutATable(t *testing.T) {
	got := newConsole(t).run("doctor", "--table", "none", "--bucket", "1")
	if got.code != exitFailed || got.stdout != "" || !strings.Contains(got.stderr, "relay table create --table none") {
		t.Errorf("%+v", got)
	}
}

// unanswering is a table whose queries have no answer before the caller's time is over.
type unanswering struct{ store.API }

func (unanswering) Query(ctx context.Context, _ *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Doctor that could not look in time does not say that all is well, and ends in time.
func TestDoctorWithoutAnAnswerInTimeFails(t *testing.T) {
	c := newConsole(t)
	c.through = func(api store.API) store.API { return unanswering{api} }
	e := c.examine(t, "--timeout=20ms")
	if e.code != exitFailed || e.OK {
		t.Errorf("%+v", e)
	}
	for _, id := range []string{checkCoordination, checkBucketCount} {
		e.wants(t, id, statusFailure, "no answer in time")
	}
	got := c.run("doctor", "--table", "orders", "--bucket=1", "--timeout=20ms")
	if got.code != exitFailed || !strings.Contains(got.stderr, "bucket 1: readLast: service unavailable: no answer within 20ms (--timeout)") {
		t.Errorf("%+v", got)
	}
}
