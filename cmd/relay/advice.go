package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// advised adds to an error of the table what the operator can do about it.
func advised(err error, s *settings.Settings) error {
	table := s.Relay.Table
	switch {
	case errors.Is(err, store.ErrTableMissing), errors.As(err, new(*types.ResourceNotFoundException)):
		return withAdvice(err, "create it with: relay table create --table %s\nor correct table, region or dynamodb-endpoint", table)
	case errors.Is(err, relay.ErrBucketCount):
		return withAdvice(err, "nothing of that bucket was deleted since. Give all writers and relays the bucket count that the outbox has;\n"+
			"if the row's writer was wrong, relay message park --bucket N --sequence S says how to get past it")
	case errors.Is(err, store.ErrInvalid):
		return withAdvice(err, "table %s must have the string keys %s (partition) and %s (sort): correct partition-key and sort-key, or make another table with: relay table create --table NAME",
			table, s.Relay.PartitionKey, s.Relay.SortKey)
	case errors.Is(err, store.ErrDenied):
		return withAdvice(err, "check the credentials that the SDK's chain finds, and what they permit on table %s", table)
	case errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.Canceled):
		return withAdvice(err, "check region, dynamodb-endpoint, the network, and that the SDK's chain finds credentials")
	case errors.Is(err, outbox.ErrTooLarge):
		return withAdvice(err, "nothing was sent: put the content elsewhere and enqueue a reference to it")
	default:
		return err
	}
}

// withAdvice is an error with advice below it, in lines that fit.
func withAdvice(err error, advice string, args ...any) error {
	return fmt.Errorf("%w\n%s", err, strings.Join(hung("  ", fmt.Sprintf(advice, args...), textColumns), "\n"))
}
