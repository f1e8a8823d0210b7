package memtable

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/store"
)

// The two ports that a DB stands behind.
var (
	_ store.API      = (*DB)(nil)
	_ store.TableAPI = (*DB)(nil)
)

// Options are the outside world of a DB; the zero value is a table that never
// forgets a transaction's token and processes every item of a batch.
type Options struct {
	// Now is the time by which transaction tokens are forgotten: what counts
	// is the difference of two readings, so that any origin will do. Default:
	// time stands still. It is called under the DB's lock and must not call back.
	Now func() time.Duration

	// Unprocessed chooses the requests of a BatchWriteItem that the call leaves
	// undone and returns, as the service does under load. It is asked once per
	// request, tables in the order of their names, requests in the caller's
	// order; the request is the caller's and not to be changed. Default: none.
	// It is called under the DB's lock and must not call back.
	Unprocessed func(table string, request types.WriteRequest) bool

	// SharedReads spares GetItem, Query and Scan the copying of whole items:
	// they return the stored ones, which the caller then must not change.
	// Default: copies, as over a network.
	SharedReads bool
}

// DB is one account's tables in memory. Its methods have the signatures and
// the behaviour of *dynamodb.Client; they ignore the SDK's per-call options.
// A DB is safe for concurrent use; each call happens at one instant.
type DB struct {
	options Options

	mu sync.Mutex
	// Invariant: a table's items are admitted values (see admit), at most
	// maxItem bytes each, and never changed in place.
	tables map[string]*table
	tokens tokens
	parsed expressions
}

// New makes an empty DB, without tables.
func New(o Options) *DB {
	if o.Now == nil {
		o.Now = func() time.Duration { return 0 }
	}
	if o.Unprocessed == nil {
		o.Unprocessed = func(string, types.WriteRequest) bool { return false }
	}
	return &DB{options: o, tables: make(map[string]*table), parsed: newExpressions()}
}

// Items is a copy of all items of a table, in ascending order of their keys;
// nil when there is no such table. It is for observers (tests, the
// simulation's checkers): it consumes nothing and has no pages.
func (db *DB) Items(name string) []map[string]types.AttributeValue {
	db.mu.Lock()
	defer db.mu.Unlock()
	t, found := db.tables[name]
	if !found {
		return nil
	}
	items := []map[string]types.AttributeValue{}
	for _, hash := range sortedKeys(t.partitions) {
		for _, row := range t.partitions[hash].rows {
			items = append(items, clone(row.item))
		}
	}
	return items
}

// SortKeys are the sort keys of one partition of a table whose keys are texts,
// ascending. It is for observers, like Items, and copies no item.
func (db *DB) SortKeys(table, hash string) []string {
	db.mu.Lock()
	defer db.mu.Unlock()
	t, found := db.tables[table]
	if !found || t.partitions[hash] == nil {
		return nil
	}
	rows := t.partitions[hash].rows
	keys := make([]string, len(rows))
	for i, row := range rows {
		keys[i] = row.sort
	}
	return keys
}

// Peek is the item with a key in a table whose keys are texts, nil when there is
// none or no such table. Sort is empty in a table without a sort key. It is for
// observers, like Items, but returns the stored item itself: it and its values
// must not be changed, and stay as they are when the item is replaced.
func (db *DB) Peek(table, hash, sort string) map[string]types.AttributeValue {
	db.mu.Lock()
	defer db.mu.Unlock()
	t, found := db.tables[table]
	if !found {
		return nil
	}
	r := t.row(key{hash, sort})
	if r == nil {
		return nil
	}
	return r.item
}

// outgoing is a stored item as a read returns it.
func (db *DB) outgoing(stored item) item {
	if db.options.SharedReads {
		return stored
	}
	return clone(stored)
}

// table finds a table by the name that a request gives.
func (db *DB) table(name *string) (*table, error) {
	if name == nil {
		return nil, noSuchTable()
	}
	t, found := db.tables[*name]
	if !found {
		return nil, noSuchTable()
	}
	return t, nil
}
