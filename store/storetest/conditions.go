package storetest

import (
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// conditionSubject is the item that conditionTable's conditions look at.
var conditionSubject = row("p", "1", item{
	"Word": str("gamma"), "Count5": num("5"), "Bytes": bin([]byte{1, 2, 3}), "Blank": str(""),
	"Flag": boolean(true), "Nothing": &types.AttributeValueMemberNULL{Value: true},
	"Tags":   &types.AttributeValueMemberSS{Value: []string{"x", "y"}},
	"Things": list(str("a"), num("1"), fields(item{"Inside": str("deep")})),
	"Doc":    fields(item{"Inside": str("deep"), "Number9": num("9")}),
})

// conditionTable lists conditions on conditionSubject and what they yield.
var conditionTable = []struct {
	expression string
	values     item
	holds      bool
}{
	{"Word = :v", item{":v": str("gamma")}, true},
	{"Word = :v", item{":v": str("Gamma")}, false},
	{":v = Word", item{":v": str("gamma")}, true},
	{"Word <> :v", item{":v": str("delta")}, true},
	{"Word <> :v", item{":v": num("5")}, true},
	{"Word = :v", item{":v": num("5")}, false},
	{"Count5 = :v", item{":v": num("5.0")}, true},
	{"Count5 < :v", item{":v": num("10")}, true},
	{"Count5 < :v", item{":v": str("9")}, false},
	{"Count5 >= :v", item{":v": num("5")}, true},
	{"Count5 > :v", item{":v": num("5")}, false},
	{"Bytes < :v", item{":v": bin([]byte{1, 2, 4})}, true},
	{"Bytes = :v", item{":v": bin([]byte{1, 2, 3})}, true},
	{"Flag = :v", item{":v": boolean(true)}, true},
	{"Absent = :v", item{":v": str("x")}, false},
	{"Absent <> :v", item{":v": str("x")}, true},
	{"Absent < :v", item{":v": str("x")}, false},
	{"NOT Absent = :v", item{":v": str("x")}, true},
	{"Absent = Gone", nil, false},
	{"Count5 BETWEEN :a AND :b", item{":a": num("5"), ":b": num("7")}, true},
	{"Count5 BETWEEN :a AND :b", item{":a": num("6"), ":b": num("7")}, false},
	{"Word IN (:a, :b)", item{":a": str("beta"), ":b": str("gamma")}, true},
	{"Word IN (:a)", item{":a": str("beta")}, false},
	{"attribute_exists(Word)", nil, true},
	{"attribute_exists(Blank)", nil, true},
	{"attribute_exists(Nothing)", nil, true},
	{"attribute_exists(Absent)", nil, false},
	{"attribute_not_exists(Absent)", nil, true},
	{"attribute_not_exists(PK)", nil, false},
	{"attribute_type(Word, :v)", item{":v": str("S")}, true},
	{"attribute_type(Word, :v)", item{":v": str("N")}, false},
	{"attribute_type(Absent, :v)", item{":v": str("S")}, false},
	{"begins_with(Word, :v)", item{":v": str("gam")}, true},
	{"begins_with(Word, :v)", item{":v": str("am")}, false},
	{"begins_with(Bytes, :v)", item{":v": bin([]byte{1, 2})}, true},
	{"contains(Word, :v)", item{":v": str("mm")}, true},
	{"contains(Tags, :v)", item{":v": str("y")}, true},
	{"contains(Tags, :v)", item{":v": str("z")}, false},
	{"contains(Things, :v)", item{":v": num("1")}, true},
	{"size(Word) = :v", item{":v": num("5")}, true},
	{"size(Bytes) > :v", item{":v": num("3")}, false},
	{"size(Things) = :v", item{":v": num("3")}, true},
	{"size(Absent) < :v", item{":v": num("3")}, false},
	{"Doc.Inside = :v", item{":v": str("deep")}, true},
	{"Things[2].Inside = :v", item{":v": str("deep")}, true},
	{"Things[9] = :v", item{":v": str("deep")}, false},
	{"Word.Inside = :v", item{":v": str("deep")}, false},
	// AND binds closer than OR, NOT closer than AND; keywords in any case.
	{"Word = :v OR Word = :w AND Count5 = :w", item{":v": str("gamma"), ":w": str("no")}, true},
	{"(Word = :v OR Word = :w) AND Count5 = :w", item{":v": str("gamma"), ":w": str("no")}, false},
	{"not Word = :w and Word = :v", item{":v": str("gamma"), ":w": str("no")}, true},
	{"NOT (Word = :v OR Word = :w)", item{":v": str("gamma"), ":w": str("no")}, false},
	{"(Word = :v)", item{":v": str("gamma")}, true},
	{"(Word = :v) AND (Count5 = :w OR Word = :v)", item{":v": str("gamma"), ":w": str("no")}, true},
	{"Word=:v AND(Count5<>:w)", item{":v": str("gamma"), ":w": str("no")}, true},
}

var conditionCases = []testCase{
	{"every kind of condition decides as documented", func(f *fixture) {
		f.store(conditionSubject)
		for _, c := range conditionTable {
			f.each(fmt.Sprintf("%s with %s", c.expression, describe(c.values)), func(f *fixture) {
				_, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{
					TableName: &f.table, Item: conditionSubject,
					ConditionExpression: aws.String(c.expression), ExpressionAttributeValues: c.values,
				})
				if c.holds {
					f.succeed(err)
				} else {
					f.wantRefused(err)
				}
			})
		}
	}},
	{"a put that needs a free key shows who has it", func(f *fixture) {
		in := &dynamodb.PutItemInput{
			TableName: &f.table, Item: row("M#0", "1", item{"MessageId": str("mine")}),
			ConditionExpression:                 aws.String("attribute_not_exists(PK)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		_, err := f.PutItem(f.Context(), in)
		f.succeed(err)
		in.Item = row("M#0", "1", item{"MessageId": str("other")})
		_, err = f.PutItem(f.Context(), in)
		f.wantItem(f.wantRefused(err), row("M#0", "1", item{"MessageId": str("mine")}))
		f.wantRows(row("M#0", "1", item{"MessageId": str("mine")}))
	}},
	{"of two puts that need the same free key at once exactly one wins", func(f *fixture) {
		var both sync.WaitGroup
		var failures [2]error
		for i := range failures {
			both.Go(func() {
				_, failures[i] = f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table,
					Item:                                row("M#0", "1", item{"By": num(fmt.Sprint(i))}),
					ConditionExpression:                 aws.String("attribute_not_exists(PK)"),
					ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
			})
		}
		both.Wait()
		winner := 0
		if failures[0] != nil {
			winner = 1
		}
		kept := row("M#0", "1", item{"By": num(fmt.Sprint(winner))})
		f.succeed(failures[winner])
		f.wantItem(f.wantRefused(failures[1-winner]), kept)
		f.wantRows(kept)
	}},
	{"a delete returns the old item when asked and does not mind a missing one", func(f *fixture) {
		f.store(row("p", "1", item{"Word": str("old")}))
		in := &dynamodb.DeleteItemInput{TableName: &f.table, Key: keyOf("p", "1"), ReturnValues: types.ReturnValueAllOld}
		out, err := f.DeleteItem(f.Context(), in)
		f.succeed(err)
		f.wantItem(out.Attributes, row("p", "1", item{"Word": str("old")}))
		out, err = f.DeleteItem(f.Context(), in)
		f.succeed(err)
		if out.Attributes != nil {
			f.Fatalf("got %v of nothing", describe(out.Attributes))
		}
		f.wantRows()
	}},
	{"a put replaces the whole item and returns the old one when asked", func(f *fixture) {
		f.store(row("p", "1", item{"Word": str("old"), "More": num("1")}))
		out, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table,
			Item: row("p", "1", item{"Word": str("new")}), ReturnValues: types.ReturnValueAllOld})
		f.succeed(err)
		f.wantItem(out.Attributes, row("p", "1", item{"Word": str("old"), "More": num("1")}))
		f.wantRows(row("p", "1", item{"Word": str("new")}))
	}},
	{"a put or delete cannot return the new item", func(f *fixture) {
		_, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{
			TableName: &f.table, Item: keyOf("p", "1"), ReturnValues: types.ReturnValueAllNew})
		f.wantInvalid(err)
		_, err = f.DeleteItem(f.Context(), &dynamodb.DeleteItemInput{
			TableName: &f.table, Key: keyOf("p", "1"), ReturnValues: types.ReturnValueUpdatedNew})
		f.wantInvalid(err)
	}},
	{"a condition on a missing item sees no attributes", func(f *fixture) {
		_, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("p", "1"),
			UpdateExpression: aws.String("SET RetryAtUtc = :v"), ExpressionAttributeValues: item{":v": num("1")},
			ConditionExpression: aws.String("attribute_exists(PK)")})
		f.wantRefused(err)
		f.wantRows()
	}},
}
