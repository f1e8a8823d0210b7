package storetest

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// pageBytes is how much a query goes over before it answers.
const pageBytes = 1024 * 1024

// sized is a row of partition p that has exactly so many bytes.
func sized(sk string, bytes int) item {
	r := row("p", sk, item{"Filler": str("")})
	r["Filler"] = str(strings.Repeat("x", bytes-outbox.ItemSize(r)))
	return r
}

// storeSized puts count rows 001, 002… of equal size.
func (f *fixture) storeSized(count, bytes int) {
	f.Helper()
	for i := range count {
		f.store(sized(fmt.Sprintf("%03d", i+1), bytes))
	}
}

// pages follows a query to its end and returns each page's count.
func (f *fixture) pages(in *dynamodb.QueryInput) (counts []int, items []item) {
	f.Helper()
	for {
		out := f.ask(in)
		counts, items = append(counts, int(out.Count)), append(items, out.Items...)
		if out.LastEvaluatedKey == nil {
			return counts, items
		}
		if len(out.LastEvaluatedKey) != 2 {
			f.Fatalf("got last key %v, want PK and SK", describe(out.LastEvaluatedKey))
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func (f *fixture) wantPages(in *dynamodb.QueryInput, want ...int) []item {
	f.Helper()
	counts, items := f.pages(in)
	if fmt.Sprint(counts) != fmt.Sprint(want) {
		f.Fatalf("got pages of %v items, want %v", counts, want)
	}
	return items
}

func ascending(count int) string {
	var keys []string
	for i := range count {
		keys = append(keys, fmt.Sprintf("%03d", i+1))
	}
	return fmt.Sprint(keys)
}

var pageCases = []testCase{
	{"a limit that is reached says so, even at the very end", func(f *fixture) {
		f.storeSized(4, 100)
		for limit, want := range map[int32][]int{1: {1, 1, 1, 1, 0}, 2: {2, 2, 0}, 3: {3, 1}, 4: {4, 0}, 5: {4}} {
			in := f.query("p")
			in.Limit = aws.Int32(limit)
			if items := f.wantPages(in, want...); sortKeys(items) != ascending(4) {
				f.Fatalf("got %s", sortKeys(items))
			}
		}
	}},
	{"a limit counts rows before the filter", func(f *fixture) {
		f.store(row("p", "1", item{"A": num("0")}), row("p", "2", item{"A": num("1")}), row("p", "3", item{"A": num("1")}))
		in := f.query("p")
		in.Limit, in.FilterExpression = aws.Int32(2), aws.String("A = :one")
		in.ExpressionAttributeValues[":one"] = num("1")
		f.wantPages(in, 1, 1)
	}},
	{"a descending query pages backwards", func(f *fixture) {
		f.storeSized(5, 100)
		in := f.query("p")
		in.Limit, in.ScanIndexForward = aws.Int32(2), no()
		if items := f.wantPages(in, 2, 2, 1); sortKeys(items) != "[005 004 003 002 001]" {
			f.Fatalf("got %s", sortKeys(items))
		}
	}},
	{"a query goes on behind a row that is gone", func(f *fixture) {
		f.storeSized(4, 100)
		in := f.query("p")
		in.ExclusiveStartKey = keyOf("p", "002x")
		f.wantKeys(f.ask(in), "003", "004")
		in.ScanIndexForward = no()
		f.wantKeys(f.ask(in), "002", "001")
	}},
	{"a start that fits no row of the query is refused", func(f *fixture) {
		f.storeSized(4, 100)
		for _, start := range []item{
			{"PK": str("p")}, {"PK": str("p"), "SK": num("1")}, row("p", "001", item{"Filler": str("x")}),
		} {
			f.each(describe(start), func(f *fixture) {
				in := f.query("p")
				in.ExclusiveStartKey = start
				_, err := f.Query(f.Context(), in)
				f.wantInvalid(err)
			})
		}
	}},
	{"a limit below one is refused", func(f *fixture) {
		in := f.query("p")
		in.Limit = aws.Int32(0)
		_, err := f.Query(f.Context(), in)
		f.wantInvalid(err)
	}},
	{"a page may have exactly 1 MB", func(f *fixture) {
		f.storeSized(4, pageBytes/4)
		f.wantPages(f.query("p"), 4)
		f.store(sized("005", pageBytes/4))
		if items := f.wantPages(f.query("p"), 4, 1); sortKeys(items) != ascending(5) {
			f.Fatalf("got %s", sortKeys(items))
		}
	}},
	{"a page ends before the row that would pass 1 MB", func(f *fixture) {
		f.storeSized(3, pageBytes/4)
		f.store(sized("004", pageBytes/4-1), sized("005", 100), sized("006", 100))
		f.wantPages(f.query("p"), 4, 2)
	}},
	{"pages of a descending query are as long", func(f *fixture) {
		f.storeSized(5, 300*1024)
		in := f.query("p")
		in.ScanIndexForward = no()
		if items := f.wantPages(in, 3, 2); sortKeys(items) != "[005 004 003 002 001]" {
			f.Fatalf("got %s", sortKeys(items))
		}
	}},
	{"a count pages like the rows that it counts", func(f *fixture) {
		f.storeSized(5, 300*1024)
		in := f.query("p")
		in.Select = types.SelectCount
		f.wantPages(in, 3, 2)
	}},
	{"a projection or a filter does not make pages longer", func(f *fixture) {
		f.storeSized(5, 300*1024)
		in := f.query("p")
		in.ProjectionExpression = aws.String("SK")
		f.wantPages(in, 3, 2)
		in = f.query("p")
		in.FilterExpression = aws.String("attribute_not_exists(Filler)")
		f.wantPages(in, 0, 0)
	}},
	{"a scan sees all partitions by pages", func(f *fixture) {
		var want []item
		for _, pk := range []string{"a", "b", "c"} {
			for _, sk := range []string{"1", "2", "3"} {
				want = append(want, row(pk, sk, item{"A": num(sk)}))
			}
		}
		f.store(want...)
		var got []item
		in := &dynamodb.ScanInput{TableName: &f.table, Limit: aws.Int32(2), FilterExpression: aws.String("A <> :two"),
			ExpressionAttributeValues: item{":two": num("2")}}
		pages := 0
		for ; pages == 0 || in.ExclusiveStartKey != nil; pages++ {
			out, err := f.Scan(f.Context(), in)
			f.succeed(err)
			got = append(got, out.Items...)
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
		if len(got) != 6 || pages != 5 {
			f.Fatalf("got %d items in %d pages, want 6 in 5", len(got), pages)
		}
		f.wantRows(want...)
	}},
}
