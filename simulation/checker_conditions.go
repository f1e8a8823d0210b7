package simulation

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// A transaction's conditions are there for tables that a run hardly ever has: a move that
// lands two tenures late, a wish for a retry within a few milliseconds. So each
// transaction is also carried out on small tables of its own: on the one that it was made
// for, where it must be applied, and on those that differ from it in one thing,
// where it must not.

// asideTable is a table with just what one transaction is about.
type asideTable struct {
	schema outbox.Schema
	tenure store.Tenure
	items  map[string]map[string]types.AttributeValue // by what they are
}

// difference is one thing that is not as a transaction demands.
type difference struct {
	what string
	make func(asideTable)
	// harmless: it is to be applied all the same.
	harmless bool
}

// imagine carries a transaction out on its own tables.
func (c *checker) imagine(p *process, r store.Request, t asideWrite) {
	whole, differences := c.imagined(r, t.tenure)
	for _, d := range append(differences, difference{what: "all is as it demands", make: func(asideTable) {}, harmless: true}) {
		table := asideTable{whole.schema, whole.tenure, maps.Clone(whole.items)}
		d.make(table)
		want := store.Refused
		if d.harmless {
			want = store.Done
		}
		if got := table.carryOut(r); got != want {
			c.about(p.name, t.tenure.Bucket).violated("I-37", "%s: a %s would be %v, must be %v, if %s", p.name, r.RequestName(), got, want, d.what)
		}
	}
}

// imagined is the table that a transaction was made for, and what may differ.
func (c *checker) imagined(r store.Request, tenure store.Tenure) (asideTable, []difference) {
	table := asideTable{c.fleet.schema, tenure, map[string]map[string]types.AttributeValue{}}
	table.set("lease", c.fleet.schema.CoordinationKey(), outbox.LeaseSortKey(tenure.Bucket), map[string]types.AttributeValue{
		outbox.AttrOwner:       &types.AttributeValueMemberS{Value: tenure.Relay},
		outbox.AttrIncarnation: &types.AttributeValueMemberS{Value: tenure.Incarnation},
		outbox.AttrClaim:       digits(tenure.Claim),
	})
	differences := []difference{
		other("another relay has the lease", "lease", outbox.AttrOwner, &types.AttributeValueMemberS{Value: "another"}),
		other("another process of the same id has the lease", "lease", outbox.AttrIncarnation, &types.AttributeValueMemberS{Value: "another"}),
		other("the lease is of a later tenure", "lease", outbox.AttrClaim, digits(tenure.Claim+1)),
	}
	switch r := r.(type) {
	case store.Mark:
		differences = append(differences, difference{what: "the key has a marker", make: func(t asideTable) { t.mark("marker", r.Markers[0]) }})
	case store.Move:
		return table, append(differences, c.imaginedMove(table, r)...)
	case store.Unmark:
		return table, append(differences, imaginedMarker(table, r.Marker)...)
	case store.EndRetry:
		return table, append(differences, imaginedMarker(table, r.Marker)...)
	}
	return table, differences
}

// imaginedMove fills the table of a move. Of its rows and markers one differs.
func (c *checker) imaginedMove(table asideTable, r store.Move) []difference {
	for i, m := range r.Markers {
		table.mark(fmt.Sprint("marker ", i), m)
	}
	for i, m := range r.Rows {
		table.items[fmt.Sprint("row ", i)] = m.Row.Item
	}
	row := c.moved % len(r.Rows)
	there := func(t asideTable, id types.AttributeValue) {
		m := r.Rows[row]
		t.set("there", t.schema.ParkedKey(t.tenure.Bucket), outbox.ParkedRowSortKey(m.KeyID, m.Row.Sequence),
			map[string]types.AttributeValue{outbox.AttrMessageId: id})
	}
	differences := []difference{
		gone("a row is gone", fmt.Sprint("row ", row)),
		{what: "another message is set aside under its number", make: func(t asideTable) {
			there(t, &types.AttributeValueMemberS{Value: "another"})
		}},
		{what: "the same message is set aside", harmless: true, make: func(t asideTable) {
			there(t, r.Rows[row].Row.Item[outbox.AttrMessageId])
		}},
	}
	if len(r.Markers) == 0 { // which is found out when it is applied
		return differences
	}
	marker := fmt.Sprint("marker ", c.moved%len(r.Markers))
	return append(differences, gone("a key has no marker", marker),
		other("a key was set aside anew", marker, outbox.AttrParkedAtUtc, digits(1)))
}

// imaginedMarker fills the table of what ends a marker, or its retry.
func imaginedMarker(table asideTable, m store.Marker) []difference {
	table.mark("marker", m)
	differences := []difference{
		gone("the marker is gone", "marker"),
		other("it was set aside anew", "marker", outbox.AttrParkedAtUtc, digits(int64(m.ParkedAt)+1)),
		other("somebody has asked for a retry meanwhile", "marker", outbox.AttrRetryAtUtc, digits(int64(m.RetryAt)+1)),
	}
	if m.KeyID == "" { // a topic has no attempts
		return differences
	}
	return append(differences, other("a retry of it has failed meanwhile", "marker", outbox.AttrAttempts, digits(int64(m.Attempts)+1)))
}

func gone(what, name string) difference {
	return difference{what: what, make: func(t asideTable) { delete(t.items, name) }}
}

func other(what, name, attribute string, value types.AttributeValue) difference {
	return difference{what: what, make: func(t asideTable) {
		item := maps.Clone(t.items[name])
		item[attribute] = value
		t.items[name] = item
	}}
}

func digits(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

func (t asideTable) set(name, partition, sort string, attributes map[string]types.AttributeValue) {
	item := t.schema.Key(partition, sort)
	maps.Copy(item, attributes)
	t.items[name] = item
}

func (t asideTable) mark(name string, m store.Marker) {
	sort := outbox.ParkedTopicSortKey(m.Topic)
	if m.KeyID != "" {
		sort = outbox.ParkedKeySortKey(m.KeyID)
	}
	attributes := map[string]types.AttributeValue{outbox.AttrParkedAtUtc: digits(int64(m.ParkedAt))}
	if m.Attempts != 0 {
		attributes[outbox.AttrAttempts] = digits(int64(m.Attempts))
	}
	if m.RetryAt != 0 {
		attributes[outbox.AttrRetryAtUtc] = digits(int64(m.RetryAt))
	}
	t.set(name, t.schema.ParkedKey(t.tenure.Bucket), sort, attributes)
}

// carryOut is what becomes of a transaction on the table.
func (t asideTable) carryOut(r store.Request) store.Class {
	db := memtable.New(memtable.Options{Now: func() time.Duration { return 0 }})
	if err := store.CreateTable(context.Background(), db, t.schema); err != nil {
		panic(err)
	}
	for _, item := range t.items { // the order does not matter
		if _, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &t.schema.Table, Item: item}); err != nil {
			panic(err)
		}
	}
	return store.NewClient(t.schema, db, db).Do(context.Background(), r).Class
}
