package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// advised adds to an error what the operator can do about it, below, in lines that fit.
func advised(err error, s *settings.Settings) error {
	advice := adviceOn(err, s)
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, strings.Join(hung("  ", advice, textColumns), "\n"))
}

// adviceOn is what the operator can do about an error of the table, whichever client of
// it the error came from; empty when nothing is known to help.
func adviceOn(err error, s *settings.Settings) string {
	switch {
	case errors.Is(err, relay.ErrBucketCount):
		return "nothing of that bucket was deleted since\n" +
			"give all writers and relays the bucket count that the outbox has; if the row's writer was wrong,\n" +
			"relay message park with that --bucket and --sequence says what to do"
	case errors.Is(err, relay.ErrReplaced):
		return "give each relay a relay-id of its own, or none: then it makes one"
	case errors.Is(err, outbox.ErrTooLarge):
		return "nothing was sent: put the content elsewhere and enqueue a reference to it"
	}
	switch store.Sentinel(err) {
	case store.ErrTableMissing:
		return fmt.Sprintf("correct table, region or dynamodb-endpoint, or\ncreate it with: relay table create --table %s", s.Relay.Table)
	case store.ErrInvalid:
		return fmt.Sprintf("table %s must have the string keys %s (partition) and %s (sort): correct partition-key and sort-key, or make another table with: relay table create --table NAME",
			s.Relay.Table, s.Relay.PartitionKey, s.Relay.SortKey)
	case store.ErrDenied:
		return fmt.Sprintf("check the credentials that the SDK's chain finds, and what they permit on table %s", s.Relay.Table)
	case store.ErrUnavailable:
		if errors.Is(err, context.Canceled) {
			return "" // whoever interrupts a command knows why it ended
		}
		return "check region, dynamodb-endpoint, the network, and that the SDK's chain finds credentials"
	default:
		return ""
	}
}
