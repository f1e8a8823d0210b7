package outbox_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// order is a business item that must not exist yet.
func order(id string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: aws.String("orders"), Item: item{"PK": text("ORDER"), "SK": text(id)},
		ConditionExpression: aws.String("attribute_not_exists(PK)"),
	}}
}

func transaction(items ...types.TransactWriteItem) *dynamodb.TransactWriteItemsInput {
	return &dynamodb.TransactWriteItemsInput{TransactItems: items}
}

func TestCommitWritesItemsAndMessagesTogether(t *testing.T) {
	table := newFakeTable()
	w, notes := newWriter(t, table)
	a, b := messageIn(6), messageIn(2)
	if err := w.Commit(t.Context(), transaction(order("1"), order("2")), a, b); err != nil {
		t.Fatal(err)
	}
	sent := table.transactions[0]
	if len(table.transactions) != 1 || len(sent.TransactItems) != 4 {
		t.Fatalf("%d transactions, %d items in the first", len(table.transactions), len(sent.TransactItems))
	}
	for i, want := range []item{
		order("1").Put.Item, order("2").Put.Item, schema.EncodeMessage(a, 6, 1), schema.EncodeMessage(b, 2, 1),
	} {
		if !reflect.DeepEqual(sent.TransactItems[i].Put.Item, want) {
			t.Errorf("item %d is %v, want %v", i, sent.TransactItems[i].Put.Item, want)
		}
	}
	if !reflect.DeepEqual(notes.calls, [][]int{{2, 6}}) {
		t.Errorf("notified %v", notes.calls)
	}
}

// The caller may send its own request again without Commit, or build on it: it stays as it was.
func TestCommitLeavesTheCallersRequestAlone(t *testing.T) {
	table := newFakeTable()
	w, _ := newWriter(t, table)
	items := append(make([]types.TransactWriteItem, 0, 10), order("1")) // with room to be appended to
	in := transaction(items...)
	in.TransactItems = items
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	if err := w.Commit(t.Context(), in, messageIn(0)); err != nil {
		t.Fatal(err)
	}
	if len(in.TransactItems) != 1 || in.ClientRequestToken != nil || items[:2][1].Put != nil {
		t.Errorf("the request became %+v", in)
	}
	if table.transactions[0].ReturnConsumedCapacity != types.ReturnConsumedCapacityTotal {
		t.Error("the caller's other settings were not sent")
	}
}

func TestCommitHasATokenOfItsOwnUnlessGivenOne(t *testing.T) {
	table := newFakeTable()
	w, _ := newWriter(t, table)
	given := transaction(order("3"))
	given.ClientRequestToken = aws.String("mine")
	for i, in := range []*dynamodb.TransactWriteItemsInput{transaction(order("1")), transaction(order("2")), given} {
		if err := w.Commit(t.Context(), in, messageIn(0)); err != nil {
			t.Fatal(i, err)
		}
	}
	first := aws.ToString(table.transactions[0].ClientRequestToken)
	second := aws.ToString(table.transactions[1].ClientRequestToken)
	if first == "" || len(first) > 36 || first == second {
		t.Errorf("tokens %q and %q, want two of 1 to 36 characters", first, second)
	}
	if got := aws.ToString(table.transactions[2].ClientRequestToken); got != "mine" {
		t.Errorf("token %q, want the caller's", got)
	}
}

func TestCommitWithoutMessagesSendsTheTransaction(t *testing.T) {
	table := newFakeTable()
	w, notes := newWriter(t, table)
	if err := w.Commit(t.Context(), transaction(order("1"))); err != nil {
		t.Fatal(err)
	}
	if len(table.transactions) != 1 || len(table.reservations) != 0 || len(notes.calls) != 0 {
		t.Errorf("%d transactions, %d reservations, notified %v", len(table.transactions), len(table.reservations), notes.calls)
	}
	var canceled *types.TransactionCanceledException
	if err := w.Commit(t.Context(), transaction(order("1"))); !errors.As(err, &canceled) {
		t.Errorf("a refused one without messages: got %v", err)
	}
	if err := w.Commit(t.Context(), transaction()); err != nil || len(table.transactions) != 2 {
		t.Errorf("one without any item: %v, %d sent", err, len(table.transactions))
	}
	if err := w.Commit(t.Context(), nil, messageIn(0)); err == nil {
		t.Error("no transaction at all is accepted")
	}
}

// The caller finds its refused item by its own index, and nobody is notified of what was not written.
func TestBusinessRefusalReachesTheCaller(t *testing.T) {
	table := newFakeTable()
	w, notes := newWriter(t, table)
	table.items["ORDER 2"] = order("2").Put.Item
	err := w.Commit(t.Context(), transaction(order("1"), order("2")), messageIn(0))
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || aws.ToString(canceled.CancellationReasons[1].Code) != "ConditionalCheckFailed" {
		t.Fatalf("got %v", err)
	}
	for _, sentinel := range []error{outbox.ErrAmbiguous, outbox.ErrSequenceBehind} {
		if errors.Is(err, sentinel) {
			t.Errorf("%v is not what happened: %v", sentinel, err)
		}
	}
	if len(notes.calls) != 0 || len(table.ids(t, 0)) != 0 {
		t.Errorf("notified %v, stored %v", notes.calls, table.ids(t, 0))
	}
}

