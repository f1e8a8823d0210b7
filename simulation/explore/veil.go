package explore

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// veil is what reads do not see yet of a transaction that was applied: the service
// makes its items visible one after another (case M-08). What writes to one of them
// meanwhile is in conflict. The zero value is none.
type veil struct {
	token  string // of the transaction
	hidden []hidden
}

// hidden is one item as it was before the transaction; nil: there was none.
type hidden struct {
	key    itemKey
	before item
}

type itemKey struct{ hash, sort string }

func (k itemKey) compare(other itemKey) int {
	return cmp.Or(cmp.Compare(k.hash, other.hash), cmp.Compare(k.sort, other.sort))
}

func (v veil) hides(key itemKey) bool {
	return slices.ContainsFunc(v.hidden, func(h hidden) bool { return h.key == key })
}

func (v veil) encode(e *encoder) {
	e.text(v.token)
	for _, h := range v.hidden {
		e.text(h.key.hash)
		e.text(h.key.sort)
		e.item(h.before)
	}
}

func (t *tables) keyOf(i item) itemKey {
	return itemKey{textOf(i[t.schema.PartitionKey]), textOf(i[t.schema.SortKey])}
}

func textOf(value types.AttributeValue) string {
	text, _ := value.(*types.AttributeValueMemberS)
	if text == nil {
		return ""
	}
	return text.Value
}

// seen are the items as reads see them.
func (t *tables) seen(n *table) []item {
	if len(n.veil.hidden) == 0 {
		return n.items
	}
	shown := slices.DeleteFunc(slices.Clone(n.items), func(i item) bool { return n.veil.hides(t.keyOf(i)) })
	for _, h := range n.veil.hidden {
		if h.before != nil {
			shown = append(shown, h.before)
		}
	}
	return shown
}

// changed are the items in which a table differs from the one before, as they were.
func (t *tables) changed(before, after *table) []hidden {
	var list []hidden
	was, is := t.byKey(before.items), t.byKey(after.items)
	for key, i := range was {
		if now, kept := is[key]; !kept || !same(i, now) {
			list = append(list, hidden{key, i})
		}
	}
	for key := range is {
		if _, old := was[key]; !old {
			list = append(list, hidden{key, nil})
		}
	}
	slices.SortFunc(list, func(a, b hidden) int { return a.key.compare(b.key) })
	return list
}

func (t *tables) byKey(items []item) map[itemKey]item {
	found := make(map[itemKey]item, len(items))
	for _, i := range items {
		found[t.keyOf(i)] = i
	}
	return found
}

// same tells whether two items are equal.
func same(a, b item) bool {
	var first, second encoder
	first.item(a)
	second.item(b)
	return bytes.Equal(first.out, second.out)
}

// torn is a table after a transaction of which reads do not see some items yet: those
// of a set of bits.
func (t *tables) torn(after *table, token string, all []hidden, mask int) *table {
	v := veil{token: token}
	for i, h := range all {
		if mask&(1<<i) != 0 {
			v.hidden = append(v.hidden, h)
		}
	}
	return t.of(after.items, after.applied, v)
}

// whole is the table when the transaction is seen as a whole.
func (t *tables) whole(n *table) *table { return t.of(n.items, n.applied, veil{}) }

// masks are the sets of changed items that may be hidden: each, or, of many, each that
// is a run of neighbours.
func masks(items int) []int {
	var list []int
	for mask := 1; mask < 1<<items; mask++ {
		low := mask & -mask
		if run := mask / low; items <= 4 || run&(run+1) == 0 {
			list = append(list, mask)
		}
	}
	return list
}
