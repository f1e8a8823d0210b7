package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/bucketbrigade/relay/outbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEnqueuedMessageIsStoredAndNotified(t *testing.T) {
	table := newFakeTable()
	w, notes := newWriter(t, table)
	m := messageIn(3)
	if err := w.Enqueue(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if len(table.puts) != 1 || len(table.transactions) != 0 {
		t.Fatalf("%d puts and %d transactions, want one put", len(table.puts), len(table.transactions))
	}
	want := &dynamodb.PutItemInput{
		TableName: aws.String("table"), Item: schema.EncodeMessage(m, 3, 1),
		ConditionExpression:                 aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames:            map[string]string{"#pk": "PK"},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if !reflect.DeepEqual(table.puts[0], want) {
		t.Errorf("put %+v\nwant %+v", table.puts[0], want)
	}
	if !reflect.DeepEqual(notes.calls, [][]int{{3}}) {
		t.Errorf("notified %v, want bucket 3 once", notes.calls)
	}
}

// Messages that share a bucket keep the list's order, and cost one reservation.
func TestEnqueuedMessagesKeepTheirOrderInEachBucket(t *testing.T) {
	table := newFakeTable()
	w, notes := newWriter(t, table)
	var messages []outbox.Message
	want := map[int][]string{}
	for i := range 100 {
		m := messageIn(int32(i * i % 7))
		messages = append(messages, m)
		want[i*i%7] = append(want[i*i%7], m.ID.String())
	}
	if err := w.Enqueue(t.Context(), messages...); err != nil {
		t.Fatal(err)
	}
	for bucket, ids := range want {
		if got := table.ids(t, bucket); !reflect.DeepEqual(got, ids) {
			t.Errorf("bucket %d has %v, want %v", bucket, got, ids)
		}
	}
	if len(table.reservations) != len(want) || len(table.transactions) != 1 || len(table.puts) != 0 {
		t.Errorf("%d reservations for %d buckets, %d transactions, %d puts",
			len(table.reservations), len(want), len(table.transactions), len(table.puts))
	}
	if aws.ToString(table.transactions[0].ClientRequestToken) == "" {
		t.Error("the transaction has no token, so the SDK's repetition could apply it twice")
	}
	if !reflect.DeepEqual(notes.calls, [][]int{{0, 1, 2, 4}}) {
		t.Errorf("notified %v, want each bucket once, ascending", notes.calls)
	}
}

func TestEnqueueOfNothingSendsNothing(t *testing.T) {
	table := newFakeTable()
	w, notes := newWriter(t, table)
	if err := w.Enqueue(t.Context()); err != nil {
		t.Error(err)
	}
	w.NotifyCommitted()
	if len(table.reservations)+len(table.puts)+len(table.transactions)+len(notes.calls) != 0 {
		t.Error("something was sent or notified")
	}
}

func TestZeroCreatedAtMeansNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newFakeTable()
		w, _ := newWriter(t, table)
		m := messageIn(0)
		m.CreatedAt = time.Time{}
		if err := w.Enqueue(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		row, err := schema.DecodeMessage(table.puts[0].Item)
		if err != nil || !row.Message.CreatedAt.Equal(time.Now()) {
			t.Errorf("created at %s, %v, want %s", row.Message.CreatedAt, err, time.Now())
		}
	})
}

// Writers of one bucket meet at its counter only, one update each, outside of every transaction: there
// is nothing on which two transactions could conflict (case D-05).
func TestWritersOfOneBucketDoNotShareAnItemOfATransaction(t *testing.T) {
	table := newFakeTable()
	var wait sync.WaitGroup
	for range 50 {
		w, err := outbox.NewWriter(table, outbox.Options{Table: "table"})
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			for range 10 {
				if err := w.Enqueue(context.Background(), messageIn(5), messageIn(5)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if got := len(table.ids(t, 5)); got != 1000 {
		t.Errorf("%d rows, want 1000", got)
	}
	seen := map[string]bool{}
	for _, transaction := range table.transactions {
		for _, i := range transaction.TransactItems {
			if i.Put == nil || seen[keyText(i.Put.Item)] {
				t.Fatalf("an item of two transactions, or no put: %+v", i)
			}
			seen[keyText(i.Put.Item)] = true
		}
	}
	if len(seen) != 1000 {
		t.Errorf("%d items, want 1000", len(seen))
	}
}

func TestReservationsAreBoundedByMaxConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newFakeTable()
		var mu sync.Mutex
		var now, most int
		count := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			now += by
			most = max(most, now)
		}
		table.reserving = func(context.Context) error {
			count(1)
			<-time.After(time.Second)
			count(-1)
			return nil
		}
		w, err := outbox.NewWriter(table, outbox.Options{Table: "table", BucketCount: 20, MaxConcurrency: 3})
		if err != nil {
			t.Fatal(err)
		}
		var messages []outbox.Message
		for bucket := range int32(20) {
			messages = append(messages, messageIn(bucket))
		}
		start := time.Now()
		if err := w.Enqueue(t.Context(), messages...); err != nil {
			t.Fatal(err)
		}
		if most != 3 || time.Since(start) != 7*time.Second {
			t.Errorf("%d reservations at once for %s, want 3 for 7s", most, time.Since(start))
		}
	})
}

