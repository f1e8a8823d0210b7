package memtable

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// PutItem stores an item, replacing the one with its key, if the condition
// holds. It returns nothing or, for ALL_OLD, the item before.
func (db *DB) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return call(ctx, db, "PutItem", func() (*dynamodb.PutItemOutput, error) {
		if err := demand("PutItem", required{"TableName", in.TableName != nil}, required{"Item", in.Item != nil}); err != nil {
			return nil, err
		}
		if in.Expected != nil || in.ConditionalOperator != "" {
			return nil, unserved("Expected")
		}
		if err := oldOrNone(in.ReturnValues); err != nil {
			return nil, err
		}
		w, err := db.put(in.TableName, in.Item, conditionParameters{
			in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues,
			in.ReturnValuesOnConditionCheckFailure})
		if err != nil {
			return nil, err
		}
		c, err := w.try()
		if err != nil {
			return nil, err
		}
		c.apply()
		out := &dynamodb.PutItemOutput{
			ConsumedCapacity: consumed(in.ReturnConsumedCapacity, *in.TableName, c.units()),
		}
		if in.ReturnValues == types.ReturnValueAllOld {
			out.Attributes = clone(c.before.item)
		}
		return out, nil
	})
}

// DeleteItem removes an item if the condition holds; one that is not there is
// a success. It returns nothing or, for ALL_OLD, the item before.
func (db *DB) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return call(ctx, db, "DeleteItem", func() (*dynamodb.DeleteItemOutput, error) {
		if err := demand("DeleteItem", required{"TableName", in.TableName != nil}, required{"Key", in.Key != nil}); err != nil {
			return nil, err
		}
		if in.Expected != nil || in.ConditionalOperator != "" {
			return nil, unserved("Expected")
		}
		if err := oldOrNone(in.ReturnValues); err != nil {
			return nil, err
		}
		w, err := db.delete(in.TableName, in.Key, conditionParameters{
			in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues,
			in.ReturnValuesOnConditionCheckFailure})
		if err != nil {
			return nil, err
		}
		c, err := w.try()
		if err != nil {
			return nil, err
		}
		c.apply()
		out := &dynamodb.DeleteItemOutput{
			ConsumedCapacity: consumed(in.ReturnConsumedCapacity, *in.TableName, c.units()),
		}
		if in.ReturnValues == types.ReturnValueAllOld {
			out.Attributes = clone(c.before.item)
		}
		return out, nil
	})
}

// UpdateItem changes an item, or begins one that is not there, if the
// condition holds. It returns what ReturnValues asks for.
func (db *DB) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return call(ctx, db, "UpdateItem", func() (*dynamodb.UpdateItemOutput, error) {
		if err := demand("UpdateItem", required{"TableName", in.TableName != nil}, required{"Key", in.Key != nil}); err != nil {
			return nil, err
		}
		if in.Expected != nil || in.ConditionalOperator != "" || in.AttributeUpdates != nil {
			return nil, unserved("Expected and AttributeUpdates")
		}
		w, u, err := db.update(in.TableName, in.Key, in.UpdateExpression, conditionParameters{
			in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues,
			in.ReturnValuesOnConditionCheckFailure})
		if err != nil {
			return nil, err
		}
		c, err := w.try()
		if err != nil {
			return nil, err
		}
		attributes, err := returned(in.ReturnValues, c, u)
		if err != nil {
			return nil, err
		}
		c.apply()
		return &dynamodb.UpdateItemOutput{
			Attributes:       attributes,
			ConsumedCapacity: consumed(in.ReturnConsumedCapacity, *in.TableName, c.units()),
		}, nil
	})
}

// oldOrNone refuses the ReturnValues that only an update knows.
func oldOrNone(wanted types.ReturnValue) error {
	switch wanted {
	case "", types.ReturnValueNone, types.ReturnValueAllOld:
		return nil
	}
	return invalid("Return values set to invalid value")
}

// returned picks the attributes that an update answers with, nil for none.
func returned(wanted types.ReturnValue, c change, u *update) (item, error) {
	var targets []path
	if u != nil {
		targets = u.targets
	}
	switch wanted {
	case "", types.ReturnValueNone:
		return nil, nil
	case types.ReturnValueAllOld:
		return clone(c.before.item), nil
	case types.ReturnValueAllNew:
		return clone(c.after.item), nil
	case types.ReturnValueUpdatedOld:
		return someOrNil(project(c.before.item, targets)), nil
	case types.ReturnValueUpdatedNew:
		return someOrNil(project(c.after.item, targets)), nil
	}
	return nil, invalid("Return values set to invalid value")
}

func someOrNil(attributes item) item {
	if len(attributes) == 0 {
		return nil
	}
	return attributes
}

// GetItem reads one item; nil attributes when it is not there.
func (db *DB) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return call(ctx, db, "GetItem", func() (*dynamodb.GetItemOutput, error) {
		if err := demand("GetItem", required{"TableName", in.TableName != nil}, required{"Key", in.Key != nil}); err != nil {
			return nil, err
		}
		if in.AttributesToGet != nil {
			return nil, unserved("AttributesToGet")
		}
		t, err := db.table(in.TableName)
		if err != nil {
			return nil, err
		}
		b, err := db.bind(in.ExpressionAttributeNames, nil)
		if err != nil {
			return nil, err
		}
		paths, err := b.projection(in.ProjectionExpression)
		if err != nil {
			return nil, err
		}
		if err := b.complete(); err != nil {
			return nil, err
		}
		w := &write{table: t}
		if _, err := w.address(in.Key); err != nil {
			return nil, err
		}
		var found sized
		if r := t.row(w.key); r != nil {
			found = r.sized
		}
		out := &dynamodb.GetItemOutput{ConsumedCapacity: consumed(in.ReturnConsumedCapacity, aws.ToString(in.TableName),
			readUnits(found.size, in.ConsistentRead))}
		switch {
		case found.item == nil:
		case paths != nil:
			out.Item = project(found.item, paths)
		default:
			out.Item = db.outgoing(found.item)
		}
		return out, nil
	})
}
