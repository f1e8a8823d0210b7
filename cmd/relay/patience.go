package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// This file is for how long a command waits for a table that does not answer. A relay has
// its deadlines, and its clients their limits for one attempt; a person who waits, with
// another window to turn to, needs one for all attempts of a request.

// defaultPatience is how long a command waits unless it is told otherwise.
const defaultPatience = 15 * time.Second

// timeoutArgument is the flag of every command that asks the table. It bounds each
// request, not all of them: a command about ten thousand buckets sends ten thousand.
func (a *app) timeoutArgument() settings.Argument {
	a.timeout = defaultPatience
	return settings.Argument{Name: "timeout", Value: settings.Duration(&a.timeout),
		Doc: "how long the table may take for one request, its repetitions included"}
}

// outOfPatience is why a request was given up: it took as long as it may.
type outOfPatience struct{ after time.Duration }

func (e outOfPatience) Error() string { return fmt.Sprintf("no answer within %v (--timeout)", e.after) }

// patiently is a context that ends when a request has taken as long as it may.
func patiently(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, outOfPatience{timeout})
}

// impatience says of an error that it came since a request had taken as long as it may.
func impatience(ctx context.Context, err error) error {
	var out outOfPatience
	if err == nil || !errors.As(context.Cause(ctx), &out) {
		return err
	}
	return fmt.Errorf("%w: %w", out, err)
}

// reach makes the clients of a command that somebody waits for: no request takes longer
// than the command's --timeout. There are no leases to be kept, so that requests for
// messages and for coordination need not be kept apart.
func (a *app) reach(ctx context.Context, s *settings.Settings) (clients, error) {
	made, err := a.dial(ctx, s)
	if err != nil {
		return clients{}, err
	}
	made.messages = timely{made.messages, a.timeout}
	made.coordination = made.messages
	made.tables = timelyTables{made.tables, a.timeout}
	return made, nil
}

// timely is a table whose requests take no longer than the timeout.
type timely struct {
	store.API
	timeout time.Duration
}

// timelyTables is the same of the table as a whole.
type timelyTables struct {
	store.TableAPI
	timeout time.Duration
}

type options = func(*dynamodb.Options)

// inTime calls one method of a client.
func inTime[In, Out any](ctx context.Context, timeout time.Duration, call func(context.Context, *In, ...options) (*Out, error), in *In, opts []options) (*Out, error) {
	limited, cancel := patiently(ctx, timeout)
	defer cancel()
	out, err := call(limited, in, opts...)
	return out, impatience(limited, err)
}

func (b timely) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...options) (*dynamodb.QueryOutput, error) {
	return inTime(ctx, b.timeout, b.API.Query, in, opts)
}

func (b timely) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...options) (*dynamodb.PutItemOutput, error) {
	return inTime(ctx, b.timeout, b.API.PutItem, in, opts)
}

func (b timely) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...options) (*dynamodb.UpdateItemOutput, error) {
	return inTime(ctx, b.timeout, b.API.UpdateItem, in, opts)
}

func (b timely) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...options) (*dynamodb.DeleteItemOutput, error) {
	return inTime(ctx, b.timeout, b.API.DeleteItem, in, opts)
}

func (b timely) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...options) (*dynamodb.BatchWriteItemOutput, error) {
	return inTime(ctx, b.timeout, b.API.BatchWriteItem, in, opts)
}

func (b timely) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...options) (*dynamodb.TransactWriteItemsOutput, error) {
	return inTime(ctx, b.timeout, b.API.TransactWriteItems, in, opts)
}

func (b timelyTables) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, opts ...options) (*dynamodb.CreateTableOutput, error) {
	return inTime(ctx, b.timeout, b.TableAPI.CreateTable, in, opts)
}

func (b timelyTables) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...options) (*dynamodb.DescribeTableOutput, error) {
	return inTime(ctx, b.timeout, b.TableAPI.DescribeTable, in, opts)
}
