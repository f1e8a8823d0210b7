package explore

import (
	"fmt"
	"slices"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/store"
)

// deliveryChoices are what may happen to rows and batches; true when something of
// that must happen before time goes on.
func (w *world) deliveryChoices(add func(choiceKind, int, int)) (urgent bool) {
	for i, one := range w.delivery.batches {
		switch one.state {
		case underWay:
			urgent = true
			add(acknowledge, i, 0)
		case lurking:
			add(late, i, 0)
		}
	}
	if w.tick < w.search.o.FaultTicks {
		w.commits(add)
	}
	return urgent
}

// deliveryFaults are what may go wrong with batches, and with fetches and deletes.
func (w *world) deliveryFaults(add func(choiceKind, int, int)) {
	o := w.search.o
	for i, one := range w.delivery.batches {
		if one.state != underWay {
			continue
		}
		for count := range w.accepted(one) {
			if o.may(Unsent) {
				add(unsent, i, count)
			}
		}
		if o.may(Unheard) {
			add(unheard, i, 0)
		}
		if o.may(Slow) {
			add(linger, i, 0)
		}
	}
	for i, one := range w.wires {
		if one.state != underWay || one.reply != nil || one.part != nil || one.again {
			continue
		}
		switch r := one.request.(type) {
		case store.Fetch:
			for border := 2; border <= len(o.Rows) && o.may(Split); border++ {
				add(splitFetch, i, border)
			}
		case store.Delete:
			for count := 1; count < len(r.Sequences) && o.may(Partly); count++ {
				add(partly, i, count)
			}
		}
	}
}

// delivers carries out a choice about rows and batches.
func (w *world) delivers(c choice) {
	switch c.kind {
	case commit:
		w.commit(c.index)
	case splitFetch:
		reply := w.apply(w.wires[c.index])
		page := reply.Result.(store.Fetched)
		page.Rows = slices.DeleteFunc(slices.Clone(page.Rows), beyond(c.operand))
		w.wires[c.index].part, w.wires[c.index].border = &page, c.operand
	case partly:
		one := w.take(c.index)
		whole := one.request.(store.Delete)
		first := one
		first.request = store.Delete{Bucket: whole.Bucket, Sequences: whole.Sequences[:c.operand]}
		first.code = requestCode(first.request)
		reply := w.apply(first)
		reply.Result = store.Deleted{Unprocessed: whole.Sequences[c.operand:]}
		w.answer(one, reply)
	case linger:
		w.delivery.batches[c.index].state, w.delivery.batches[c.index].until = delayed, w.tick+1
	default:
		w.comesBack(c)
	}
}

// comesBack carries out the end of a batch.
func (w *world) comesBack(c choice) {
	one := w.delivery.batches[c.index]
	if c.kind == unheard {
		w.delivery.batches[c.index].state = lurking
		w.published(one, 0, publisher.Unknown, publisher.Unknown)
		return
	}
	w.delivery.batches = slices.Delete(slices.Clone(w.delivery.batches), c.index, c.index+1)
	switch c.kind {
	case acknowledge:
		count := w.accepted(one)
		w.appended(one, count)
		w.published(one, count, publisher.Refused, publisher.NotSubmitted)
	case unsent:
		w.appended(one, c.operand)
		w.published(one, c.operand, publisher.Failed, publisher.Failed)
	case late:
		w.appended(one, w.accepted(one))
	}
}

// buryBatches leaves a dead process's batches on their own.
func (w *world) buryBatches(p *process) {
	for i := range w.delivery.batches {
		if one := &w.delivery.batches[i]; one.process == p.number {
			one.state = lurking
		}
	}
}

// healDelivery drops what lurks.
func (w *world) healDelivery() {
	w.delivery.batches = slices.DeleteFunc(w.delivery.batches, func(one batch) bool { return one.state == lurking })
}

// deliverBatch lets the first batch come back.
func (w *world) deliverBatch() {
	for i, one := range w.delivery.batches {
		if one.state == underWay {
			w.comesBack(choice{kind: acknowledge, index: i})
			return
		}
	}
}

func (w *world) wordsOfDelivery(c choice) string {
	batch := func() string { return w.wordsOfBatch(w.delivery.batches[c.index]) }
	switch c.kind {
	case commit:
		return fmt.Sprintf("row %d is committed", c.index+1)
	case splitFetch:
		return fmt.Sprintf("reads below row %d, and the rest later: %s", c.operand, w.request(w.wires[c.index]))
	case partly:
		return fmt.Sprintf("is processed but for what is behind the first %d: %s", c.operand, w.request(w.wires[c.index]))
	case acknowledge:
		one := w.delivery.batches[c.index]
		if count := w.accepted(one); count < len(one.rows) {
			return fmt.Sprintf("row %d is rejected: %s", one.rows[count], batch())
		}
		return "is appended and acknowledged: " + batch()
	case unsent:
		return fmt.Sprintf("comes back with %d rows acknowledged: %s", c.operand, batch())
	case unheard:
		return "comes back unknown, and may be appended later: " + batch()
	case late:
		return "is appended late: " + batch()
	case linger:
		return "takes a tick longer: " + batch()
	}
	return w.wordsAside(c)
}
