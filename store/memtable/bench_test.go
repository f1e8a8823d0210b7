package memtable_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// message is a row as a writer makes it, with a value of 200 bytes.
func message(sequence int) item {
	return row("OUTBOX#MESSAGES#0", fmt.Sprintf("%019d", sequence), item{
		"MessageId": str("0c5ef7e5-95f4-4a1e-9d3f-1b7d8f0a9e11"), "Topic": str("orders"), "CreatedAtUtc": num("638700000000000001"),
		"Key": &types.AttributeValueMemberB{Value: []byte("customer-42")}, "BucketCount": num("8"),
		"Value": &types.AttributeValueMemberB{Value: make([]byte, 200)}})
}

// BenchmarkFetch500 reads a full batch, the most frequent big request.
func BenchmarkFetch500(b *testing.B) {
	db := newDB(b)
	for i := range 1000 {
		if _, err := db.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("outbox"), Item: message(i)}); err != nil {
			b.Fatal(err)
		}
	}
	in := &dynamodb.QueryInput{TableName: aws.String("outbox"), Limit: aws.Int32(500), ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("PK = :pk"), ExpressionAttributeValues: item{":pk": str("OUTBOX#MESSAGES#0")}}
	b.ReportAllocs()
	for b.Loop() {
		if out, err := db.Query(b.Context(), in); err != nil || out.Count != 500 {
			b.Fatal(out.Count, err)
		}
	}
}

// BenchmarkKeep renews a lease, the most frequent conditional write.
func BenchmarkKeep(b *testing.B) {
	db := newDB(b, row("C", "LEASE#0000000000", item{"Owner": str("a"), "ExpiresAtUtc": num("638700000000000001")}))
	in := &dynamodb.UpdateItemInput{TableName: aws.String("outbox"), Key: key("C", "LEASE#0000000000"),
		UpdateExpression:                    aws.String("SET ExpiresAtUtc = :expiry"),
		ConditionExpression:                 aws.String("#owner = :me AND ExpiresAtUtc = :seen"),
		ExpressionAttributeNames:            map[string]string{"#owner": "Owner"},
		ExpressionAttributeValues:           item{":me": str("a"), ":seen": num("638700000000000001"), ":expiry": num("638700000000000001")},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := db.UpdateItem(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEnqueueAndDelete puts 25 rows at the tail and deletes 25 at the
// head of a partition that holds 10,000.
func BenchmarkEnqueueAndDelete(b *testing.B) {
	db := newDB(b)
	tail := 0
	put := func() {
		if _, err := db.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("outbox"), Item: message(tail)}); err != nil {
			b.Fatal(err)
		}
		tail++
	}
	for range 10_000 {
		put()
	}
	b.ReportAllocs()
	for head := 0; b.Loop(); head += 25 {
		var requests []types.WriteRequest
		for i := range 25 {
			put()
			requests = append(requests, types.WriteRequest{DeleteRequest: &types.DeleteRequest{
				Key: key("OUTBOX#MESSAGES#0", fmt.Sprintf("%019d", head+i))}})
		}
		if _, err := db.BatchWriteItem(b.Context(), &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{"outbox": requests}}); err != nil {
			b.Fatal(err)
		}
	}
}
