package memtable_test

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/store/memtable"
)

type item = map[string]types.AttributeValue

func str(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func num(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }

func key(pk, sk string) item { return item{"PK": str(pk), "SK": str(sk)} }

func row(pk, sk string, attributes item) item {
	whole := key(pk, sk)
	for name, value := range attributes {
		whole[name] = value
	}
	return whole
}

// newDB has one table, outbox, with these rows.
func newDB(t testing.TB, rows ...item) *memtable.DB {
	t.Helper()
	return newDBWith(t, memtable.Options{}, types.ScalarAttributeTypeS, rows...)
}

func newDBWith(t testing.TB, o memtable.Options, sortKey types.ScalarAttributeType, rows ...item) *memtable.DB {
	t.Helper()
	db := memtable.New(o)
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("outbox"), BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("SK"), KeyType: types.KeyTypeRange}},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("SK"), AttributeType: sortKey},
			{AttributeName: aws.String("PK"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("outbox"), Item: r}); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func wantItems(t testing.TB, db *memtable.DB, want ...item) {
	t.Helper()
	wantEqual(t, len(db.Items("outbox")), len(want))
	for i, got := range db.Items("outbox") {
		wantEqual(t, got, want[i])
	}
}

func wantEqual[E any](t testing.TB, got, want E) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %#v, want %#v", got, want)
	}
}

func TestItemsAscendByKeyAndAreCopies(t *testing.T) {
	db := newDB(t, key("b", "1"), key("a", "2"), key("a", "10"), key("a", "1"))
	db.Items("outbox")[0]["PK"].(*types.AttributeValueMemberS).Value = "changed"
	wantItems(t, db, key("a", "1"), key("a", "10"), key("a", "2"), key("b", "1"))
	if db.Items("unknown") != nil {
		t.Fatal("a table that does not exist has items")
	}
}

func TestCallerMayReuseWhatItWrote(t *testing.T) {
	value := []byte{1, 2, 3}
	r := row("p", "1", item{"Value": &types.AttributeValueMemberB{Value: value}})
	db := newDB(t, r)
	value[0] = 9
	r["SK"].(*types.AttributeValueMemberS).Value = "changed"
	delete(r, "PK")
	wantItems(t, db, row("p", "1", item{"Value": &types.AttributeValueMemberB{Value: []byte{1, 2, 3}}}))

	set := &types.AttributeValueMemberB{Value: []byte{4}}
	_, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("outbox"), Key: key("p", "1"),
		UpdateExpression: aws.String("SET A = :v, B = :v"), ExpressionAttributeValues: item{":v": set}})
	if err != nil {
		t.Fatal(err)
	}
	set.Value[0] = 9
	kept := &types.AttributeValueMemberB{Value: []byte{4}}
	wantItems(t, db, row("p", "1", item{"Value": &types.AttributeValueMemberB{Value: []byte{1, 2, 3}}, "A": kept, "B": kept}))
}

// Chosen requests of a batch come back undone, in order, and the others are
// done: what a relay meets when the service is short of capacity.
func TestUnprocessedRequestsComeBackUndone(t *testing.T) {
	refuse := map[string]bool{"2": true, "4": true}
	db := newDBWith(t, memtable.Options{Unprocessed: func(table string, request types.WriteRequest) bool {
		wantEqual(t, table, "outbox")
		return request.DeleteRequest != nil && refuse[request.DeleteRequest.Key["SK"].(*types.AttributeValueMemberS).Value]
	}}, types.ScalarAttributeTypeS, key("p", "1"), key("p", "2"), key("p", "3"), key("p", "4"))
	in := &dynamodb.BatchWriteItemInput{ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		RequestItems: map[string][]types.WriteRequest{}}
	for _, sk := range []string{"1", "4", "3", "2"} {
		in.RequestItems["outbox"] = append(in.RequestItems["outbox"],
			types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key("p", sk)}})
	}
	out, err := db.BatchWriteItem(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, out.UnprocessedItems, map[string][]types.WriteRequest{"outbox": {
		{DeleteRequest: &types.DeleteRequest{Key: key("p", "4")}}, {DeleteRequest: &types.DeleteRequest{Key: key("p", "2")}}}})
	wantEqual(t, *out.ConsumedCapacity[0].CapacityUnits, 2.0)
	wantItems(t, db, key("p", "2"), key("p", "4"))

	clear(refuse)
	in.RequestItems = out.UnprocessedItems
	if out, err = db.BatchWriteItem(t.Context(), in); err != nil || len(out.UnprocessedItems) != 0 {
		t.Fatalf("got unprocessed items %v and error %v", out.UnprocessedItems, err)
	}
	wantItems(t, db)
}

