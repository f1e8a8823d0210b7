package memtable

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// write is one conditional change of one item: what PutItem, UpdateItem,
// DeleteItem and the parts of a transaction have in common. It is made
// (checked without looking at the item), then tried, then applied.
type write struct {
	table     *table
	key       key
	binding   *binding
	condition condition // nil: none
	// next is the item after the write, given the one before (nil: none). A nil
	// result means that there is none afterwards. nil: the item is only checked.
	next func(before sized) (sized, error)
	// refusal says whether a refusal returns the item.
	refusal types.ReturnValuesOnConditionCheckFailure
}

// change is a write that was tried and may be applied.
type change struct {
	write         *write
	before, after sized
}

// conditionParameters is what every conditional request brings.
type conditionParameters struct {
	expression *string
	names      map[string]string
	values     map[string]types.AttributeValue
	refusal    types.ReturnValuesOnConditionCheckFailure
}

// begin makes a write without its next and its key. The caller parses further
// expressions and then calls binding.complete.
func (db *DB) begin(table *string, p conditionParameters) (*write, error) {
	t, err := db.table(table)
	if err != nil {
		return nil, err
	}
	b, err := db.bind(p.names, p.values)
	if err != nil {
		return nil, err
	}
	c, err := b.condition("ConditionExpression", p.expression)
	if err != nil {
		return nil, err
	}
	return &write{table: t, binding: b, condition: c, refusal: p.refusal}, nil
}

// put makes a write that replaces the whole item.
func (db *DB) put(table *string, attributes item, p conditionParameters) (*write, error) {
	w, err := db.begin(table, p)
	if err != nil {
		return nil, err
	}
	if err := w.binding.complete(); err != nil {
		return nil, err
	}
	admitted, err := admit(attributes)
	if err != nil {
		return nil, err
	}
	if w.key, err = w.table.keyOf(admitted); err != nil {
		return nil, err
	}
	whole := measured(admitted)
	if whole.size > maxItem {
		return nil, invalid("Item size has exceeded the maximum allowed size")
	}
	w.next = func(sized) (sized, error) { return whole, nil }
	return w, nil
}

// delete makes a write that removes the item.
func (db *DB) delete(table *string, k item, p conditionParameters) (*write, error) {
	w, err := db.check(table, k, p)
	if err != nil {
		return nil, err
	}
	w.next = func(sized) (sized, error) { return sized{}, nil }
	return w, nil
}

// check makes a write that changes nothing: a condition alone.
func (db *DB) check(table *string, k item, p conditionParameters) (*write, error) {
	w, err := db.begin(table, p)
	if err != nil {
		return nil, err
	}
	if err := w.binding.complete(); err != nil {
		return nil, err
	}
	_, err = w.address(k)
	return w, err
}

// update makes a write by an update expression.
func (db *DB) update(table *string, k item, expression *string, p conditionParameters) (*write, *update, error) {
	w, err := db.begin(table, p)
	if err != nil {
		return nil, nil, err
	}
	u, err := w.binding.update(w.table, expression)
	if err != nil {
		return nil, nil, err
	}
	if err := w.binding.complete(); err != nil {
		return nil, nil, err
	}
	keyItem, err := w.address(k)
	if err != nil {
		return nil, nil, err
	}
	w.next = func(before sized) (sized, error) {
		if before.item == nil {
			before = measured(keyItem)
		}
		if u == nil {
			return before, nil
		}
		changed, err := u.apply(before.item)
		if err != nil {
			return sized{}, err
		}
		after := measured(changed)
		if after.size > maxItem {
			return sized{}, invalid("Item size to update has exceeded the maximum allowed size")
		}
		return after, nil
	}
	return w, u, nil
}

// meets reports whether two writes are of one item.
func (w *write) meets(other *write) bool { return w.key == other.key && w.table == other.table }

// address sets the write's key from a Key parameter.
func (w *write) address(k item) (item, error) {
	admitted, err := admit(k)
	if err != nil {
		return nil, err
	}
	w.key, err = w.table.exactKey(admitted)
	return admitted, err
}

// try evaluates the condition on the item as it is now and works out the item
// after the write, without storing it. A refusal is a
// ConditionalCheckFailedException.
func (w *write) try() (change, error) {
	var before sized
	if r := w.table.row(w.key); r != nil {
		before = r.sized
	}
	if w.condition != nil && !w.condition.holds(w.binding, before.item) {
		if w.refusal == types.ReturnValuesOnConditionCheckFailureAllOld {
			return change{}, conditionFailed(clone(before.item))
		}
		return change{}, conditionFailed(nil)
	}
	if w.next == nil {
		return change{write: w, before: before, after: before}, nil
	}
	after, err := w.next(before)
	return change{write: w, before: before, after: after}, err
}

// apply stores the outcome.
func (c change) apply() {
	switch {
	case c.write.next == nil:
	case c.after.item == nil:
		c.write.table.remove(c.write.key)
	default:
		c.write.table.put(c.write.key, c.after)
	}
}

// units is what the write costs: by the larger of both items.
func (c change) units() float64 {
	return units(max(c.before.size, c.after.size), writeUnitBytes)
}
