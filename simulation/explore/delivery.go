package explore

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Row is one number of bucket 0 that a writer reserves; they are 1, 2 and so on. Rows
// of one key are committed in the order of their numbers, others in any.
type Row struct {
	Key string // empty: it has none
	// Together: in one transaction with the row before.
	Together bool
	// Unused: the number is dropped, and leaves a gap for ever.
	Unused bool
	// Waiting: it was committed before anything else happened.
	Waiting bool
	// Rejected: the broker rejects it for its own sake, until that is mended.
	Rejected bool
	// Unreadable: it has no message id, and waits for an operator to move it.
	Unreadable bool
}

// before tells whether a row must come before a later one: they have one key.
func (r Row) before(later Row) bool { return r.Key == later.Key && r.Key != "" }

// delivery is what has become of the rows. It is a value: whoever changes it copies
// it before.
type delivery struct {
	committed, delivered []bool // by row, from 0
	batches              []batch
	seen                 []sight // by process
}

// batch is what a bucket has asked the publisher to send.
type batch struct {
	process int
	to      *actor.PID
	number  uint64
	rows    []int64
	state   wireState
	until   int // the tick to which it is delayed
}

// sight is what a process was shown of the numbers, as sets of bits: which it has
// removed or was told to be empty, at any time, and, by row, since it read that row.
type sight struct {
	settled uint32
	read    uint32 // rows that it was ever shown
	met     uint32 // rows that it was shown, and that cannot be read
	since   []uint32
}

func bit(sequence int64) uint32 { return 1 << sequence }

// beginDelivery makes the rows' world; without rows there is none.
func (x *search) beginDelivery(w *world) {
	n := len(x.o.Rows)
	w.delivery = delivery{committed: make([]bool, n), delivered: make([]bool, n)}
	for i, row := range x.o.Rows {
		if row.Waiting {
			w.table = x.tables.with(w.table, x.tables.committed[int64(i+1)])
			w.delivery.committed[i] = true
		}
	}
}

func (d delivery) copy() delivery {
	d.committed, d.delivered = slices.Clone(d.committed), slices.Clone(d.delivered)
	d.batches, d.seen = slices.Clone(d.batches), slices.Clone(d.seen)
	return d
}

// sight is the world's own copy of what a process was shown.
func (w *world) sight(process int) *sight {
	for len(w.delivery.seen) <= process {
		w.delivery.seen = append(w.delivery.seen, sight{since: make([]uint32, len(w.search.o.Rows)+1)})
	}
	s := &w.delivery.seen[process]
	s.since = slices.Clone(s.since)
	return s
}

// commits are the transactions that may commit next, by their first rows.
func (w *world) commits(add func(choiceKind, int, int)) {
	rows := w.search.o.Rows
	for i, row := range rows {
		if row.Unused || row.Together || w.delivery.committed[i] {
			continue
		}
		waits := false
		for j := range i {
			waits = waits || rows[j].before(row) && !rows[j].Unused && !w.delivery.committed[j]
		}
		if !waits {
			add(commit, i, 0)
		}
	}
}

// commit writes a transaction, whole.
func (w *world) commit(i int) {
	for first := i; i < len(w.search.o.Rows) && (i == first || w.search.o.Rows[i].Together); i++ {
		w.table = w.search.tables.with(w.table, w.search.tables.committed[int64(i+1)])
		w.delivery.committed[i] = true
	}
}

// toPublisher is what an actor tells the publisher.
func (x *search) toPublisher(p *process, message any) {
	publish, ok := message.(publisher.Publish)
	if !ok {
		return // what is under way comes back by itself
	}
	w := x.world
	one := batch{process: p.number, to: publish.ReplyTo, number: publish.Batch}
	for _, row := range publish.Rows {
		one.rows = append(one.rows, row.Sequence)
	}
	if !p.holds(w, publish.Bucket) || publish.NotAfter.PassedAt(p.now(w)) {
		w.breaks("I-6", "%s publishes rows %v without a valid lease", p.name, one.rows)
	}
	if !w.publishedAside(p, one) { // rows that are set aside were probed before that
		w.gaps(p, one.rows, 0)
	}
	w.delivery.batches = append(w.delivery.batches, one)
}

// gaps checks that each number before a row that is published, or set aside, is
// accounted for: by what the process was shown, or for being no gap.
func (w *world) gaps(p *process, rows []int64, filled uint32) {
	s := w.sight(p.number)
	for _, sequence := range rows {
		for n := int64(1); n < sequence; n++ {
			known := s.since[sequence]&bit(n) != 0 || s.settled&bit(n) != 0 || slices.Contains(rows, n) || filled&bit(n) != 0
			if !known && !w.delivery.delivered[n-1] {
				w.breaks("I-4", "%s takes row %d behind number %d, which it did not probe since", p.name, sequence, n)
			}
		}
	}
}