// A transaction's token is good for ten minutes after it was first used, and
// forgotten then: the same request is applied again.
func TestTokensAreForgottenAfterTenMinutes(t *testing.T) {
	now := 24 * time.Hour
	db := newDBWith(t, memtable.Options{Now: func() time.Duration { return now }}, types.ScalarAttributeTypeS)
	add := func() float64 {
		t.Helper()
		out, err := db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String("token"), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
			TransactItems: []types.TransactWriteItem{{Update: &types.Update{TableName: aws.String("outbox"), Key: key("p", "1"),
				UpdateExpression: aws.String("ADD A :n"), ExpressionAttributeValues: item{":n": num("1")}}}}})
		if err != nil {
			t.Fatal(err)
		}
		if out.ConsumedCapacity[0].WriteCapacityUnits == nil {
			return 0
		}
		return *out.ConsumedCapacity[0].WriteCapacityUnits
	}
	wantEqual(t, add(), 2)
	now += 10*time.Minute - 1
	wantEqual(t, add(), 0)
	wantItems(t, db, row("p", "1", item{"A": num("1")}))
	now++
	wantEqual(t, add(), 2)
	wantItems(t, db, row("p", "1", item{"A": num("2")}))
}

// Every part of a request counts for its token.
func TestTokenComparesTheWholeRequest(t *testing.T) {
	part := func(change func(*types.Update)) []types.TransactWriteItem {
		u := &types.Update{TableName: aws.String("outbox"), Key: key("p", "1"),
			UpdateExpression: aws.String("SET #a = :v"), ConditionExpression: aws.String("attribute_not_exists(B)"),
			ExpressionAttributeNames: map[string]string{"#a": "A"}, ExpressionAttributeValues: item{":v": num("1")}}
		change(u)
		return []types.TransactWriteItem{{Update: u}}
	}
	db := newDB(t)
	send := func(items []types.TransactWriteItem) error {
		_, err := db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: items, ClientRequestToken: aws.String("token")})
		return err
	}
	if err := send(part(func(*types.Update) {})); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*types.Update){
		"key":       func(u *types.Update) { u.Key = key("p", "2") },
		"update":    func(u *types.Update) { u.UpdateExpression = aws.String("SET #a=:v") },
		"condition": func(u *types.Update) { u.ConditionExpression = nil },
		"name":      func(u *types.Update) { u.ExpressionAttributeNames = map[string]string{"#a": "C"} },
		"value":     func(u *types.Update) { u.ExpressionAttributeValues = item{":v": str("1")} },
		"refusal": func(u *types.Update) {
			u.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, send(part(change)), "IdempotentParameterMismatchException")
		})
	}
	wantItems(t, db, row("p", "1", item{"A": num("1")}))
}

func TestNumericSortKeysOrderAsNumbers(t *testing.T) {
	ascending := []string{"-1000", "-12", "-2", "-1.5", "-0.001", "0", "0.00001", "1", "1.5", "2", "10", "9007199254740993", "1000000000000000000000"}
	db := newDBWith(t, memtable.Options{}, types.ScalarAttributeTypeN)
	for _, at := range []int{5, 0, 12, 7, 3, 9, 1, 11, 2, 10, 4, 8, 6} {
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("outbox"),
			Item: item{"PK": str("p"), "SK": num(ascending[at])}}); err != nil {
			t.Fatal(err)
		}
	}
	for i, got := range db.Items("outbox") {
		wantEqual(t, got["SK"], num(ascending[i]))
	}
	out, err := db.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String("outbox"), Select: types.SelectCount,
		KeyConditionExpression:    aws.String("PK = :p AND SK BETWEEN :low AND :high"),
		ExpressionAttributeValues: item{":p": str("p"), ":low": num("-1.50"), ":high": num("1e1")}})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, out.Count, 8)
}

