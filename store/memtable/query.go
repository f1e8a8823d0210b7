package memtable

import (
	"context"
	"slices"
	"sort"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxPage is how many bytes of items one query or scan goes over at most.
const maxPage = 1024 * 1024

// page collects what a query or scan found.
type page struct {
	db      *DB
	limit   int // items to evaluate; 0: no limit
	binding *binding
	filter  condition // nil: none
	paths   []path    // nil: whole items
	counts  bool      // no items, the count only

	items          []map[string]types.AttributeValue
	count, scanned int32
	size           int
	last           *row // evaluated last
	full           bool // there may be more behind last
}

// take evaluates one row and reports whether the page is full. A page ends
// before a row that would take it beyond maxPage, and behind the row that
// reaches the limit, whether there is a next one or not.
func (p *page) take(r *row) (full bool) {
	if p.size+r.size > maxPage {
		p.full = true
		return true
	}
	p.scanned++
	p.size += r.size
	p.last = r
	if p.filter == nil || p.filter.holds(p.binding, r.item) {
		p.count++
		p.keep(r.item)
	}
	p.full = int(p.scanned) == p.limit
	return p.full
}

// fill takes rows until the page is full.
func (p *page) fill(rows []*row) (full bool) { return slices.ContainsFunc(rows, p.take) }

func (p *page) keep(found item) {
	switch {
	case p.counts:
	case p.paths != nil:
		p.items = append(p.items, project(found, p.paths))
	default:
		p.items = append(p.items, p.db.outgoing(found))
	}
}

// pageParameters is what queries and scans have in common.
type pageParameters struct {
	limit              *int32
	filter, projection *string
	selected           types.Select
	index              *string
}

func (db *DB) newPage(t *table, b *binding, p pageParameters) (*page, error) {
	if p.index != nil {
		return nil, invalid("The table does not have the specified index: %s", *p.index)
	}
	if p.limit != nil && *p.limit < 1 {
		return nil, invalid("Limit must be greater than or equal to 1")
	}
	filter, err := b.filter(t, p.filter)
	if err != nil {
		return nil, err
	}
	paths, err := b.projection(p.projection)
	if err != nil {
		return nil, err
	}
	switch p.selected {
	case "", types.SelectAllAttributes, types.SelectSpecificAttributes, types.SelectCount:
	default:
		return nil, invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	}
	if paths != nil && p.selected != "" && p.selected != types.SelectSpecificAttributes {
		return nil, invalid("Cannot specify the ProjectionExpression when choosing to get %s", p.selected)
	}
	if paths == nil && p.selected == types.SelectSpecificAttributes {
		return nil, invalid("Must specify the ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
	}
	made := &page{db: db, limit: int(aws.ToInt32(p.limit)), binding: b, filter: filter, paths: paths}
	made.counts = p.selected == types.SelectCount
	if !made.counts {
		made.items = []map[string]types.AttributeValue{}
	}
	return made, nil
}

// Query reads one page of one partition.
func (db *DB) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return call(ctx, db, "Query", func() (*dynamodb.QueryOutput, error) {
		if err := demand("Query", required{"TableName", in.TableName != nil}); err != nil {
			return nil, err
		}
		if in.KeyConditions != nil || in.QueryFilter != nil || in.AttributesToGet != nil || in.ConditionalOperator != "" {
			return nil, unserved("KeyConditions, QueryFilter and AttributesToGet")
		}
		t, err := db.table(in.TableName)
		if err != nil {
			return nil, err
		}
		if in.KeyConditionExpression == nil {
			return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
		}
		b, err := db.bind(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
		if err != nil {
			return nil, err
		}
		selected, err := b.keyRange(t, in.KeyConditionExpression)
		if err != nil {
			return nil, err
		}
		p, err := db.newPage(t, b, pageParameters{in.Limit, in.FilterExpression, in.ProjectionExpression, in.Select, in.IndexName})
		if err != nil {
			return nil, err
		}
		if err := b.complete(); err != nil {
			return nil, err
		}
		forward := in.ScanIndexForward == nil || *in.ScanIndexForward
		rows, err := t.run(selected, in.ExclusiveStartKey, forward)
		if err != nil {
			return nil, err
		}
		p.fill(rows)
		return &dynamodb.QueryOutput{
			Items: p.items, Count: p.count, ScannedCount: p.scanned, LastEvaluatedKey: p.resume(t),
			ConsumedCapacity: consumed(in.ReturnConsumedCapacity, *in.TableName, readUnits(p.size, in.ConsistentRead)),
		}, nil
	})
}

// run is the rows that a query goes over, in its own order, after its start.
func (t *table) run(selected keyRange, start item, forward bool) ([]*row, error) {
	rows := selected.of(t.rows(selected.hash))
	if start != nil {
		k, err := t.startKey(start)
		if err != nil {
			return nil, err
		}
		if k.hash != selected.hash || !selected.holds(k.sort) {
			return nil, invalid("The provided starting key is outside query boundaries based on provided conditions")
		}
		at, found := (&partition{rows}).find(k.sort)
		switch {
		case !forward:
			rows = rows[:at]
		case found:
			rows = rows[at+1:]
		default:
			rows = rows[at:]
		}
	}
	if !forward {
		rows = slices.Clone(rows)
		slices.Reverse(rows)
	}
	return rows, nil
}

// startKey reads an ExclusiveStartKey.
func (t *table) startKey(start item) (key, error) {
	admitted, err := admit(start)
	if err != nil {
		return key{}, err
	}
	k, err := t.exactKey(admitted)
	if err != nil {
		return key{}, invalid("The provided starting key is invalid: %s", messageOf(err))
	}
	return k, nil
}

// resume is the LastEvaluatedKey: where the next page begins, nil when there
// is none.
func (p *page) resume(t *table) item {
	if !p.full {
		return nil
	}
	return t.keyItem(p.last.item)
}

// Scan reads one page of the table, partitions in ascending order of their
// keys (the service's own order is by a hash). Segments are not served.
func (db *DB) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return call(ctx, db, "Scan", func() (*dynamodb.ScanOutput, error) {
		if err := demand("Scan", required{"TableName", in.TableName != nil}); err != nil {
			return nil, err
		}
		if in.ScanFilter != nil || in.AttributesToGet != nil || in.ConditionalOperator != "" || in.TotalSegments != nil {
			return nil, unserved("ScanFilter, AttributesToGet and segments")
		}
		t, err := db.table(in.TableName)
		if err != nil {
			return nil, err
		}
		b, err := db.bind(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
		if err != nil {
			return nil, err
		}
		p, err := db.newPage(t, b, pageParameters{in.Limit, in.FilterExpression, in.ProjectionExpression, in.Select, in.IndexName})
		if err != nil {
			return nil, err
		}
		if err := b.complete(); err != nil {
			return nil, err
		}
		var after key
		if in.ExclusiveStartKey != nil {
			if after, err = t.startKey(in.ExclusiveStartKey); err != nil {
				return nil, err
			}
		}
		p.scan(t, after)
		return &dynamodb.ScanOutput{
			Items: p.items, Count: p.count, ScannedCount: p.scanned, LastEvaluatedKey: p.resume(t),
			ConsumedCapacity: consumed(in.ReturnConsumedCapacity, *in.TableName, readUnits(p.size, in.ConsistentRead)),
		}, nil
	})
}

// scan takes the rows behind a key until the page is full.
func (p *page) scan(t *table, after key) {
	hashes := sortedKeys(t.partitions)
	for _, hash := range hashes[sort.SearchStrings(hashes, after.hash):] {
		rows := t.rows(hash)
		if hash == after.hash {
			at, found := t.partitions[hash].find(after.sort)
			if found {
				at++
			}
			rows = rows[at:]
		}
		if p.fill(rows) {
			return
		}
	}
}
