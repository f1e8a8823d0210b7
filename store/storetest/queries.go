package storetest

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// query asks for a whole partition, ascending.
func (f *fixture) query(pk string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{TableName: &f.table, ConsistentRead: yes(),
		KeyConditionExpression: aws.String("PK = :pk"), ExpressionAttributeValues: item{":pk": str(pk)}}
}

// querySort asks for a part of partition p by a condition on SK.
func (f *fixture) querySort(condition string, values item) *dynamodb.QueryInput {
	in := f.query("p")
	in.KeyConditionExpression = aws.String("PK = :pk AND " + condition)
	for name, value := range values {
		in.ExpressionAttributeValues[name] = value
	}
	return in
}

func (f *fixture) ask(in *dynamodb.QueryInput) *dynamodb.QueryOutput {
	f.Helper()
	out, err := f.Query(f.Context(), in)
	f.succeed(err)
	if int(out.ScannedCount) < int(out.Count) || in.Select != types.SelectCount && int(out.Count) != len(out.Items) {
		f.Fatalf("got %d items, count %d, scanned %d", len(out.Items), out.Count, out.ScannedCount)
	}
	return out
}

// sortKeys are the SKs of items, in their order.
func sortKeys(items []item) string {
	var keys []string
	for _, one := range items {
		keys = append(keys, text(one["SK"]))
	}
	return fmt.Sprint(keys)
}

func (f *fixture) wantKeys(out *dynamodb.QueryOutput, want ...string) {
	f.Helper()
	if got := sortKeys(out.Items); got != fmt.Sprint(want) {
		f.Fatalf("got sort keys %s, want %s", got, want)
	}
}

// seven rows of partition p and one neighbour on each side.
func (f *fixture) storeSeven() {
	f.Helper()
	f.store(keyOf("o", "1"), keyOf("q", "1"))
	for _, sk := range []string{"a1", "c", "a", "b2", "b10", "a2", "Z"} {
		f.store(row("p", sk, item{"Length": num(fmt.Sprint(len(sk)))}))
	}
}

