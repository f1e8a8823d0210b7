package publisher

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// checkInvariants returns what is not as the fields' comments promise, and what
// must be true of the whole, after any step. Tests call it after each one.
func (c *core) checkInvariants() error {
	k := invariants{perProducer: map[*producer]int{}, perPath: map[*path]int{}}
	k.require(slices.IsSortedFunc(c.buckets, func(a, b *bucket) int { return a.number - b.number }), "buckets are not sorted")
	k.require(slices.IsSortedFunc(c.producers, func(a, b *producer) int { return a.options.Number - b.options.Number }), "producers are not sorted")
	above := 0
	for _, b := range c.buckets {
		above += c.budget.above(b.bytes)
		bytes := 0
		if b.active != nil {
			over := b.active.over()
			if c.fencing != nil {
				over = b.fence.over()
			}
			k.require(!over, "bucket %d: its batch is over and not answered", b.number)
			bytes = k.batch(b.active)
		} else {
			k.require(b.waiting == nil, "bucket %d: a batch waits for none", b.number)
		}
		if b.fence != nil {
			k.fence(c, b.fence)
		}
		k.require(bytes == b.bytes, "bucket %d: %d bytes outstanding, %d counted", b.number, bytes, b.bytes)
	}
	k.require(above == c.budget.used, "%d bytes are above the shares, %d counted", above, c.budget.used)
	for _, p := range c.producers {
		k.producer(c, p)
	}
	for _, tp := range c.asked {
		k.require(tp.asked && c.producer(tp.producer) != nil, "topic %s: its question went to nobody", tp.name)
	}
	return errors.Join(k.faults...)
}

type invariants struct {
	faults      []error
	perProducer map[*producer]int
	perPath     map[*path]int
}

func (k *invariants) require(holds bool, format string, args ...any) {
	if !holds {
		k.faults = append(k.faults, fmt.Errorf(format, args...))
	}
}

// batch checks one batch and returns the bytes of its outstanding rows.
func (k *invariants) batch(t *batch) (bytes int) {
	pendingRows, outstandingRows, careful := 0, 0, 0
	waiting := map[*lane]bool{} // lanes with a pending row, up to the row looked at
	keys := map[*keyed]int{}
	for i := range t.rows {
		r := &t.rows[i]
		switch r.state {
		case pending:
			k.require(i >= t.next, "bucket %d: row %d is pending before next", t.bucket.number, i)
			pendingRows++
			if r.prepared {
				waiting[r.lane] = true
			}
		case outstanding:
			outstandingRows++
			bytes += r.bytes
			k.require(!waiting[r.lane], "bucket %d: row %d has passed an earlier one of its partition", t.bucket.number, i)
			k.perProducer[r.via]++
			k.perPath[r.via.path(r.lane.place)]++
			if r.via.options.Careful {
				careful++
			}
			if r.keyed != nil {
				keys[r.keyed]++
				k.require(r.keyed.lane == r.lane || t.bucket.fence != nil, "bucket %d: row %d's key is outstanding on two partitions", t.bucket.number, i)
			}
		case delivered:
			k.require(t.bucket.fence != nil, "bucket %d: row %d is in a transaction of nobody", t.bucket.number, i)
		case settled:
		}
	}
	for i := range t.rows {
		if kd := t.rows[i].keyed; kd != nil {
			k.require(keys[kd] == kd.outstanding, "bucket %d: row %d's key has %d outstanding, %d counted", t.bucket.number, i, keys[kd], kd.outstanding)
		}
	}
	k.require(pendingRows == t.pending, "bucket %d: %d rows pending, %d counted", t.bucket.number, pendingRows, t.pending)
	k.require(outstandingRows == t.outstanding, "bucket %d: %d rows outstanding, %d counted", t.bucket.number, outstandingRows, t.outstanding)
	k.require(careful == 0 || outstandingRows == 1, "bucket %d: %d rows are outstanding beside a careful one", t.bucket.number, outstandingRows-1)
	return bytes
}

// fence checks what fenced mode keeps of one bucket (I-43).
func (k *invariants) fence(c *core, x *fence) {
	n := x.bucket.number
	k.require((x.producer == nil) == (x.phase == unfenced), "bucket %d: its producer does not fit phase %d", n, x.phase)
	k.require(x.producer == nil || c.producer(x.producer.options.Number) == x.producer, "bucket %d: its producer was closed", n)
	k.require(x.asked == nil || x.phase == initializing || x.bucket.active != nil, "bucket %d: the wish for its fence is forgotten", n)
	k.require(!x.leaving || x.phase == unfenced || x.open(), "bucket %d: its lease has ended, and its producer is not closed", n)
	t := x.bucket.active
	if !x.open() {
		k.require(x.transaction == transaction{}, "bucket %d: no transaction is open, and has rows", n)
	} else {
		k.require(t != nil && x.first <= x.handed && x.handed <= x.until && x.until <= len(t.rows), "bucket %d: the transaction is not of the batch", n)
	}
	if t == nil {
		return
	}
	for i := range t.rows {
		r := &t.rows[i]
		inside := x.open() && i >= x.first && i < x.handed
		k.require((r.state == outstanding || r.state == delivered) == inside, "bucket %d: row %d is outside the transaction, or in it and settled", n, i)
		k.require(r.state != outstanding || r.via == x.producer, "bucket %d: row %d is with another producer", n, i)
		k.require(x.phase != committing || r.state != outstanding, "bucket %d: row %d is committed without a report", n, i)
	}
}

func (k *invariants) producer(c *core, p *producer) {
	n := p.options.Number
	k.require(k.perProducer[p] == p.outstanding, "producer %d: %d rows outstanding, %d counted", n, k.perProducer[p], p.outstanding)
	k.require(!p.options.Careful || p.outstanding <= 1, "careful producer %d has %d rows outstanding", n, p.outstanding)
	k.require(p.state != ending || p.outstanding > 0, "producer %d has ended and is not closed", n)
	k.require(p.slot == nil || (p.slot.producer == p) == (p.state != ending), "producer %d: ending and in its place, or neither", n)
	for _, at := range slices.SortedFunc(maps.Keys(p.paths), comparePlaces) {
		w := p.paths[at]
		k.require(k.perPath[w] == w.outstanding, "producer %d, %s/%d: %d rows outstanding, %d counted", n, at.topic, at.partition, k.perPath[w], w.outstanding)
	}
	users := 0
	for _, b := range c.buckets {
		if b.active != nil && b.active.careful == p {
			users++
		}
	}
	k.require(p.state == ending || users == p.users, "producer %d: %d users, %d counted", n, users, p.users)
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}
