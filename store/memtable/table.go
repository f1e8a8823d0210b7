package memtable

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// Limits of the service.
const (
	maxItem    = 400 * 1024 // bytes of an item, attribute names included
	maxHashKey = 2048       // bytes of a partition key
	maxSortKey = 1024       // bytes of a sort key
)

// keyAttribute is one attribute of a table's primary key.
type keyAttribute struct {
	name  string
	kind  types.ScalarAttributeType
	limit int // bytes
}

// key is a row's primary key in a form whose byte order is the order of the
// service; sort is empty in a table without a sort key.
type key struct{ hash, sort string }

// sized is an item and its size in bytes by the service's rules; the zero value
// is none.
type sized struct {
	item item
	size int
}

func measured(attributes item) sized { return sized{attributes, outbox.ItemSize(attributes)} }

// row is one stored item under its sort key.
type row struct {
	sort string
	sized
}

// partition holds the rows of one partition key.
//
// Invariant: rows ascend strictly by sort, and there is at least one.
type partition struct{ rows []*row }

// table holds rows in partitions, by hash.
type table struct {
	description types.TableDescription
	hash        keyAttribute
	sort        *keyAttribute // nil: none
	partitions  map[string]*partition
}

func (t *table) name() string { return *t.description.TableName }

func (t *table) isKey(name string) bool {
	return name == t.hash.name || t.sort != nil && name == t.sort.name
}

// keyOf reads the primary key out of an item.
func (t *table) keyOf(attributes item) (key, error) {
	hash, err := t.hash.encode(attributes)
	if err != nil {
		return key{}, err
	}
	if t.sort == nil {
		return key{hash: hash}, nil
	}
	sort, err := t.sort.encode(attributes)
	return key{hash: hash, sort: sort}, err
}

// exactKey reads a Key parameter, which has the key's attributes only.
func (t *table) exactKey(attributes item) (key, error) {
	count := 1
	if t.sort != nil {
		count = 2
	}
	if len(attributes) != count || !t.hash.fits(attributes) || t.sort != nil && !t.sort.fits(attributes) {
		return key{}, invalid("The provided key element does not match the schema")
	}
	return t.keyOf(attributes)
}

// fits reports whether the attribute is there, with the right type.
func (a *keyAttribute) fits(attributes item) bool {
	return typeName(attributes[a.name]) == string(a.kind)
}

// encode renders the attribute's value for ordering. Missing attributes,
// other types, empty and overlong values are refused.
func (a *keyAttribute) encode(attributes item) (string, error) {
	value, found := attributes[a.name]
	if !found {
		return "", invalid("One or more parameter values were invalid: Missing the key %s in the item", a.name)
	}
	if !a.fits(attributes) {
		return "", invalid("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s",
			a.name, a.kind, typeName(value))
	}
	encoded := encodeKey(value)
	if encoded == "" {
		kind := "string"
		if a.kind == types.ScalarAttributeTypeB {
			kind = "binary"
		}
		return "", invalid("One or more parameter values are not valid. "+
			"The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", kind, a.name)
	}
	if len(encoded) > a.limit {
		return "", invalid("One or more parameter values were invalid: "+
			"Size of key %s has exceeded the maximum size limit of %d bytes", a.name, a.limit)
	}
	return encoded, nil
}

// encodeKey renders a key attribute's value so that byte order is key order;
// values of one type only are compared.
func encodeKey(value types.AttributeValue) string {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	case *types.AttributeValueMemberN:
		return number(v).orderKey()
	}
	return ""
}

// keyItem is the primary key of an item, as attributes of their own.
func (t *table) keyItem(of item) item {
	k := item{t.hash.name: cloneValue(of[t.hash.name])}
	if t.sort != nil {
		k[t.sort.name] = cloneValue(of[t.sort.name])
	}
	return k
}

// find is where the sort key's row is in the partition, or would be.
func (p *partition) find(sort string) (at int, found bool) {
	return slices.BinarySearchFunc(p.rows, sort, func(r *row, sort string) int { return strings.Compare(r.sort, sort) })
}

// row returns the key's row, nil when there is none.
func (t *table) row(k key) *row {
	p, found := t.partitions[k.hash]
	if !found {
		return nil
	}
	at, found := p.find(k.sort)
	if !found {
		return nil
	}
	return p.rows[at]
}

// rows returns a partition's rows in ascending order, not to be changed.
func (t *table) rows(hash string) []*row {
	if p, found := t.partitions[hash]; found {
		return p.rows
	}
	return nil
}

// put stores an admitted item under its key, replacing the one before.
func (t *table) put(k key, admitted sized) {
	p, found := t.partitions[k.hash]
	if !found {
		p = &partition{}
		t.partitions[k.hash] = p
	}
	stored := &row{k.sort, admitted}
	at, found := p.find(k.sort)
	if found {
		p.rows[at] = stored
		return
	}
	p.rows = slices.Insert(p.rows, at, stored)
}

// remove deletes the key's row, if there is one. The head goes without a
// move of the others: a relay deletes from there.
func (t *table) remove(k key) {
	p, found := t.partitions[k.hash]
	if !found {
		return
	}
	at, found := p.find(k.sort)
	switch {
	case !found:
		return
	case at == 0:
		p.rows[0] = nil
		p.rows = p.rows[1:]
	default:
		p.rows = slices.Delete(p.rows, at, at+1)
	}
	if len(p.rows) == 0 {
		delete(t.partitions, k.hash)
	}
}
