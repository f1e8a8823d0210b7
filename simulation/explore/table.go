package explore

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

type item = map[string]types.AttributeValue

// table is all that the table holds, as a value. Equal ones are one: their numbers
// tell them apart.
type table struct {
	number  int
	items   []item
	applied []applied // transactions that are remembered by their tokens
	veil    veil
	leases  []store.Lease // by bucket, as the store reads them
	relays  []store.RelayRecord
	rows    []int64 // numbers, ascending; there is one bucket with rows

	markers []store.Marker // of that bucket
	parked  []parkedRow    // ascending by key, then number
	broken  *Violation     // what is not as it must be in any table
}

// applied is one transaction that the table will know again.
type applied struct{ token, request string }

// parkedRow is one row that is set aside.
type parkedRow struct {
	keyID    string
	sequence int64
}

// tables are the tables that were ever seen, and what requests did to them: store and
// memtable are asked once for each request to each table.
type tables struct {
	schema    outbox.Schema
	plant     plant
	committed map[int64]item   // rows as they are written, by number
	keyIDs    map[int64]string // under which they may be set aside
	known     map[string]*table
	results   map[question]answer
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
	t := &tables{
		schema: outbox.Schema{Table: "outbox", BucketCount: o.Buckets}.WithDefaults(),
		plant:  o.plant, committed: map[int64]item{}, keyIDs: map[int64]string{},
		known: map[string]*table{}, results: map[question]answer{},
	}
	for i, row := range o.Rows {
		m, sequence := o.message(i), int64(i+1)
		t.committed[sequence], t.keyIDs[sequence] = t.schema.EncodeMessage(m, 0, sequence), outbox.ParkedKeyID(&m)
		if row.Unreadable {
			delete(t.committed[sequence], outbox.AttrMessageId)
			t.keyIDs[sequence], _ = t.schema.ParkedIdentity(t.committed[sequence])
		}
	}
	return t
}

// apply is what a request does to a table, or shows of it.
func (t *tables) apply(to *table, r store.Request, code string) answer {
	q := question{to.number, code}
	if known, ok := t.results[q]; ok {
		return known
	}
	var a answer
	if !writes(r) {
		db := t.fill(t.seen(to))
		a = answer{to, store.NewClient(t.schema, db, db).Do(context.Background(), r)}
	} else {
		api := &planted{DB: t.fill(to.items), tables: t, to: to, code: code, applied: to.applied}
		reply := store.NewClient(t.schema, api, api).Do(context.Background(), r)
		a = answer{t.of(api.Items(t.schema.Table), api.applied, to.veil), reply}
	}
	t.results[q] = a
	return a
}

// with is a table with one item more, or another in its place.
func (t *tables) with(before *table, i item) *table {
	db := t.fill(before.items)
	t.put(db, i)
	return t.of(db.Items(t.schema.Table), before.applied, before.veil)
}

func (t *tables) fill(items []item) *memtable.DB {
	db := memtable.New(memtable.Options{SharedReads: true})
	if err := store.CreateTable(context.Background(), db, t.schema); err != nil {
		panic(err)
	}
	for _, i := range items {
		t.put(db, i)
	}
	return db
}

func (t *tables) put(db *memtable.DB, i item) {
	if _, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &t.schema.Table, Item: i}); err != nil {
		panic(err)
	}
}

// of is the table that holds these items.
func (t *tables) of(items []item, remembered []applied, v veil) *table {
	var e encoder
	for _, i := range items {
		e.item(i)
	}
	e.text("")
	for _, one := range remembered {
		e.text(one.token)
		e.text(one.request)
	}
	e.text("")
	v.encode(&e)
	if known, ok := t.known[string(e.out)]; ok {
		return known
	}
	n := &table{
		number: len(t.known), items: items, applied: remembered, veil: v,
		leases: make([]store.Lease, t.schema.BucketCount),
	}
	t.known[string(e.out)] = n
	t.read(n)
	t.judge(n)
	return n
}

// read finds what the checks look at.
func (t *tables) read(n *table) {
	db := t.fill(n.items)
	client := store.NewClient(t.schema, db, db)
	ask := func(r store.Request) any { return client.Do(context.Background(), r).Result }
	page := ask(store.ReadCoordination{}).(store.CoordinationPage)
	for _, lease := range page.Leases {
		n.leases[lease.Bucket] = lease
	}
	n.relays = page.Relays
	n.markers = ask(store.ReadMarkers{}).(store.MarkersPage).Markers
	for _, i := range n.items {
		switch key := t.keyOf(i); key.hash {
		case t.schema.MessagesKey(0):
			if sequence, err := outbox.ParseSequence(key.sort); err == nil {
				n.rows = append(n.rows, sequence)
			}
		case t.schema.ParkedKey(0):
			if keyID, sequence, err := outbox.ParseParkedRow(key.sort); err == nil {
				n.parked = append(n.parked, parkedRow{keyID, sequence})
			}
		}
	}
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

// marker is the marker of a key, or of a topic; nil when there is none.
func (t *table) marker(keyID, topic string) *store.Marker {
	i := slices.IndexFunc(t.markers, func(m store.Marker) bool {
		return m.KeyID == keyID && (keyID != "" || m.Topic == topic)
	})
	if i < 0 {
		return nil
	}
	return &t.markers[i]
}

// isParked tells under which key a row is set aside; empty: it is not.
func (t *table) isParked(sequence int64) string {
	for _, one := range t.parked {
		if one.sequence == sequence {
			return one.keyID
		}
	}
	return ""
}

// item writes an item, its attributes sorted.
func (e *encoder) item(i item) {
	names := make([]string, 0, len(i))
	for name := range i {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		e.text(name)
		e.any(i[name])
	}
	e.text("")
}
