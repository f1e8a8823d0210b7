package storetest

import (
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
)

const allOldOnRefusal = types.ReturnValuesOnConditionCheckFailureAllOld

func (f *fixture) transact(items ...types.TransactWriteItem) error {
	_, err := f.TransactWriteItems(f.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: items})
	return err
}

// newRow puts a row whose key must be free, as an enqueue does.
func (f *fixture) newRow(r item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: &f.table, Item: r,
		ConditionExpression: aws.String("attribute_not_exists(PK)"), ReturnValuesOnConditionCheckFailure: allOldOnRefusal}}
}

// goneRow deletes a row that must be there, as a move does.
func (f *fixture) goneRow(pk, sk string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: &f.table, Key: keyOf(pk, sk),
		ConditionExpression: aws.String("attribute_exists(PK)")}}
}

// leaseCheck is the check of protocol.md section 7.
func (f *fixture) leaseCheck(owner, claim string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &f.table, Key: keyOf("C", "LEASE#0"),
		ConditionExpression:                 aws.String("#owner = :me AND #claim = :claim"),
		ExpressionAttributeNames:            map[string]string{"#owner": "Owner", "#claim": "Claim"},
		ExpressionAttributeValues:           item{":me": str(owner), ":claim": num(claim)},
		ReturnValuesOnConditionCheckFailure: allOldOnRefusal}}
}

func (f *fixture) addition(pk, sk, amount string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{TableName: &f.table, Key: keyOf(pk, sk),
		UpdateExpression: aws.String("ADD Amount :n"), ExpressionAttributeValues: item{":n": num(amount)}}}
}

var transactionCases = []testCase{
	{"a transaction of all four kinds applies as a whole", func(f *fixture) {
		lease := row("C", "LEASE#0", item{"Owner": str("a"), "Claim": num("4")})
		f.store(lease, row("M#0", "1", item{"A": num("1")}))
		f.succeed(f.transact(f.leaseCheck("a", "4"), f.newRow(row("PARKED#0", "ROW#1", item{"A": num("1")})),
			f.goneRow("M#0", "1"), f.addition("S#0", "SEQUENCE", "2")))
		f.wantRows(lease, row("PARKED#0", "ROW#1", item{"A": num("1")}), row("S#0", "SEQUENCE", item{"Amount": num("2")}))
	}},
	{"one refusal cancels all, with a reason for each in the order of the items", func(f *fixture) {
		rows := []item{row("C", "LEASE#0", item{"Owner": str("a"), "Claim": num("4")}), row("M#0", "2", item{"A": num("2")})}
		f.store(rows...)
		err := f.transact(f.newRow(row("M#0", "1", nil)), f.newRow(row("M#0", "2", item{"A": num("3")})),
			f.leaseCheck("a", "3"), f.goneRow("M#0", "9"), f.addition("S#0", "SEQUENCE", "1"))
		reasons := f.wantCancelled(err, "None", "ConditionalCheckFailed", "ConditionalCheckFailed", "ConditionalCheckFailed", "None")
		f.wantItem(reasons[1].Item, rows[1])
		f.wantItem(reasons[2].Item, rows[0])
		if reasons[0].Item != nil || reasons[3].Item != nil || reasons[4].Item != nil {
			f.Fatalf("got items %v, %v, %v unasked", reasons[0].Item, reasons[3].Item, reasons[4].Item)
		}
		f.wantRows(rows...)
	}},
	{"an enqueue that already happened is cancelled with its own items", func(f *fixture) {
		first, second := row("M#0", "1", item{"MessageId": str("x")}), row("M#0", "2", item{"MessageId": str("y")})
		f.succeed(f.transact(f.newRow(first), f.newRow(second)))
		reasons := f.wantCancelled(f.transact(f.newRow(first), f.newRow(second)), "ConditionalCheckFailed", "ConditionalCheckFailed")
		f.wantItem(reasons[0].Item, first)
		f.wantItem(reasons[1].Item, second)
	}},
	{"an update that cannot be carried out cancels the transaction", func(f *fixture) {
		f.store(row("p", "1", item{"Amount": str("text")}))
		f.wantCancelled(f.transact(f.newRow(keyOf("p", "2")), f.addition("p", "1", "1")), "None", "ValidationError")
		f.wantRows(row("p", "1", item{"Amount": str("text")}))
	}},
	{"two operations on one item are refused", func(f *fixture) {
		f.wantInvalid(f.transact(f.newRow(keyOf("p", "1")), f.addition("p", "1", "1")))
		f.wantRows()
	}},
	{"a transaction has 1 to 100 items", func(f *fixture) {
		var items []types.TransactWriteItem
		for i := range 101 {
			items = append(items, f.newRow(keyOf("p", fmt.Sprintf("%03d", i+1))))
		}
		f.wantInvalid(f.transact(items...))
		f.wantInvalid(f.transact([]types.TransactWriteItem{}...))
		f.wantRows()
		f.succeed(f.transact(items[:100]...))
		if out := f.ask(f.query("p")); out.Count != 100 {
			f.Fatalf("got %d rows, want 100", out.Count)
		}
	}},
	{"a transaction over 4 MB is refused", func(f *fixture) {
		var items []types.TransactWriteItem
		for i := range 11 {
			items = append(items, f.newRow(sized(fmt.Sprintf("%03d", i+1), 390*1024)))
		}
		f.wantInvalid(f.transact(items...))
		f.wantRows()
		f.succeed(f.transact(items[:10]...))
	}},
	{"a check alone is a transaction", func(f *fixture) {
		f.wantCancelled(f.transact(f.leaseCheck("a", "4")), "ConditionalCheckFailed")
		f.store(row("C", "LEASE#0", item{"Owner": str("a"), "Claim": num("4")}))
		f.succeed(f.transact(f.leaseCheck("a", "4")))
	}},
	{"a transaction spans tables", func(f *fixture) {
		other := "suite-" + uuid.NewString()
		f.create(other)
		business := types.TransactWriteItem{Put: &types.Put{TableName: &other, Item: row("ORDER#1", "v1", item{"Total": num("12.50")})}}
		f.succeed(f.transact(business, f.newRow(keyOf("M#0", "1"))))
		f.wantRows(keyOf("M#0", "1"))
		f.table = other
		f.wantRows(row("ORDER#1", "v1", item{"Total": num("12.5")}))
	}},
	{"of two transactions for one free key exactly one wins", func(f *fixture) {
		var both sync.WaitGroup
		var failures [2]error
		for i := range failures {
			both.Go(func() {
				failures[i] = f.transact(f.newRow(row("p", "1", item{"By": num(fmt.Sprint(i))})),
					f.newRow(keyOf("q", fmt.Sprint(i))))
			})
		}
		both.Wait()
		if (failures[0] == nil) == (failures[1] == nil) {
			f.Fatalf("got errors %v, want exactly one", failures)
		}
		winner := 0
		if failures[0] != nil {
			winner = 1
		}
		f.wantRows(row("p", "1", item{"By": num(fmt.Sprint(winner))}), keyOf("q", fmt.Sprint(winner)))
	}},
}

