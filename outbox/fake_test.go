package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// fakeTable keeps the items of a table with the key attributes PK and SK, and answers the three requests
// of a Writer. The only condition that it knows is the Writer's own, that the item does not exist; a put
// of the test's with any condition means the same. A test may decide what becomes of a write, in answers.
type fakeTable struct {
	mu           sync.Mutex
	items        map[string]item // by the key's text
	reservations []*dynamodb.UpdateItemInput
	puts         []*dynamodb.PutItemInput
	transactions []*dynamodb.TransactWriteItemsInput
	answers      []answer // for the next puts and transactions; when used up, they are just applied
	reserving    func(context.Context) error
}

// answer decides about one write, which apply performs, as often as it is called.
type answer func(apply func() error) error

var errLost = errors.New("connection reset")

// lost applies the write, but the writer gets no answer.
func lost(apply func() error) error { return errors.Join(errLost, apply()) }

// repeated is what a writer sees when the SDK sent the write twice, the answer to the first was lost, and
// the token of the first is forgotten.
func repeated(apply func() error) error {
	if err := apply(); err != nil {
		return err
	}
	return apply()
}

// failing does not apply the write.
func failing(err error) answer { return func(func() error) error { return err } }

func newFakeTable() *fakeTable { return &fakeTable{items: make(map[string]item)} }

func keyText(key item) string {
	return key["PK"].(*types.AttributeValueMemberS).Value + " " + key["SK"].(*types.AttributeValueMemberS).Value
}

func (f *fakeTable) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if f.reserving != nil {
		if err := f.reserving(ctx); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reservations = append(f.reservations, in)
	if aws.ToString(in.UpdateExpression) != "ADD #sequence :n" || in.ExpressionAttributeNames["#sequence"] != "Sequence" ||
		in.ReturnValues != types.ReturnValueUpdatedNew {
		return nil, fmt.Errorf("not a reservation: %+v", in)
	}
	counter := maps.Clone(in.Key)
	var last int64
	if n, ok := f.items[keyText(in.Key)]["Sequence"].(*types.AttributeValueMemberN); ok {
		last, _ = strconv.ParseInt(n.Value, 10, 64)
	}
	n, err := strconv.ParseInt(in.ExpressionAttributeValues[":n"].(*types.AttributeValueMemberN).Value, 10, 64)
	if err != nil {
		return nil, err
	}
	counter["Sequence"] = number(strconv.FormatInt(last+n, 10))
	f.items[keyText(in.Key)] = counter
	return &dynamodb.UpdateItemOutput{Attributes: item{"Sequence": counter["Sequence"]}}, nil
}

func (f *fakeTable) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.puts = append(f.puts, in)
	return &dynamodb.PutItemOutput{}, f.answer(func() error {
		reason := f.refusal(in.ConditionExpression, in.Item, in.ReturnValuesOnConditionCheckFailure)
		if reason.Code != nil {
			return &types.ConditionalCheckFailedException{Item: reason.Item}
		}
		f.items[keyText(in.Item)] = in.Item
		return nil
	})
}

func (f *fakeTable) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.transactions = append(f.transactions, in)
	return &dynamodb.TransactWriteItemsOutput{}, f.answer(func() error {
		canceled := &types.TransactionCanceledException{}
		refused := false
		for _, i := range in.TransactItems {
			reason := f.refusal(i.Put.ConditionExpression, i.Put.Item, i.Put.ReturnValuesOnConditionCheckFailure)
			refused = refused || reason.Code != nil
			if reason.Code == nil {
				reason.Code = aws.String("None")
			}
			canceled.CancellationReasons = append(canceled.CancellationReasons, reason)
		}
		if refused {
			return canceled
		}
		for _, i := range in.TransactItems {
			f.items[keyText(i.Put.Item)] = i.Put.Item
		}
		return nil
	})
}

func (f *fakeTable) answer(apply func() error) error {
	if len(f.answers) == 0 {
		return apply()
	}
	next := f.answers[0]
	f.answers = f.answers[1:]
	return next(apply)
}

func (f *fakeTable) refusal(condition *string, key item, values types.ReturnValuesOnConditionCheckFailure) types.CancellationReason {
	old, exists := f.items[keyText(key)]
	if condition == nil || !exists {
		return types.CancellationReason{}
	}
	reason := types.CancellationReason{Code: aws.String("ConditionalCheckFailed")}
	if values == types.ReturnValuesOnConditionCheckFailureAllOld {
		reason.Item = old
	}
	return reason
}

// ids are the message ids of a bucket's rows, in the order of their numbers.
func (f *fakeTable) ids(t *testing.T, bucket int) (ids []string) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(f.items)) {
		if !strings.HasPrefix(key, schema.MessagesKey(bucket)+" ") {
			continue
		}
		decoded, err := schema.DecodeMessage(f.items[key])
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, decoded.Message.ID.String())
	}
	return ids
}

// notes records what was notified.
type notes struct{ calls [][]int }

func (n *notes) notify(buckets ...int) { n.calls = append(n.calls, buckets) }

func newWriter(t *testing.T, api outbox.API) (*outbox.Writer, *notes) {
	t.Helper()
	var n notes
	w, err := outbox.NewWriter(api, outbox.Options{Table: "table", Notify: n.notify})
	if err != nil {
		t.Fatal(err)
	}
	return w, &n
}

// messageIn is a new message that belongs into the bucket, by its partition.
func messageIn(bucket int32) outbox.Message {
	m := outbox.NewMessage("orders", []byte("k"), []byte("v"))
	m.Partition = &bucket
	return m
}
