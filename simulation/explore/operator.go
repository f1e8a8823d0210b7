package explore

import (
	"fmt"
	"slices"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Act is what an operator does about rows that are set aside. The change is one step,
// and the ring for the owner another.
type Act string

// The acts.
const (
	Retry         Act = "retry" // of a key, or a topic, that is set aside
	CallOff       Act = "call a retry off"
	Discard       Act = "discard"         // of a row that is set aside
	SetKeyAside   Act = "set a key aside" // of which a row was, or will be, written
	SetTopicAside Act = "set the topic aside"
	MoveRow       Act = "move a row" // that cannot be read
)

// topic is that of all rows.
const topic = "orders"

// message is what a row holds.
func (o Options) message(i int) outbox.Message {
	m := outbox.Message{Topic: topic}
	m.ID[len(m.ID)-1] = byte(i + 1)
	if key := o.Rows[i].Key; key != "" {
		m.Key = []byte(key)
	}
	return m
}

// acts tells whether an act is among those that happen; without any named all are.
func (o Options) acts(a Act) bool { return len(o.ActKinds) == 0 || slices.Contains(o.ActKinds, a) }

// asideChoices are what an operator may do, and what the broker and the table may do
// about rows that are set aside.
func (w *world) asideChoices(add func(choiceKind, int, int)) {
	if len(w.table.veil.hidden) > 0 {
		add(appear, 0, 0)
	}
	if w.aside.ringer {
		add(ring, 0, 0)
	}
	if w.tick >= w.search.o.FaultTicks {
		return
	}
	if slices.ContainsFunc(w.search.o.Rows, func(row Row) bool { return row.Rejected }) && !w.aside.mended {
		add(mend, 0, 0)
	}
	for i := range w.search.operations(w.table) {
		if w.aside.acts > 0 && w.mayDo(i) {
			add(operate, i, 0)
		}
	}
}

// operations are the changes that an operator may make to a table, without stamps.
func (x *search) operations(t *table) []store.Request {
	o := x.o
	var list []store.Request
	for _, m := range t.markers {
		if o.acts(Retry) {
			list = append(list, store.AskRetry{KeyID: m.KeyID, Topic: m.Topic})
		}
		if o.acts(CallOff) && m.RetryAt != 0 {
			list = append(list, store.CallOff{Seen: m, Reason: m.Reason})
		}
	}
	for _, row := range t.parked {
		if o.acts(Discard) {
			list = append(list, store.DiscardParked{KeyID: row.keyID, Sequence: row.sequence})
		}
	}
	for i, row := range o.Rows {
		m := o.message(i)
		if row.Unreadable && o.acts(MoveRow) && slices.Contains(t.rows, int64(i+1)) {
			list = append(list, x.tables.moveRow(int64(i+1)))
		}
		known := slices.ContainsFunc(o.Rows[:i], func(before Row) bool { return before.before(row) })
		if o.acts(SetKeyAside) && !known {
			list = append(list, store.SetAside{Marker: store.Marker{KeyID: outbox.ParkedKeyID(&m), Topic: topic, Reason: "by hand"}})
		}
	}
	if o.acts(SetTopicAside) {
		list = append(list, store.SetAside{Marker: store.Marker{Topic: topic, Reason: "by hand"}})
	}
	return list
}

// moveRow moves a row that cannot be read.
func (t *tables) moveRow(sequence int64) store.MoveUnreadable {
	row := t.committed[sequence]
	marker := store.Marker{Reason: "by hand"}
	marker.KeyID, marker.Topic = t.schema.ParkedIdentity(row)
	return store.MoveUnreadable{Sequence: sequence, Item: row, Marker: marker, Token: fmt.Sprintf("operator's %d", sequence)}
}

// operation is one of them, as it is sent.
func (w *world) operation(i int) store.Request {
	stamp := store.Ticks(w.aside.stamp + 1)
	switch r := w.search.operations(w.table)[i].(type) {
	case store.AskRetry:
		r.At = stamp
		return r
	case store.CallOff:
		r.ParkedAt = stamp
		return r
	case store.SetAside:
		r.Marker.ParkedAt = stamp
		return r
	case store.MoveUnreadable:
		r.Marker.ParkedAt = stamp
		return r
	default:
		return r
	}
}

// mayDo tells whether an operation would be carried out. A row that cannot be read is
// moved only when a relay has met it: before that, others of its key may pass, which is
// not promised (docs/parking.md).
func (w *world) mayDo(i int) bool {
	if move, moves := w.operation(i).(store.MoveUnreadable); moves {
		met := func(s sight) bool { return s.met&bit(move.Sequence) != 0 }
		if !slices.ContainsFunc(w.delivery.seen, met) {
			return false
		}
	}
	return w.does(i).reply.Class == store.Done
}

// does is what an operation would do.
func (w *world) does(i int) answer {
	r := w.operation(i)
	return w.search.tables.apply(w.table, r, requestCode(r))
}

// operate carries out an operation. Its ring is still to come.
func (w *world) operate(i int) {
	w.aside.acts--
	w.change(w.operation(i))
}

// change writes what an operator wants changed.
func (w *world) change(r store.Request) {
	if off, calls := r.(store.CallOff); calls {
		w.calledOff(off.Seen)
	}
	w.table = w.search.tables.apply(w.table, r, requestCode(r)).after
	w.aside.stamp++
	w.aside.ringer = true
	if discard, discards := r.(store.DiscardParked); discards {
		w.aside.discarded[discard.Sequence-1] = true
	}
}

// calledOff excuses the rows of a retry that is called off: its owner, who has not heard
// of that yet, may have read them, and goes on with them.
func (w *world) calledOff(m store.Marker) {
	for _, row := range w.table.parked {
		key := w.table.marker(row.keyID, "")
		if row.keyID == m.KeyID || key != nil && m.KeyID == "" && key.Reason == store.ReasonTopic && key.Topic == m.Topic {
			w.aside.excused[row.sequence-1] = true
		}
	}
}

// ring tells the owner of what was changed.
func (w *world) ring() {
	r := store.Ring{At: store.Ticks(w.aside.stamp)}
	w.table = w.search.tables.apply(w.table, r, requestCode(r)).after
	w.aside.ringer = false
}

// retryAll asks for a retry of all that is set aside, and rings. What cannot be read is
// discarded before.
func (w *world) retryAll() {
	for _, row := range w.table.parked {
		if w.search.o.Rows[row.sequence-1].Unreadable {
			w.change(store.DiscardParked{KeyID: row.keyID, Sequence: row.sequence})
		}
	}
	for _, m := range w.table.markers {
		w.change(store.AskRetry{KeyID: m.KeyID, Topic: m.Topic, At: store.Ticks(w.aside.stamp + 1)})
	}
	w.ring()
}

// tears are the ways in which a transaction may become visible in parts.
func (w *world) tears(i int, add func(choiceKind, int, int)) {
	one := w.wires[i]
	if _, token := transacts(one.request); token == "" || len(w.table.veil.hidden) > 0 || one.again {
		return
	}
	after := w.search.tables.apply(w.table, one.request, one.code).after
	for _, mask := range masks(len(w.search.tables.changed(w.table, after))) {
		add(tear, i, mask)
	}
}

// tear applies a transaction, and hides some of the items that it has changed. Its
// sender gets no answer.
func (w *world) tear(i, mask int) {
	one, before := w.take(i), w.table
	_, token := transacts(one.request)
	w.apply(one)
	t := w.search.tables
	w.table = t.torn(w.table, token, t.changed(before, w.table), mask)
	w.aside.veiled = w.tick
	if one.state != lurking {
		w.giveUp(one)
	}
}

// appear lets a transaction be seen as a whole.
func (w *world) appear() {
	w.table = w.search.tables.whole(w.table)
	w.aside.veiled = 0
}

// veilEnds tells whether a transaction must be seen as a whole before time goes on: it
// takes less than a LeaseRenewInterval.
func (w *world) veilEnds() bool {
	return len(w.table.veil.hidden) > 0 && w.tick+1 >= w.aside.veiled+w.search.o.Interval
}

// healAside ends all that was going on.
func (w *world) healAside() {
	w.appear()
	w.aside.mended = true
	for _, sequence := range w.table.rows {
		if w.search.o.Rows[sequence-1].Unreadable {
			r := w.search.tables.moveRow(sequence)
			r.Marker.ParkedAt = store.Ticks(w.aside.stamp + 1)
			w.change(r)
		}
	}
	if w.aside.ringer {
		w.ring()
	}
}

// actsAside carries out a choice about what is set aside; false when it is something
// else.
func (w *world) actsAside(c choice) bool {
	switch c.kind {
	case operate:
		w.operate(c.index)
	case ring:
		w.ring()
	case mend:
		w.aside.mended = true
	case tear:
		w.tear(c.index, c.operand)
	case appear:
		w.appear()
	default:
		return false
	}
	return true
}

func (w *world) wordsAside(c choice) string {
	switch c.kind {
	case operate:
		return "an operator's " + wordsOfOperation(w.operation(c.index))
	case ring:
		return "the operator rings"
	case mend:
		return "the broker rejects nothing any more"
	case appear:
		return "the transaction is seen as a whole"
	case tear:
		one := w.wires[c.index]
		after := w.search.tables.apply(w.table, one.request, one.code).after
		text := "is applied without an answer, and not seen of it yet"
		for i, h := range w.search.tables.changed(w.table, after) {
			if c.operand&(1<<i) != 0 {
				text += fmt.Sprintf(" %s/%s", h.key.hash, h.key.sort)
			}
		}
		return text + ": " + w.request(one)
	}
	return ""
}

func wordsOfOperation(r store.Request) string {
	switch r := r.(type) {
	case store.AskRetry:
		return fmt.Sprintf("wish %d for a retry of %s", r.At, nameOf(store.Marker{KeyID: r.KeyID, Topic: r.Topic}))
	case store.CallOff:
		return fmt.Sprintf("end of the retry %d of %s", r.Seen.RetryAt, nameOf(r.Seen))
	case store.DiscardParked:
		return fmt.Sprintf("discard of row %d", r.Sequence)
	case store.SetAside:
		return "marker of " + nameOf(r.Marker)
	case store.MoveUnreadable:
		return fmt.Sprintf("move of row %d under %s", r.Sequence, nameOf(r.Marker))
	}
	return r.RequestName()
}
