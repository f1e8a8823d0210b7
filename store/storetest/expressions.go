package storetest

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// refusedConditions cannot be evaluated on any item.
var refusedConditions = []struct {
	why, expression string
	names           map[string]string
	values          item
}{
	{"empty", "", nil, nil},
	{"a reserved word", "Owner = :v", nil, item{":v": str("x")}},
	{"a reserved word in another case", "attribute_exists(sequence)", nil, nil},
	{"an undefined value", "Word = :v", nil, nil},
	{"an undefined name", "#t = :v", nil, item{":v": str("x")}},
	{"an unused value", "Word <> :v", nil, item{":v": str("x"), ":w": str("x")}},
	{"an unused name", "Word <> :v", map[string]string{"#t": "Word"}, item{":v": str("x")}},
	{"an unknown function", "exists(Word)", nil, nil},
	{"too few arguments", "begins_with(Word)", nil, nil},
	{"a value where a path belongs", "attribute_exists(:v)", nil, item{":v": str("x")}},
	{"a prefix that is a number", "begins_with(Word, :v)", nil, item{":v": num("1")}},
	{"no right side", "Word =", nil, nil},
	{"no operator", "Word", nil, nil},
	{"an open parenthesis", "(Word = :v", nil, item{":v": str("x")}},
	{"doubled parentheses", "((Word = :v))", nil, item{":v": str("x")}},
	{"two conditions side by side", "Word = :v Word = :v", nil, item{":v": str("x")}},
	{"a character of no meaning", "Word = :v;", nil, item{":v": str("x")}},
	{"bounds in the wrong order", "Count5 BETWEEN :a AND :b", nil, item{":a": num("7"), ":b": num("5")}},
	{"bounds of two types", "Count5 BETWEEN :a AND :b", nil, item{":a": num("5"), ":b": str("7")}},
	{"a value without a colon", "Word = :v", nil, item{"v": str("x"), ":v": str("x")}},
	{"more than 4 KB", strings.Repeat("Word = :v OR ", 400) + "Word = :v", nil, item{":v": str("x")}},
}

var expressionCases = []testCase{
	{"a condition that makes no sense is refused and nothing is written", func(f *fixture) {
		for _, c := range refusedConditions {
			f.each(c.why, func(f *fixture) {
				_, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{
					TableName: &f.table, Item: keyOf("p", "1"), ConditionExpression: &c.expression,
					ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
				})
				f.wantInvalid(err)
			})
		}
		f.wantRows()
	}},
	{"names and values need an expression", func(f *fixture) {
		_, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: keyOf("p", "1"),
			ExpressionAttributeNames: map[string]string{"#a": "A"}})
		f.wantInvalid(err)
		_, err = f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: keyOf("p", "1"),
			ExpressionAttributeValues: item{":a": str("A")}})
		f.wantInvalid(err)
	}},
	{"reserved words and odd names work through #names", func(f *fixture) {
		odd := item{"Owner": str("me"), "Key": bin([]byte{1}), "a.b": str("dot"), "#x": str("hash"), "size": str("word")}
		f.store(row("p", "1", odd))
		_, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: row("p", "1", odd),
			ConditionExpression: aws.String("#o = :me AND attribute_exists(#k) AND #dot = :dot AND #hash = :hash AND size(#k) = :one AND #size = :word"),
			ExpressionAttributeNames: map[string]string{
				"#o": "Owner", "#k": "Key", "#dot": "a.b", "#hash": "#x", "#size": "size"},
			ExpressionAttributeValues: item{
				":me": str("me"), ":dot": str("dot"), ":hash": str("hash"), ":one": num("1"), ":word": str("word")}})
		f.succeed(err)
	}},
	{"a name may be used by another expression of the request than the value", func(f *fixture) {
		_, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("p", "1"),
			UpdateExpression: aws.String("SET A = :v"), ConditionExpression: aws.String("attribute_not_exists(#b)"),
			ExpressionAttributeNames: map[string]string{"#b": "B"}, ExpressionAttributeValues: item{":v": num("1")}})
		f.succeed(err)
		f.wantRows(row("p", "1", item{"A": num("1")}))
	}},
}
