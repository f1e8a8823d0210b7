package explore

import (
	"slices"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// aside is what concerns the rows that are set aside, beside the table. It is a value:
// whoever changes it copies it before.
type aside struct {
	mended    bool     // the broker rejects no row any more
	discarded []bool   // by row, from 0: an operator has deleted it
	excused   []bool   // by row: it was set aside when its retry was called off
	sentIn    []tenure // by row: the tenure that has last published it as a message
	veiled    int      // the tick since which the table has a veil

	acts   int   // that are left
	stamp  int64 // of the operator's latest change: its clock, of which only equality counts
	ringer bool  // the latest change is still to be rung for
}

// tenure is one hold of the lease.
type tenure struct {
	incarnation string
	claim       int64
}

func (x *search) beginAside(w *world) {
	n := len(x.o.Rows)
	w.aside = aside{acts: x.o.Acts, discarded: make([]bool, n), excused: make([]bool, n), sentIn: make([]tenure, n)}
}

func (a aside) copy() aside {
	a.discarded, a.excused, a.sentIn = slices.Clone(a.discarded), slices.Clone(a.excused), slices.Clone(a.sentIn)
	return a
}

func (w *world) encodeAside(e *encoder) {
	a := w.aside
	e.is(a.mended)
	e.number(int64(a.acts))
	e.number(a.stamp)
	e.is(a.ringer)
	e.number(int64(a.veiled))
	for i := range a.discarded {
		e.is(a.discarded[i])
		e.is(a.excused[i])
		e.text(a.sentIn[i].incarnation)
		e.number(a.sentIn[i].claim)
	}
}

// rejects tells whether the broker rejects a row for its own sake.
func (w *world) rejects(sequence int64) bool {
	return w.search.o.Rows[sequence-1].Rejected && !w.aside.mended
}

// accepted is how many rows at the head of a batch the broker takes.
func (w *world) accepted(one batch) int {
	if i := slices.IndexFunc(one.rows, w.rejects); i >= 0 {
		return i
	}
	return len(one.rows)
}

// judge looks for what is not as it must be in any table: a row that is set aside is
// what was committed, under its own key, not among the messages, and has a marker.
func (t *tables) judge(n *table) {
	w := &world{}
	items := t.byKey(n.items)
	for _, one := range n.parked {
		was := t.committed[one.sequence]
		key := itemKey{t.schema.ParkedKey(0), outbox.ParkedRowSortKey(one.keyID, one.sequence)}
		if is := items[key]; !t.unchanged(is, was) {
			w.breaks("I-37", "row %d was changed when it was set aside", one.sequence)
		}
		if one.keyID != t.keyIDs[one.sequence] {
			w.breaks("I-37", "row %d is set aside under another key", one.sequence)
		}
		if slices.Contains(n.rows, one.sequence) {
			w.breaks("I-37", "row %d is among the messages, and is set aside", one.sequence)
		}
		if n.marker(one.keyID, "") == nil {
			w.breaks("I-38", "row %d is set aside, and its key has no marker", one.sequence)
		}
	}
	n.broken = w.broken
}

// unchanged tells whether an item is another but for its keys.
func (t *tables) unchanged(is, was item) bool {
	if len(is) != len(was) {
		return false
	}
	for name, value := range is {
		if name == t.schema.PartitionKey || name == t.schema.SortKey {
			continue
		}
		if !same(item{name: value}, item{name: was[name]}) {
			return false
		}
	}
	return true
}

// checkAside looks at what is set aside: at the table by itself, and for rows that are
// nowhere.
func (w *world) checkAside() {
	if w.broken == nil {
		w.broken = w.table.broken
	}
	for i, committed := range w.delivery.committed {
		if !committed || w.delivery.delivered[i] || w.aside.discarded[i] {
			continue
		}
		if n := int64(i + 1); !slices.Contains(w.table.rows, n) && w.table.isParked(n) == "" {
			w.breaks("I-1", "row %d is gone, and was not delivered", n)
		}
	}
}

// publishedAside checks what is published: of the rows that are set aside only those
// whose retry somebody has asked for. It tells whether the batch is such a retry.
func (w *world) publishedAside(p *process, one batch) (retry bool) {
	for _, sequence := range one.rows {
		keyID := w.table.isParked(sequence)
		if keyID == "" {
			w.aside.sentIn[sequence-1] = tenure{p.incarnation(), one.claim()}
			continue
		}
		retry = true
		marker := w.table.marker(keyID, "")
		if marker == nil || marker.RetryAt == 0 && !w.topicWanted(marker) && !w.aside.excused[sequence-1] {
			w.breaks("I-37", "%s publishes row %d, which is set aside, and nobody has asked for it", p.name, sequence)
		}
	}
	return retry
}

// topicWanted: a key was set aside with its topic, whose retry is asked for.
func (w *world) topicWanted(m *store.Marker) bool {
	topic := w.table.marker("", m.Topic)
	return m.Reason == store.ReasonTopic && topic != nil && topic.RetryAt != 0
}

// changedAside checks what a transaction has done to what is set aside.
func (w *world) changedAside(p *process, r store.Request, before *table) {
	if before == w.table {
		return
	}
	if move, moves := r.(store.Move); moves {
		w.moved(p, move, before)
	}
	if remove, removes := r.(store.RemoveParked); removes {
		for _, sequence := range remove.Sequences {
			if !w.delivery.delivered[sequence-1] && !w.aside.discarded[sequence-1] {
				w.breaks("I-3", "%s removes row %d, which was not delivered", p.name, sequence)
			}
		}
	}
	for _, was := range before.markers {
		if was.RetryAt == 0 {
			continue
		}
		if is := w.table.marker(was.KeyID, was.Topic); is != nil && is.RetryAt == was.RetryAt {
			continue
		}
		if served := servedBy(r); served.RetryAt != was.RetryAt {
			w.breaks("I-37", "%s ends the retry %d of a key, and has served %d", p.name, was.RetryAt, served.RetryAt)
		}
	}
}

// servedBy is the marker as it was for whoever ends its retry.
func servedBy(r store.Request) store.Marker {
	switch r := r.(type) {
	case store.Unmark:
		return r.Marker
	case store.EndRetry:
		return r.Marker
	}
	return store.Marker{}
}

// moved: rows go from the messages to those set aside, and none that the next owner
// has published.
func (w *world) moved(p *process, r store.Move, before *table) {
	lease := before.leases[r.Tenure.Bucket]
	holder := tenure{lease.Incarnation, lease.Claim}
	for _, one := range r.Rows {
		sequence := one.Row.Sequence
		if !slices.Contains(before.rows, sequence) {
			w.breaks("I-37", "%s sets row %d aside, which is not among the messages", p.name, sequence)
		}
		sender := tenure{r.Tenure.Incarnation, r.Tenure.Claim}
		if w.aside.sentIn[sequence-1] == holder && sender != holder {
			w.breaks("I-37", "%s sets row %d aside, which the next owner has published", p.name, sequence)
		}
		w.sight(p.number).settled |= bit(sequence)
	}
}

// sendingAside checks what a transaction asks for as it leaves.
func (w *world) sendingAside(p *process, r store.Request) {
	t, token := transacts(r)
	if token == "" {
		return
	}
	if !p.holds(w, t.Bucket) {
		w.breaks("I-6", "%s sends a %s without a valid lease", p.name, r.RequestName())
	}
	if move, moves := r.(store.Move); moves {
		var rows []int64
		for _, one := range move.Rows {
			rows = append(rows, one.Row.Sequence)
		}
		w.gaps(p, rows, w.sight(p.number).read)
	}
}

// settledAside demands what is true when nothing goes wrong any more: each wish for a
// retry was carried out, and no marker of a key is left without rows.
func (w *world) settledAside() {
	for _, m := range w.table.markers {
		if m.RetryAt != 0 {
			w.breaks("I-10", "the retry %d of %s was asked for, and not carried out", m.RetryAt, nameOf(m))
		}
		filled := slices.ContainsFunc(w.table.parked, func(one parkedRow) bool { return one.keyID == m.KeyID })
		if m.KeyID != "" && !filled {
			w.breaks("I-10", "the marker of %s stays without rows", nameOf(m))
		}
	}
}

// emptied demands that nothing is set aside any more.
func (w *world) emptied() {
	for _, m := range w.table.markers {
		w.breaks("I-10", "all was retried, and %s is still set aside", nameOf(m))
	}
	w.settledDelivery()
}

func nameOf(m store.Marker) string {
	if m.KeyID == "" {
		return "topic " + m.Topic
	}
	return "key " + m.KeyID[:4]
}
