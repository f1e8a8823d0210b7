package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// item is an item of the table as text: each attribute's type and value.
type item map[string]string

// item reads an item of the coordination partition; nil: there is none.
func (c *checker) item(sort string) item { return c.itemOf(c.fleet.schema.CoordinationKey(), sort) }

// itemOf reads any item; nil: there is none.
func (c *checker) itemOf(partition, sort string) item {
	stored := c.fleet.db.Peek(c.fleet.schema.Table, partition, sort)
	if stored == nil {
		return nil
	}
	it := make(item, len(stored))
	for name, value := range stored {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			it[name] = "S " + v.Value
		case *types.AttributeValueMemberN:
			it[name] = "N " + v.Value
		case *types.AttributeValueMemberB:
			it[name] = "B " + string(v.Value)
		default:
			it[name] = fmt.Sprintf("%T", v)
		}
	}
	return it
}

func text(s string) string { return "S " + s }

func number[T ~int64](n T) string { return "N " + strconv.FormatInt(int64(n), 10) }

// ticks is a number of the item, and whether it is there.
func (it item) ticks(name string) (store.Ticks, bool) {
	digits, isNumber := strings.CutPrefix(it[name], "N ")
	n, err := strconv.ParseInt(digits, 10, 64)
	return store.Ticks(n), isNumber && err == nil
}

// write is what protocol.md, section 3, says of one write to the coordination
// partition, given the item before it.
type write struct {
	sort  string // sort key of the item
	holds bool   // its condition
	own   bool   // it is refused by what it has written itself, which is no refusal
	after item   // once it was applied; nil: the item is gone
}

// written is what a request does to the coordination partition; false: nothing.
func (c *checker) written(r store.Request) (w write, writes bool) {
	set := func(before item, values item, remove ...string) item {
		after := maps.Clone(before)
		if after == nil {
			after = item{c.fleet.schema.PartitionKey: text(c.fleet.schema.CoordinationKey()), c.fleet.schema.SortKey: text(w.sort)}
		}
		maps.Copy(after, values)
		for _, name := range remove {
			delete(after, name)
		}
		return after
	}
	switch r := r.(type) {
	case store.Heartbeat:
		w.sort = outbox.RelaySortKey(r.Relay)
		seen, known := c.item(w.sort).ticks(outbox.AttrLastSeenUtc)
		w.holds = !known || seen <= r.LastSeen
		w.after = set(nil, item{outbox.AttrLastSeenUtc: number(r.LastSeen), outbox.AttrIncarnation: text(r.Incarnation), outbox.AttrMode: text(r.Mode)})
	case store.Claim:
		w.sort = outbox.LeaseSortKey(r.Bucket)
		before := c.item(w.sort)
		expires, dated := before.ticks(outbox.AttrExpiresAtUtc)
		w.holds = before[outbox.AttrOwner] == "" || !dated || expires <= r.Now
		w.after = set(before, leaseItem(r.Relay, r.Incarnation, r.Claim, r.Expires))
		w.own = maps.Equal(before, w.after)
	case store.Keep:
		w.sort = outbox.LeaseSortKey(r.Bucket)
		before := c.item(w.sort)
		w.holds = before[outbox.AttrOwner] == text(r.Relay) && before[outbox.AttrExpiresAtUtc] == number(r.Seen)
		w.after = set(before, leaseItem(r.Relay, r.Incarnation, r.Claim, r.Expires))
		w.own = maps.Equal(before, w.after)
	case store.Release:
		w.sort = outbox.LeaseSortKey(r.Bucket)
		before := c.item(w.sort)
		w.holds = before[outbox.AttrOwner] == text(r.Relay) && before[outbox.AttrExpiresAtUtc] == number(r.Seen)
		w.after = set(before, item{outbox.AttrExpiresAtUtc: number(r.Now)}, outbox.AttrOwner)
		w.own = before[outbox.AttrOwner] != text(r.Relay)
	case store.StampStopped:
		w.sort = outbox.RelaySortKey(r.Relay)
		before := c.item(w.sort)
		w.holds = before[outbox.AttrIncarnation] == "" || before[outbox.AttrIncarnation] == text(r.Incarnation)
		w.after = set(before, item{outbox.AttrLastSeenUtc: number(r.At), outbox.AttrStoppedAtUtc: number(r.At)})
	case store.Prune:
		w.sort = outbox.RelaySortKey(r.Relay)
		before := c.item(w.sort)
		seen, _ := before.ticks(outbox.AttrLastSeenUtc)
		_, stopped := before[outbox.AttrStoppedAtUtc]
		w.holds = before == nil || seen < r.Dead || stopped && seen < r.Stopped
	default:
		return w, false
	}
	return w, true
}

