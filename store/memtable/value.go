package memtable

import (
	"bytes"
	"slices"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is one row's attributes. Items inside the table are never changed in
// place: a write stores a new one, and what leaves the table is a copy.
type item = map[string]types.AttributeValue

// maxDepth is how deep lists and maps may nest.
const maxDepth = 32

// admit copies a caller's attributes into the table's own memory, checks them
// and writes numbers the service's way.
func admit(attributes item) (item, error) {
	if _, found := attributes[""]; found {
		return nil, invalid("One or more parameter values were invalid: An attribute name may not be empty")
	}
	return admitFields(attributes, maxDepth)
}

// admitFields admits attributes, or the fields of a map. Of several faults it
// returns that of the first name, whatever the order of the map.
func admitFields(fields item, depth int) (item, error) {
	admitted := make(item, len(fields))
	var fault error
	var at string
	for name, value := range fields {
		value, err := admitValue(value, depth)
		if err != nil && (fault == nil || name < at) {
			fault, at = err, name
		}
		admitted[name] = value
	}
	if fault != nil {
		return nil, fault
	}
	return admitted, nil
}

func admitValue(value types.AttributeValue, depth int) (types.AttributeValue, error) {
	if depth < 0 {
		return nil, invalid("Nesting Levels have exceeded supported limits: Attributes can be nested up to 32 levels")
	}
	switch v := value.(type) {
	case *types.AttributeValueMemberN:
		if isPlainInteger(v.Value) {
			return &types.AttributeValueMemberN{Value: v.Value}, nil
		}
		d, err := parseDecimal(v.Value)
		if err != nil {
			return nil, err
		}
		return &types.AttributeValueMemberN{Value: d.String()}, nil
	case *types.AttributeValueMemberNULL:
		if !v.Value {
			return nil, invalid("One or more parameter values were invalid: Null attribute value types must have the value of true")
		}
	case *types.AttributeValueMemberL:
		list := make([]types.AttributeValue, len(v.Value))
		for i, element := range v.Value {
			admitted, err := admitValue(element, depth-1)
			if err != nil {
				return nil, err
			}
			list[i] = admitted
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	case *types.AttributeValueMemberM:
		fields, err := admitFields(v.Value, depth-1)
		if err != nil {
			return nil, err
		}
		return &types.AttributeValueMemberM{Value: fields}, nil
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return admitSet(value)
	}
	if typeName(value) == "" {
		return nil, invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	}
	return cloneValue(value), nil
}

// admitSet keeps the elements in ascending order, for a set has none of its own.
func admitSet(value types.AttributeValue) (types.AttributeValue, error) {
	var elements []string
	var admitted types.AttributeValue
	switch v := value.(type) {
	case *types.AttributeValueMemberSS:
		elements = slices.Sorted(slices.Values(v.Value))
		admitted = &types.AttributeValueMemberSS{Value: elements}
	case *types.AttributeValueMemberBS:
		for _, b := range v.Value {
			elements = append(elements, string(b))
		}
		sort.Strings(elements)
		set := make([][]byte, len(elements))
		for i, element := range elements {
			set[i] = []byte(element)
		}
		admitted = &types.AttributeValueMemberBS{Value: set}
	case *types.AttributeValueMemberNS:
		for _, text := range v.Value {
			d, err := parseDecimal(text)
			if err != nil {
				return nil, err
			}
			elements = append(elements, d.String())
		}
		sort.Strings(elements)
		admitted = &types.AttributeValueMemberNS{Value: elements}
	}
	if len(elements) == 0 {
		return nil, invalid("One or more parameter values were invalid: An set may not be empty")
	}
	for i := 1; i < len(elements); i++ {
		if elements[i] == elements[i-1] {
			return nil, invalid("One or more parameter values were invalid: Input collection contains duplicates")
		}
	}
	return admitted, nil
}

func clone(attributes item) item {
	if attributes == nil {
		return nil
	}
	copied := make(item, len(attributes))
	for name, value := range attributes {
		copied[name] = cloneValue(value)
	}
	return copied
}

func cloneValue(value types.AttributeValue) types.AttributeValue {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: v.Value}
	case *types.AttributeValueMemberN:
		return &types.AttributeValueMemberN{Value: v.Value}
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: append([]byte{}, v.Value...)}
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}
	case *types.AttributeValueMemberNULL:
		return &types.AttributeValueMemberNULL{Value: v.Value}
	case *types.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberBS:
		set := make([][]byte, len(v.Value))
		for i, element := range v.Value {
			set[i] = append([]byte{}, element...)
		}
		return &types.AttributeValueMemberBS{Value: set}
	case *types.AttributeValueMemberL:
		list := make([]types.AttributeValue, len(v.Value))
		for i, element := range v.Value {
			list[i] = cloneValue(element)
		}
		return &types.AttributeValueMemberL{Value: list}
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: clone(v.Value)}
	}
	return nil
}

// typeName is the service's name of the value's type, "" for nothing.
func typeName(value types.AttributeValue) string {
	switch value.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberSS:
		return "SS"
	case *types.AttributeValueMemberNS:
		return "NS"
	case *types.AttributeValueMemberBS:
		return "BS"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberM:
		return "M"
	}
	return ""
}

// equal reports whether two admitted values are the same value.
func equal(a, b types.AttributeValue) bool {
	switch x := a.(type) {
	case *types.AttributeValueMemberBOOL:
		y, same := b.(*types.AttributeValueMemberBOOL)
		return same && x.Value == y.Value
	case *types.AttributeValueMemberNULL:
		_, same := b.(*types.AttributeValueMemberNULL)
		return same
	case *types.AttributeValueMemberSS:
		y, same := b.(*types.AttributeValueMemberSS)
		return same && slices.Equal(x.Value, y.Value)
	case *types.AttributeValueMemberNS:
		y, same := b.(*types.AttributeValueMemberNS)
		return same && slices.Equal(x.Value, y.Value)
	case *types.AttributeValueMemberBS:
		y, same := b.(*types.AttributeValueMemberBS)
		return same && slices.EqualFunc(x.Value, y.Value, bytes.Equal)
	case *types.AttributeValueMemberL:
		y, same := b.(*types.AttributeValueMemberL)
		return same && slices.EqualFunc(x.Value, y.Value, equal)
	case *types.AttributeValueMemberM:
		y, same := b.(*types.AttributeValueMemberM)
		if !same || len(x.Value) != len(y.Value) {
			return false
		}
		for name, value := range x.Value {
			other, found := y.Value[name]
			if !found || !equal(value, other) {
				return false
			}
		}
		return true
	}
	order, comparable := compare(a, b)
	return comparable && order == 0
}

// compare orders two values of one scalar type (S, N, B). Values of different
// or other types have no order.
func compare(a, b types.AttributeValue) (order int, comparable bool) {
	switch x := a.(type) {
	case *types.AttributeValueMemberS:
		if y, same := b.(*types.AttributeValueMemberS); same {
			return strings.Compare(x.Value, y.Value), true
		}
	case *types.AttributeValueMemberB:
		if y, same := b.(*types.AttributeValueMemberB); same {
			return bytes.Compare(x.Value, y.Value), true
		}
	case *types.AttributeValueMemberN:
		if y, same := b.(*types.AttributeValueMemberN); same {
			return number(x).compare(number(y)), true
		}
	}
	return 0, false
}

// number reads an admitted number, which parses by construction.
func number(n *types.AttributeValueMemberN) decimal {
	d, err := parseDecimal(n.Value)
	if err != nil {
		panic("memtable: a number was stored unchecked: " + n.Value)
	}
	return d
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
