package storetest

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxItemBytes is the service's limit of an item.
const maxItemBytes = 400 * 1024

// numberTable lists numbers as written and as the service returns them.
var numberTable = []struct{ written, read string }{
	{"0", "0"}, {"-0", "0"}, {"0.000", "0"}, {"007", "7"}, {"+5", "5"}, {"1.50", "1.5"}, {".5", "0.5"}, {"1e3", "1000"},
	{"12.5E-1", "1.25"}, {"-1E2", "-100"}, {"100", "100"},
	{"9007199254740993", "9007199254740993"},
	{"638700000000000001", "638700000000000001"},
	{"3155378975999999999", "3155378975999999999"},
	{"12345678901234567890123456789012345678", "12345678901234567890123456789012345678"},
	{"-0.12345678901234567890123456789012345678", "-0.12345678901234567890123456789012345678"},
	{"1234567890123456789.0123456789012345678", "1234567890123456789.0123456789012345678"},
}

// additionTable lists exact sums.
var additionTable = []struct{ a, b, sum string }{
	{"9007199254740993", "1", "9007199254740994"},
	{"0.1", "0.2", "0.3"},
	{"99999999999999999999999999999999999998", "1", "99999999999999999999999999999999999999"},
	{"12345678901234567890", "-12345678901234567889", "1"},
	{"1e20", "1e-10", "100000000000000000000.0000000001"},
	{"5", "-5", "0"},
}

var valueCases = []testCase{
	{"numbers are kept exactly and returned in one form", func(f *fixture) {
		for _, n := range numberTable {
			f.each(n.written, func(f *fixture) {
				f.store(row("p", "1", item{"N1": num(n.written)}))
				f.wantRows(row("p", "1", item{"N1": num(n.read)}))
			})
		}
	}},
	{"sums are exact", func(f *fixture) {
		for _, s := range additionTable {
			f.each(s.a+" + "+s.b, func(f *fixture) {
				f.store(row("p", "1", item{"N1": num(s.a)}))
				out, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("p", "1"),
					UpdateExpression: aws.String("ADD N1 :n"), ExpressionAttributeValues: item{":n": num(s.b)},
					ReturnValues: types.ReturnValueUpdatedNew})
				f.succeed(err)
				f.wantItem(out.Attributes, item{"N1": num(s.sum)})
			})
		}
	}},
	{"a sum beyond 38 digits is refused", func(f *fixture) {
		f.store(row("p", "1", item{"N1": num("1e37")}))
		_, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("p", "1"),
			UpdateExpression: aws.String("ADD N1 :n"), ExpressionAttributeValues: item{":n": num("0.1")}})
		f.wantInvalid(err)
	}},
	{"what is no number, or beyond 38 digits, is refused", func(f *fixture) {
		for _, n := range []string{"", "x", "1x", "0x10", "1e", "--1", "1.2.3", " 1", "NaN", "Infinity", "1e126", "1e-131",
			"123456789012345678901234567890123456789"} {
			f.each("refused "+n, func(f *fixture) {
				_, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: row("p", "1", item{"N1": num(n)})})
				f.wantInvalid(err)
			})
		}
		f.wantRows()
	}},
	{"empty, absent and null stay different", func(f *fixture) {
		rows := []item{
			row("p", "1", item{"Key": bin([]byte{}), "Word": str("")}),
			row("p", "2", nil),
			row("p", "3", item{"Key": &types.AttributeValueMemberNULL{Value: true}}),
		}
		f.store(rows...)
		f.wantRows(rows...)
	}},
	{"every byte survives in binaries and every character in texts", func(f *fixture) {
		var all []byte
		for b := range 256 {
			all = append(all, byte(b))
		}
		r := row("p", "1", item{"Value": bin(all), "Word": str("\x00\t\"\\ é 漢 🙂")})
		f.store(r)
		f.wantRows(r)
	}},
	{"documents survive", func(f *fixture) {
		r := row("p", "1", item{"M": fields(item{"L": list(num("1"), str(""), boolean(false), list()), "E": fields(item{})})})
		f.store(r)
		f.wantRows(r)
	}},
	{"an item of exactly 400 KB is kept and one byte more is refused", func(f *fixture) {
		f.store(sized("1", maxItemBytes))
		_, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: sized("2", maxItemBytes+1)})
		f.wantInvalid(err)
		f.wantInvalid(f.transact(f.newRow(sized("2", maxItemBytes+1))))
		f.wantRows(sized("1", maxItemBytes))
	}},
	{"an update may not make an item too large", func(f *fixture) {
		f.store(sized("1", maxItemBytes))
		_, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("p", "1"),
			UpdateExpression: aws.String("SET A = :a"), ExpressionAttributeValues: item{":a": str("x")}})
		f.wantInvalid(err)
		f.wantRows(sized("1", maxItemBytes))
	}},
}

var keyCases = []testCase{
	{"an item needs both key attributes, of their types and not empty", func(f *fixture) {
		for _, r := range []item{
			{"SK": str("1")}, {"PK": str("p")}, {"PK": num("1"), "SK": str("1")}, {"PK": str("p"), "SK": bin([]byte{1})},
			keyOf("", "1"), keyOf("p", ""), keyOf(strings.Repeat("x", 2049), "1"), keyOf("p", strings.Repeat("x", 1025)),
		} {
			f.each(fmt.Sprintf("%.80s", describe(r)), func(f *fixture) {
				_, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: r})
				f.wantInvalid(err)
			})
		}
		f.wantRows()
	}},
	{"a key has its own attributes only, of their types and not empty", func(f *fixture) {
		for _, k := range []item{
			{"SK": str("1")}, {"PK": str("p")}, {"PK": num("1"), "SK": str("1")}, keyOf("", "1"), keyOf("p", ""),
			row("p", "1", item{"A": num("1")}),
		} {
			f.each(describe(k), func(f *fixture) {
				_, err := f.DeleteItem(f.Context(), &dynamodb.DeleteItemInput{TableName: &f.table, Key: k})
				f.wantInvalid(err)
				_, err = f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: k})
				f.wantInvalid(err)
			})
		}
		f.wantRows()
	}},
	{"the longest keys work", func(f *fixture) {
		r := keyOf(strings.Repeat("x", 2048), strings.Repeat("y", 1024))
		f.store(r)
		f.wantRows(r)
	}},
	{"sequence numbers of 19 digits sort as numbers", func(f *fixture) {
		for _, n := range []int64{10, 9, 9223372036854775807, 1, 100} {
			f.store(keyOf("p", fmt.Sprintf("%019d", n)))
		}
		f.wantKeys(f.ask(f.query("p")), "0000000000000000001", "0000000000000000009", "0000000000000000010",
			"0000000000000000100", "9223372036854775807")
	}},
}
