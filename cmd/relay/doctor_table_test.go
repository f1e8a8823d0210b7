package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// setUp describes a table in memory as the service would one that is set up well, but
// for what a test changes.
type setUp struct {
	*memtable.DB
	change          func(*types.TableDescription)
	ttl             string // the attribute that it is on; empty: off
	fault, ttlFault error
}

func (s *setUp) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	if s.fault != nil {
		return nil, s.fault
	}
	out, err := s.DB.DescribeTable(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	out.Table.DeletionProtectionEnabled = aws.Bool(true)
	if s.change != nil {
		s.change(out.Table)
	}
	return out, nil
}

func (s *setUp) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	if s.ttlFault != nil {
		return nil, s.ttlFault
	}
	d := &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}
	if s.ttl != "" {
		d = &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabled, AttributeName: &s.ttl}
	}
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: d}, nil
}

// examination is what doctor has said.
type examination struct {
	outcome
	doctorDocument
}

// examine runs doctor on the table orders.
func (c *console) examine(t *testing.T, args ...string) examination {
	t.Helper()
	e := examination{outcome: c.run(append([]string{"doctor", "--table", "orders", "--output", "json"}, args...)...)}
	if err := json.Unmarshal([]byte(e.stdout), &e.doctorDocument); err != nil {
		t.Fatalf("%v: %+v", err, e.outcome)
	}
	failures := false
	for _, check := range e.Checks {
		failures = failures || check.Status == statusFailure
		if wants := check.Status == statusFailure || check.Status == statusWarning; wants != (check.Advice != "") {
			t.Errorf("%s %s: advice %q", check.Status, check.ID, check.Advice)
		}
		if check.Subject == "" || check.Found == "" {
			t.Errorf("%+v does not say what it looked at and found", check)
		}
	}
	if e.OK == failures || (e.code == exitFailed) != failures {
		t.Errorf("exit code %d and ok %v, with a failure: %v", e.code, e.OK, failures)
	}
	return e
}

// wants demands a check of this id and status that has all the texts in it.
func (e examination) wants(t *testing.T, id, status string, texts ...string) {
	t.Helper()
	for _, check := range e.Checks {
		if check.ID != id || check.Status != status {
			continue
		}
		whole := check.Subject + "\n" + check.Found + "\n" + check.Advice
		has := true
		for _, text := range texts {
			has = has && strings.Contains(whole, text)
		}
		if has {
			return
		}
	}
	t.Errorf("no check %s is a %s with %q; there are:", id, status, texts)
	for _, check := range e.Checks {
		if check.ID == id {
			t.Errorf("  %+v", check)
		}
	}
}

// only demands that this id has no other status.
func (e examination) only(t *testing.T, id, status string) {
	t.Helper()
	for _, check := range e.Checks {
		if check.ID == id && check.Status != status {
			t.Errorf("%+v, want only %s", check, status)
		}
	}
}

func index(keys ...string) []types.KeySchemaElement {
	var schema []types.KeySchemaElement
	for _, key := range keys {
		schema = append(schema, types.KeySchemaElement{AttributeName: aws.String(key)})
	}
	return schema
}

// Each way in which a table can be set up wrongly is found, and said with what to do.
func TestDoctorOnATableThatIsSetUpWrongly(t *testing.T) {
	provisioned := func(reads, writes int64) func(*types.TableDescription) {
		return func(d *types.TableDescription) {
			d.BillingModeSummary = nil
			d.ProvisionedThroughput = &types.ProvisionedThroughputDescription{ReadCapacityUnits: &reads, WriteCapacityUnits: &writes}
		}
	}
	for _, test := range []struct {
		name       string
		set        setUp
		id, status string
		texts      []string
	}{
		{"creating", setUp{change: func(d *types.TableDescription) { d.TableStatus = types.TableStatusCreating }},
			checkTable, statusFailure, []string{"is creating"}},
		{"another sort key", setUp{change: func(d *types.TableDescription) { d.KeySchema[1].AttributeName = aws.String("Range") }},
			checkKeys, statusFailure, []string{"it has PK (S, HASH), Range", "sort-key"}},
		{"a number as key", setUp{change: func(d *types.TableDescription) { d.AttributeDefinitions[1].AttributeType = types.ScalarAttributeTypeN }},
			checkKeys, statusFailure, []string{"SK (N, RANGE)", "partition-key"}},
		{"too little capacity", setUp{change: provisioned(3, 5)}, checkBilling, statusFailure, []string{"3 read and 5 write", "4.1 and 0.9", "raise the capacity"}},
		{"provisioned", setUp{change: provisioned(100, 100)}, checkBilling, statusWarning, []string{"100 read", "scale"}},
		{"a limit on demand", setUp{change: func(d *types.TableDescription) {
			d.OnDemandThroughput = &types.OnDemandThroughput{MaxReadRequestUnits: aws.Int64(-1), MaxWriteRequestUnits: aws.Int64(40)}
		}}, checkBilling, statusWarning, []string{"any number of read and 40 write"}},
		{"a local index", setUp{change: func(d *types.TableDescription) {
			d.LocalSecondaryIndexes = []types.LocalSecondaryIndexDescription{{IndexName: aws.String("by-date")}}
		}}, checkIndexes, statusFailure, []string{"by-date", "10 GB", "another one"}},
		{"a global index of all", setUp{change: func(d *types.TableDescription) {
			d.GlobalSecondaryIndexes = []types.GlobalSecondaryIndexDescription{{IndexName: aws.String("inverted"), KeySchema: index("SK", "PK")}}
		}}, checkIndexes, statusWarning, []string{"inverted", "keys of its own"}},
		{"a global index of others", setUp{change: func(d *types.TableDescription) {
			d.GlobalSecondaryIndexes = []types.GlobalSecondaryIndexDescription{{IndexName: aws.String("customers"), KeySchema: index("Customer", "SK")}}
		}}, checkIndexes, statusOK, nil},
		{"time to live of rows", setUp{ttl: "CreatedAtUtc"}, checkTimeToLive, statusFailure, []string{"CreatedAtUtc", "turn it off"}},
		{"time to live of leases", setUp{ttl: "ExpiresAtUtc"}, checkTimeToLive, statusFailure, []string{"ExpiresAtUtc"}},
		{"time to live of others", setUp{ttl: "expires"}, checkTimeToLive, statusOK, []string{"expires"}},
		{"time to live that nobody tells", setUp{ttlFault: &smithy.GenericAPIError{Code: "UnknownOperationException", Message: "no such operation"}},
			checkTimeToLive, statusSkipped, []string{"UnknownOperationException: no such operation"}},
		{"replicas", setUp{change: func(d *types.TableDescription) {
			d.Replicas = []types.ReplicaDescription{{RegionName: aws.String("eu-west-1")}}
		}}, checkReplicas, statusFailure, []string{"eu-west-1", "one region"}},
		{"strongly consistent replicas", setUp{change: func(d *types.TableDescription) {
			d.Replicas = []types.ReplicaDescription{{RegionName: aws.String("eu-west-1")}}
			d.MultiRegionConsistency = types.MultiRegionConsistencyStrong
		}}, checkReplicas, statusFailure, []string{"no transactions"}},
		{"a stream", setUp{change: func(d *types.TableDescription) {
			d.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true)}
		}}, checkStream, statusWarning, []string{"OUTBOX#"}},
		{"no protection", setUp{change: func(d *types.TableDescription) { d.DeletionProtectionEnabled = nil }},
			checkProtection, statusWarning, []string{"deletion protection"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newConsole(t)
			test.set.DB = c.table
			c.describe = &test.set
			e := c.examine(t)
			e.wants(t, test.id, test.status, test.texts...)
			e.only(t, test.id, test.status)
		})
	}
}

