package memtable

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// condition is one node of a parsed condition. check finds what the service
// refuses before it looks at any item (operands of a type that can never
// work); holds evaluates on an item, which is nil when there is none.
type condition interface {
	check(b *binding) error
	holds(b *binding, on item) bool
}

// operand yields a value from an item or from the request; nil is absent.
type operand interface {
	of(b *binding, on item) types.AttributeValue
}

type (
	either   struct{ left, right condition }
	both     struct{ left, right condition }
	negation struct{ inner condition }
	exists   struct{ subject path }
	typeIs   struct {
		subject path
		name    operand
	}
	beginsWith struct{ subject, prefix operand }
	contains   struct{ subject, part operand }
	comparison struct {
		operator    string
		left, right operand
	}
	between struct{ subject, low, high operand }
	oneOf   struct {
		subject operand
		list    []operand
	}

	variable string // :value
	sizeOf   struct{ subject path }
)

func (c *either) holds(b *binding, on item) bool { return c.left.holds(b, on) || c.right.holds(b, on) }
func (c *both) holds(b *binding, on item) bool   { return c.left.holds(b, on) && c.right.holds(b, on) }
func (c *negation) holds(b *binding, on item) bool {
	return !c.inner.holds(b, on)
}
func (c *exists) holds(b *binding, on item) bool { return c.subject.of(b, on) != nil }

func (c *typeIs) holds(b *binding, on item) bool {
	name, _ := c.name.of(b, on).(*types.AttributeValueMemberS)
	value := c.subject.of(b, on)
	return name != nil && value != nil && typeName(value) == name.Value
}

func (c *beginsWith) holds(b *binding, on item) bool {
	switch subject := c.subject.of(b, on).(type) {
	case *types.AttributeValueMemberS:
		prefix, same := c.prefix.of(b, on).(*types.AttributeValueMemberS)
		return same && strings.HasPrefix(subject.Value, prefix.Value)
	case *types.AttributeValueMemberB:
		prefix, same := c.prefix.of(b, on).(*types.AttributeValueMemberB)
		return same && strings.HasPrefix(string(subject.Value), string(prefix.Value))
	}
	return false
}

func (c *contains) holds(b *binding, on item) bool {
	part := c.part.of(b, on)
	switch subject := c.subject.of(b, on).(type) {
	case *types.AttributeValueMemberS:
		text, same := part.(*types.AttributeValueMemberS)
		return same && strings.Contains(subject.Value, text.Value)
	case *types.AttributeValueMemberB:
		part, same := part.(*types.AttributeValueMemberB)
		return same && strings.Contains(string(subject.Value), string(part.Value))
	case *types.AttributeValueMemberSS:
		element, same := part.(*types.AttributeValueMemberS)
		return same && slices.Contains(subject.Value, element.Value)
	case *types.AttributeValueMemberNS:
		element, same := part.(*types.AttributeValueMemberN)
		return same && slices.Contains(subject.Value, element.Value)
	case *types.AttributeValueMemberBS:
		element, same := part.(*types.AttributeValueMemberB)
		return same && slices.ContainsFunc(subject.Value, func(b []byte) bool { return string(b) == string(element.Value) })
	case *types.AttributeValueMemberL:
		return part != nil && slices.ContainsFunc(subject.Value, func(v types.AttributeValue) bool { return equal(v, part) })
	}
	return false
}

// holds: an absent operand makes every comparison false but <>, which it
// makes true.
func (c *comparison) holds(b *binding, on item) bool {
	left, right := c.left.of(b, on), c.right.of(b, on)
	switch c.operator {
	case "=":
		return left != nil && right != nil && equal(left, right)
	case "<>":
		return left == nil || right == nil || !equal(left, right)
	}
	order, comparable := compare(left, right)
	return comparable && ordered(c.operator, order)
}

// ordered reports whether the outcome of a comparison satisfies the operator.
func ordered(operator string, order int) bool {
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default: // ">="
		return order >= 0
	}
}

func (c *between) holds(b *binding, on item) bool {
	value := c.subject.of(b, on)
	low, comparableLow := compare(value, c.low.of(b, on))
	high, comparableHigh := compare(value, c.high.of(b, on))
	return comparableLow && comparableHigh && low >= 0 && high <= 0
}

func (c *oneOf) holds(b *binding, on item) bool {
	value := c.subject.of(b, on)
	return value != nil && slices.ContainsFunc(c.list, func(o operand) bool {
		candidate := o.of(b, on)
		return candidate != nil && equal(value, candidate)
	})
}

func (o variable) of(b *binding, _ item) types.AttributeValue { return b.values[string(o)] }

// of: the size of a text in bytes, of a binary in bytes, of anything else in
// elements; scalars of other types have none.
func (o sizeOf) of(b *binding, on item) types.AttributeValue {
	var size int
	switch v := o.subject.of(b, on).(type) {
	case *types.AttributeValueMemberS:
		size = len(v.Value)
	case *types.AttributeValueMemberB:
		size = len(v.Value)
	case *types.AttributeValueMemberSS:
		size = len(v.Value)
	case *types.AttributeValueMemberNS:
		size = len(v.Value)
	case *types.AttributeValueMemberBS:
		size = len(v.Value)
	case *types.AttributeValueMemberL:
		size = len(v.Value)
	case *types.AttributeValueMemberM:
		size = len(v.Value)
	default:
		return nil
	}
	return &types.AttributeValueMemberN{Value: strconv.Itoa(size)}
}

func (p path) of(b *binding, on item) types.AttributeValue { return p.lookup(on, b.name) }
