package memtable_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// What the service is documented to refuse and the emulator of package
// integration lets pass: it cannot be in the suite that both run. The table
// sides with the service, so that the simulation finds a request that only the
// service would refuse.
func TestRefusesWhatOnlyTheServiceRefuses(t *testing.T) {
	query := func(condition string, values item, start item) func(*dynamodb.QueryInput) {
		return func(in *dynamodb.QueryInput) {
			in.KeyConditionExpression, in.ExpressionAttributeValues = &condition, values
			in.ExclusiveStartKey = start
		}
	}
	for name, change := range map[string]func(*dynamodb.QueryInput){
		"a partition key of another type": query("PK = :p", item{":p": num("1")}, nil),
		"an empty partition key":          query("PK = :p", item{":p": str("")}, nil),
		"a sort key of another type":      query("PK = :p AND SK = :s", item{":p": str("p"), ":s": num("1")}, nil),
		"a start in another partition":    query("PK = :p", item{":p": str("p")}, key("q", "1")),
		"a start outside of the range":    query("PK = :p AND SK > :s", item{":p": str("p"), ":s": str("2")}, key("p", "1")),
	} {
		t.Run(name, func(t *testing.T) {
			in := &dynamodb.QueryInput{TableName: aws.String("outbox")}
			change(in)
			_, err := newDB(t).Query(t.Context(), in)
			wantCode(t, err, "ValidationException")
		})
	}
	for name, expression := range map[string]string{
		"a function in capitals": "ATTRIBUTE_EXISTS(A) OR A = :v",
		"an order of booleans":   "A < :v",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newDB(t).PutItem(t.Context(), &dynamodb.PutItemInput{
				TableName: aws.String("outbox"), Item: key("p", "1"), ConditionExpression: &expression,
				ExpressionAttributeValues: item{":v": &types.AttributeValueMemberBOOL{Value: true}}})
			wantCode(t, err, "ValidationException")
		})
	}
}

func TestRefusesPartsOfATransactionThatAreNotOneOperation(t *testing.T) {
	put := &types.Put{TableName: aws.String("outbox"), Item: key("p", "1")}
	deletion := &types.Delete{TableName: aws.String("outbox"), Key: key("p", "2")}
	for name, part := range map[string]types.TransactWriteItem{
		"none": {},
		"two":  {Put: put, Delete: deletion},
	} {
		t.Run(name, func(t *testing.T) {
			db := newDB(t)
			_, err := db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
				TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: aws.String("outbox"), Item: key("p", "3")}}, part}})
			wantCode(t, err, "ValidationException")
			wantItems(t, db)
		})
	}
}

// Documented by the service, and different on the emulator: an index behind
// the end of a list appends, and all indexes of an update mean the old list.
func TestListIndexesMeanTheListBeforeTheUpdate(t *testing.T) {
	before := &types.AttributeValueMemberL{Value: []types.AttributeValue{num("1"), num("2"), num("3")}}
	for expression, want := range map[string][]types.AttributeValue{
		"REMOVE L[0], L[1]":       {num("3")},
		"REMOVE L[2], L[0]":       {num("2")},
		"SET L[9] = L[0]":         {num("1"), num("2"), num("3"), num("1")},
		"SET L[2] = L[0], A=L[2]": {num("1"), num("2"), num("1")},
	} {
		t.Run(expression, func(t *testing.T) {
			db := newDB(t, row("p", "1", item{"L": before}))
			out, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("outbox"), Key: key("p", "1"),
				UpdateExpression: &expression, ReturnValues: types.ReturnValueAllNew})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, out.Attributes["L"], types.AttributeValue(&types.AttributeValueMemberL{Value: want}))
		})
	}
}

// A request that the table does not serve is never taken for a success, nor
// its refusal for the service's.
func TestSaysWhatItDoesNotServe(t *testing.T) {
	db := newDB(t)
	table := aws.String("outbox")
	_, condition := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: key("p", "1"),
		Expected: map[string]types.ExpectedAttributeValue{"PK": {Exists: aws.Bool(false)}}})
	_, update := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: table, Key: key("p", "1"),
		UpdateExpression: aws.String("DELETE Tags :v"), ExpressionAttributeValues: item{":v": &types.AttributeValueMemberSS{Value: []string{"x"}}}})
	_, set := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: table, Key: key("p", "1"),
		UpdateExpression: aws.String("ADD Tags :v"), ExpressionAttributeValues: item{":v": &types.AttributeValueMemberSS{Value: []string{"x"}}}})
	_, legacy := db.Query(t.Context(), &dynamodb.QueryInput{TableName: table, KeyConditions: map[string]types.Condition{}})
	_, segments := db.Scan(t.Context(), &dynamodb.ScanInput{TableName: table, TotalSegments: aws.Int32(2)})
	_, index := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: aws.String("other"),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{}}})
	for _, err := range []error{condition, update, set, legacy, segments, index} {
		wantCode(t, err, "UnservedByMemtable")
	}
	wantItems(t, db)
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var service smithy.APIError
	if !errors.As(err, &service) || service.ErrorCode() != code {
		t.Fatalf("got error %v, want code %s", err, code)
	}
}