var queryCases = []testCase{
	{"a query returns one partition in byte order of the sort key, either way", func(f *fixture) {
		f.storeSeven()
		f.wantKeys(f.ask(f.query("p")), "Z", "a", "a1", "a2", "b10", "b2", "c")
		in := f.query("p")
		in.ScanIndexForward = no()
		f.wantKeys(f.ask(in), "c", "b2", "b10", "a2", "a1", "a", "Z")
		f.wantKeys(f.ask(f.query("nothing")))
	}},
	{"each comparison of the sort key selects its range", func(f *fixture) {
		f.storeSeven()
		for condition, want := range map[string][]string{
			"SK = :a": {"a1"}, "SK < :a": {"Z", "a"}, "SK <= :a": {"Z", "a", "a1"},
			"SK > :a": {"a2", "b10", "b2", "c"}, "SK >= :a": {"a1", "a2", "b10", "b2", "c"},
			"begins_with(SK, :a)": {"a1"},
		} {
			f.wantKeys(f.ask(f.querySort(condition, item{":a": str("a1")})), want...)
		}
		f.wantKeys(f.ask(f.querySort("begins_with(SK, :a)", item{":a": str("a")})), "a", "a1", "a2")
		f.wantKeys(f.ask(f.querySort("SK BETWEEN :a AND :b", item{":a": str("a1"), ":b": str("b10")})), "a1", "a2", "b10")
		f.wantKeys(f.ask(f.querySort("SK BETWEEN :a AND :b", item{":a": str("a0"), ":b": str("a0")})))
	}},
	{"a projection returns only what it names, and pages as the rows do", func(f *fixture) {
		f.storeSized(5, 300*1024)
		in := f.query("p")
		in.ProjectionExpression, in.ExpressionAttributeNames = aws.String("#sk"), map[string]string{"#sk": "SK"}
		for _, one := range f.wantPages(in, 3, 2) {
			if len(one) != 1 || one["SK"] == nil {
				f.Fatalf("got %s", describe(one))
			}
		}
	}},
	{"the conditions of a query come in any order, with names and parentheses", func(f *fixture) {
		f.storeSeven()
		in := f.query("p")
		in.KeyConditionExpression = aws.String("(#sk > :a) AND (#pk = :pk)")
		in.ExpressionAttributeNames = map[string]string{"#pk": "PK", "#sk": "SK"}
		in.ExpressionAttributeValues[":a"] = str("b10")
		f.wantKeys(f.ask(in), "b2", "c")
	}},
	{"what is no key condition is refused", func(f *fixture) {
		f.storeSeven()
		a, b := item{":a": str("a")}, item{":a": str("b"), ":b": str("a")}
		for _, in := range []*dynamodb.QueryInput{
			f.querySort("SK <> :a", a),
			f.querySort("SK IN (:a)", a),
			f.querySort("contains(SK, :a)", a),
			f.querySort("attribute_exists(SK)", nil),
			f.querySort("NOT SK = :a", a),
			f.querySort("SK > :a AND SK < :a", a),
			f.querySort("Length = :a", a),
			f.querySort("SK = :a OR SK = :pk", a),
			f.querySort("SK BETWEEN :a AND :b", b),
			f.querySort("SK = :a", item{":a": str("a"), ":unused": str("x")}),
			{TableName: &f.table},
			{TableName: &f.table, KeyConditionExpression: aws.String("SK = :a"), ExpressionAttributeValues: item{":a": str("a")}},
			{TableName: &f.table, KeyConditionExpression: aws.String("PK > :a"), ExpressionAttributeValues: item{":a": str("a")}},
		} {
			f.each(aws.ToString(in.KeyConditionExpression)+" "+describe(in.ExpressionAttributeValues), func(f *fixture) {
				_, err := f.Query(f.Context(), in)
				f.wantInvalid(err)
			})
		}
	}},
	{"a probe counts one row of a range without returning it", func(f *fixture) {
		f.storeSeven()
		probe := f.querySort("SK BETWEEN :a AND :b", item{":a": str("a"), ":b": str("b")})
		probe.Select, probe.Limit = types.SelectCount, aws.Int32(1)
		if out := f.ask(probe); out.Count != 1 || out.ScannedCount != 1 || out.Items != nil {
			f.Fatalf("got count %d, scanned %d, items %v", out.Count, out.ScannedCount, describe(out.Items))
		}
		probe = f.querySort("SK BETWEEN :a AND :b", item{":a": str("d"), ":b": str("e")})
		probe.Select, probe.Limit = types.SelectCount, aws.Int32(1)
		if out := f.ask(probe); out.Count != 0 || out.LastEvaluatedKey != nil {
			f.Fatalf("got count %d and key %v of an empty range", out.Count, out.LastEvaluatedKey)
		}
	}},
	{"a projection returns the named attributes only", func(f *fixture) {
		f.store(row("p", "1", item{"Owner": str("me"), "A": num("1"), "M": fields(item{"X": num("1"), "Y": num("2")}),
			"L": list(num("1"), fields(item{"Z": num("3"), "W": num("4")}))}))
		in := f.query("p")
		in.ProjectionExpression = aws.String("SK, #o, M.X, L[1].Z, Absent")
		in.ExpressionAttributeNames = map[string]string{"#o": "Owner"}
		f.wantItems(f.ask(in).Items, item{"SK": str("1"), "Owner": str("me"), "M": fields(item{"X": num("1")}),
			"L": list(fields(item{"Z": num("3")}))})
		in.Select = types.SelectSpecificAttributes
		f.ask(in)
		for _, projection := range []string{"SK, Owner", "M, M.X", "SK SK", "SK,", ""} {
			f.each("refused "+projection, func(f *fixture) {
				in := f.query("p")
				in.ProjectionExpression = &projection
				_, err := f.Query(f.Context(), in)
				f.wantInvalid(err)
			})
		}
	}},
	{"a filter hides rows that were read", func(f *fixture) {
		f.storeSeven()
		in := f.query("p")
		in.FilterExpression = aws.String("#length > :one")
		in.ExpressionAttributeNames = map[string]string{"#length": "Length"}
		in.ExpressionAttributeValues[":one"] = num("1")
		out := f.ask(in)
		f.wantKeys(out, "a1", "a2", "b10", "b2")
		if out.ScannedCount != 7 {
			f.Fatalf("scanned %d, want 7", out.ScannedCount)
		}
		in.Select = types.SelectCount
		if out := f.ask(in); out.Count != 4 || out.ScannedCount != 7 || out.Items != nil {
			f.Fatalf("got count %d, scanned %d, items %v", out.Count, out.ScannedCount, out.Items)
		}
	}},
	{"a filter may not look at the key", func(f *fixture) {
		in := f.query("p")
		in.FilterExpression = aws.String("SK > :pk")
		_, err := f.Query(f.Context(), in)
		f.wantInvalid(err)
	}},
	{"what is read can be changed without changing the table", func(f *fixture) {
		whole := row("p", "1", item{"A": bin([]byte{1, 2}), "L": list(str("x"))})
		f.store(whole)
		got := f.ask(f.query("p")).Items[0]
		got["A"].(*types.AttributeValueMemberB).Value[0] = 9
		got["L"].(*types.AttributeValueMemberL).Value[0] = str("y")
		delete(got, "SK")
		whole["A"].(*types.AttributeValueMemberB).Value[1] = 9
		f.wantRows(row("p", "1", item{"A": bin([]byte{1, 2}), "L": list(str("x"))}))
	}},
}
