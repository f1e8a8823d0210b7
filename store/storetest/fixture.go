package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// waitLimit bounds the wait for a table that a real service creates.
const waitLimit = time.Minute

type item = map[string]types.AttributeValue

func str(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func num(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
func bin(v []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: v} }

func boolean(v bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: v} }

func list(v ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: append([]types.AttributeValue{}, v...)}
}
func fields(v item) types.AttributeValue { return &types.AttributeValueMemberM{Value: v} }

// keyOf is a primary key of the suite's tables.
func keyOf(pk, sk string) item { return item{"PK": str(pk), "SK": str(sk)} }

// row is an item of the suite's tables, with the attributes besides its key.
func row(pk, sk string, attributes item) item {
	whole := keyOf(pk, sk)
	for name, value := range attributes {
		whole[name] = value
	}
	return whole
}

// store puts rows without conditions.
func (f *fixture) store(rows ...item) {
	f.Helper()
	for _, r := range rows {
		if _, err := f.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: r}); err != nil {
			f.Fatalf("put %v: %v", describe(r), err)
		}
	}
}

// wantRows demands that the table holds exactly these items, by a scan.
func (f *fixture) wantRows(want ...item) {
	f.Helper()
	var got []item
	in := &dynamodb.ScanInput{TableName: &f.table, ConsistentRead: yes()}
	for {
		out, err := f.Scan(f.Context(), in)
		if err != nil {
			f.Fatalf("scan: %v", err)
		}
		got = append(got, out.Items...)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			break
		}
	}
	sortItems(got)
	sortItems(want)
	f.wantItems(got, want...)
}

func sortItems(items []item) {
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(text(a["PK"]), text(b["PK"])), cmp.Compare(text(a["SK"]), text(b["SK"])))
	})
}

func text(v types.AttributeValue) string {
	if s, isString := v.(*types.AttributeValueMemberS); isString {
		return s.Value
	}
	return describe(v)
}

// wantItems demands these items in this order.
func (f *fixture) wantItems(got []item, want ...item) {
	f.Helper()
	if len(got) != len(want) {
		f.Fatalf("got %d items %v, want %d %v", len(got), describe(got), len(want), describe(want))
	}
	for i := range want {
		f.wantItem(got[i], want[i])
	}
}

func (f *fixture) wantItem(got, want item) {
	f.Helper()
	if !reflect.DeepEqual(got, want) {
		f.Fatalf("got item %v, want %v", describe(got), describe(want))
	}
}

func (f *fixture) succeed(err error) {
	f.Helper()
	if err != nil {
		f.Fatalf("refused: %v", err)
	}
}

// wantCode demands an error of the service with the code, dressed as the
// SDK's client dresses it: operation, response, error.
func (f *fixture) wantCode(err error, code string) {
	f.Helper()
	var operation *smithy.OperationError
	var response *awshttp.ResponseError
	var service smithy.APIError
	if !errors.As(err, &operation) || !errors.As(err, &response) || !errors.As(err, &service) {
		f.Fatalf("got error %v, want one of the service with code %s", err, code)
	}
	if operation.ServiceID != dynamodb.ServiceID || response.HTTPStatusCode() != http.StatusBadRequest ||
		service.ErrorFault() == smithy.FaultServer {
		f.Fatalf("got %s, status %d, fault %s", operation.ServiceID, response.HTTPStatusCode(), service.ErrorFault())
	}
	if service.ErrorCode() != code {
		f.Fatalf("got error %s (%s), want %s", service.ErrorCode(), service.ErrorMessage(), code)
	}
}

func (f *fixture) wantInvalid(err error) {
	f.Helper()
	f.wantCode(err, "ValidationException")
}

// wantRefused demands a failed condition and returns the old item that the
// error carries.
func (f *fixture) wantRefused(err error) item {
	f.Helper()
	var refused *types.ConditionalCheckFailedException
	if !errors.As(err, &refused) {
		f.Fatalf("got error %v, want a ConditionalCheckFailedException", err)
	}
	f.wantCode(err, "ConditionalCheckFailedException")
	return refused.Item
}

// wantCancelled demands a cancelled transaction with these reason codes, in
// the order of its items, and returns the reasons.
func (f *fixture) wantCancelled(err error, codes ...string) []types.CancellationReason {
	f.Helper()
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		f.Fatalf("got error %v, want a TransactionCanceledException", err)
	}
	var got []string
	for _, reason := range cancelled.CancellationReasons {
		got = append(got, *reason.Code)
	}
	if !slices.Equal(got, codes) {
		f.Fatalf("got reasons %q, want %q", got, codes)
	}
	return cancelled.CancellationReasons
}

func yes() *bool { return aws.Bool(true) }
func no() *bool  { return aws.Bool(false) }

// describe prints items by their values, not by the addresses of them.
func describe(v any) string {
	switch x := v.(type) {
	case []item:
		return describeAll(x)
	case item:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(x)) {
			parts = append(parts, name+"="+describe(x[name]))
		}
		return fmt.Sprint(parts)
	case *types.AttributeValueMemberS:
		return fmt.Sprintf("S:%.60q", x.Value)
	case *types.AttributeValueMemberN:
		return "N:" + x.Value
	case *types.AttributeValueMemberB:
		return fmt.Sprintf("B:%.60x", x.Value)
	case *types.AttributeValueMemberL:
		return "L:" + describeAll(x.Value)
	case *types.AttributeValueMemberM:
		return "M:" + describe(x.Value)
	}
	return fmt.Sprintf("%T:%+v", v, v)
}

func describeAll[E any](all []E) string {
	var parts []string
	for _, one := range all {
		parts = append(parts, describe(one))
	}
	return fmt.Sprint(parts)
}