func leaseItem(owner, incarnation string, claim int64, expires store.Ticks) item {
	return item{
		outbox.AttrOwner: text(owner), outbox.AttrIncarnation: text(incarnation),
		outbox.AttrClaim: number(claim), outbox.AttrExpiresAtUtc: number(expires),
	}
}

// compare holds what the table and the relay's adapter made of a write against
// what the protocol says.
func (c *checker) compare(p *process, r store.Request, w write, before item, reply store.Reply) {
	want, class := before, store.Refused
	if w.holds {
		want = w.after
	}
	if w.holds || w.own {
		class = store.Done
	}
	about := c.about(p.name, r.ConcernsBucket())
	if after := c.item(w.sort); !maps.Equal(after, want) {
		about.violated("I-20", "%s: a %s made %v of %v, must be %v", p.name, r.RequestName(), after, before, want)
	}
	if reply.Class != class {
		about.violated("I-20", "%s: a %s of %v is %v, must be %v", p.name, r.RequestName(), before, reply.Class, class)
	}
}

// present tells whether a row is in the table.
func (c *checker) present(bucket int, sequence int64) bool {
	_, found := slices.BinarySearch(c.rowsOf[bucket], sequence)
	return found
}

// deleted holds what became of a delete against what it is to do: just its rows
// are gone, but for those that the answer names.
func (c *checker) deleted(p *process, r store.Delete, reply store.Reply) {
	table, messages := c.fleet.schema.Table, c.fleet.schema.MessagesKey(r.Bucket)
	answer, answered := reply.Result.(store.Deleted)
	for _, sequence := range r.Sequences {
		if !c.present(r.Bucket, sequence) {
			continue
		}
		there := c.fleet.db.Peek(table, messages, outbox.SequenceSortKey(sequence)) != nil
		if left := slices.Contains(answer.Unprocessed, sequence); answered && left != there {
			c.about(p.name, r.Bucket).violated("I-20", "%s: a delete says of row %d of bucket %d that it is left: %t; it is not so", p.name, sequence, r.Bucket, left)
		}
		if !there {
			i, _ := slices.BinarySearch(c.rowsOf[r.Bucket], sequence)
			c.rowsOf[r.Bucket] = slices.Delete(c.rowsOf[r.Bucket], i, i+1)
		}
	}
}

// shown holds what a read of a bucket says against what the table has.
func (c *checker) shown(p *process, r store.Request, reply store.Reply) {
	about := c.about(p.name, r.ConcernsBucket())
	switch answer := reply.Result.(type) {
	case store.Discovered:
		if have := len(c.rowsOf[r.ConcernsBucket()]) > 0; answer.Waiting != have {
			about.violated("I-20", "%s is told that bucket %d has rows: %t; it is not so", p.name, r.ConcernsBucket(), answer.Waiting)
		}
	case store.Probed:
		r := r.(store.Probe)
		i, _ := slices.BinarySearch(c.rowsOf[r.Bucket], r.From)
		if filled := i < len(c.rowsOf[r.Bucket]) && c.rowsOf[r.Bucket][i] <= r.To; filled != answer.Filled {
			about.violated("I-20", "%s is told that bucket %d has rows from %d to %d: %t; it is not so", p.name, r.Bucket, r.From, r.To, answer.Filled)
		}
	case store.Fetched:
		r := r.(store.Fetch)
		i, _ := slices.BinarySearch(c.rowsOf[r.Bucket], r.After+1)
		rows := c.rowsOf[r.Bucket][i:]
		for n, row := range answer.Rows {
			if n >= len(rows) || rows[n] != row.Sequence {
				about.violated("I-20", "%s is shown row %d of bucket %d as number %d after %d; it is not so", p.name, row.Sequence, r.Bucket, n+1, r.After)
				return
			}
		}
		if answer.Malformed == nil && len(answer.Rows) < min(r.Limit, len(rows)) && !answer.More {
			about.violated("I-20", "%s is shown %d rows of bucket %d after %d, must be %d", p.name, len(answer.Rows), r.Bucket, r.After, min(r.Limit, len(rows)))
		}
	}
}
