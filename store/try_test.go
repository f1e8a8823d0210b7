package store_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// What is tried is permitted, and leaves the table as it was, whatever is in it.
func TestTryingChangesNothing(t *testing.T) {
	onBoth(t, func(f fixture) {
		f.put(f.coordination(lease3, item{"Owner": str("A")}), f.coordination("RELAY#A", item{"LastSeenUtc": num(3)}))
		before := f.db.Items("orders")
		for _, action := range store.Actions() {
			f.do(store.Try{Action: action}, store.Done)
			if after := f.db.Items("orders"); !reflect.DeepEqual(after, before) {
				t.Errorf("%s: the table had %v, and has %v", action, before, after)
			}
		}
	})
}

// denying refuses all writes and reads of a table, as the service does for want of a
// permission.
type denying struct{ store.API }

var errDenied = &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized"}

func (denying) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return nil, errDenied
}
func (denying) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return nil, errDenied
}
func (denying) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, errDenied
}
func (denying) DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return nil, errDenied
}
func (denying) BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return nil, errDenied
}
func (denying) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return nil, errDenied
}

func TestTryingWhatIsNotPermitted(t *testing.T) {
	client := store.NewClient(outbox.Schema{Table: "orders"}, denying{}, denying{})
	for _, action := range store.Actions() {
		reply := client.Do(t.Context(), store.Try{Action: action})
		if reply.Class != store.Retriable || !errors.Is(reply.Err, store.ErrDenied) {
			t.Errorf("%s: %s, %v", action, reply.Class, reply.Err)
		}
	}
}

func TestTryingInATableThatIsNotThere(t *testing.T) {
	f := newFixture(t, outbox.Schema{Table: "orders"})
	client := store.NewClient(outbox.Schema{Table: "none"}, f.db, f.db)
	for _, action := range store.Actions() {
		if reply := client.Do(t.Context(), store.Try{Action: action}); !errors.Is(reply.Err, store.ErrTableMissing) {
			t.Errorf("%s: %s, %v", action, reply.Class, reply.Err)
		}
	}
}
