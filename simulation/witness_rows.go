package simulation

import (
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/store"
)

// probesAtOnce is how many gaps a batch may ask for at once (protocol.md, section
// 5).
const probesAtOnce = 8

// drain is what one tenure has read of its bucket. Instants are numbers of the
// order in which the process sent requests and was answered.
type drain struct {
	tenure   int64
	baseline int64   // behind what the tenure has removed, or set aside
	rows     []int64 // that the batch has read, ascending
	later    int64   // rows behind this one came with later pages than the first
	front    int     // so many of them are gone
	gone     map[int64]bool
	token    string // of the last transaction that was sent
	// moved are the rows that the tenure has set aside. A move that had to be repeated is
	// of no batch any more.
	moved   map[int64]bool
	aside   asideWitness
	chunk   []int64 // that is being deleted
	fetched map[int64]uint64
	probes  []probed
	began   time.Duration // when the last fetch from the head was sent
	head    uint64        // when the batch began, or ended
	open    int           // requests of the batch without an answer
	clock   uint64
	batch   uint64 // the last one that was looked at, and how far
	solid   int64
	anew    bool // solid counts from the bucket's first number
}

// probed is one gap that was empty.
type probed struct {
	from, to int64
	sent     uint64
}

func (d *drain) tick() uint64 {
	d.clock++
	return d.clock
}

// pageFetched takes the answer to a fetch. What was probed before a fetch from
// the head says nothing of what it returned.
func (d *drain) pageFetched(r store.Fetch, page store.Fetched) {
	at := d.tick()
	if r.After == 0 || d.fetched == nil {
		d.fetched, d.probes = map[int64]uint64{}, nil
		d.rows, d.front, d.gone = nil, 0, map[int64]bool{}
	}
	for _, row := range page.Rows {
		d.fetched[row.Sequence] = at
		d.rows = append(d.rows, row.Sequence)
		if r.After == 0 {
			d.later = row.Sequence
		}
	}
}

// gapProbed takes the answer to a probe that was sent at an instant.
func (d *drain) gapProbed(r store.Probe, answer store.Probed, sent uint64) {
	if !answer.Filled {
		d.probes = append(d.probes, probed{r.From, r.To, sent})
	}
}

// deleting notes a delete on its way, of a chunk or of what is left of it.
func (d *drain) deleting(r store.Delete) {
	for _, sequence := range r.Sequences {
		if !slices.Contains(d.chunk, sequence) {
			d.chunk = r.Sequences
			return
		}
	}
}

// removed: nothing is left of the chunk.
func (d *drain) removed() { d.leave(d.chunk) } // none: the delete was an earlier tenure's

// setsAside: rows of the batch, or of an earlier one, are set aside.
func (d *drain) setsAside(sequence int64) {
	if d.moved == nil {
		d.moved = map[int64]bool{}
	}
	d.moved[sequence] = true
	d.leave([]int64{sequence})
}

// leave: rows of the batch are gone, removed or set aside.
func (d *drain) leave(sequences []int64) {
	for _, sequence := range sequences {
		d.gone[sequence] = true
	}
	for d.front < len(d.rows) && d.gone[d.rows[d.front]] {
		d.baseline = max(d.baseline, d.rows[d.front]+1)
		d.front++
	}
}

// gapBefore is the first number before a row that is to be published of which the
// tenure cannot know that it is empty; 0: there is none. Known are what the
// tenure removed, what it fetched, and what a probe found empty that was sent
// after the fetch that returned the row. A row before what was removed has
// committed late: whatever was known before is probed anew. So it is for a row of
// a later page, which was not read from the head: what has committed late since the
// first page was read shows in neither.
func (d *drain) gapBefore(t publisher.Token) int64 {
	if d.batch != t.Batch || t.Sequence < d.solid {
		d.batch, d.solid, d.anew = t.Batch, d.baseline, false
	}
	if (t.Sequence < d.baseline || t.Sequence > d.later) && !d.anew {
		d.solid, d.anew = 1, true
	}
	read := d.fetched[t.Sequence]
	for d.solid < t.Sequence {
		if _, fetched := d.fetched[d.solid]; fetched || d.moved[d.solid] {
			d.solid++
			continue
		}
		i := slices.IndexFunc(d.probes, func(p probed) bool {
			return p.from <= d.solid && d.solid <= p.to && p.sent >= read
		})
		if i < 0 {
			return d.solid
		}
		d.solid = d.probes[i].to + 1
	}
	d.solid = t.Sequence + 1
	return 0
}

// deletes checks a delete that is being sent: each row was acknowledged to this
// very process, and nothing that it got acknowledged before remains in front of
// them, so that what remains of a batch is part of one chunk and a suffix.
func (w *witness) deletes(c *checker, p *process, r store.Delete) {
	b := &w.buckets[r.Bucket]
	for _, sequence := range r.Sequences {
		if !b.acked[sequence] {
			c.about(p.name, r.Bucket).violated("I-3", "%s deletes row %d of bucket %d, which was not acknowledged to it", p.name, sequence, r.Bucket)
			return
		}
	}
	b.undeleted = slices.DeleteFunc(b.undeleted, func(sequence int64) bool { return !c.present(r.Bucket, sequence) })
	for _, sequence := range b.undeleted {
		if sequence < r.Sequences[0] {
			c.about(p.name, r.Bucket).violated("I-27", "%s deletes rows from %d of bucket %d on and leaves the acknowledged row %d in front of them", p.name, r.Sequences[0], r.Bucket, sequence)
			return
		}
	}
}
