package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// tableDescriber tells how the table is set up. Only doctor asks: a relay needs no
// permission for it.
type tableDescriber interface {
	DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// tableChecks are about how the table is set up.
type tableChecks struct {
	api      tableDescriber
	settings *settings.Settings

	table    *types.TableDescription // nil: fault says why
	fault    error
	ttl      *types.TimeToLiveDescription // nil: ttlFault says why
	ttlFault error
}

func (t *tableChecks) gather(ctx context.Context) {
	name := &t.settings.Relay.Table
	described, err := t.api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: name})
	if err != nil {
		t.fault = err
		return
	}
	t.table = described.Table
	ttl, err := t.api.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: name})
	if err != nil {
		t.ttlFault = err
		return
	}
	t.ttl = ttl.TimeToLiveDescription
}

func (t *tableChecks) subject() string { return "table " + t.settings.Relay.Table }

func (t *tableChecks) judge() []checkDocument {
	if t.fault != nil {
		return append([]checkDocument{t.unseen()}, skippedAll(t.subject(), "the table could not be described",
			checkKeys, checkBilling, checkIndexes, checkTimeToLive, checkReplicas, checkStream, checkProtection)...)
	}
	found := []checkDocument{t.exists(), t.keys(), t.billing()}
	found = append(found, t.indexes()...)
	return append(found, t.timeToLive(), t.replicas(), t.stream(), t.protection())
}

// unseen says why there is no description.
func (t *tableChecks) unseen() checkDocument {
	advice := strings.ReplaceAll(adviceOn(t.fault, t.settings), "\n", " ")
	switch store.Sentinel(t.fault) {
	case store.ErrTableMissing:
		return failed(checkTable, t.subject(), "does not exist here", advice)
	case store.ErrDenied:
		return skipped(checkTable, t.subject(), notSeen(t.fault)+"; doctor needs "+actionDescribe+" and "+actionDescribeExpiry+", a relay does not")
	case store.ErrThrottled:
		return skipped(checkTable, t.subject(), notSeen(t.fault))
	default:
		return failed(checkTable, t.subject(), "cannot be asked: "+brief(t.fault), advice)
	}
}

func (t *tableChecks) exists() checkDocument {
	switch status := t.table.TableStatus; status {
	case types.TableStatusActive, types.TableStatusUpdating:
		return passed(checkTable, t.subject(), "is "+strings.ToLower(string(status)))
	default:
		return failed(checkTable, t.subject(), "is "+strings.ToLower(string(status)), "relays start when it is active")
	}
}

func (t *tableChecks) keys() checkDocument {
	if err := store.CheckKeys(t.settings.Schema(), t.table); err != nil {
		return failed(checkKeys, t.subject(), brief(err),
			"correct partition-key and sort-key, or make another table: relay table create --table NAME")
	}
	return passed(checkKeys, t.subject(), fmt.Sprintf("has the strings %s and %s, as the settings say",
		t.settings.Relay.PartitionKey, t.settings.Relay.SortKey))
}

// billing compares what is provisioned with what a fleet needs while nothing waits:
// below that even leases are throttled.
func (t *tableChecks) billing() checkDocument {
	if t.table.BillingModeSummary != nil && t.table.BillingModeSummary.BillingMode == types.BillingModePayPerRequest {
		if limit := t.table.OnDemandThroughput; limit != nil && max(aws.ToInt64(limit.MaxReadRequestUnits), aws.ToInt64(limit.MaxWriteRequestUnits)) > 0 {
			return warned(checkBilling, t.subject(), fmt.Sprintf("is billed on demand, with a limit of %s read and %s write units a second",
				unitsLimit(limit.MaxReadRequestUnits), unitsLimit(limit.MaxWriteRequestUnits)),
				"at the limit relays are throttled: keep it above what a catch-up after an outage needs")
		}
		return passed(checkBilling, t.subject(), "is billed on demand")
	}
	var reads, writes int64
	if p := t.table.ProvisionedThroughput; p != nil {
		reads, writes = aws.ToInt64(p.ReadCapacityUnits), aws.ToInt64(p.WriteCapacityUnits)
	}
	idleReads, idleWrites := idleUnits(t.settings)
	found := fmt.Sprintf("has %d read and %d write units a second; a relay with nothing to do needs %.1f and %.1f", reads, writes, idleReads, idleWrites)
	if float64(reads) < idleReads || float64(writes) < idleWrites {
		return failed(checkBilling, t.subject(), found, "raise the capacity, or bill on demand: leases lapse while their renewals are throttled")
	}
	return warned(checkBilling, t.subject(), found, "let it scale by itself, or bill on demand: a backlog of an hour is read and deleted at once")
}

func unitsLimit(units *int64) string {
	if n := aws.ToInt64(units); n > 0 {
		return fmt.Sprint(n)
	}
	return "any number of"
}

