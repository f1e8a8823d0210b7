package memtable

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const maxBatch = 25 // requests of a BatchWriteItem, all tables together

// BatchWriteItem puts and deletes items without conditions, one by one, not as
// a whole. It returns those that Options.Unprocessed chose, undone.
func (db *DB) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return call(ctx, db, "BatchWriteItem", func() (*dynamodb.BatchWriteItemOutput, error) {
		if err := demand("BatchWriteItem", required{"RequestItems", in.RequestItems != nil}); err != nil {
			return nil, err
		}
		writes, err := db.batch(in.RequestItems)
		if err != nil {
			return nil, err
		}
		out := &dynamodb.BatchWriteItemOutput{UnprocessedItems: make(map[string][]types.WriteRequest)}
		cost := newBill(in.ReturnConsumedCapacity)
		for _, w := range writes {
			if db.options.Unprocessed(w.table, w.request) {
				out.UnprocessedItems[w.table] = append(out.UnprocessedItems[w.table], cloneRequest(w.request))
				continue
			}
			c, err := w.try()
			if err != nil {
				return nil, err
			}
			c.apply()
			cost.add(w.table, c.units())
		}
		out.ConsumedCapacity = cost.tables()
		return out, nil
	})
}

// batchWrite is a write with the request that it came from.
type batchWrite struct {
	*write
	table   string
	request types.WriteRequest
}

// batch makes all writes, or none, of the tables in the order of their names.
func (db *DB) batch(requests map[string][]types.WriteRequest) ([]batchWrite, error) {
	var writes []batchWrite
	for _, table := range sortedKeys(requests) {
		if len(requests[table]) == 0 {
			return nil, invalid("The batch write request list for a table cannot be null or empty: %s", table)
		}
		for _, request := range requests[table] {
			w, err := db.batchWrite(table, request)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(writes, func(earlier batchWrite) bool { return w.meets(earlier.write) }) {
				return nil, invalid("Provided list of item keys contains duplicates")
			}
			writes = append(writes, batchWrite{w, table, request})
		}
	}
	if len(writes) == 0 {
		return nil, invalid("The batch write request list cannot be null or empty")
	}
	if len(writes) > maxBatch {
		return nil, invalid("Too many items requested for the BatchWriteItem call")
	}
	return writes, nil
}

func (db *DB) batchWrite(table string, request types.WriteRequest) (*write, error) {
	switch {
	case request.PutRequest != nil && request.DeleteRequest == nil:
		return db.put(&table, request.PutRequest.Item, conditionParameters{})
	case request.DeleteRequest != nil && request.PutRequest == nil:
		return db.delete(&table, request.DeleteRequest.Key, conditionParameters{})
	}
	return nil, invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
}

func cloneRequest(request types.WriteRequest) types.WriteRequest {
	if request.PutRequest != nil {
		return types.WriteRequest{PutRequest: &types.PutRequest{Item: clone(request.PutRequest.Item)}}
	}
	return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: clone(request.DeleteRequest.Key)}}
}
