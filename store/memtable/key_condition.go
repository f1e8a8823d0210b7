package memtable

import (
	"slices"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// keyRange is what a key condition selects: a run of one partition's rows.
// Both functions are monotonic along ascending sort keys.
type keyRange struct {
	hash   string
	before func(sort string) bool // the row comes before the run
	within func(sort string) bool // the row, if not before, belongs to the run
}

func anywhere(string) bool { return true }
func nowhere(string) bool  { return false }

// of cuts the run out of a partition's ascending rows.
func (r keyRange) of(rows []*row) []*row {
	rows = rows[sort.Search(len(rows), func(i int) bool { return !r.before(rows[i].sort) }):]
	return rows[:sort.Search(len(rows), func(i int) bool { return !r.within(rows[i].sort) })]
}

// holds reports whether a sort key lies in the run.
func (r keyRange) holds(sort string) bool { return !r.before(sort) && r.within(sort) }

// keyRange parses a KeyConditionExpression: equality on the partition key and
// at most one comparison of the sort key.
func (b *binding) keyRange(t *table, text *string) (keyRange, error) {
	root, err := b.condition("KeyConditionExpression", text)
	if err != nil {
		return keyRange{}, err
	}
	r := keyRange{before: nowhere, within: anywhere}
	var hashSeen, sortSeen bool
	for _, part := range conjuncts(root) {
		name, err := b.keyOperand(part)
		switch {
		case err != nil:
			return keyRange{}, err
		case name == t.hash.name && !hashSeen:
			hashSeen = true
			if r.hash, err = b.partitionKey(&t.hash, part); err != nil {
				return keyRange{}, err
			}
		case t.sort != nil && name == t.sort.name && !sortSeen:
			sortSeen = true
			if err := b.sortRange(&r, t.sort, part); err != nil {
				return keyRange{}, err
			}
		case name == t.hash.name, t.sort != nil && name == t.sort.name:
			return keyRange{}, invalid("KeyConditionExpressions must only contain one condition per key")
		default:
			return keyRange{}, invalid("Query condition missed key schema element: %s", t.missing(hashSeen))
		}
	}
	if !hashSeen {
		return keyRange{}, invalid("Query condition missed key schema element: %s", t.hash.name)
	}
	return r, nil
}

func (t *table) missing(hashSeen bool) string {
	if hashSeen && t.sort != nil {
		return t.sort.name
	}
	return t.hash.name
}

// conjuncts are the conditions that AND joins, left to right.
func conjuncts(root condition) []condition {
	if and, joined := root.(*both); joined {
		return append(conjuncts(and.left), conjuncts(and.right)...)
	}
	return []condition{root}
}

// keyOperand is the attribute that a part of a key condition is about.
func (b *binding) keyOperand(part condition) (string, error) {
	var subject operand
	switch c := part.(type) {
	case *comparison:
		if c.operator == "<>" {
			return "", invalid("Invalid operator used in KeyConditionExpression: <>")
		}
		subject = c.left
	case *between:
		subject = c.subject
	case *beginsWith:
		subject = c.subject
	default:
		return "", invalid("Invalid operator used in KeyConditionExpression")
	}
	attribute, isPath := subject.(path)
	if !isPath {
		return "", invalid("Invalid condition in KeyConditionExpression: a key attribute has to come first")
	}
	if len(attribute) != 1 {
		return "", invalid("KeyConditionExpressions cannot contain nested operations")
	}
	return b.name(attribute[0].name), nil
}

// bound is the encoded value that a key attribute is compared with.
func (b *binding) bound(a *keyAttribute, o operand) (string, error) {
	value, isVariable := o.(variable)
	if !isVariable {
		return "", invalid("Invalid condition in KeyConditionExpression: a key is compared with a value")
	}
	given := item{a.name: value.of(b, nil)}
	if !a.fits(given) {
		return "", invalid("One or more parameter values were invalid: Condition parameter type does not match schema type")
	}
	return a.encode(given)
}

func (b *binding) partitionKey(a *keyAttribute, part condition) (string, error) {
	c, isComparison := part.(*comparison)
	if !isComparison || c.operator != "=" {
		return "", invalid("Query key condition not supported")
	}
	return b.bound(a, c.right)
}

func (b *binding) sortRange(r *keyRange, a *keyAttribute, part condition) error {
	switch c := part.(type) {
	case *comparison:
		edge, err := b.bound(a, c.right)
		if err != nil {
			return err
		}
		r.compare(c.operator, edge)
	case *between:
		low, err := b.bound(a, c.low)
		if err != nil {
			return err
		}
		high, err := b.bound(a, c.high)
		if err != nil {
			return err
		}
		r.compare(">=", low)
		r.compare("<=", high)
	case *beginsWith:
		prefix, err := b.bound(a, c.prefix)
		if err != nil {
			return err
		}
		if a.kind == types.ScalarAttributeTypeN {
			return invalid("Query key condition not supported")
		}
		r.compare(">=", prefix)
		r.within = func(sort string) bool { return strings.HasPrefix(sort, prefix) }
	}
	return nil
}

// compare narrows the run by one comparison with its edge.
func (r *keyRange) compare(operator, edge string) {
	switch operator {
	case "<":
		r.within = func(sort string) bool { return sort < edge }
	case "<=":
		r.within = func(sort string) bool { return sort <= edge }
	case ">":
		r.before = func(sort string) bool { return sort <= edge }
	case ">=":
		r.before = func(sort string) bool { return sort < edge }
	case "=":
		r.before = func(sort string) bool { return sort < edge }
		r.within = func(sort string) bool { return sort == edge }
	}
}

// filter parses a FilterExpression, which may not look at the primary key.
func (b *binding) filter(t *table, text *string) (condition, error) {
	root, err := b.condition("FilterExpression", text)
	if err != nil || root == nil {
		return nil, err
	}
	parsed, err := b.parsed.conditions.get(*text)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(parsed.attributes, func(name string) bool { return t.isKey(b.name(name)) })
	if at >= 0 {
		return nil, invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s",
			b.name(parsed.attributes[at]))
	}
	return root, nil
}
