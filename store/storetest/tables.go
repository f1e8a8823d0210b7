package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/uuid"
)

var tableCases = []testCase{
	{"a table is described as it was created", func(f *fixture) {
		out, err := f.DescribeTable(f.Context(), &dynamodb.DescribeTableInput{TableName: &f.table})
		f.succeed(err)
		table := out.Table
		if *table.TableName != f.table || table.TableStatus != types.TableStatusActive {
			f.Fatalf("got table %s, %s", *table.TableName, table.TableStatus)
		}
		if len(table.KeySchema) != 2 || *table.KeySchema[0].AttributeName != "PK" || *table.KeySchema[1].AttributeName != "SK" ||
			table.KeySchema[0].KeyType != types.KeyTypeHash || table.KeySchema[1].KeyType != types.KeyTypeRange {
			f.Fatalf("got key schema %+v", table.KeySchema)
		}
		if len(table.AttributeDefinitions) != 2 || table.AttributeDefinitions[0].AttributeType != types.ScalarAttributeTypeS {
			f.Fatalf("got definitions %+v", table.AttributeDefinitions)
		}
		if table.BillingModeSummary == nil || table.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
			f.Fatalf("got billing mode %+v", table.BillingModeSummary)
		}
	}},
	{"a table that exists is not created again", func(f *fixture) {
		f.store(row("p", "1", nil))
		_, err := f.CreateTable(f.Context(), tableInput(f.table))
		f.wantInUse(err)
		f.wantRows(row("p", "1", nil))
	}},
	{"of two creators at once one wins and the other learns that the table exists", func(f *fixture) {
		name := "suite-" + uuid.NewString()
		var both sync.WaitGroup
		var failures [2]error
		for i := range failures {
			both.Go(func() { _, failures[i] = f.CreateTable(f.Context(), tableInput(name)) })
		}
		both.Wait()
		lost := errors.Join(failures[:]...)
		if failures[0] != nil && failures[1] != nil || lost == nil {
			f.Fatalf("got errors %v, want exactly one", failures)
		}
		f.wantInUse(lost)
	}},
	{"a call whose context has ended does nothing", func(f *fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		_, err := f.PutItem(ctx, &dynamodb.PutItemInput{TableName: &f.table, Item: keyOf("p", "1")})
		if !errors.Is(err, context.Canceled) {
			f.Fatalf("got error %v, want context.Canceled", err)
		}
		f.wantRows()
	}},
	{"a request without what it must have is not sent", func(f *fixture) {
		_, put := f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table})
		_, update := f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{Key: keyOf("p", "1")})
		_, query := f.Query(f.Context(), &dynamodb.QueryInput{})
		_, batch := f.BatchWriteItem(f.Context(), &dynamodb.BatchWriteItemInput{})
		_, transaction := f.TransactWriteItems(f.Context(), &dynamodb.TransactWriteItemsInput{})
		_, table := f.DescribeTable(f.Context(), &dynamodb.DescribeTableInput{})
		for _, err := range []error{put, update, query, batch, transaction, table} {
			var incomplete smithy.InvalidParamsError
			if !errors.As(err, &incomplete) {
				f.Fatalf("got error %v, want smithy.InvalidParamsError", err)
			}
		}
	}},
	{"every request names a table that does not exist", func(f *fixture) {
		unknown := "suite-unknown"
		_, err := f.DescribeTable(f.Context(), &dynamodb.DescribeTableInput{TableName: &unknown})
		f.wantUnknownTable(err)
		_, err = f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &unknown, Item: keyOf("p", "1")})
		f.wantUnknownTable(err)
		_, err = f.DeleteItem(f.Context(), &dynamodb.DeleteItemInput{TableName: &unknown, Key: keyOf("p", "1")})
		f.wantUnknownTable(err)
		_, err = f.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{TableName: &unknown, Key: keyOf("p", "1")})
		f.wantUnknownTable(err)
		in := f.query("p")
		in.TableName = &unknown
		_, err = f.Query(f.Context(), in)
		f.wantUnknownTable(err)
		_, err = f.BatchWriteItem(f.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
			unknown: {deletion("p", "1")}}})
		f.wantUnknownTable(err)
		_, err = f.TransactWriteItems(f.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: &unknown, Item: keyOf("p", "1")}}}})
		f.wantUnknownTable(err)
	}},
}

func (f *fixture) wantInUse(err error) {
	f.Helper()
	var inUse *types.ResourceInUseException
	if !errors.As(err, &inUse) {
		f.Fatalf("got error %v, want a ResourceInUseException", err)
	}
}

func (f *fixture) wantUnknownTable(err error) {
	f.Helper()
	var unknown *types.ResourceNotFoundException
	if !errors.As(err, &unknown) {
		f.Fatalf("got error %v, want a ResourceNotFoundException", err)
	}
}
