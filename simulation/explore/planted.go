package explore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/store/memtable"
)

// planted stands between the store and the table, which lives for one request. It
// knows transactions of before by their tokens, refuses writes to items that another
// transaction is changing, and changes conditions where a test has planted a bug.
type planted struct {
	*memtable.DB
	tables  *tables
	to      *table
	code    string // of the request
	applied []applied
}

func (p *planted) edit(condition, update *string) *string {
	if p.tables.plant.condition == nil || condition == nil {
		return condition
	}
	edited := p.tables.plant.condition(aws.ToString(update), *condition)
	if edited == "" {
		return nil
	}
	return &edited
}

// busy is the error of a write to an item that a transaction is changing.
func (p *planted) busy(key item) error {
	if !p.to.veil.hides(p.tables.keyOf(key)) {
		return nil
	}
	return &types.TransactionConflictException{Message: aws.String("a transaction is changing the item")}
}

// PutItem implements store.API.
func (p *planted) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if err := p.busy(in.Item); err != nil {
		return nil, err
	}
	in.ConditionExpression = p.edit(in.ConditionExpression, nil)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = used(in.ConditionExpression, nil, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	return p.DB.PutItem(ctx, in, opts...)
}

// UpdateItem implements store.API.
func (p *planted) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := p.busy(in.Key); err != nil {
		return nil, err
	}
	in.ConditionExpression = p.edit(in.ConditionExpression, in.UpdateExpression)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = used(in.ConditionExpression, in.UpdateExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	return p.DB.UpdateItem(ctx, in, opts...)
}

// DeleteItem implements store.API.
func (p *planted) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	if err := p.busy(in.Key); err != nil {
		return nil, err
	}
	in.ConditionExpression = p.edit(in.ConditionExpression, nil)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = used(in.ConditionExpression, nil, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	return p.DB.DeleteItem(ctx, in, opts...)
}

// BatchWriteItem implements store.API.
func (p *planted) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	for _, write := range in.RequestItems[p.tables.schema.Table] {
		if err := p.busy(write.DeleteRequest.Key); err != nil {
			return nil, err
		}
	}
	return p.DB.BatchWriteItem(ctx, in, opts...)
}

// TransactWriteItems implements store.API.
func (p *planted) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	token := aws.ToString(in.ClientRequestToken)
	if i := slices.IndexFunc(p.applied, func(one applied) bool { return one.token == token }); i >= 0 {
		switch {
		case p.applied[i].request != p.code:
			return nil, &types.IdempotentParameterMismatchException{}
		case p.to.veil.token == token:
			return nil, &types.TransactionInProgressException{}
		}
		return &dynamodb.TransactWriteItemsOutput{}, nil
	}
	for i := range in.TransactItems {
		p.editItem(&in.TransactItems[i])
	}
	if err := p.conflict(ctx, in); err != nil {
		return nil, err
	}
	out, err := p.DB.TransactWriteItems(ctx, in, opts...)
	if err == nil && !p.tables.plant.forgetful {
		p.applied = append(slices.Clone(p.applied), applied{token, p.code})
	}
	return out, err
}

// conflict is the error of a transaction with an item that another one is changing.
// The others of its items are looked at all the same.
func (p *planted) conflict(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
	touched := make([]bool, len(in.TransactItems))
	for i, one := range in.TransactItems {
		touched[i] = p.to.veil.hides(p.tables.keyOf(keyIn(one)))
	}
	if !slices.Contains(touched, true) {
		return nil
	}
	reasons := make([]types.CancellationReason, len(touched))
	_, err := p.tables.fill(p.to.items).TransactWriteItems(ctx, in)
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		reasons = cancelled.CancellationReasons
	}
	for i := range reasons {
		if touched[i] {
			reasons[i] = types.CancellationReason{Code: aws.String("TransactionConflict")}
		}
	}
	return &types.TransactionCanceledException{CancellationReasons: reasons}
}

// keyIn is an item with the keys of what one part of a transaction is about.
func keyIn(one types.TransactWriteItem) item {
	switch {
	case one.ConditionCheck != nil:
		return one.ConditionCheck.Key
	case one.Put != nil:
		return one.Put.Item
	case one.Delete != nil:
		return one.Delete.Key
	default:
		return one.Update.Key
	}
}

// editItem changes the condition of one part of a transaction.
func (p *planted) editItem(one *types.TransactWriteItem) {
	if p.tables.plant.condition == nil {
		return
	}
	switch {
	case one.ConditionCheck != nil:
		c := one.ConditionCheck
		c.ConditionExpression = p.edit(c.ConditionExpression, nil)
		c.ExpressionAttributeNames, c.ExpressionAttributeValues = used(c.ConditionExpression, nil, c.ExpressionAttributeNames, c.ExpressionAttributeValues)
	case one.Put != nil:
		c := one.Put
		c.ConditionExpression = p.edit(c.ConditionExpression, nil)
		c.ExpressionAttributeNames, c.ExpressionAttributeValues = used(c.ConditionExpression, nil, c.ExpressionAttributeNames, c.ExpressionAttributeValues)
	case one.Delete != nil:
		c := one.Delete
		c.ConditionExpression = p.edit(c.ConditionExpression, nil)
		c.ExpressionAttributeNames, c.ExpressionAttributeValues = used(c.ConditionExpression, nil, c.ExpressionAttributeNames, c.ExpressionAttributeValues)
	case one.Update != nil:
		c := one.Update
		c.ConditionExpression = p.edit(c.ConditionExpression, c.UpdateExpression)
		c.ExpressionAttributeNames, c.ExpressionAttributeValues = used(c.ConditionExpression, c.UpdateExpression, c.ExpressionAttributeNames, c.ExpressionAttributeValues)
	}
}

// used are the names and values that the expressions still mention: the service
// refuses others.
func used(condition, update *string, names map[string]string, values map[string]types.AttributeValue) (map[string]string, map[string]types.AttributeValue) {
	text := ""
	for _, expression := range []*string{condition, update} {
		if expression != nil {
			text += *expression + " "
		}
	}
	keptNames, keptValues := map[string]string{}, map[string]types.AttributeValue{}
	for name, attribute := range names {
		if strings.Contains(text, name) {
			keptNames[name] = attribute
		}
	}
	for name, value := range values {
		if strings.Contains(text, name) {
			keptValues[name] = value
		}
	}
	if len(keptNames) == 0 {
		keptNames = nil
	}
	if len(keptValues) == 0 {
		keptValues = nil
	}
	return keptNames, keptValues
}
