package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// A key, or a topic, is set aside once; whoever comes second learns of the first.
func TestSetAside(t *testing.T) {
	onBoth(t, func(f fixture) {
		topic := store.Marker{Topic: "all", Reason: "mistyped", ParkedAt: noon}
		for _, m := range []store.Marker{known, topic} {
			result := f.do(store.SetAside{Bucket: 3, Marker: m}, store.Done).Result.(store.SetAsideResult)
			if result.Existing != nil || result.Repeated {
				t.Errorf("%+v: got %+v", m, result)
			}
			// The SDK's repetition of an applied write.
			if result = f.do(store.SetAside{Bucket: 3, Marker: m}, store.Done).Result.(store.SetAsideResult); !result.Repeated {
				t.Errorf("%+v: got %+v", m, result)
			}
		}
		table := []item{f.parked("ALL#all", item{"Reason": str("mistyped"), "ParkedAtUtc": num(int64(noon))}), f.parkedMarker(nil)}
		f.wantTable(table...)

		second := known
		second.Reason, second.ParkedAt = "another", noon+1
		reply := f.do(store.SetAside{Bucket: 3, Marker: second}, store.Refused)
		if got := reply.Result.(store.SetAsideResult).Existing; got == nil || *got != known || !errors.Is(reply.Err, store.ErrConditionFailed) {
			t.Errorf("got %+v, %v", got, reply.Err)
		}
		f.wantTable(table...)
	})
}

// A marker that nobody can read is not written over.
func TestSetAsideOverSomethingUnreadable(t *testing.T) {
	onBoth(t, func(f fixture) {
		odd := f.parked("KEY#"+keyID, item{"Reason": num(1)})
		f.put(odd)
		reply := f.do(store.SetAside{Bucket: 3, Marker: known}, store.Refused)
		if got := reply.Result.(store.SetAsideResult); got.Existing != nil {
			t.Errorf("got %+v", got)
		}
		f.wantTable(odd)
	})
}

// A retry is asked for of what is set aside, and of nothing else.
func TestAskRetry(t *testing.T) {
	onBoth(t, func(f fixture) {
		topic := f.parked("ALL#all", item{"Reason": str("r"), "ParkedAtUtc": num(1)})
		f.put(topic, f.parkedMarker(nil))
		f.do(store.AskRetry{Bucket: 3, KeyID: keyID, Topic: "all", At: noon + 1}, store.Done)
		f.wantTable(topic, f.parkedMarker(item{"RetryAtUtc": num(int64(noon) + 1)}))
		f.do(store.AskRetry{Bucket: 3, KeyID: keyID, At: noon + 2}, store.Done)
		f.do(store.AskRetry{Bucket: 3, Topic: "all", At: noon + 3}, store.Done)
		topic["RetryAtUtc"] = num(int64(noon) + 3)
		f.wantTable(topic, f.parkedMarker(item{"RetryAtUtc": num(int64(noon) + 2)}))

		for _, r := range []store.Request{
			store.AskRetry{Bucket: 3, KeyID: otherID, At: noon}, store.AskRetry{Bucket: 3, Topic: "no", At: noon}, store.AskRetry{Bucket: 4, Topic: "all", At: noon},
		} {
			if reply := f.do(r, store.Refused); !errors.Is(reply.Err, store.ErrConditionFailed) {
				t.Errorf("%+v: got %v", r, reply.Err)
			}
		}
		f.wantTable(topic, f.parkedMarker(item{"RetryAtUtc": num(int64(noon) + 2)}))
	})
}

// A discard takes one row.
func TestDiscardParked(t *testing.T) {
	onBoth(t, func(f fixture) {
		one, two := f.parkedRow(f.message(1, nil), keyID), f.parkedRow(f.message(2, nil), keyID)
		waiting := f.message(1, nil)
		f.put(one, two, waiting, f.parkedMarker(nil))
		f.do(store.DiscardParked{Bucket: 3, KeyID: keyID, Sequence: 1}, store.Done)
		f.wantTable(waiting, f.parkedMarker(nil), two)
		if reply := f.do(store.DiscardParked{Bucket: 3, KeyID: keyID, Sequence: 1}, store.Refused); !errors.Is(reply.Err, store.ErrConditionFailed) {
			t.Errorf("got %v", reply.Err)
		}
	})
}

