package memtable

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Limits of a transaction.
const (
	maxTransaction      = 100
	maxTransactionBytes = 4 * 1024 * 1024
	tokenLifetime       = 10 * time.Minute
)

// tokens remembers the transactions that succeeded under a client request
// token.
type tokens struct {
	byToken map[string]transaction
	order   []string // oldest first
}

type transaction struct {
	request fingerprint
	at      time.Duration
}

// find forgets what is too old and then looks the token up.
func (t *tokens) find(token string, now time.Duration) (transaction, bool) {
	for len(t.order) > 0 && now-t.byToken[t.order[0]].at >= tokenLifetime {
		delete(t.byToken, t.order[0])
		t.order = t.order[1:]
	}
	known, found := t.byToken[token]
	return known, found
}

func (t *tokens) remember(token string, x transaction) {
	if t.byToken == nil {
		t.byToken = make(map[string]transaction)
	}
	t.byToken[token] = x
	t.order = append(t.order, token)
}

// TransactWriteItems applies all writes or none. A repeated token with the
// same items is a success that changes nothing, for ten minutes after the
// first; with other items it is an IdempotentParameterMismatchException. A
// cancelled transaction is not remembered.
func (db *DB) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return call(ctx, db, "TransactWriteItems", func() (*dynamodb.TransactWriteItemsOutput, error) {
		if err := demand("TransactWriteItems", required{"TransactItems", in.TransactItems != nil}); err != nil {
			return nil, err
		}
		parts, err := partsOf(in.TransactItems)
		if err != nil {
			return nil, err
		}
		writes, err := db.transaction(parts)
		if err != nil {
			return nil, err
		}
		token, now := aws.ToString(in.ClientRequestToken), db.options.Now()
		var request fingerprint
		if token != "" {
			request = fingerprintOf(parts)
			if known, found := db.tokens.find(token, now); found {
				if known.request != request {
					return nil, &types.IdempotentParameterMismatchException{Message: aws.String(
						"Request parameters do not match those of an earlier request with the same client token")}
				}
				return repeated(in.ReturnConsumedCapacity, writes), nil
			}
		}
		changes, err := tryAll(writes)
		if err != nil {
			return nil, err
		}
		cost := newBill(in.ReturnConsumedCapacity)
		for _, c := range changes {
			c.apply()
			cost.add(c.write.table.name(), 2*c.units())
		}
		if token != "" {
			db.tokens.remember(token, transaction{request, now})
		}
		return &dynamodb.TransactWriteItemsOutput{ConsumedCapacity: written(cost)}, nil
	})
}

// written reports a transaction's cost, which names the write units again.
func written(cost bill) []types.ConsumedCapacity {
	all := cost.tables()
	for i := range all {
		all[i].WriteCapacityUnits = aws.Float64(*all[i].CapacityUnits)
	}
	return all
}

// repeated answers a known token: nothing is written, the items are read.
func repeated(wanted types.ReturnConsumedCapacity, writes []*write) *dynamodb.TransactWriteItemsOutput {
	cost := newBill(wanted)
	for _, w := range writes {
		size := 0
		if r := w.table.row(w.key); r != nil {
			size = r.size
		}
		cost.add(w.table.name(), 2*units(size, readUnitBytes))
	}
	all := cost.tables()
	for i := range all {
		all[i].ReadCapacityUnits = aws.Float64(*all[i].CapacityUnits)
	}
	return &dynamodb.TransactWriteItemsOutput{ConsumedCapacity: all}
}

// transaction makes the writes of a request and refuses what the service
// refuses before it looks at any item.
func (db *DB) transaction(parts []part) ([]*write, error) {
	writes := make([]*write, 0, len(parts))
	for _, p := range parts {
		w, err := p.write(db)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(writes, w.meets) {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		writes = append(writes, w)
	}
	return writes, nil
}

// tryAll tries every write on the items as they are now. If one is refused,
// all are, with a reason each.
func tryAll(writes []*write) ([]change, error) {
	changes := make([]change, len(writes))
	faults := make([]error, len(writes))
	refused, size := false, 0
	for i, w := range writes {
		changes[i], faults[i] = w.try()
		refused = refused || faults[i] != nil
		if w.next != nil {
			size += changes[i].after.size
		}
	}
	if refused {
		reasons := make([]types.CancellationReason, len(writes))
		for i, fault := range faults {
			reasons[i] = reason(fault)
		}
		return nil, cancelled(reasons)
	}
	if size > maxTransactionBytes {
		return nil, invalid("Transaction is too large: the items have %d bytes, the limit is %d", size, maxTransactionBytes)
	}
	return changes, nil
}

// reason says in a transaction's terms how one write fared.
func reason(err error) types.CancellationReason {
	var condition *types.ConditionalCheckFailedException
	var service smithy.APIError
	switch {
	case err == nil:
		return types.CancellationReason{Code: aws.String("None")}
	case errors.As(err, &condition):
		return types.CancellationReason{
			Code: aws.String("ConditionalCheckFailed"), Message: condition.Message, Item: condition.Item}
	case errors.As(err, &service):
		return types.CancellationReason{Code: aws.String("ValidationError"), Message: aws.String(service.ErrorMessage())}
	}
	return types.CancellationReason{Code: aws.String("ValidationError"), Message: aws.String(err.Error())}
}
