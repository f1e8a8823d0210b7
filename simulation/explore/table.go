package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// table is all that the table holds, as a value. Equal ones are one: their numbers
// tell them apart.
type table struct {
	number int
	items  []map[string]types.AttributeValue
	leases []store.Lease // by bucket, as the store reads them
	relays []store.RelayRecord
	rows   []int64 // numbers, ascending; there is one bucket with rows
}

// tables are the tables that were ever seen, and what requests did to them: store and
// memtable are asked once for each request to each table.
type tables struct {
	schema  outbox.Schema
	plant   plant
	known   map[string]*table
	results map[question]answer
}

type question struct {
	table   int
	request string
}

type answer struct {
	after *table
	reply store.Reply
}

func newTables(o Options) *tables {
	return &tables{
		schema: outbox.Schema{Table: "outbox", BucketCount: o.Buckets}.WithDefaults(),
		plant:  o.plant, known: map[string]*table{}, results: map[question]answer{},
	}
}

// apply is what a request does to a table.
func (t *tables) apply(to *table, r store.Request, code string) answer {
	q := question{to.number, code}
	if known, ok := t.results[q]; ok {
		return known
	}
	db := t.fill(to.items)
	api := planted{db, t.plant}
	reply := store.NewClient(t.schema, api, api).Do(context.Background(), r)
	a := answer{t.of(db.Items(t.schema.Table)), reply}
	t.results[q] = a
	return a
}

// with is a table with one item more, or another in its place.
func (t *tables) with(before *table, item map[string]types.AttributeValue) *table {
	db := t.fill(before.items)
	t.put(db, item)
	return t.of(db.Items(t.schema.Table))
}

func (t *tables) fill(items []map[string]types.AttributeValue) *memtable.DB {
	db := memtable.New(memtable.Options{})
	if err := store.CreateTable(context.Background(), db, t.schema); err != nil {
		panic(err)
	}
	for _, item := range items {
		t.put(db, item)
	}
	return db
}

func (t *tables) put(db *memtable.DB, item map[string]types.AttributeValue) {
	if _, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &t.schema.Table, Item: item}); err != nil {
		panic(err)
	}
}

// of is the table that holds these items.
func (t *tables) of(items []map[string]types.AttributeValue) *table {
	var e encoder
	for _, item := range items {
		e.item(item)
	}
	if known, ok := t.known[string(e.out)]; ok {
		return known
	}
	n := &table{number: len(t.known), items: items, leases: make([]store.Lease, t.schema.BucketCount)}
	t.known[string(e.out)] = n
	db := t.fill(items)
	client := store.NewClient(t.schema, db, db)
	page := client.Do(context.Background(), store.ReadCoordination{}).Result.(store.CoordinationPage)
	for _, lease := range page.Leases {
		n.leases[lease.Bucket] = lease
	}
	n.relays = page.Relays
	rows := client.Do(context.Background(), store.Fetch{Limit: 1000}).Result.(store.Fetched)
	for _, row := range rows.Rows {
		n.rows = append(n.rows, row.Sequence)
	}
	return n
}

// item writes an item, its attributes sorted.
func (e *encoder) item(item map[string]types.AttributeValue) {
	names := make([]string, 0, len(item))
	for name := range item {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		e.text(name)
		e.any(item[name])
	}
	e.text("")
}

// requestCode tells requests apart by what they do to a table: until when they may
// leave does not count.
func requestCode(r store.Request) string {
	var e encoder
	e.any(withoutDeadline(r))
	return string(e.out)
}

func withoutDeadline(r store.Request) store.Request {
	switch r := r.(type) {
	case store.Heartbeat:
		r.NotAfter = store.Instant{}
		return r
	case store.ReadCoordination:
		r.NotAfter = store.Instant{}
		return r
	case store.Claim:
		r.NotAfter = store.Instant{}
		return r
	case store.Keep:
		r.NotAfter = store.Instant{}
		return r
	case store.Release:
		r.NotAfter = store.Instant{}
		return r
	case store.StampStopped:
		r.NotAfter = store.Instant{}
		return r
	case store.Prune:
		r.NotAfter = store.Instant{}
		return r
	case store.Discover:
		r.NotAfter = store.Instant{}
		return r
	case store.Fetch:
		r.NotAfter = store.Instant{}
		return r
	case store.Probe:
		r.NotAfter = store.Instant{}
		return r
	case store.Delete:
		r.NotAfter = store.Instant{}
		return r
	case store.ReadMarkers:
		r.NotAfter = store.Instant{}
		return r
	}
	panic(fmt.Sprintf("explore: unknown request %T", r))
}

// planted stands between the store and the table, and changes conditions where a
// test has planted a bug.
type planted struct {
	*memtable.DB
	plant plant
}

func (p planted) edit(condition, update *string) *string {
	if p.plant.condition == nil || condition == nil {
		return condition
	}
	edited := p.plant.condition(aws.ToString(update), *condition)
	if edited == "" {
		return nil
	}
	return &edited
}

// PutItem implements store.API.
func (p planted) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	in.ConditionExpression = p.edit(in.ConditionExpression, nil)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = used(in.ConditionExpression, nil, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	return p.DB.PutItem(ctx, in, opts...)
}

// UpdateItem implements store.API.
func (p planted) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.ConditionExpression = p.edit(in.ConditionExpression, in.UpdateExpression)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = used(in.ConditionExpression, in.UpdateExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	return p.DB.UpdateItem(ctx, in, opts...)
}

// DeleteItem implements store.API.
func (p planted) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	in.ConditionExpression = p.edit(in.ConditionExpression, nil)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = used(in.ConditionExpression, nil, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	return p.DB.DeleteItem(ctx, in, opts...)
}

// used are the names and values that the expressions still mention: the service
// refuses others.
func used(condition, update *string, names map[string]string, values map[string]types.AttributeValue) (map[string]string, map[string]types.AttributeValue) {
	text := ""
	for _, expression := range []*string{condition, update} {
		if expression != nil {
			text += *expression + " "
		}
	}
	keptNames, keptValues := map[string]string{}, map[string]types.AttributeValue{}
	for name, attribute := range names {
		if strings.Contains(text, name) {
			keptNames[name] = attribute
		}
	}
	for name, value := range values {
		if strings.Contains(text, name) {
			keptValues[name] = value
		}
	}
	if len(keptNames) == 0 {
		keptNames = nil
	}
	if len(keptValues) == 0 {
		keptValues = nil
	}
	return keptNames, keptValues
}

// record is a relay's heartbeat item; zero: there is none.
func (t *table) record(relay string) store.RelayRecord {
	for _, r := range t.relays {
		if r.ID == relay {
			return r
		}
	}
	return store.RelayRecord{}
}