// shown notes what a reply shows a process of the numbers.
func (w *world) shown(process int, r store.Request, reply store.Reply) {
	switch result := reply.Result.(type) {
	case store.Fetched:
		if _, aside := r.(store.FetchParked); aside {
			return
		}
		s := w.sight(process)
		for _, row := range result.Rows {
			s.read |= bit(row.Sequence)
			s.since[row.Sequence] = 0
		}
		if fault, unreadable := result.Malformed.(*outbox.ItemError); unreadable {
			sequence, _ := outbox.ParseSequence(fault.SortKey)
			s.met |= bit(sequence)
		}
	case store.Probed:
		probe := r.(store.Probe)
		s := w.sight(process)
		for n := probe.From; n <= probe.To && !result.Filled; n++ {
			for row := range s.since {
				s.since[row] |= bit(n)
			}
			s.settled |= bit(n)
		}
	}
}

// deleting: a row goes only after the broker has it.
func (w *world) deleting(p *process, r store.Delete) {
	for _, sequence := range r.Sequences {
		if !w.delivery.delivered[sequence-1] {
			w.breaks("I-3", "%s deletes row %d, which was not delivered", p.name, sequence)
		}
		w.sight(p.number).settled |= bit(sequence)
	}
}

// appended lets the broker have rows of a batch.
func (w *world) appended(one batch, count int) {
	for _, sequence := range one.rows[:count] {
		i := int(sequence - 1)
		if w.delivery.delivered[i] {
			continue
		}
		for j := range i {
			if w.search.o.Rows[j].before(w.search.o.Rows[i]) && w.delivery.committed[j] && !w.delivery.delivered[j] && !w.aside.discarded[j] {
				w.breaks("I-4", "row %d passes row %d of the same key", i+1, j+1)
			}
		}
		w.delivery.delivered[i] = true
	}
}

// published answers a batch: its first rows are acknowledged, the next has an outcome,
// and so have those behind it.
func (w *world) published(one batch, acknowledged int, next, rest publisher.Outcome) {
	if w.processes[one.process].gone() {
		return
	}
	results := make([]publisher.Result, len(one.rows))
	for i := range results {
		results[i].Outcome = publisher.Acknowledged
		if i > acknowledged {
			results[i].Outcome = rest
		} else if i == acknowledged {
			results[i].Outcome = next
		}
	}
	if f := w.search.plant.outcome; f != nil {
		f(results)
	}
	p := w.own(one.process)
	w.search.within(w, p, func() {
		p.queue = append(p.queue, letter{one.to.Id, publisher.Published{Batch: one.number, Results: results}})
	})
}

// publishing tells whether a batch must come back before time goes on.
func (w *world) publishing() bool {
	return slices.ContainsFunc(w.delivery.batches, func(one batch) bool { return one.state == underWay })
}

// releasing: nothing of a bucket is under way when its release is sent.
func (w *world) releasing(p *process) {
	for _, one := range w.delivery.batches {
		if one.process == p.number && one.state != lurking {
			w.breaks("I-6", "%s releases its bucket while rows %v are outstanding", p.name, one.rows)
		}
	}
}

// settledDelivery demands that all that was committed is delivered and gone.
func (w *world) settledDelivery() {
	for i, committed := range w.delivery.committed {
		waits := w.aside.discarded[i] || w.table.isParked(int64(i+1)) != ""
		if committed && !w.delivery.delivered[i] && !waits {
			w.breaks("I-1", "row %d was never delivered", i+1)
		}
	}
	if len(w.table.rows) > 0 {
		w.breaks("I-10", "rows %v stay in the table", w.table.rows)
	}
}

func (w *world) encodeDelivery(e *encoder) {
	d := w.delivery
	for i := range d.committed {
		e.is(d.committed[i])
		e.is(d.delivered[i])
	}
	for _, one := range d.batches {
		e.number(int64(one.process))
		e.number(int64(one.state))
		e.number(int64(one.until))
		for _, sequence := range one.rows {
			e.number(sequence)
		}
		if one.state != lurking {
			e.number(int64(one.number))
		}
	}
	e.text("")
	for _, s := range d.seen {
		e.number(int64(s.settled))
		e.number(int64(s.read))
		e.number(int64(s.met))
		for _, n := range s.since {
			e.number(int64(n))
		}
	}
}

// claim is the number of the tenure that a batch is of.
func (b batch) claim() int64 { return int64(b.number >> 32) }

func (w *world) wordsOfBatch(one batch) string {
	return fmt.Sprintf("%s's batch of rows %v", w.processes[one.process].name, one.rows)
}
