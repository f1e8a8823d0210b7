package memtable

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// updateValue is the right side of a SET: evaluated on the item as it was
// before the update.
type updateValue interface {
	of(b *binding, on item) (types.AttributeValue, error)
}

type (
	plain      struct{ operand }
	arithmetic struct {
		sign        string
		left, right updateValue
	}
	ifNotExists struct {
		source   path
		fallback updateValue
	}
	listAppend struct{ first, second updateValue }
)

func (v plain) of(b *binding, on item) (types.AttributeValue, error) {
	value := v.operand.of(b, on)
	if value == nil {
		return nil, invalid("The provided expression refers to an attribute that does not exist in the item")
	}
	return value, nil
}

func (v ifNotExists) of(b *binding, on item) (types.AttributeValue, error) {
	if value := v.source.of(b, on); value != nil {
		return value, nil
	}
	return v.fallback.of(b, on)
}

func (v arithmetic) of(b *binding, on item) (types.AttributeValue, error) {
	left, err := v.left.of(b, on)
	if err != nil {
		return nil, err
	}
	right, err := v.right.of(b, on)
	if err != nil {
		return nil, err
	}
	x, isNumber := left.(*types.AttributeValueMemberN)
	y, alsoNumber := right.(*types.AttributeValueMemberN)
	if !isNumber || !alsoNumber {
		return nil, wrongOperand()
	}
	second := number(y)
	if v.sign == "-" {
		second = second.negated()
	}
	return sum(number(x), second)
}

func (v listAppend) of(b *binding, on item) (types.AttributeValue, error) {
	first, err := v.first.of(b, on)
	if err != nil {
		return nil, err
	}
	second, err := v.second.of(b, on)
	if err != nil {
		return nil, err
	}
	head, isList := first.(*types.AttributeValueMemberL)
	tail, alsoList := second.(*types.AttributeValueMemberL)
	if !isList || !alsoList {
		return nil, wrongOperand()
	}
	return &types.AttributeValueMemberL{Value: slices.Concat(head.Value, tail.Value)}, nil
}

func sum(x, y decimal) (types.AttributeValue, error) {
	total, err := x.add(y)
	if err != nil {
		return nil, err
	}
	return &types.AttributeValueMemberN{Value: total.String()}, nil
}

func wrongOperand() error {
	return invalid("An operand in the update expression has an incorrect data type")
}

// update is an UpdateExpression bound to a request; nil changes nothing.
type update struct {
	binding *binding
	actions []action
	targets []path // resolved, one per action
}

// update parses the parameter's text for a table, nil for none.
func (b *binding) update(t *table, text *string) (*update, error) {
	if text == nil {
		return nil, nil
	}
	parsed, err := b.parsed.updates.get(*text)
	if err == nil {
		err = b.use(parsed.uses)
	}
	if err != nil {
		return nil, inParameter("UpdateExpression", err)
	}
	u := &update{binding: b, actions: parsed.actions}
	for _, a := range parsed.actions {
		target := a.target.resolve(b)
		if t.isKey(target[0].name) {
			return nil, invalid("One or more parameter values were invalid: "+
				"Cannot update attribute %s. This attribute is part of the key", target[0].name)
		}
		if err := a.check(b); err != nil {
			return nil, inParameter("UpdateExpression", err)
		}
		u.targets = append(u.targets, target)
	}
	if err := overlap(u.targets); err != nil {
		return nil, inParameter("UpdateExpression", err)
	}
	return u, nil
}

// check refuses an ADD whose operand can never be added.
func (a action) check(b *binding) error {
	if a.kind != addAction {
		return nil
	}
	value, err := a.value.of(b, nil)
	if err != nil {
		return err
	}
	switch name := typeName(value); name {
	case "N":
		return nil
	case "SS", "NS", "BS":
		return unserved("ADD to a set")
	default:
		return &syntaxError{"Incorrect operand type for operator or function; operator: ADD, operand type: " + name}
	}
}

// apply returns the item after the update. All values are taken from the item
// before it; removals come last, so that list indexes mean the old list.
func (u *update) apply(before item) (item, error) {
	after := maps.Clone(before)
	var removed []path
	for i, a := range u.actions {
		if a.kind == removeAction {
			removed = append(removed, u.targets[i])
			continue
		}
		value, err := u.valueOf(a, before)
		if err != nil {
			return nil, err
		}
		if err := alter(after, u.targets[i], value); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(removed, comparePaths)
	for _, target := range slices.Backward(removed) {
		if err := alter(after, target, nil); err != nil {
			return nil, err
		}
	}
	return after, nil
}

func (u *update) valueOf(a action, before item) (types.AttributeValue, error) {
	value, err := a.value.of(u.binding, before)
	if err != nil || a.kind == setAction {
		return value, err
	}
	old := a.target.of(u.binding, before)
	if old == nil {
		return value, nil
	}
	base, isNumber := old.(*types.AttributeValueMemberN)
	if !isNumber {
		return nil, wrongOperand()
	}
	return sum(number(base), number(value.(*types.AttributeValueMemberN)))
}
