package publisher

import "time"

// verdict is what came of the look at one pending row.
type verdict uint8

const (
	handedOver verdict = iota
	waits              // with all later rows of its partition and of its topic and key
	pauses             // with all later rows of the batch
)

// queuePause is how long a producer with a full queue is left alone when none of
// its reports comes earlier.
const queuePause = 100 * time.Millisecond

// submit hands over the batch's rows, in order, as far as it goes now.
func (c *core) submit(t *batch) {
	if t.stopped || t.pending == 0 {
		return
	}
	if t.lapsed(c.now) {
		t.stop()
		return
	}
	c.pass++
	passed := true // all rows looked at so far are no longer pending
	for i := t.next; i < len(t.rows) && !t.stopped; i++ {
		r := &t.rows[i]
		if r.state == pending {
			switch c.offer(t, i) {
			case pauses:
				return
			case waits:
				r.hold(c.pass)
			case handedOver:
			}
		}
		passed = passed && r.state != pending
		if passed {
			t.next = i + 1
		}
	}
}

// hold lets later rows of the same partition, and of the same topic and key, wait
// in this pass too.
func (r *row) hold(pass uint64) {
	r.lane.held = pass
	if r.keyed != nil {
		r.keyed.held = pass
	}
}

// behind tells whether the row must wait for an earlier one of its batch: one
// that waits itself, or one of its topic and key that is outstanding on another
// partition, where nothing would keep the two in order.
func (r *row) behind(pass uint64) bool {
	if r.lane.held == pass {
		return true
	}
	k := r.keyed
	return k != nil && (k.held == pass || k.outstanding > 0 && k.lane != r.lane)
}

// offer looks at one pending row and hands it over if it may go.
func (c *core) offer(t *batch, i int) verdict {
	r := &t.rows[i]
	if !r.prepared && !c.prepare(t, i) {
		return pauses
	}
	if r.behind(c.pass) {
		return waits
	}
	if r.tight || t.request.Rows[i].Sequence <= t.bucket.careful {
		return c.offerCareful(t, i)
	}
	if t.careful != nil {
		if t.outstanding > 0 {
			return pauses // a careful row is outstanding
		}
		c.leaveCareful(t)
	}
	s := c.slotFor(r.lane.poolBytes, t.bucket.number)
	if s == nil {
		return c.offerCareful(t, i)
	}
	p := s.producer
	switch {
	case p == nil && s.failing():
		c.settle(t, i, Failed, s.fault)
		return pauses
	case p == nil:
		c.reopen(s)
		return pauses
	case p.state != open || p.full:
		return pauses
	}
	if !p.path(r.lane.place).admits(c.now, c.cfg.PrimeAfter, c.topic(r.lane.topic).era) {
		return waits
	}
	return c.handOver(t, i, p)
}

// offerCareful hands a row over alone: nothing else of its bucket is outstanding
// anywhere, and nothing of anybody on the careful producer. So a rejection is
// this record's own, and no order depends on the producer. One poison bucket
// holds up no other one, since each has a producer of its own while there are
// enough of them.
func (c *core) offerCareful(t *batch, i int) verdict {
	if t.outstanding > 0 {
		return pauses
	}
	if t.careful == nil && c.careful.failing() {
		c.settle(t, i, Failed, c.careful.fault)
		return pauses
	}
	p := c.carefulFor(t)
	if p.state != open || p.full || p.outstanding > 0 {
		return pauses
	}
	c.handOver(t, i, p)
	return pauses // the next row waits for this one's report
}

// handOver gives one row to its producer if the budget allows it.
func (c *core) handOver(t *batch, i int, p *producer) verdict {
	r := &t.rows[i]
	if !c.budget.admits(t.bucket.bytes, r.bytes) {
		return pauses
	}
	c.budget.take(t.bucket, r.bytes)
	t.pending--
	t.outstanding++
	r.state, r.via = outstanding, p
	if r.keyed != nil {
		r.keyed.outstanding++
		r.keyed.lane = r.lane
	}
	p.outstanding++
	if p.slot != nil {
		p.uses++
	}
	p.path(r.lane.place).sent(c.now, c.cfg.PrimeAfter, c.topic(r.lane.topic).era)
	c.watch(p, r.lane.place)
	c.do(produce{p.options.Number, r.record, c.token(t, i)})
	return handedOver
}

func (c *core) token(t *batch, i int) Token {
	return Token{Bucket: t.bucket.number, Batch: t.request.Batch, Sequence: t.request.Rows[i].Sequence}
}

// takeBack undoes handOver's counts: the row has a report, was refused, or is
// given up.
func (c *core) takeBack(t *batch, i int) {
	r := &t.rows[i]
	c.budget.take(t.bucket, -r.bytes)
	t.outstanding--
	if r.keyed != nil {
		r.keyed.outstanding--
	}
	r.via.outstanding--
	r.via.path(r.lane.place).outstanding--
	r.via = nil
}

// settle gives a pending row its result. Any other than Acknowledged stops its
// batch: what would be handed over behind it would only be repeated.
func (c *core) settle(t *batch, i int, outcome Outcome, fault *Fault) {
	r := &t.rows[i]
	if r.state == pending {
		t.pending--
	}
	r.state = settled
	r.result = Result{Outcome: outcome, Fault: fault}
	r.record = Record{}
	if outcome != Acknowledged {
		t.stop()
	}
}
