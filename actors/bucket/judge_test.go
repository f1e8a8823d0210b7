package bucket

import (
	"maps"
	"slices"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// judge checks what must hold whenever the core has come to rest.
func (w *whirl) judge() {
	leaseWrites := 0
	for _, d := range w.waiting {
		switch r := d.request.(type) {
		case store.Claim, store.Keep, store.Release:
			leaseWrites++
		case store.Delete:
			for _, sequence := range r.Sequences {
				if !w.acknowledged[sequence] {
					w.t.Fatalf("row %d is deleted and was never acknowledged", sequence)
				}
			}
			if !slices.IsSorted(r.Sequences) {
				w.t.Fatalf("deleted out of order: %v", r.Sequences)
			}
		case store.RemoveParked:
			for _, sequence := range r.Sequences {
				if !w.acknowledged[sequence] {
					w.t.Fatalf("row %d, which was set aside, is removed and was never acknowledged", sequence)
				}
			}
		}
	}
	w.judgeTable()
	if leaseWrites > 1 {
		w.t.Fatalf("%d lease writes are under way", leaseWrites)
	}
	if len(w.fences) > 1 {
		w.t.Fatalf("the fence was asked for %d times at once", len(w.fences))
	}
	if len(w.submitted) > 1 {
		w.t.Fatalf("the publisher has %d batches of one bucket", len(w.submitted))
	}
}

// judgeTable: what was committed is in the table, once, unless it was acknowledged
// or discarded.
func (w *whirl) judgeTable() {
	present := map[int64]int{}
	for _, sequence := range w.remaining() {
		present[sequence]++
	}
	rows, markers := w.setAside()
	for _, keyID := range slices.Sorted(maps.Keys(rows)) {
		if !slices.Contains(markers, outbox.ParkedKeySortKey(keyID)) {
			w.t.Fatalf("%v are set aside under %s, of which there is no marker", rows[keyID], keyID)
		}
		for _, sequence := range rows[keyID] {
			present[sequence]++
			if w.keys[sequence] != keyID && !slices.Contains(w.unreadable, sequence) {
				w.t.Fatalf("row %d of the key %s is set aside under %s", sequence, w.keys[sequence], keyID)
			}
		}
	}
	for sequence := range w.keys {
		switch {
		case present[sequence] > 1:
			w.t.Fatalf("row %d is in the table twice", sequence)
		case present[sequence] == 0 && !w.acknowledged[sequence] && !w.discarded[sequence]:
			w.t.Fatalf("row %d is lost", sequence)
		}
	}
}

// watch judges each batch in the moment in which it is submitted.
func (w *whirl) watch() {
	w.steps++
	if len(w.submitted) == 1 && w.submitted[0].Batch != w.judged {
		w.judgeBatch(w.submitted[0])
	}
}

// judgeBatch checks the one rule of section 5: no row is published behind a gap
// that was not found empty after the read that returned the row.
func (w *whirl) judgeBatch(p publisher.Publish) {
	w.judged = p.Batch
	if p.NotAfter.PassedAt(w.instant()) {
		w.t.Fatalf("batch %d is published after its lease's validity", p.Batch)
	}
	if w.judgeAside(p) {
		return
	}
	first := w.core.expected
	if p.Rows[0].Sequence < first {
		first = 1
	}
	for i, row := range p.Rows {
		if i > 0 && row.Sequence <= p.Rows[i-1].Sequence {
			w.t.Fatalf("rows out of order: %v", sequences(p.Rows))
		}
		w.judgeKey(p.Rows[:i], row)
		for n := first; n < row.Sequence; n++ {
			isRow := slices.ContainsFunc(p.Rows[:i], func(r outbox.Row) bool { return r.Sequence == n })
			if !isRow && !w.movedNow[n] && w.probedAt[n] <= w.readAt[row.Sequence] {
				w.t.Fatalf("row %d is published behind %d, which was not probed after the row was read", row.Sequence, n)
			}
		}
	}
}

// judgeAside checks that rows pass none of their key that is set aside. It tells
// whether the rows were set aside themselves, so that no gap matters to them.
func (w *whirl) judgeAside(p publisher.Publish) bool {
	aside, _ := w.setAside()
	if w.core.batch.keyed {
		waiting := aside[w.core.batch.key.KeyID]
		sent := slices.DeleteFunc(sequences(p.Rows), func(n int64) bool { return w.discarded[n] })
		if len(sent) > len(waiting) || !slices.Equal(sent, waiting[:len(sent)]) {
			w.t.Fatalf("of %v, set aside, %v are published", waiting, sent)
		}
		return true
	}
	for _, row := range p.Rows {
		if waiting := w.readable(aside[outbox.ParkedKeyID(&row.Message)]); len(waiting) > 0 {
			w.t.Fatalf("row %d is published although %v of its key are set aside", row.Sequence, waiting)
		}
	}
	return false
}

// judgeKey checks that a row passes none of its key that was committed before it was
// read, but those that were discarded.
func (w *whirl) judgeKey(before []outbox.Row, row outbox.Row) {
	for sequence, keyID := range w.keys {
		if keyID != w.keys[row.Sequence] || sequence >= row.Sequence || w.committedAt[sequence] > w.readAt[row.Sequence] {
			continue
		}
		with := slices.ContainsFunc(before, func(r outbox.Row) bool { return r.Sequence == sequence })
		if !with && !w.acknowledged[sequence] && !w.discarded[sequence] {
			w.t.Fatalf("row %d is published before %d, of the same key", row.Sequence, sequence)
		}
	}
}

// readable are those rows but the ones that an operator has moved himself: the owner
// learns of them when he rings.
func (w *whirl) readable(rows []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(rows), func(n int64) bool { return slices.Contains(w.unreadable, n) })
}