// withToken sends a transaction under a client request token.
func (f *fixture) withToken(token string, items ...types.TransactWriteItem) error {
	_, err := f.TransactWriteItems(f.Context(), &dynamodb.TransactWriteItemsInput{
		TransactItems: items, ClientRequestToken: &token})
	return err
}

var tokenCases = []testCase{
	{"the same token with the same items is applied once and succeeds twice", func(f *fixture) {
		token := uuid.NewString()
		f.succeed(f.withToken(token, f.addition("S#0", "SEQUENCE", "1"), f.newRow(keyOf("p", "1"))))
		f.succeed(f.withToken(token, f.addition("S#0", "SEQUENCE", "1"), f.newRow(keyOf("p", "1"))))
		f.wantRows(row("S#0", "SEQUENCE", item{"Amount": num("1")}), keyOf("p", "1"))
	}},
	{"a repeated token succeeds after its rows are gone and does not bring them back", func(f *fixture) {
		token := uuid.NewString()
		f.succeed(f.withToken(token, f.newRow(keyOf("p", "1"))))
		_, err := f.batch(deletion("p", "1"))
		f.succeed(err)
		f.succeed(f.withToken(token, f.newRow(keyOf("p", "1"))))
		f.wantRows()
	}},
	{"the same token with other items is a mismatch", func(f *fixture) {
		token := uuid.NewString()
		f.succeed(f.withToken(token, f.addition("S#0", "SEQUENCE", "1")))
		f.wantCode(f.withToken(token, f.addition("S#0", "SEQUENCE", "2")), "IdempotentParameterMismatchException")
		f.wantRows(row("S#0", "SEQUENCE", item{"Amount": num("1")}))
	}},
	{"a cancelled transaction leaves its token free", func(f *fixture) {
		token := uuid.NewString()
		f.wantCancelled(f.withToken(token, f.goneRow("p", "1")), "ConditionalCheckFailed")
		f.store(keyOf("p", "1"))
		f.succeed(f.withToken(token, f.goneRow("p", "1")))
		f.wantRows()
	}},
	{"transactions without a token are applied each time", func(f *fixture) {
		f.succeed(f.transact(f.addition("S#0", "SEQUENCE", "1")))
		f.succeed(f.transact(f.addition("S#0", "SEQUENCE", "1")))
		f.wantRows(row("S#0", "SEQUENCE", item{"Amount": num("2")}))
	}},
}