// Case O-06. W1 reserves for v1 of an order and loses the race to W2, which commits v2. When W1 repeats
// with what it read anew, v3, its message must come after v2's, although W1 reserved first.
func TestRepeatedCommitSortsBehindTheOneThatWon(t *testing.T) {
	table := newFakeTable()
	w1, _ := newWriter(t, table)
	w2, _ := newWriter(t, table)
	v2, v3 := messageIn(4), messageIn(4)
	conflict := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{
		{Code: aws.String("TransactionConflict")}, {Code: aws.String("None")},
	}}
	table.answers = []answer{failing(conflict)}
	if err := w1.Commit(t.Context(), transaction(order("1")), v3); !errors.Is(err, conflict) {
		t.Fatalf("got %v, want the conflict", err)
	}
	if err := w2.Commit(t.Context(), transaction(order("1")), v2); err != nil {
		t.Fatal(err)
	}
	if err := w1.Commit(t.Context(), transaction(order("2")), v3); err != nil {
		t.Fatal(err)
	}
	if got, want := table.ids(t, 4), []string{v2.ID.String(), v3.ID.String()}; !reflect.DeepEqual(got, want) {
		t.Errorf("order in the bucket %v, want %v", got, want)
	}
	if _, ok := table.items["OUTBOX#MESSAGES#4 0000000000000000003"]; !ok {
		t.Error("the repetition did not reserve anew")
	}
}

// The items of TransactItems are sent by the caller, which then notifies.
func TestTransactItemsLeavesSendingToTheCaller(t *testing.T) {
	table := newFakeTable()
	w, notes := newWriter(t, table)
	messages := []outbox.Message{messageIn(5), messageIn(1), messageIn(5)}
	items, err := w.TransactItems(t.Context(), messages)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []item{
		schema.EncodeMessage(messages[0], 5, 1), schema.EncodeMessage(messages[1], 1, 1), schema.EncodeMessage(messages[2], 5, 2),
	} {
		if !reflect.DeepEqual(items[i].Put.Item, want) {
			t.Errorf("item %d: %v, want %v", i, items[i].Put.Item, want)
		}
	}
	if len(table.transactions)+len(table.puts)+len(notes.calls) != 0 {
		t.Error("something was written or notified")
	}
	w.NotifyCommitted(messages...)
	if !reflect.DeepEqual(notes.calls, [][]int{{1, 5}}) {
		t.Errorf("notified %v", notes.calls)
	}
	one, err := w.TransactItem(t.Context(), messages[1])
	if err != nil || !reflect.DeepEqual(one.Put.Item, schema.EncodeMessage(messages[1], 1, 2)) {
		t.Errorf("another attempt has item %v, %v, want a new number", one.Put, err)
	}
}

// A counter that was deleted hands out a number that a waiting row has. The business transaction fails
// rather than overwrite that row, and the error says what to repair, and where.
func TestResetCounterIsReportedForRepair(t *testing.T) {
	for name, enter := range entrances {
		if name == "TransactItems" {
			continue // sends nothing
		}
		table := newFakeTable()
		w, notes := newWriter(t, table)
		waiting := messageIn(3)
		if err := w.Enqueue(t.Context(), waiting); err != nil {
			t.Fatal(err)
		}
		notes.calls = nil
		delete(table.items, "OUTBOX#SEQUENCE#3 SEQUENCE")
		for count, messages := range map[string][]outbox.Message{"one": {messageIn(3)}, "two": {messageIn(2), messageIn(3)}} {
			delete(table.items, "OUTBOX#SEQUENCE#3 SEQUENCE")
			err := enter(t, w, messages...)
			if !errors.Is(err, outbox.ErrSequenceBehind) || errors.Is(err, outbox.ErrAmbiguous) {
				t.Fatalf("%s of %s: got %v", name, count, err)
			}
			for _, want := range []string{"bucket 3, number 1 ", waiting.ID.String(), "raise Sequence", "OUTBOX#SEQUENCE#3 SEQUENCE", "OUTBOX#MESSAGES#3", "relay doctor --repair-sequence --bucket 3"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s of %s: %q is not in %q", name, count, want, err)
				}
			}
		}
		if got := table.ids(t, 3); !reflect.DeepEqual(got, []string{waiting.ID.String()}) || len(notes.calls) != 0 {
			t.Errorf("%s: bucket has %v, notified %v", name, got, notes.calls)
		}
	}
}
