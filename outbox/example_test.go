package outbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// An order and the message that tells of it are written together or not at all. The transaction is built
// inside of the loop: after a lost race, the state is read again, and the message gets a new number.
func ExampleWriter_Commit() {
	var api outbox.API = newFakeTable() // or dynamodb.NewFromConfig(cfg)
	writer, err := outbox.NewWriter(api, outbox.Options{
		Table:  "outbox",
		Notify: func(buckets ...int) { fmt.Println("committed into", len(buckets), "bucket") }, // or relay.Notify
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	message := outbox.NewMessage("orders", []byte("order-7"), []byte(`{"state":"placed"}`))
	message.Headers = []outbox.Header{{Key: "content-type", Value: []byte("application/json")}}
	for attempt := 1; attempt <= 3; attempt++ {
		err = writer.Commit(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Put: &types.Put{
				TableName: aws.String("orders"),
				Item: map[string]types.AttributeValue{
					"PK":    &types.AttributeValueMemberS{Value: "ORDER#7"},
					"SK":    &types.AttributeValueMemberS{Value: "ORDER"},
					"State": &types.AttributeValueMemberS{Value: "placed"},
				},
				ConditionExpression: aws.String("attribute_not_exists(PK)"),
			}}},
		}, message)
		var canceled *types.TransactionCanceledException
		switch {
		case err == nil:
			fmt.Println("order placed")
			return
		case errors.Is(err, outbox.ErrAmbiguous):
			fmt.Println("look whether the order is there:", err)
			return
		case errors.Is(err, outbox.ErrSequenceBehind), !errors.As(err, &canceled):
			fmt.Println("not placed:", err)
			return
		}
		fmt.Println("someone else was first; read again")
	}
	// Output:
	// committed into 1 bucket
	// order placed
}

// Messages that no business write goes with are stored all or none.
func ExampleWriter_Enqueue() {
	writer, err := outbox.NewWriter(newFakeTable(), outbox.Options{Table: "outbox"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = writer.Enqueue(context.Background(),
		outbox.NewMessage("prices", []byte("apple"), []byte("120")),
		outbox.NewMessage("prices", []byte("pear"), nil), // a tombstone
	)
	fmt.Println(err)
	// Output: <nil>
}
