package main

import (
	"context"
	"fmt"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// tellBeyond says on stderr that the table has leases of buckets that these settings do
// not have: a command about all buckets passes over what is there. It takes one read.
func (a *app) tellBeyond(ctx context.Context, client *store.Client, s *settings.Settings) error {
	fleet, err := picture.ReadFleet(ctx, client, a.pictureOptions(s))
	if err != nil || len(fleet.Beyond) == 0 {
		return err
	}
	buckets := make([]int, len(fleet.Beyond))
	for i, lease := range fleet.Beyond {
		buckets[i] = lease.Bucket
	}
	fmt.Fprintf(a.stderr, "the table has leases of %s, which are passed over: bucket-count is %d here\n", bucketsText(buckets), s.Relay.BucketCount)
	return nil
}
