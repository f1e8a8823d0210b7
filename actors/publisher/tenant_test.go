package publisher_test

import (
	"time"

	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
)

// tenant behaves as the actor of one bucket does: it publishes a batch, takes the
// contiguous acknowledged prefix, reads the rest again, sets a row aside with its
// key after three counted rejections, and gives up what it has in hand when its
// lease lapses.
type tenant struct {
	w      *world
	number int
	rows   []*told // in the table, ascending
	all    []*told // every row there ever was
	aside  map[string]bool
	batch  uint64
	sent   []*told // of the batch in work; nil: none
	// due are the batches without an answer: the one in work, and those of tenures
	// whose actor died.
	due     map[uint64]int // rows of each
	limit   int            // rows of a batch
	refused int            // refusals of the row at the head, in a row
	// countOnly plants a bug: it removes as many rows as were acknowledged, instead
	// of the prefix.
	countOnly bool
	batches   *uint64
	quiet     bool // lets leases lapse no more
	// In fenced mode: whether the fence is held, and the number of the question under
	// way, 0: none.
	held  bool
	asked uint64
	wish  uint64
}

// tenantLease is how long a tenant's lease is valid when it was just renewed.
const tenantLease = 20 * time.Second

// fence asks for the fence, and tells whether it is held.
func (b *tenant) fence() bool {
	if !b.w.fenced || b.held {
		return true
	}
	if b.asked == 0 {
		b.wish++
		b.asked = b.wish
		age := time.Duration(b.w.random.Int64N(int64(tenantLease / 2)))
		b.w.desk.Handle(publisher.Fence{Bucket: b.number, Number: b.asked, NotAfter: b.w.instant().Add(tenantLease - age), ReplyTo: listener})
	}
	return false
}

func (b *tenant) fenceTaken(m publisher.FenceTaken) {
	if m.Number != b.asked {
		b.w.fault("bucket %d: an answer to wish %d for the fence, asked was %d", b.number, m.Number, b.asked)
		return
	}
	b.asked, b.held = 0, m.Fault == nil
	b.w.At(time.Duration(b.w.random.Int64N(int64(time.Second))), b.publish)
}

// told is a row and what is true of it.
type told struct {
	row    outbox.Row
	guilty bool          // it may be refused
	aside  time.Duration // when it was set aside; 0: it was not
	done   bool          // acknowledged and removed
}

func (b *tenant) add(m outbox.Message, guilty bool) {
	r := &told{row: outbox.Row{Sequence: int64(len(b.all) + 1), Message: m}, guilty: guilty}
	b.all = append(b.all, r)
	if b.aside[asideKey(m)] {
		r.aside = max(b.w.now, 1)
		return
	}
	b.rows = append(b.rows, r)
}

// asideKey is what is set aside together: a topic and key, or a keyless row.
func asideKey(m outbox.Message) string {
	if m.Key == nil {
		return m.ID.String()
	}
	return m.Topic + "\x00" + string(m.Key)
}

// publish sends the head of what is in the table.
func (b *tenant) publish() {
	if b.sent != nil || len(b.rows) == 0 || !b.fence() {
		return
	}
	*b.batches++
	b.batch = *b.batches
	b.sent = b.rows[:min(b.limit, len(b.rows))]
	m := publisher.Publish{Bucket: b.number, Batch: b.batch, ReplyTo: listener, NotAfter: b.w.instant().Add(tenantLease)}
	for _, r := range b.sent {
		m.Rows = append(m.Rows, r.row)
	}
	b.due[b.batch] = len(m.Rows)
	b.w.desk.Handle(m)
	b.watch(b.batch)
}

// die forgets what is in work, as a panic does; the next actor of the bucket
// begins anew at once.
func (b *tenant) die() {
	b.sent, b.held = nil, false
	b.publish()
}

// watch keeps the lease of a batch in work, or lets it lapse.
func (b *tenant) watch(batch uint64) {
	b.w.At(10*time.Second, func() {
		if b.sent == nil || b.batch != batch {
			return
		}
		if b.quiet || b.w.random.IntN(3) > 0 {
			b.w.desk.Handle(publisher.Extend{Bucket: b.number, NotAfter: b.w.instant().Add(tenantLease)})
			b.watch(batch)
			return
		}
		if b.w.random.IntN(3) == 0 {
			b.die()
			return
		}
		b.held = false
		b.w.desk.Handle(publisher.Abandon{Bucket: b.number})
	})
}

