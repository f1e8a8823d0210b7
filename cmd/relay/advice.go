package main

import (
	"context"
	"errors"
	"fmt"

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
		return fmt.Errorf("%w\n  create it with: relay table create --table %s\n  or correct table, region or dynamodb-endpoint", err, table)
	case errors.Is(err, relay.ErrBucketCount):
		return fmt.Errorf("%w\n  nothing of that bucket was deleted since. Give all writers and relays the bucket count that the outbox has;\n"+
			"  if the row's writer was wrong, relay message park --bucket N --sequence S says how to get past it", err)
	case errors.Is(err, store.ErrInvalid):
		return fmt.Errorf("%w\n  table %s must have the string keys %s (partition) and %s (sort): correct partition-key and sort-key, or make\n  another table with: relay table create --table NAME",
			err, table, s.Relay.PartitionKey, s.Relay.SortKey)
	case errors.Is(err, store.ErrDenied):
		return fmt.Errorf("%w\n  check the credentials that the SDK's chain finds, and what they permit on table %s", err, table)
	case errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.Canceled):
		return fmt.Errorf("%w\n  check region, dynamodb-endpoint, the network, and that the SDK's chain finds credentials", err)
	case errors.Is(err, outbox.ErrTooLarge):
		return fmt.Errorf("%w\n  nothing was sent: put the content elsewhere and enqueue a reference to it", err)
	default:
		return err
	}
}
