package memtable

import "slices"

func (c *either) check(b *binding) error { return checkAll(b, c.left, c.right) }
func (c *both) check(b *binding) error   { return checkAll(b, c.left, c.right) }

func (c *negation) check(b *binding) error { return c.inner.check(b) }

func (c *exists) check(*binding) error { return nil }

func checkAll(b *binding, conditions ...condition) error {
	for _, c := range conditions {
		if err := c.check(b); err != nil {
			return err
		}
	}
	return nil
}

func (c *typeIs) check(b *binding) error {
	return operandTypes(b, "attribute_type", []string{"S"}, c.name)
}

func (c *beginsWith) check(b *binding) error {
	return operandTypes(b, "begins_with", []string{"S", "B"}, c.subject, c.prefix)
}

func (c *contains) check(*binding) error { return nil }

func (c *comparison) check(b *binding) error {
	if c.operator == "=" || c.operator == "<>" {
		return nil
	}
	return operandTypes(b, c.operator, []string{"S", "N", "B"}, c.left, c.right)
}

// check: the service compares the bounds before it looks at any item.
func (c *between) check(b *binding) error {
	if err := operandTypes(b, "BETWEEN", []string{"S", "N", "B"}, c.subject, c.low, c.high); err != nil {
		return err
	}
	low, high := c.low.of(b, nil), c.high.of(b, nil)
	if low == nil || high == nil {
		return nil
	}
	order, comparable := compare(low, high)
	if !comparable {
		return &syntaxError{"The BETWEEN operator requires same data type for lower and upper bounds"}
	}
	if order > 0 {
		return &syntaxError{"The BETWEEN operator requires upper bound to be greater than or equal to lower bound"}
	}
	return nil
}

func (c *oneOf) check(*binding) error { return nil }

// operandTypes refuses a value of the request, not of an item, whose type the
// operator can never take.
func operandTypes(b *binding, operator string, allowed []string, operands ...operand) error {
	for _, o := range operands {
		value, isVariable := o.(variable)
		if !isVariable {
			continue
		}
		if name := typeName(value.of(b, nil)); !slices.Contains(allowed, name) {
			return &syntaxError{"Incorrect operand type for operator or function; operator or function: " +
				operator + ", operand type: " + name}
		}
	}
	return nil
}