// published takes the answer and goes on after a pause.
func (b *tenant) published(m publisher.Published) {
	if rows, due := b.due[m.Batch]; !due || rows != len(m.Results) {
		b.w.fault("bucket %d: an answer to batch %d of %d rows that was not asked for", b.number, m.Batch, len(m.Results))
		return
	}
	delete(b.due, m.Batch)
	if b.sent == nil || m.Batch != b.batch {
		return
	}
	acknowledged := 0
	for i, r := range m.Results {
		row := b.sent[i]
		switch {
		case r.Outcome == publisher.Acknowledged && !b.w.isAppended(row.row.Message.ID):
			b.w.fault("bucket %d: row %d is acknowledged and not in the log", b.number, row.row.Sequence)
		case r.Outcome == publisher.Refused && !row.guilty:
			b.w.fault("bucket %d: innocent row %d is refused: %v", b.number, row.row.Sequence, r.Fault)
		case (r.Fault != nil) != (r.Outcome != publisher.Acknowledged && r.Outcome != publisher.NotSubmitted):
			b.w.fault("bucket %d: row %d is %v with fault %v", b.number, row.row.Sequence, r.Outcome, r.Fault)
		}
		if r.Outcome == publisher.Acknowledged {
			acknowledged++
		}
	}
	b.take(m, acknowledged)
	b.sent = nil
	pause := time.Duration(0)
	if acknowledged < len(m.Results) {
		b.held = false
		pause = time.Duration(b.w.random.Int64N(int64(2 * time.Second)))
	}
	b.w.At(pause, b.publish)
}

func (b *tenant) take(m publisher.Published, acknowledged int) {
	prefix := 0
	for prefix < len(m.Results) && m.Results[prefix].Outcome == publisher.Acknowledged {
		prefix++
	}
	if b.countOnly {
		prefix = acknowledged
	}
	for _, r := range b.sent[:prefix] {
		r.done = true
	}
	b.rows = b.rows[prefix:]
	if prefix > 0 {
		b.refused = 0
	}
	if prefix == len(m.Results) || m.Results[prefix].Outcome != publisher.Refused {
		return
	}
	if b.refused++; b.refused == 3 {
		b.refused = 0
		b.setAside(b.rows[0].row.Message)
	}
}

func (b *tenant) setAside(m outbox.Message) {
	name := asideKey(m)
	b.aside[name] = true
	kept := b.rows[:0:0]
	for _, r := range b.rows {
		if asideKey(r.row.Message) == name {
			r.aside = max(b.w.now, 1)
		} else {
			kept = append(kept, r)
		}
	}
	b.rows = kept
}

// judge reads the log as a consumer would, and finds first deliveries that came
// before an earlier row of their topic and key, or of their bucket and partition.
func judge(w *world, tenants []*tenant) {
	first := map[uuid.UUID]int{}
	log := w.broker.Log()
	for at, r := range log {
		id := idOf(r)
		if _, seen := first[id]; !seen {
			first[id] = at
		}
	}
	for _, b := range tenants {
		for j, later := range b.all {
			at, appended := first[later.row.Message.ID]
			if !appended {
				if later.done {
					w.fault("bucket %d: row %d was removed and is not in the log", b.number, later.row.Sequence)
				}
				continue
			}
			if later.aside > 0 && log[at].At > later.aside {
				continue // a late copy of what has been set aside since
			}
			if w.renewed[log[at].Topic] {
				continue // its new partitions know no producer, primed or not: no order is promised
			}
			for _, earlier := range b.all[:j] {
				before, there := first[earlier.row.Message.ID]
				if there && before < at {
					continue
				}
				e, l := earlier.row.Message, later.row.Message
				sameKey := l.Key != nil && asideKey(e) == asideKey(l)
				if w.fenced && there && log[before].Partition != log[at].Partition {
					sameKey = false // what is seen first is a matter of others' transactions too
				}
				// A keyless row may change its partition while its topic gains some.
				settled := !w.grew || e.Partition != nil
				samePlace := there && settled && log[before].Topic == log[at].Topic && log[before].Partition == log[at].Partition &&
					(earlier.aside == 0 || earlier.aside > log[at].At)
				if sameKey || samePlace {
					w.fault("bucket %d: row %d was first delivered before row %d (%v)", b.number, later.row.Sequence, earlier.row.Sequence, log[at])
					return
				}
			}
		}
	}
}