// A ring changes Attention and nothing else, with or without an owner, and even before
// the bucket was ever claimed; a relay sees it at its next read.
func TestRing(t *testing.T) {
	onBoth(t, func(f fixture) {
		lease := f.held()
		f.do(store.Ring{Bucket: 3, At: noon}, store.Done)
		lease["Attention"] = num(int64(noon))
		f.wantTable(lease)
		f.do(store.Ring{Bucket: 3, At: noon + 1}, store.Done)
		f.do(store.Ring{Bucket: 5, At: noon}, store.Done)
		lease["Attention"] = num(int64(noon) + 1)
		f.wantTable(lease, f.coordination("LEASE#0000000005", item{"Attention": num(int64(noon))}))
		page := f.do(store.ReadCoordination{}, store.Done).Result.(store.CoordinationPage)
		if len(page.Leases) != 2 || page.Leases[0].Attention != noon+1 || page.Leases[1].Owner != "" || page.Leases[1].Unreadable {
			t.Errorf("got %+v", page)
		}
		f.do(store.Claim{Bucket: 5, Relay: "B", Incarnation: "B1", Claim: 1, Now: noon, Expires: noon + 1}, store.Done)
	})
}

// Counts come in pages by limit and by size, and are of one key.
func TestCountParked(t *testing.T) {
	onBoth(t, func(f fixture) {
		f.put(f.parkedMarker(nil), f.parkedRow(f.message(1, nil), otherID))
		for i := range 8 {
			f.put(f.parkedRow(f.message(int64(i+1), make([]byte, 300_000)), keyID))
		}
		for limit, pages := range map[int]int{3: 3, 1_000_000: 3} {
			r, rows, count := store.CountParked{Bucket: 3, KeyID: keyID, Limit: limit}, 0, 0
			for next := true; next; count++ {
				page := f.do(r, store.Done).Result.(store.Counted)
				rows += page.Rows
				r.After, next = page.Next, page.Next != 0
			}
			if rows != 8 || count != pages {
				t.Errorf("limit %d: %d rows in %d pages", limit, rows, count)
			}
		}
	})
}

func TestReadRow(t *testing.T) {
	onBoth(t, func(f fixture) {
		good, broken := f.message(7, []byte("v")), f.message(8, nil)
		broken["Topic"] = num(1)
		f.put(good, broken)
		read := func(sequence int64) store.RowRead {
			return f.do(store.ReadRow{Bucket: 3, Sequence: sequence}, store.Done).Result.(store.RowRead)
		}
		if got := read(7); !reflect.DeepEqual(got.Item, good) || got.Row.Sequence != 7 || got.Malformed != nil {
			t.Errorf("got %+v", got)
		}
		if got := read(8); !reflect.DeepEqual(got.Item, broken) || got.Row.Sequence != 0 || !errors.As(got.Malformed, new(*outbox.ItemError)) {
			t.Errorf("got %+v", got)
		}
		if got := read(9); got.Item != nil || got.Malformed != nil {
			t.Errorf("got %+v", got)
		}
	})
}

// unreadable is a row without a topic, with attributes of odd types.
func (f fixture) unreadable() item {
	row := f.message(8, []byte("v"))
	delete(row, "Topic")
	row["Headers"] = &types.AttributeValueMemberNULL{Value: true}
	row["Partition"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{num(1)}}
	row["Future"] = str("kept")
	return row
}

// A row that cannot be read is moved with a marker of its own, all attributes as they
// are.
func TestMoveUnreadable(t *testing.T) {
	onBoth(t, func(f fixture) {
		row := f.unreadable()
		f.put(row)
		r := store.MoveUnreadable{Bucket: 3, Sequence: 8, Item: row, Token: "1", Marker: store.Marker{KeyID: keyID, Reason: "no topic", ParkedAt: noon}}
		marker := f.parkedMarker(item{"Topic": str(""), "Reason": str("no topic"), "Attempts": num(0)})
		for range 2 {
			f.do(r, store.Done)
			f.wantTable(marker, f.parkedRow(row, keyID))
		}
		r.Token = "2"
		f.refused(r, store.RowRefused)
	})
}

// What is missing may be its message id.
func TestMoveUnreadableWithoutAMessageID(t *testing.T) {
	onBoth(t, func(f fixture) {
		row := f.unreadable()
		delete(row, "MessageId")
		f.put(row)
		f.do(store.MoveUnreadable{Bucket: 3, Sequence: 8, Item: row, Token: "1",
			Marker: store.Marker{KeyID: keyID, Reason: "no id", ParkedAt: noon}}, store.Done)
		f.wantTable(f.parkedMarker(item{"Topic": str(""), "Reason": str("no id"), "Attempts": num(0)}), f.parkedRow(row, keyID))
	})
}

