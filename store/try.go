package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Action is an action of the service, by its name in access policies.
type Action string

// The actions that a relay needs (protocol.md sections 3, 5 and 7). A transaction
// needs those of its parts; that of a check has no other request.
const (
	ActionQuery          Action = "dynamodb:Query"
	ActionPutItem        Action = "dynamodb:PutItem"
	ActionUpdateItem     Action = "dynamodb:UpdateItem"
	ActionDeleteItem     Action = "dynamodb:DeleteItem"
	ActionBatchWriteItem Action = "dynamodb:BatchWriteItem"
	ActionConditionCheck Action = "dynamodb:ConditionCheckItem"
)

// Actions are all of them.
func Actions() []Action {
	return []Action{ActionQuery, ActionPutItem, ActionUpdateItem, ActionDeleteItem, ActionBatchWriteItem, ActionConditionCheck}
}

// Try asks whether an action is permitted, with a request that cannot change
// anything: a write with a condition that no item fulfils, or, where the service
// takes no condition, the delete of an item that nobody ever writes. It is Done when
// the action is permitted, and has no result.
type Try struct{ Action Action }

// tried is what the requests of Try are about: an item that never exists.
const tried = "DOCTOR"

// RequestName implements Request.
func (Try) RequestName() string { return "try" }

// Lane implements Request.
func (Try) Lane() Lane { return Messages }

// Deadline implements Request: a person waits for it, not a lease.
func (Try) Deadline() Instant { return Instant{} }

// ConcernsBucket implements Request.
func (Try) ConcernsBucket() int { return -1 }

func (c *Client) try(ctx context.Context, api API, r Try) Reply {
	err := c.sendTry(ctx, api, r.Action)
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		// With one part, it was that part's condition, or that a part was not carried out.
		if len(cancelled.CancellationReasons) == 1 && aws.ToString(cancelled.CancellationReasons[0].Code) == "ConditionalCheckFailed" {
			return Reply{}
		}
		return Reply{Class: Retriable, Err: wrap(r, ErrUnavailable, err)}
	}
	if _, refused := refusedBy(err); refused || err == nil {
		return Reply{}
	}
	return failedWrite(r, err)
}

// sendTry sends the request of an action. Its error is the service's.
func (c *Client) sendTry(ctx context.Context, api API, action Action) error {
	table, key := &c.schema.Table, c.schema.Key(c.schema.KeyPrefix+"#"+tried, tried)
	never := aws.String("attribute_exists(#pk) AND attribute_not_exists(#pk)")
	names := map[string]string{"#pk": c.schema.PartitionKey}
	var err error
	switch action {
	case ActionQuery:
		_, err = api.Query(ctx, &dynamodb.QueryInput{
			TableName: table, Limit: aws.Int32(1), KeyConditionExpression: aws.String("#pk = :pk"), ExpressionAttributeNames: names,
			ExpressionAttributeValues: values{":pk": key[c.schema.PartitionKey]},
		})
	case ActionPutItem:
		_, err = api.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: key, ConditionExpression: never, ExpressionAttributeNames: names})
	case ActionUpdateItem:
		_, err = api.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: table, Key: key, ConditionExpression: never, ExpressionAttributeNames: names})
	case ActionDeleteItem:
		_, err = api.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: table, Key: key, ConditionExpression: never, ExpressionAttributeNames: names})
	case ActionBatchWriteItem:
		_, err = api.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
			*table: {{DeleteRequest: &types.DeleteRequest{Key: key}}},
		}})
	case ActionConditionCheck:
		_, err = api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
			ConditionCheck: &types.ConditionCheck{TableName: table, Key: key, ConditionExpression: never, ExpressionAttributeNames: names},
		}}})
	default:
		panic(fmt.Sprintf("store: unknown action %q", action))
	}
	return err
}
