package main

import (
	"fmt"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// tellBeyond says on stderr that the table has leases of buckets that these settings do
// not have: a command about all buckets passes over what is there.
func (a *app) tellBeyond(f picture.Fleet, s *settings.Settings) {
	if len(f.Beyond) == 0 {
		return
	}
	buckets := make([]int, len(f.Beyond))
	for i, lease := range f.Beyond {
		buckets[i] = lease.Bucket
	}
	a.printFacts([]string{fmt.Sprintf("the table has %s, passed over: bucket-count is %d here", leasesText(buckets), s.Relay.BucketCount)})
}
