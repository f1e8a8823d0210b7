package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// topic is where the events of orders go.
const topic = "orders.events"

// attempts is how often a change is tried when others change the same order.
const attempts = 5

// errConflict says that the order was changed by somebody else again and again.
var errConflict = errors.New("order is changed by others all the time")

// table is what the service needs of DynamoDB: *dynamodb.Client fits.
type table interface {
	outbox.API
	Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// orders is the service: it keeps orders, one item each, and says what happens
// to them on a topic. Item and message are written in one transaction, so that
// there is never one without the other.
type orders struct {
	db     table
	name   string // of the table
	writer *outbox.Writer
}

// place stores a new order and the message that it was placed.
func (s *orders) place(ctx context.Context, id string, total int) error {
	item := key(id)
	item["Total"] = number(total)
	item["Status"] = &types.AttributeValueMemberS{Value: "placed"}
	item["Version"] = number(1)
	in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{
		TableName:           &s.name,
		Item:                item,
		ConditionExpression: aws.String("attribute_not_exists(PK)"),
	}}}}
	placed := outbox.NewMessage(topic, []byte(id), fmt.Appendf(nil, `{"event":"placed","total":%d}`, total))
	if err := s.writer.Commit(ctx, in, placed); err != nil {
		return fmt.Errorf("place order %s: %w", id, err)
	}
	return nil
}

// pay marks an order as paid, and says so. It reads the order, and changes it
// on condition that nobody else has in the meantime: otherwise it begins again
// from reading. Transaction and message are built again for each attempt, since
// a message must get its place in the order of its key after the change that
// won, not before.
//
// After outbox.ErrAmbiguous, the order itself tells whether it was paid, and the
// message is there if and only if it was.
func (s *orders) pay(ctx context.Context, id string) error {
	for range attempts {
		version, err := s.version(ctx, id)
		if err != nil {
			return fmt.Errorf("pay order %s: %w", id, err)
		}
		in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Update: &types.Update{
			TableName:                &s.name,
			Key:                      key(id),
			UpdateExpression:         aws.String("SET #status = :paid, Version = :next"),
			ConditionExpression:      aws.String("Version = :seen"),
			ExpressionAttributeNames: map[string]string{"#status": "Status"},
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":paid": &types.AttributeValueMemberS{Value: "paid"}, ":next": number(version + 1), ":seen": number(version),
			},
		}}}}
		err = s.writer.Commit(ctx, in, outbox.NewMessage(topic, []byte(id), []byte(`{"event":"paid"}`)))
		switch {
		case err == nil:
			return nil
		case !wasChanged(err):
			return fmt.Errorf("pay order %s: %w", id, err)
		}
	}
	return fmt.Errorf("pay order %s: %w", id, errConflict)
}

// wasChanged tells whether a transaction failed since its condition did, or
// since another transaction holds one of its items. The errors that are looked for
// first wrap the service's own: after the one the change may be stored, the other
// says that the outbox needs a repair. Neither is a reason to begin again.
func wasChanged(err error) bool {
	if errors.Is(err, outbox.ErrAmbiguous) || errors.Is(err, outbox.ErrSequenceBehind) {
		return false
	}
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return false
	}
	for _, reason := range cancelled.CancellationReasons {
		if code := aws.ToString(reason.Code); code == "ConditionalCheckFailed" || code == "TransactionConflict" {
			return true
		}
	}
	return false
}

// version reads the version of an order.
func (s *orders) version(ctx context.Context, id string) (int, error) {
	out, err := s.db.Query(ctx, &dynamodb.QueryInput{
		TableName:              &s.name,
		ConsistentRead:         aws.Bool(true),
		KeyConditionExpression: aws.String("PK = :pk AND SK = :sk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk": key(id)["PK"], ":sk": key(id)["SK"],
		},
	})
	switch {
	case err != nil:
		return 0, err
	case len(out.Items) == 0:
		return 0, errors.New("there is no such order")
	}
	version, ok := out.Items[0]["Version"].(*types.AttributeValueMemberN)
	if !ok {
		return 0, errors.New("the order has no version")
	}
	return strconv.Atoi(version.Value)
}

// key is the primary key of an order's item. Orders share the table with the
// outbox, whose keys begin with its prefix, OUTBOX.
func key(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: "ORDER#" + id},
		"SK": &types.AttributeValueMemberS{Value: "ORDER"},
	}
}

func number(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}