// idleUnits are the capacity units a second that one relay needs while nothing waits:
// each bucket's discovery, half a unit; the read of leases and relays, of about 150
// bytes each; the keep of each lease, and the heartbeat.
func idleUnits(s *settings.Settings) (reads, writes float64) {
	const itemBytes, unitBytes = 150, 4096
	buckets, round := float64(s.Relay.BucketCount), s.Relay.LeaseRenewInterval.Seconds()
	pages := float64((s.Relay.BucketCount+1)*itemBytes/unitBytes + 1)
	return buckets/s.Relay.PollInterval.Seconds()/2 + pages/round, (buckets + 1) / round
}

// indexes: a local index limits all that has one partition key, so the backlog of a
// bucket. A global one that takes our rows in costs for each and can hold them up.
func (t *tableChecks) indexes() []checkDocument {
	var found []checkDocument
	for _, index := range t.table.LocalSecondaryIndexes {
		found = append(found, failed(checkIndexes, "local index "+aws.ToString(index.IndexName),
			"limits each partition key to 10 GB: with more waiting in a bucket, its writers' transactions fail",
			"it cannot be removed from a table: make another one without it, and move the outbox there while it is empty"))
	}
	for _, index := range t.table.GlobalSecondaryIndexes {
		ours := func(k types.KeySchemaElement) bool { return t.carried(aws.ToString(k.AttributeName)) }
		if !slices.ContainsFunc(index.KeySchema, func(k types.KeySchemaElement) bool { return !ours(k) }) {
			found = append(found, warned(checkIndexes, "global index "+aws.ToString(index.IndexName),
				"takes in every row of the outbox: each is written and deleted twice, and an index without capacity throttles the table",
				"give the index keys of its own, which outbox rows do not have"))
		}
	}
	if len(found) == 0 {
		return []checkDocument{passed(checkIndexes, t.subject(), "has no index that concerns the outbox")}
	}
	return found
}

// carried tells whether items of the outbox have an attribute.
func (t *tableChecks) carried(attribute string) bool {
	return attribute == t.settings.Relay.PartitionKey || attribute == t.settings.Relay.SortKey || slices.Contains(outbox.Attributes(), attribute)
}

func (t *tableChecks) timeToLive() checkDocument {
	if t.ttl == nil {
		return skipped(checkTimeToLive, t.subject(), notSeen(t.ttlFault))
	}
	attribute := aws.ToString(t.ttl.AttributeName)
	switch {
	case t.ttl.TimeToLiveStatus == types.TimeToLiveStatusDisabled || attribute == "":
		return passed(checkTimeToLive, t.subject(), "time to live is off")
	case t.carried(attribute):
		return failed(checkTimeToLive, t.subject(), fmt.Sprintf("time to live is on %s, which items of the outbox have: the service may delete them unsent", attribute),
			"turn it off, or have it on an attribute that no item of the outbox has")
	default:
		return passed(checkTimeToLive, t.subject(), fmt.Sprintf("time to live is on %s, which no item of the outbox has", attribute))
	}
}

// replicas: conditions hold within one region. With several, two relays may own one
// bucket, and where all regions are strongly consistent there are no transactions.
func (t *tableChecks) replicas() checkDocument {
	var regions []string
	for _, replica := range t.table.Replicas {
		regions = append(regions, aws.ToString(replica.RegionName))
	}
	switch {
	case len(regions) == 0:
		return passed(checkReplicas, t.subject(), "is in one region")
	case t.table.MultiRegionConsistency == types.MultiRegionConsistencyStrong:
		return failed(checkReplicas, t.subject(), "is a global table with strong consistency, replicated to "+listed(regions, 5)+": it takes no transactions",
			"keep the outbox, and the items that it goes with, in a table of one region")
	default:
		return failed(checkReplicas, t.subject(), "is a global table, replicated to "+listed(regions, 5)+": between regions no condition decides who owns a bucket",
			"keep the outbox in a table of one region, or make sure that writers and relays are in one region only, and move them together")
	}
}

func (t *tableChecks) stream() checkDocument {
	if s := t.table.StreamSpecification; s == nil || !aws.ToBool(s.StreamEnabled) {
		return passed(checkStream, t.subject(), "has no stream; none is needed")
	}
	return warned(checkStream, t.subject(), "has a stream: every row of the outbox comes in it when it is written and when it is deleted",
		fmt.Sprintf("if the stream is needed for other items, have its consumers filter out partition keys that begin with %s#; if not, turn it off",
			t.settings.Relay.KeyPrefix))
}

func (t *tableChecks) protection() checkDocument {
	if aws.ToBool(t.table.DeletionProtectionEnabled) {
		return passed(checkProtection, t.subject(), "is protected from deletion")
	}
	return warned(checkProtection, t.subject(), "can be deleted by one request, with all that waits", "turn deletion protection on")
}
