package storetest

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// updateTable lists updates of {A: 5, B: "text", L: [1, 2], M: {X: 1}} and
// what is there afterwards; a nil outcome is a ValidationException.
var updateTable = []struct {
	expression string
	values     item
	after      item
}{
	{"SET A = :v", item{":v": str("new")}, updated(item{"A": str("new")})},
	{"SET C = :v, A = :w", item{":v": num("1"), ":w": num("2")}, updated(item{"C": num("1"), "A": num("2")})},
	{"SET A = A + :v", item{":v": num("2")}, updated(item{"A": num("7")})},
	{"SET A = :v - A", item{":v": num("2")}, updated(item{"A": num("-3")})},
	{"SET C = A, A = B", nil, updated(item{"C": num("5"), "A": str("text")})},
	{"SET C = if_not_exists(C, :v)", item{":v": num("9")}, updated(item{"C": num("9")})},
	{"SET A = if_not_exists(A, :v) + :w", item{":v": num("9"), ":w": num("1")}, updated(item{"A": num("6")})},
	{"SET L = list_append(L, :v)", item{":v": list(num("3"))}, updated(item{"L": list(num("1"), num("2"), num("3"))})},
	{"SET L[0] = :v", item{":v": num("9")}, updated(item{"L": list(num("9"), num("2"))})},
	{"SET M.Y = :v", item{":v": num("9")}, updated(item{"M": fields(item{"X": num("1"), "Y": num("9")})})},
	{"REMOVE M.X", nil, updated(item{"M": fields(item{})})},
	{"REMOVE L[0]", nil, updated(item{"L": list(num("2"))})},
	{"REMOVE A, C", nil, updated(item{"A": nil})},
	{"ADD A :v", item{":v": num("-5")}, updated(item{"A": num("0")})},
	{"ADD C :v", item{":v": num("3")}, updated(item{"C": num("3")})},
	{"set A = :v remove B add C :v", item{":v": num("1")}, updated(item{"A": num("1"), "B": nil, "C": num("1")})},

	{"SET A = C", nil, nil},
	{"SET A = B + :v", item{":v": num("1")}, nil},
	{"SET A = C + :v", item{":v": num("1")}, nil},
	{"ADD B :v", item{":v": num("1")}, nil},
	{"ADD C :v", item{":v": str("x")}, nil},
	{"SET N.Y = :v", item{":v": num("1")}, nil},
	{"SET A.Y = :v", item{":v": num("1")}, nil},
	{"SET PK = :v", item{":v": str("q")}, nil},
	{"REMOVE SK", nil, nil},
	{"SET A = :v, A = :v", item{":v": num("1")}, nil},
	{"SET A = :v REMOVE A", item{":v": num("1")}, nil},
	{"SET M.X = :v, M = :v", item{":v": num("1")}, nil},
	{"SET A = :v SET C = :v", item{":v": num("1")}, nil},
	{"SET Owner = :v", item{":v": num("1")}, nil},
	{"SET A :v", item{":v": num("1")}, nil},
	{"SET A = :v,", item{":v": num("1")}, nil},
	{"PUT A = :v", item{":v": num("1")}, nil},
	{"SET A = plus(A, :v)", item{":v": num("1")}, nil},
	{"REMOVE A = :v", item{":v": num("1")}, nil},
	{"", nil, nil},
}

// updated is updateTable's item with changes; a nil value takes one away.
func updated(changes item) item {
	whole := row("p", "1", item{"A": num("5"), "B": str("text"), "L": list(num("1"), num("2")), "M": fields(item{"X": num("1")})})
	for name, value := range changes {
		whole[name] = value
		if value == nil {
			delete(whole, name)
		}
	}
	return whole
}

var updateCases = []testCase{
	{"every kind of update changes what it says and nothing else", func(f *fixture) {
		for _, u := range updateTable {
			f.each(fmt.Sprintf("%s with %s", u.expression, describe(u.values)), func(f *fixture) {
				f.store(updated(nil))
				_, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("p", "1"),
					UpdateExpression: &u.expression, ExpressionAttributeValues: u.values})
				if u.after == nil {
					f.wantInvalid(err)
					f.wantRows(updated(nil))
					return
				}
				f.succeed(err)
				f.wantRows(u.after)
			})
		}
	}},
	{"an update without an expression begins an item of its key alone", func(f *fixture) {
		_, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("p", "1")})
		f.succeed(err)
		f.wantRows(keyOf("p", "1"))
	}},
	{"a counter begins at nothing and hands out ranges that do not overlap", func(f *fixture) {
		for _, step := range []struct{ add, total string }{{"1", "1"}, {"3", "4"}, {"100", "104"}} {
			out, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{
				TableName: &f.table, Key: keyOf("S#0", "SEQUENCE"), UpdateExpression: aws.String("ADD #sequence :n"),
				ExpressionAttributeNames:  map[string]string{"#sequence": "Sequence"},
				ExpressionAttributeValues: item{":n": num(step.add)}, ReturnValues: types.ReturnValueUpdatedNew,
			})
			f.succeed(err)
			f.wantItem(out.Attributes, item{"Sequence": num(step.total)})
		}
		f.wantRows(row("S#0", "SEQUENCE", item{"Sequence": num("104")}))
	}},
	{"each ReturnValues returns what it says", func(f *fixture) {
		before := row("p", "1", item{"A": num("1"), "B": num("2"), "C": num("3")})
		after := row("p", "1", item{"A": num("7"), "C": num("3"), "D": num("4")})
		for wanted, want := range map[types.ReturnValue]item{
			types.ReturnValueNone:       nil,
			types.ReturnValueAllOld:     before,
			types.ReturnValueAllNew:     after,
			types.ReturnValueUpdatedOld: {"A": num("1"), "B": num("2")},
			types.ReturnValueUpdatedNew: {"A": num("7"), "D": num("4")},
		} {
			f.each(string(wanted), func(f *fixture) {
				f.store(before)
				out, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("p", "1"),
					UpdateExpression:          aws.String("SET A = :a, D = :d REMOVE B"),
					ExpressionAttributeValues: item{":a": num("7"), ":d": num("4")}, ReturnValues: wanted})
				f.succeed(err)
				f.wantItem(out.Attributes, want)
			})
		}
	}},
	{"concurrent additions are all counted", func(f *fixture) {
		const writers, additions = 4, 5
		failures := make(chan error, writers)
		for range writers {
			go func() {
				for range additions {
					_, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{
						TableName: &f.table, Key: keyOf("S#0", "SEQUENCE"), UpdateExpression: aws.String("ADD N1 :n"),
						ExpressionAttributeValues: item{":n": num("1")}})
					if err != nil {
						failures <- err
						return
					}
				}
				failures <- nil
			}()
		}
		for range writers {
			f.succeed(<-failures)
		}
		f.wantRows(row("S#0", "SEQUENCE", item{"N1": num(fmt.Sprint(writers * additions))}))
	}},
}