// Under a key that is set aside already, its reason, its attempts and a wish for a retry
// stay; only the instant changes, so that an owner that saw no row is refused.
func TestMoveUnreadableUnderAMarkerThatIsThere(t *testing.T) {
	onBoth(t, func(f fixture) {
		lease, row := f.held(), f.unreadable()
		retry := item{"RetryAtUtc": num(5)}
		f.put(row, f.parkedMarker(retry))
		seen := known
		seen.RetryAt = 5
		f.do(store.MoveUnreadable{Bucket: 3, Sequence: 8, Item: row, Token: "1",
			Marker: store.Marker{KeyID: keyID, Topic: "t", Reason: "no topic", ParkedAt: noon + 1}}, store.Done)
		f.refused(store.Unmark{Tenure: tenure, Marker: seen, Token: "2"}, store.MarkerRefused)
		retry["ParkedAtUtc"] = num(int64(noon) + 1)
		f.wantTable(lease, f.parkedMarker(retry), f.parkedRow(row, keyID))
	})
}

// Whatever somebody repaired since the row was read, the row is left alone: its owner
// may have published it.
func TestMoveUnreadableIsRefusedOnceTheRowHasChanged(t *testing.T) {
	onBoth(t, func(f fixture) {
		row := f.unreadable()
		r := store.MoveUnreadable{Bucket: 3, Sequence: 8, Item: row, Token: "1", Marker: store.Marker{KeyID: keyID, ParkedAt: noon}}
		for name, value := range map[string]types.AttributeValue{
			"Topic": str("t"), "Key": &types.AttributeValueMemberB{Value: []byte("k")}, "Value": nil, "Headers": nil, "Partition": num(1),
			"MessageId": str("x"), "BucketCount": num(9), "CreatedAtUtc": num(1),
		} {
			repaired := maps.Clone(row)
			if repaired[name] = value; value == nil {
				delete(repaired, name)
			}
			f.put(repaired)
			f.refused(r, store.RowRefused)
			f.wantTable(repaired)
		}
		f.put(row)
		f.do(r, store.Done)
	})
}

// A condition that fails is refused also when the SDK had tried before: a discard and a
// wish for a retry cannot tell their own repetition from somebody else's.
func TestOperatorsConditionsThatFail(t *testing.T) {
	api := failing(&types.ConditionalCheckFailedException{})
	for _, r := range requests() {
		switch r.(type) {
		case store.SetAside, store.AskRetry, store.DiscardParked:
			reply := store.NewClient(schemas["default"], api, nil).Do(t.Context(), r)
			if reply.Class != store.Refused || !errors.Is(reply.Err, store.ErrConditionFailed) {
				t.Errorf("%s: got %+v", r.RequestName(), reply)
			}
		}
	}
}

// boundless is a table whose count ends at something that is no row.
type boundless struct{ *memtable.DB }

func (boundless) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return &dynamodb.QueryOutput{LastEvaluatedKey: item{"SK": str("ROW#nonsense")}}, nil
}

// A count that cannot go on says so: it never comes out too low.
func TestACountThatCannotGoOn(t *testing.T) {
	reply := store.NewClient(schemas["default"], boundless{}, nil).Do(t.Context(), store.CountParked{Bucket: 3, KeyID: keyID, Limit: 1})
	if reply.Class != store.Retriable || reply.Result != nil {
		t.Errorf("got %+v", reply)
	}
}

// Traces print requests: without content, and the same each time although items are
// behind pointers.
func TestRequestsArePrintedWithoutContent(t *testing.T) {
	row := func() item {
		return item{"Value": &types.AttributeValueMemberB{Value: []byte("secret")}, "Topic": str("t")}
	}
	for _, build := range []func() store.Request{
		func() store.Request {
			message := outbox.Message{Topic: "t", Value: []byte("secret")}
			return store.Move{Tenure: tenure, Rows: []store.Moving{{KeyID: keyID, Row: outbox.Row{Sequence: 7, Message: message, Item: row()}}}}
		},
		func() store.Request {
			return store.MoveUnreadable{Bucket: 3, Sequence: 7, Item: row(), Marker: known, Token: "x"}
		},
	} {
		first, second := fmt.Sprintf("%+v", build()), fmt.Sprintf("%+v", build())
		if first != second || strings.Contains(first, "0x") || strings.Contains(first, "115 101") || !strings.Contains(first, keyID) {
			t.Errorf("got %s and %s", first, second)
		}
	}
}
