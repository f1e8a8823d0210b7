package storetest

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
)

const total = types.ReturnConsumedCapacityTotal

func (f *fixture) wantUnits(got *types.ConsumedCapacity, want float64) {
	f.Helper()
	if got == nil || got.CapacityUnits == nil || *got.CapacityUnits != want || aws.ToString(got.TableName) != f.table {
		f.Fatalf("got capacity %s, want %v units", capacity(got), want)
	}
}

func capacity(c *types.ConsumedCapacity) string {
	if c == nil {
		return "none"
	}
	return describe(item{"Table": str(aws.ToString(c.TableName))}) + " " + describe(aws.ToFloat64(c.CapacityUnits))
}

func (f *fixture) put(r item) *types.ConsumedCapacity {
	f.Helper()
	out, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: r, ReturnConsumedCapacity: total})
	f.succeed(err)
	return out.ConsumedCapacity
}

var capacityCases = []testCase{
	{"no capacity is reported unasked", func(f *fixture) {
		out, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: keyOf("p", "1")})
		f.succeed(err)
		if out.ConsumedCapacity != nil {
			f.Fatalf("got %s", capacity(out.ConsumedCapacity))
		}
		if q := f.ask(f.query("p")); q.ConsumedCapacity != nil {
			f.Fatalf("got %s", capacity(q.ConsumedCapacity))
		}
	}},
	{"a write costs a unit per begun KB of the larger item", func(f *fixture) {
		f.wantUnits(f.put(sized("1", 1024)), 1)
		f.wantUnits(f.put(sized("2", 1025)), 2)
		f.wantUnits(f.put(sized("2", 100)), 2)
		f.wantUnits(f.put(sized("2", 100)), 1)
		f.wantUnits(f.put(sized("3", 3*1024)), 3)
		deleted, err := f.DeleteItem(f.Context(), &dynamodb.DeleteItemInput{
			TableName: &f.table, Key: keyOf("p", "3"), ReturnConsumedCapacity: total})
		f.succeed(err)
		f.wantUnits(deleted.ConsumedCapacity, 3)
		deleted, err = f.DeleteItem(f.Context(), &dynamodb.DeleteItemInput{
			TableName: &f.table, Key: keyOf("p", "3"), ReturnConsumedCapacity: total})
		f.succeed(err)
		f.wantUnits(deleted.ConsumedCapacity, 1)
		updated, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("p", "1"),
			UpdateExpression: aws.String("SET A = :a"), ExpressionAttributeValues: item{":a": str("x")}, ReturnConsumedCapacity: total})
		f.succeed(err)
		f.wantUnits(updated.ConsumedCapacity, 2)
	}},
	{"a query costs by the sum of its rows, half when it may be stale", func(f *fixture) {
		for _, sk := range []string{"1", "2", "3"} {
			f.store(sized(sk, 2000))
		}
		in := f.query("p")
		in.ReturnConsumedCapacity = total
		f.wantUnits(f.ask(in).ConsumedCapacity, 2)
		in.ConsistentRead = no()
		f.wantUnits(f.ask(in).ConsumedCapacity, 1)
		in.Limit = aws.Int32(1)
		f.wantUnits(f.ask(in).ConsumedCapacity, 0.5)
		in.Select = types.SelectCount
		f.wantUnits(f.ask(in).ConsumedCapacity, 0.5)
		in = f.query("nothing")
		in.ReturnConsumedCapacity = total
		f.wantUnits(f.ask(in).ConsumedCapacity, 1)
		in.ConsistentRead = no()
		f.wantUnits(f.ask(in).ConsumedCapacity, 0.5)
	}},
	{"a batch costs the sum of its writes", func(f *fixture) {
		f.store(sized("001", 100), sized("002", 1500))
		out, err := f.BatchWriteItem(f.Context(), &dynamodb.BatchWriteItemInput{ReturnConsumedCapacity: total,
			RequestItems: map[string][]types.WriteRequest{f.table: append(deletions(3), insertion(sized("004", 100)))}})
		f.succeed(err)
		if len(out.ConsumedCapacity) != 1 {
			f.Fatalf("got %d tables", len(out.ConsumedCapacity))
		}
		f.wantUnits(&out.ConsumedCapacity[0], 5)
	}},
	{"a transaction costs twice", func(f *fixture) {
		f.store(sized("002", 1500))
		out, err := f.TransactWriteItems(f.Context(), &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: total,
			TransactItems: []types.TransactWriteItem{f.newRow(sized("001", 100)), f.goneRow("p", "002")}})
		f.succeed(err)
		if len(out.ConsumedCapacity) != 1 {
			f.Fatalf("got %d tables", len(out.ConsumedCapacity))
		}
		f.wantUnits(&out.ConsumedCapacity[0], 6)
		if written := out.ConsumedCapacity[0].WriteCapacityUnits; written == nil || *written != 6 {
			f.Fatalf("got write units %v, want 6", describe(written))
		}
	}},
	{"a repeated token costs the reads of its items", func(f *fixture) {
		in := &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: total, ClientRequestToken: aws.String(uuid.NewString()),
			TransactItems: []types.TransactWriteItem{f.newRow(sized("001", 5000)), f.newRow(sized("002", 100))}}
		_, err := f.TransactWriteItems(f.Context(), in)
		f.succeed(err)
		out, err := f.TransactWriteItems(f.Context(), in)
		f.succeed(err)
		f.wantUnits(&out.ConsumedCapacity[0], 6)
		if read := out.ConsumedCapacity[0].ReadCapacityUnits; read == nil || *read != 6 || out.ConsumedCapacity[0].WriteCapacityUnits != nil {
			f.Fatalf("got read units %v, want 6 and no write units", describe(read))
		}
	}},
}