// The same calls give the same answers, order and wording included: no answer
// depends on the order in which a map happens to be walked.
func TestSameCallsSameAnswers(t *testing.T) {
	run := func() string {
		db := newDB(t)
		requests := make(map[string][]types.WriteRequest)
		for i := range 20 {
			requests["outbox"] = append(requests["outbox"], types.WriteRequest{PutRequest: &types.PutRequest{
				Item: key(fmt.Sprint("p", i*7%20), "1")}})
		}
		_, err := db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: requests})
		scan, _ := db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("outbox"), Limit: aws.Int32(9)})
		_, unused := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("outbox"), Item: key("p", "1"),
			ConditionExpression:       aws.String("attribute_exists(A)"),
			ExpressionAttributeValues: item{":a": num("1"), ":b": num("1"), ":c": num("1"), ":d": num("1")}})
		var keys []string
		for _, one := range scan.Items {
			keys = append(keys, one["PK"].(*types.AttributeValueMemberS).Value)
		}
		return fmt.Sprint(err, keys, unused)
	}
	first := run()
	for range 20 {
		wantEqual(t, run(), first)
	}
}

func TestConcurrentCallersEachHappenAtOneInstant(t *testing.T) {
	db := newDB(t)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for range 50 {
				_, err := db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
					TransactItems: []types.TransactWriteItem{
						{Update: &types.Update{TableName: aws.String("outbox"), Key: key("p", "left"),
							UpdateExpression: aws.String("ADD A :n"), ExpressionAttributeValues: item{":n": num("1")}}},
						{Update: &types.Update{TableName: aws.String("outbox"), Key: key("p", "right"),
							UpdateExpression: aws.String("ADD A :n"), ExpressionAttributeValues: item{":n": num("-1")}}}}})
				if err != nil {
					t.Errorf("worker %d: %v", worker, err)
					return
				}
			}
		})
	}
	all.Wait()
	wantItems(t, db, row("p", "left", item{"A": num("400")}), row("p", "right", item{"A": num("-400")}))
}

// An observer sees the item that is there now, and keeps what it saw when the
// item is replaced.
func TestPeekShowsTheStoredItem(t *testing.T) {
	first := row("A", "1", item{"N": num("1")})
	db := newDB(t, first)
	seen := db.Peek("outbox", "A", "1")
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("outbox"), Item: row("A", "1", item{"N": num("2")})}); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(seen, first) {
		t.Errorf("saw %v, want %v", seen, first)
	}
	if now := db.Peek("outbox", "A", "1"); !reflect.DeepEqual(now["N"], num("2")) {
		t.Errorf("sees %v after the item was replaced", now)
	}
	for _, absent := range [][3]string{{"outbox", "A", "2"}, {"outbox", "B", "1"}, {"other", "A", "1"}} {
		if got := db.Peek(absent[0], absent[1], absent[2]); got != nil {
			t.Errorf("%v: %v, want nothing", absent, got)
		}
	}
}

func TestSortKeysAscend(t *testing.T) {
	db := newDB(t, row("A", "2", nil), row("A", "1", nil), row("A", "10", nil))
	if got := db.SortKeys("outbox", "A"); !slices.Equal(got, []string{"1", "10", "2"}) {
		t.Errorf("got %v", got)
	}
	if got := append(db.SortKeys("outbox", "B"), db.SortKeys("none", "A")...); len(got) > 0 {
		t.Errorf("of no partition, and of no table: %v", got)
	}
}

// Shared reads return what reads by copy return, and a write leaves it as it was.
func TestSharedReadsReturnTheSameItems(t *testing.T) {
	first := row("A", "1", item{"N": num("1"), "L": &types.AttributeValueMemberL{Value: []types.AttributeValue{num("1")}}})
	db := newDBWith(t, memtable.Options{SharedReads: true}, types.ScalarAttributeTypeS, first)
	got, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("outbox"), Key: key("A", "1")})
	if err != nil {
		t.Fatal(err)
	}
	page, err := db.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String("outbox"),
		KeyConditionExpression: aws.String("PK = :pk"), ExpressionAttributeValues: item{":pk": str("A")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("outbox"), Key: key("A", "1"),
		UpdateExpression: aws.String("SET L[0] = :two, N = :two"), ExpressionAttributeValues: item{":two": num("2")}}); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Item, first) || !reflect.DeepEqual(page.Items, []item{first}) {
		t.Errorf("read %v and %v, want %v", got.Item, page.Items, first)
	}
}
