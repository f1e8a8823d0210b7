package memtable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// invalid is the service's ValidationException, which the SDK has no type for.
func invalid(format string, args ...any) error {
	return &smithy.GenericAPIError{
		Code:    "ValidationException",
		Message: fmt.Sprintf(format, args...),
		Fault:   smithy.FaultClient,
	}
}

// unserved refuses a valid request that this table does not implement. It has
// a code of its own, so that no test takes it for a verdict of the service.
func unserved(what string) error {
	return &smithy.GenericAPIError{
		Code:    "UnservedByMemtable",
		Message: what + " is not served by the in-memory table",
		Fault:   smithy.FaultServer,
	}
}

func noSuchTable() error {
	return &types.ResourceNotFoundException{Message: aws.String("Requested resource not found")}
}

// conditionFailed carries the item that refused the write when the request
// asked for it.
func conditionFailed(item map[string]types.AttributeValue) error {
	return &types.ConditionalCheckFailedException{
		Message: aws.String("The conditional request failed"),
		Item:    item,
	}
}

// cancelled names one reason per item of the transaction, in request order.
func cancelled(reasons []types.CancellationReason) error {
	codes := make([]string, len(reasons))
	for i, reason := range reasons {
		codes[i] = aws.ToString(reason.Code)
	}
	return &types.TransactionCanceledException{
		Message: aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(codes, ", ") + "]"),
		CancellationReasons: reasons,
	}
}

// wrap dresses an error as the SDK's client does: the operation around the
// HTTP response around the service's error. Errors that never reached the
// service have no response.
func wrap(operation string, err error) error {
	var service smithy.APIError
	if errors.As(err, &service) {
		status := http.StatusBadRequest
		if service.ErrorFault() == smithy.FaultServer {
			status = http.StatusInternalServerError
		}
		err = &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status, Header: http.Header{}}},
			Err:      err,
		}}
	}
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: operation, Err: err}
}

// required is a mandatory member of a request.
type required struct {
	name  string
	given bool
}

// demand is the SDK's own refusal of a request without a mandatory member; such
// a request never reaches the service.
func demand(operation string, fields ...required) error {
	if !slices.ContainsFunc(fields, func(field required) bool { return !field.given }) {
		return nil
	}
	missing := smithy.InvalidParamsError{Context: operation + "Input"}
	for _, field := range fields {
		if !field.given {
			missing.Add(smithy.NewErrParamRequired(field.name))
		}
	}
	return missing
}

// call runs one operation under the lock, so that it happens at one instant.
func call[Out any](ctx context.Context, db *DB, operation string, run func() (*Out, error)) (*Out, error) {
	if err := ctx.Err(); err != nil {
		return nil, wrap(operation, &smithy.CanceledError{Err: err})
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	out, err := run()
	if err != nil {
		return nil, wrap(operation, err)
	}
	return out, nil
}
