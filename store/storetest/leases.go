package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Ticks as the protocol writes them, beyond 2^53; they ascend.
const (
	ticks1 = "638700000000000001"
	ticks2 = "638700000000000002"
	ticks3 = "638700000000000003"
)

// The conditions and updates of protocol.md sections 2, 3 and 7.
const (
	heartbeatCondition = "attribute_not_exists(LastSeenUtc) OR LastSeenUtc <= :now"
	ownCondition       = "#owner = :me AND ExpiresAtUtc = :seen"
	claimCondition     = "attribute_not_exists(#owner) OR attribute_not_exists(ExpiresAtUtc) OR ExpiresAtUtc <= :now"
	pruneCondition     = "attribute_not_exists(PK) OR LastSeenUtc < :dead OR (attribute_exists(StoppedAtUtc) AND LastSeenUtc < :stopped)"
	stopCondition      = "attribute_not_exists(Incarnation) OR Incarnation = :mine"
)

var leaseCases = []testCase{
	{"a heartbeat goes forward or stands, never back", func(f *fixture) {
		f.succeed(f.heartbeat(ticks2))
		f.succeed(f.heartbeat(ticks2))
		old := f.wantRefused(f.heartbeat(ticks1))
		f.wantItem(old, row("C", "RELAY#a", item{"LastSeenUtc": num(ticks2)}))
		f.succeed(f.heartbeat(ticks3))
		f.wantRows(row("C", "RELAY#a", item{"LastSeenUtc": num(ticks3)}))
	}},
	{"a claim takes a lease that is missing, free, without an expiry or expired", func(f *fixture) {
		f.store(
			row("C", "LEASE#1", item{"ExpiresAtUtc": num(ticks3)}),
			row("C", "LEASE#2", item{"Owner": str("b")}),
			row("C", "LEASE#3", item{"Owner": str("b"), "ExpiresAtUtc": num(ticks1)}),
		)
		for _, lease := range []string{"LEASE#0", "LEASE#1", "LEASE#2", "LEASE#3"} {
			f.succeed(f.claim(lease, "a", ticks1, ticks2))
		}
		mine := item{"Owner": str("a"), "ExpiresAtUtc": num(ticks2)}
		f.wantRows(row("C", "LEASE#0", mine), row("C", "LEASE#1", mine), row("C", "LEASE#2", mine), row("C", "LEASE#3", mine))
	}},
	{"a claim of a live lease is refused and shows it", func(f *fixture) {
		live := row("C", "LEASE#0", item{"Owner": str("b"), "ExpiresAtUtc": num(ticks2)})
		f.store(live)
		f.wantItem(f.wantRefused(f.claim("LEASE#0", "a", ticks1, ticks3)), live)
		f.wantRows(live)
	}},
	{"a refusal shows the item only when asked", func(f *fixture) {
		f.store(row("C", "LEASE#0", item{"Owner": str("b"), "ExpiresAtUtc": num(ticks2)}))
		in := f.claimInput("LEASE#0", "a", ticks1, ticks3)
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureNone
		_, err := f.UpdateItem(f.Context(), in)
		if old := f.wantRefused(err); old != nil {
			f.Fatalf("got item %v unasked", describe(old))
		}
	}},
	{"a refusal without an item shows none", func(f *fixture) {
		if old := f.wantRefused(f.keep("LEASE#0", "a", ticks1, ticks2)); old != nil {
			f.Fatalf("got item %v, there is none", describe(old))
		}
		f.wantRows()
	}},
	{"a keep needs the owner and the expiry that was seen", func(f *fixture) {
		f.store(row("C", "LEASE#0", item{"Owner": str("a"), "ExpiresAtUtc": num(ticks1), "Attention": num("7")}))
		f.wantRefused(f.keep("LEASE#0", "b", ticks1, ticks2))
		f.wantRefused(f.keep("LEASE#0", "a", ticks3, ticks2))
		f.succeed(f.keep("LEASE#0", "a", ticks1, ticks2))
		f.wantRows(row("C", "LEASE#0", item{"Owner": str("a"), "ExpiresAtUtc": num(ticks2), "Attention": num("7")}))
	}},
	{"expiries that a float would take for equal are different", func(f *fixture) {
		f.store(row("C", "LEASE#0", item{"Owner": str("a"), "ExpiresAtUtc": num(ticks1)}))
		f.wantRefused(f.keep("LEASE#0", "a", ticks2, ticks3))
	}},
	{"a release leaves an expiry and no owner", func(f *fixture) {
		f.store(row("C", "LEASE#0", item{"Owner": str("a"), "ExpiresAtUtc": num(ticks2)}))
		_, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{
			TableName: &f.table, Key: keyOf("C", "LEASE#0"),
			UpdateExpression:                    aws.String("SET ExpiresAtUtc = :now REMOVE #owner"),
			ConditionExpression:                 aws.String(ownCondition),
			ExpressionAttributeNames:            map[string]string{"#owner": "Owner"},
			ExpressionAttributeValues:           item{":me": str("a"), ":seen": num(ticks2), ":now": num(ticks1)},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		f.succeed(err)
		f.wantRows(row("C", "LEASE#0", item{"ExpiresAtUtc": num(ticks1)}))
	}},
	{"a prune deletes the missing, the dead and the stopped, and no live relay", func(f *fixture) {
		live := row("C", "RELAY#live", item{"LastSeenUtc": num(ticks3)})
		resting := row("C", "RELAY#resting", item{"LastSeenUtc": num(ticks3), "StoppedAtUtc": num(ticks3)})
		f.store(live, resting,
			row("C", "RELAY#dead", item{"LastSeenUtc": num("638000000000000000")}),
			row("C", "RELAY#stopped", item{"LastSeenUtc": num(ticks1), "StoppedAtUtc": num(ticks1)}))
		f.succeed(f.prune("RELAY#missing"))
		f.succeed(f.prune("RELAY#dead"))
		f.succeed(f.prune("RELAY#stopped"))
		f.wantRefused(f.prune("RELAY#live"))
		f.wantRefused(f.prune("RELAY#resting"))
		f.wantRows(live, resting)
	}},
	{"a stop stamps a record of its own incarnation only", func(f *fixture) {
		stop := func(mine string) error {
			_, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{
				TableName: &f.table, Key: keyOf("C", "RELAY#a"),
				UpdateExpression:          aws.String("SET LastSeenUtc = :t, StoppedAtUtc = :t"),
				ConditionExpression:       aws.String(stopCondition),
				ExpressionAttributeValues: item{":t": num(ticks2), ":mine": str(mine)},
			})
			return err
		}
		f.store(row("C", "RELAY#a", item{"LastSeenUtc": num(ticks1), "Incarnation": str("i-2")}))
		f.wantRefused(stop("i-1"))
		f.succeed(stop("i-2"))
		f.wantRows(row("C", "RELAY#a", item{"LastSeenUtc": num(ticks2), "StoppedAtUtc": num(ticks2), "Incarnation": str("i-2")}))
	}},
	{"of many claims of one free lease at once exactly one wins", func(f *fixture) {
		var all sync.WaitGroup
		var won atomic.Int32
		failures := make([]error, 8)
		for i := range failures {
			all.Go(func() {
				if failures[i] = f.claim("LEASE#0", fmt.Sprint("r", i), ticks1, ticks2); failures[i] == nil {
					won.Add(1)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			f.Fatalf("%d claims won: %v", won.Load(), failures)
		}
		for _, err := range failures {
			if err != nil {
				f.wantRefused(err)
			}
		}
	}},
}

func (f *fixture) heartbeat(now string) error {
	_, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{
		TableName: &f.table, Item: row("C", "RELAY#a", item{"LastSeenUtc": num(now)}),
		ConditionExpression:                 aws.String(heartbeatCondition),
		ExpressionAttributeValues:           item{":now": num(now)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

func (f *fixture) claim(lease, me, now, expiry string) error {
	_, err := f.UpdateItem(f.Context(), f.claimInput(lease, me, now, expiry))
	return err
}

func (f *fixture) claimInput(lease, me, now, expiry string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &f.table, Key: keyOf("C", lease),
		UpdateExpression:                    aws.String("SET #owner = :me, ExpiresAtUtc = :expiry"),
		ConditionExpression:                 aws.String(claimCondition),
		ExpressionAttributeNames:            map[string]string{"#owner": "Owner"},
		ExpressionAttributeValues:           item{":me": str(me), ":now": num(now), ":expiry": num(expiry)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func (f *fixture) keep(lease, me, seen, expiry string) error {
	_, err := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{
		TableName: &f.table, Key: keyOf("C", lease),
		UpdateExpression:                    aws.String("SET ExpiresAtUtc = :expiry"),
		ConditionExpression:                 aws.String(ownCondition),
		ExpressionAttributeNames:            map[string]string{"#owner": "Owner"},
		ExpressionAttributeValues:           item{":me": str(me), ":seen": num(seen), ":expiry": num(expiry)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

func (f *fixture) prune(relay string) error {
	_, err := f.DeleteItem(f.Context(), &dynamodb.DeleteItemInput{
		TableName: &f.table, Key: keyOf("C", relay),
		ConditionExpression:       aws.String(pruneCondition),
		ExpressionAttributeValues: item{":dead": num("638500000000000000"), ":stopped": num(ticks2)},
	})
	return err
}
