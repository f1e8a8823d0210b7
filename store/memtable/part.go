package memtable

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// part is one operation of a transaction, of whichever kind.
type part struct {
	kind       partKind
	table      *string
	attributes item // the item of a put, else the key
	update     *string
	condition  conditionParameters
}

type partKind string

const (
	putPart    partKind = "Put"
	updatePart partKind = "Update"
	deletePart partKind = "Delete"
	checkPart  partKind = "ConditionCheck"
)

// partsOf reads the items of a transaction, each of which has exactly one
// operation.
func partsOf(items []types.TransactWriteItem) ([]part, error) {
	if len(items) == 0 || len(items) > maxTransaction {
		return nil, invalid("Member must have length less than or equal to %d and greater than or equal to 1", maxTransaction)
	}
	parts := make([]part, len(items))
	for i, one := range items {
		given := 0
		if parts[i], given = operation(one); given != 1 {
			return nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
		}
	}
	return parts, nil
}

// operation reads an item's operation, the last one if several are given.
func operation(one types.TransactWriteItem) (last part, given int) {
	if p := one.Put; p != nil {
		last, given = part{putPart, p.TableName, p.Item, nil, conditionParameters{
			p.ConditionExpression, p.ExpressionAttributeNames, p.ExpressionAttributeValues, p.ReturnValuesOnConditionCheckFailure}}, given+1
	}
	if u := one.Update; u != nil {
		last, given = part{updatePart, u.TableName, u.Key, u.UpdateExpression, conditionParameters{
			u.ConditionExpression, u.ExpressionAttributeNames, u.ExpressionAttributeValues, u.ReturnValuesOnConditionCheckFailure}}, given+1
	}
	if d := one.Delete; d != nil {
		last, given = part{deletePart, d.TableName, d.Key, nil, conditionParameters{
			d.ConditionExpression, d.ExpressionAttributeNames, d.ExpressionAttributeValues, d.ReturnValuesOnConditionCheckFailure}}, given+1
	}
	if c := one.ConditionCheck; c != nil {
		last, given = part{checkPart, c.TableName, c.Key, nil, conditionParameters{
			c.ConditionExpression, c.ExpressionAttributeNames, c.ExpressionAttributeValues, c.ReturnValuesOnConditionCheckFailure}}, given+1
	}
	return last, given
}

func (p part) write(db *DB) (*write, error) {
	switch p.kind {
	case putPart:
		return db.put(p.table, p.attributes, p.condition)
	case updatePart:
		w, _, err := db.update(p.table, p.attributes, p.update, p.condition)
		return w, err
	case deletePart:
		return db.delete(p.table, p.attributes, p.condition)
	}
	return db.check(p.table, p.attributes, p.condition)
}