func TestFailedReservationWritesNothing(t *testing.T) {
	throttled := &types.ProvisionedThroughputExceededException{}
	for name, reserving := range map[string]error{"throttled": throttled, "lost": errLost} {
		t.Run(name, func(t *testing.T) {
			table := newFakeTable()
			w, notes := newWriter(t, table)
			table.reserving = func(context.Context) error { return reserving }
			err := w.Enqueue(t.Context(), messageIn(6), messageIn(6))
			if !errors.Is(err, reserving) || errors.Is(err, outbox.ErrAmbiguous) {
				t.Errorf("got %v, want %v, which is not ambiguous: a lost reservation is but a gap", err, reserving)
			}
			if err != nil && !strings.Contains(err.Error(), "reserve 2 numbers of bucket 6") {
				t.Errorf("%q does not say what failed", err)
			}
			if len(table.puts)+len(table.transactions)+len(notes.calls) != 0 {
				t.Error("something was written or notified")
			}
		})
	}
}

func TestCounterThatMakesNoSenseIsAnError(t *testing.T) {
	for _, value := range []string{"-5", "1", "1.5", "9223372036854775808"} {
		api := oddCounter{newFakeTable(), item{"Sequence": number(value)}}
		w, _ := newWriter(t, api)
		err := w.Enqueue(t.Context(), messageIn(6), messageIn(6))
		if err == nil || !strings.Contains(err.Error(), "OUTBOX#SEQUENCE#6 now says "+value) {
			t.Errorf("%s: got %v", value, err)
		}
	}
	w, _ := newWriter(t, oddCounter{newFakeTable(), item{}})
	if err := w.Enqueue(t.Context(), messageIn(6)); err == nil || !strings.Contains(err.Error(), "the answer has no Sequence") {
		t.Errorf("got %v", err)
	}
}

// oddCounter answers every reservation with the same attributes.
type oddCounter struct {
	*fakeTable
	attributes item
}

func (o oddCounter) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return &dynamodb.UpdateItemOutput{Attributes: o.attributes}, nil
}

func TestNothingIsSentForACallThatWasGivenUp(t *testing.T) {
	table := newFakeTable()
	w, _ := newWriter(t, table)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"enqueue": w.Enqueue(ctx, messageIn(1), messageIn(2)),
		"commit":  w.Commit(ctx, &dynamodb.TransactWriteItemsInput{}, messageIn(1)),
	} {
		if !errors.Is(err, context.Canceled) || errors.Is(err, outbox.ErrAmbiguous) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	given, giveUp := context.WithCancel(t.Context())
	table.reserving = func(context.Context) error { giveUp(); return nil }
	if err := w.Enqueue(given, messageIn(1)); !errors.Is(err, context.Canceled) || errors.Is(err, outbox.ErrAmbiguous) {
		t.Errorf("given up between reservation and put: got %v", err)
	}
	if len(table.puts)+len(table.transactions) != 0 {
		t.Error("something was sent")
	}
}

func TestOptionsNameEveryFault(t *testing.T) {
	_, err := outbox.NewWriter(nil, outbox.Options{BucketCount: 10_001, KeyPrefix: " ", MaxConcurrency: -1})
	for _, want := range []string{"api: nil", "Table: ", "BucketCount: 10001", `KeyPrefix: " "`, "MaxConcurrency: -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, fmt.Sprint(err))
		}
	}
}

func TestConfiguredNamesAreUsed(t *testing.T) {
	table := renamed{newFakeTable(), t}
	w, err := outbox.NewWriter(table, outbox.Options{
		Table: "mine", PartitionKey: "hash", SortKey: "range", KeyPrefix: "BILLING", BucketCount: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	items, err := w.TransactItems(t.Context(), []outbox.Message{messageIn(0), messageIn(7)})
	if err != nil {
		t.Fatal(err)
	}
	for i, sequence := range []string{"0000000000000000001", "0000000000000000002"} {
		put := items[i].Put
		want := item{"hash": text("BILLING#MESSAGES#0"), "range": text(sequence), "BucketCount": number("1")}
		for name, value := range want {
			if !reflect.DeepEqual(put.Item[name], value) {
				t.Errorf("%s is %v, want %v", name, put.Item[name], value)
			}
		}
		if put.ExpressionAttributeNames["#pk"] != "hash" || *put.TableName != "mine" {
			t.Errorf("the put's condition is on %v of %s", put.ExpressionAttributeNames, *put.TableName)
		}
	}
}

// renamed answers the one reservation of a table with other key attributes.
type renamed struct {
	*fakeTable
	t *testing.T
}

func (r renamed) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	want := item{"hash": text("BILLING#SEQUENCE#0"), "range": text("SEQUENCE")}
	if !reflect.DeepEqual(in.Key, want) || *in.TableName != "mine" {
		r.t.Errorf("reserved at %v of %s", in.Key, *in.TableName)
	}
	return &dynamodb.UpdateItemOutput{Attributes: item{"Sequence": number("2")}}, nil
}
