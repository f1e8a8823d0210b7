package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// counterItem is the counter of bucket 3.
func (f fixture) counterItem(sequence types.AttributeValue) item {
	return item{
		f.schema.PartitionKey: str(f.schema.KeyPrefix + "#SEQUENCE#3"),
		f.schema.SortKey:      str("SEQUENCE"),
		"Sequence":            sequence,
	}
}

// parked is a row that was set aside from bucket 3.
func (f fixture) parkedNumber(keyID string, sequence int64) item {
	return item{
		f.schema.PartitionKey: str(f.schema.KeyPrefix + "#PARKED#3"),
		f.schema.SortKey:      str(fmt.Sprintf("ROW#%s#%019d", keyID, sequence)),
	}
}

func keyIDOf(letter string) string {
	return outbox.ParkedKeyID(&outbox.Message{Topic: "orders", Key: []byte(letter)})
}

// A counter is read as the writers left it; one that is not there stands at zero,
// and one that is no number is told of.
func TestReadCounter(t *testing.T) {
	onBoth(t, func(f fixture) {
		read := func() store.Counter {
			return f.do(store.ReadCounter{Bucket: 3}, store.Done).Result.(store.Counter)
		}
		if got := read(); got != (store.Counter{}) {
			t.Errorf("no counter: got %+v", got)
		}
		for _, c := range []struct {
			sequence types.AttributeValue
			want     int64
			readable bool
		}{
			{num(41), 41, true},
			{num(0), 0, true},
			{num(-1), 0, false},
			{str("41"), 0, false},
			{&types.AttributeValueMemberN{Value: "1.5"}, 0, false},
			{&types.AttributeValueMemberN{Value: "1E30"}, 0, false},
		} {
			f.put(f.counterItem(c.sequence))
			if got := read(); got.Sequence != c.want || (got.Unreadable == nil) != c.readable {
				t.Errorf("%v: got %+v", c.sequence, got)
			}
		}
	})
}

// The highest row is found whatever else stands in the partition, also behind
// many items whose sort keys are no numbers.
func TestReadLast(t *testing.T) {
	onBoth(t, func(f fixture) {
		read := func() int64 {
			for before := ""; ; {
				last := f.do(store.ReadLast{Bucket: 3, Before: before}, store.Done).Result.(store.Last)
				if before = last.Next; before == "" {
					return last.Sequence
				}
			}
		}
		if got := read(); got != 0 {
			t.Errorf("an empty bucket: got %d", got)
		}
		f.put(f.message(7, nil), f.message(1_000_000_000_007, make([]byte, 300_000)), f.message(9, nil))
		f.put(f.schema.EncodeMessage(outbox.Message{ID: uuid.New(), Topic: "t"}, 4, 9_000_000_000_000_000_000)) // another bucket's
		if got := read(); got != 1_000_000_000_007 {
			t.Errorf("got %d", got)
		}
		for i := range 60 {
			odd := f.message(1, nil)
			odd[f.schema.SortKey] = str(fmt.Sprintf("no number %d", i))
			f.put(odd)
		}
		if got := read(); got != 1_000_000_000_007 {
			t.Errorf("behind items that are no rows: got %d", got)
		}
	})
}

// Rows set aside keep their numbers; the highest may be of any key.
func TestReadParkedNumbers(t *testing.T) {
	onBoth(t, func(f fixture) {
		for i, letter := range []string{"a", "b", "c"} {
			marker := item{f.schema.PartitionKey: str(f.schema.KeyPrefix + "#PARKED#3"), f.schema.SortKey: str("KEY#" + keyIDOf(letter))}
			row := f.parkedNumber(keyIDOf(letter), int64(30-i))
			row["Value"] = &types.AttributeValueMemberB{Value: make([]byte, 390_000)}
			f.put(marker, row, f.parkedNumber(keyIDOf(letter), int64(10+i)))
		}
		var highest int64
		pages := 0
		for after := ""; pages == 0 || after != ""; pages++ {
			page := f.do(store.ReadParkedNumbers{Bucket: 3, After: after}, store.Done).Result.(store.Last)
			highest, after = max(highest, page.Sequence), page.Next
		}
		if highest != 30 || pages < 2 {
			t.Errorf("got %d from %d pages", highest, pages)
		}
	})
}

// A counter is only ever raised. What finds it where it is to be was applied
// before; what finds it beyond is told by whom it was overtaken.
func TestRaiseCounter(t *testing.T) {
	onBoth(t, func(f fixture) {
		raise := func(to int64, class store.Class) store.Raised {
			return f.do(store.RaiseCounter{Bucket: 3, To: to}, class).Result.(store.Raised)
		}
		if got := raise(41, store.Done); !got.Applied {
			t.Errorf("from nothing: got %+v", got)
		}
		f.wantTable(f.counterItem(num(41)))
		if got := raise(41, store.Done); !got.Applied || got.Before.Sequence != 41 {
			t.Errorf("repeated: got %+v", got)
		}
		if got := raise(40, store.Refused); got.Applied || got.Before.Sequence != 41 {
			t.Errorf("a lower number: got %+v", got)
		}
		f.wantTable(f.counterItem(num(41)))
		raise(42, store.Done)
		f.wantTable(f.counterItem(num(42)))
		f.put(f.counterItem(str("42")))
		if got := raise(43, store.Refused); got.Before.Unreadable == nil {
			t.Errorf("a counter that is no number: got %+v", got)
		}
		f.wantTable(f.counterItem(str("42")))
	})
}

// The requests of a repair have no deadline and go with the messages, and none
// is a write whose refusal or loss would be taken for success.
func TestCounterRequests(t *testing.T) {
	lost := errors.New("lost")
	client := store.NewClient(schemas["default"], failing(lost), nil)
	for _, c := range []struct {
		request store.Request
		class   store.Class
	}{
		{store.ReadCounter{Bucket: 3}, store.Retriable},
		{store.ReadLast{Bucket: 3}, store.Retriable},
		{store.ReadParkedNumbers{Bucket: 3}, store.Retriable},
		{store.RaiseCounter{Bucket: 3, To: 1}, store.Ambiguous},
	} {
		reply := client.Do(t.Context(), c.request)
		if reply.Class != c.class || !errors.Is(reply.Err, lost) || reply.Result != nil {
			t.Errorf("%s: got %+v", c.request.RequestName(), reply)
		}
		if !reflect.ValueOf(c.request.Deadline()).IsZero() || c.request.ConcernsBucket() != 3 || c.request.Lane() != store.Messages {
			t.Errorf("%+v: lane %v, bucket %d", c.request, c.request.Lane(), c.request.ConcernsBucket())
		}
	}
	var sent *dynamodb.UpdateItemInput
	api := scripted{update: func(in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
		sent = in
		return &dynamodb.UpdateItemOutput{}, nil
	}}
	store.NewClient(schemas["default"], api, nil).Do(t.Context(), store.RaiseCounter{Bucket: 3, To: 5})
	if got := aws.ToString(sent.ConditionExpression); got != "attribute_not_exists(#sequence) OR #sequence < :to" {
		t.Errorf("the condition is %q", got)
	}
}