// What is not there, and what may not be described, leaves the other checks as they are.
func TestDoctorWithoutADescription(t *testing.T) {
	c := newConsole(t)
	c.describe = &setUp{fault: &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized"}}
	e := c.examine(t)
	e.wants(t, checkTable, statusSkipped, "AccessDeniedException", "dynamodb:DescribeTable")
	e.wants(t, checkKeys, statusSkipped)
	e.wants(t, checkSequence, statusOK)
	e.wants(t, checkPermission, statusOK, "6 actions")

	c.describe = &setUp{fault: &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "DescribeTable", Err: errors.New("dial tcp: no route to host")}}
	c.examine(t).wants(t, checkTable, statusFailure, "no route to host", "dynamodb-endpoint")

	c = &console{table: memtable.New(memtable.Options{})}
	e = c.examine(t)
	e.wants(t, checkTable, statusFailure, "does not exist", "relay table create --table orders")
	for _, id := range []string{checkProtection, checkLeases, checkClock, checkSequence, checkPermission, checkTopics} {
		e.only(t, id, statusSkipped)
	}
}

// denies refuses some requests, as the service does for want of a permission.
type denies struct {
	store.API
	queries, puts, deletes bool
}

var errForbidden = &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized to perform it"}

func (d denies) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if d.queries {
		return nil, errForbidden
	}
	return d.API.Query(ctx, in, opts...)
}

func (d denies) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if d.puts {
		return nil, errForbidden
	}
	return d.API.PutItem(ctx, in, opts...)
}

func (d denies) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	if d.deletes {
		return nil, errForbidden
	}
	return d.API.BatchWriteItem(ctx, in, opts...)
}

// Each action that is not permitted is named; what it is needed for is skipped.
func TestDoctorWithoutPermissions(t *testing.T) {
	c := newConsole(t)
	c.through = func(api store.API) store.API { return denies{API: api, puts: true, deletes: true} }
	e := c.examine(t)
	e.wants(t, checkPermission, statusFailure, "dynamodb:PutItem", "relay table iam --role relay --table orders")
	e.wants(t, checkPermission, statusFailure, "dynamodb:BatchWriteItem")
	e.wants(t, checkPermission, statusOK, "4 actions")
	e.wants(t, checkSequence, statusOK)

	// An operator deletes no rows that were acknowledged.
	c.through = func(api store.API) store.API { return denies{API: api, deletes: true} }
	if e := c.examine(t, "--role", "operator"); e.code != exitDone {
		t.Errorf("an operator: %+v", e.outcome)
	}

	c.through = func(api store.API) store.API { return denies{API: api, queries: true} }
	e = c.examine(t)
	e.wants(t, checkPermission, statusFailure, "dynamodb:Query")
	for _, id := range []string{checkLeases, checkClock, checkSequence, checkBacklog, checkParked} {
		e.only(t, id, statusSkipped)
	}
}

// An examination leaves the table as it was.
func TestDoctorChangesNothing(t *testing.T) {
	c := newConsole(t)
	c.waits(t, 41)
	before := c.table.Items("orders")
	c.examine(t)
	if after := c.table.Items("orders"); len(after) != len(before) {
		t.Errorf("%d items before, %d after", len(before), len(after))
	}
}
