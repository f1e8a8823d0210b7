package storetest

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
)

func deletion(pk, sk string) types.WriteRequest {
	return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: keyOf(pk, sk)}}
}

func insertion(r item) types.WriteRequest {
	return types.WriteRequest{PutRequest: &types.PutRequest{Item: r}}
}

// batch sends the requests for the case's table.
func (f *fixture) batch(requests ...types.WriteRequest) (*dynamodb.BatchWriteItemOutput, error) {
	return f.BatchWriteItem(f.Context(), &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{f.table: requests}})
}

func deletions(count int) []types.WriteRequest {
	var all []types.WriteRequest
	for i := range count {
		all = append(all, deletion("p", fmt.Sprintf("%03d", i+1)))
	}
	return all
}

var batchCases = []testCase{
	{"a chunk of 25 deletes removes exactly its rows, gone ones too", func(f *fixture) {
		f.storeSized(27, 100)
		for range 2 {
			out, err := f.batch(deletions(25)...)
			f.succeed(err)
			if out.UnprocessedItems == nil || len(out.UnprocessedItems) != 0 {
				f.Fatalf("got unprocessed items %v", out.UnprocessedItems)
			}
			f.wantRows(sized("026", 100), sized("027", 100))
		}
	}},
	{"a batch puts and deletes in several tables", func(f *fixture) {
		other := "suite-" + uuid.NewString()
		f.create(other)
		f.store(keyOf("p", "1"))
		_, err := f.BatchWriteItem(f.Context(), &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{
				f.table: {deletion("p", "1"), insertion(row("p", "2", item{"A": num("1")}))},
				other:   {insertion(keyOf("q", "1"))},
			}})
		f.succeed(err)
		f.wantRows(row("p", "2", item{"A": num("1")}))
		f.table = other
		f.wantRows(keyOf("q", "1"))
	}},
	{"a batch that is wrong in one request does nothing", func(f *fixture) {
		f.storeSized(1, 100)
		for why, requests := range map[string][]types.WriteRequest{
			"none":            {},
			"26":              deletions(26),
			"one key twice":   {deletion("p", "001"), deletion("p", "001")},
			"put and delete":  {deletion("p", "001"), insertion(keyOf("p", "001"))},
			"a key too long":  {deletion("p", "001"), {DeleteRequest: &types.DeleteRequest{Key: row("p", "2", item{"A": num("1")})}}},
			"a missing key":   {deletion("p", "001"), insertion(item{"PK": str("p")})},
			"a key's type":    {deletion("p", "001"), insertion(item{"PK": str("p"), "SK": num("1")})},
			"an item too big": {deletion("p", "001"), insertion(sized("002", 400*1024+1))},
			"no request":      {deletion("p", "001"), {}},
		} {
			f.each(why, func(f *fixture) {
				_, err := f.batch(requests...)
				f.wantInvalid(err)
			})
		}
		f.wantRows(sized("001", 100))
	}},
}
