package publisher

import (
	"slices"

	"github.com/bucketbrigade/relay/event"
)

// locate is the outstanding row that a token means, if it still is outstanding
// on that producer: a row that was given up is not found any more.
func (c *core) locate(number int, token Token) (t *batch, i int, found bool) {
	t = c.bucket(token.Bucket).active
	if t == nil || t.request.Batch != token.Batch {
		return nil, 0, false
	}
	i = t.find(token.Sequence)
	if i < 0 || t.rows[i].state != outstanding || t.rows[i].via.options.Number != number {
		return nil, 0, false
	}
	return t, i, true
}

// reported takes a burst of delivery reports. A rejection counts against a row
// only when the row was alone in its request; else its bucket goes on carefully
// until its rows of that request are through. So it does when the request failed for
// another reason, as for want of a permission: nobody counts that, but the next one of
// its kind would end the next producer of many buckets too. Of a shared rejection one
// row a batch is told: the request may have had thousands.
func (c *core) reported(m Reported) {
	p := c.producer(m.Producer)
	if p == nil {
		return
	}
	p.full = false
	var culprit *Fault
	var suspects []*batch // those whose shared rejection was told already
	for _, report := range m.Reports {
		t, i, found := c.locate(m.Producer, report.Token)
		if !found {
			continue
		}
		r := &t.rows[i]
		lone := p.options.Careful || p.path(r.lane.place).alone
		c.takeBack(t, i)
		if report.Fault == nil {
			c.acknowledged(t, i, p)
			continue
		}
		p.path(r.lane.place).primed = false
		if refusedRequest(report.Fault) {
			t.bucket.careful = max(t.bucket.careful, report.Token.Sequence)
			c.works(p)
		}
		switch report.Fault.Class {
		case Rejected:
			culprit = report.Fault
			if report.Fault.Code == CodeTooLarge {
				c.outgrown(r.lane, lone)
			}
			if lone {
				t.bucket.convict(report.Token.Sequence)
				c.refuse(t, i, report.Fault)
				continue
			}
			c.settle(t, i, Failed, report.Fault)
			if !slices.Contains(suspects, t) {
				suspects = append(suspects, t)
				c.tellRejected(t, i, report.Fault, false)
			}
		case Retriable:
			c.doubt(r.lane.topic)
			c.settle(t, i, Failed, report.Fault)
		case Fatal, Fenced:
			c.settle(t, i, Unknown, report.Fault)
			culprit = report.Fault
		default:
			c.settle(t, i, Unknown, report.Fault)
		}
	}
	if culprit != nil && (!p.options.Careful || culprit.Class != Rejected) {
		// A gap-less producer is finished with its first rejected record, whether its
		// Fataled comes before or after the report.
		c.fail(p, culprit)
	}
	c.closeWhenDone(p)
}

// refusedRequest tells whether a request failed for a reason of its own. What is purged went
// down with others; a fatal error is the producer's.
func refusedRequest(fault *Fault) bool {
	switch fault.Class {
	case Rejected, Retriable:
		return true
	case Ambiguous:
		return fault.Code != CodePurgedInFlight && fault.Code != CodePurgedQueue
	default:
		return false
	}
}

func (c *core) acknowledged(t *batch, i int, p *producer) {
	row := &t.request.Rows[i]
	w := p.path(t.rows[i].lane.place)
	w.primed, w.heard = true, c.now
	p.proven = true
	c.settle(t, i, Acknowledged, nil)
	c.emit(event.RecordAcknowledged{
		Bucket:   t.bucket.number,
		Sequence: row.Sequence,
		Topic:    row.Message.Topic,
		Lag:      c.now.Time().Sub(row.Message.CreatedAt),
	})
	c.reached(p.options.Number)
}

// refuse settles a row that was rejected for its own sake.
func (c *core) refuse(t *batch, i int, fault *Fault) {
	c.settle(t, i, Refused, fault)
	c.tellRejected(t, i, fault, true)
}

func (c *core) tellRejected(t *batch, i int, fault *Fault, alone bool) {
	row := &t.request.Rows[i]
	c.emit(event.RecordRejected{
		Bucket:   t.bucket.number,
		Sequence: row.Sequence,
		Message:  row.Message.ID.String(),
		Topic:    row.Message.Topic,
		Code:     fault.Error(),
		Alone:    alone,
	})
}

// notProduced takes back rows that producers did not take. Those without a fault
// were held back behind one that has: they are pending as before.
func (c *core) notProduced(m notProduced) {
	for _, refusal := range m.refusals {
		t, i, found := c.locate(refusal.producer, refusal.token)
		if !found {
			continue
		}
		r := &t.rows[i]
		p := r.via
		c.takeBack(t, i)
		r.state = pending
		t.pending++
		t.next = min(t.next, i)
		if w := p.path(r.lane.place); w.outstanding == 0 {
			w.primed = false // it counted as sent and was not: when the last one was is not known any more
		}
		if refusal.fault != nil {
			c.notTaken(t, i, p, refusal.fault)
		}
		c.closeWhenDone(p)
	}
}

// notTaken decides on a row that its producer refused at once; nothing of it was
// sent.
func (c *core) notTaken(t *batch, i int, p *producer, fault *Fault) {
	switch {
	case fault.Code == CodeQueueFull:
		p.full = true
		if !p.paused {
			p.paused = true
			c.wake(queuePause, queueDue{p.options.Number})
		}
	case fault.Class == Rejected && !p.options.Careful:
		// The limit may be this producer's only: a careful one takes any size.
		t.bucket.careful = max(t.bucket.careful, t.request.Rows[i].Sequence)
	case fault.Class == Rejected:
		c.refuse(t, i, fault)
	case fault.Class == Fatal || fault.Class == Fenced:
		c.settle(t, i, Failed, fault)
		c.fail(p, fault)
	default:
		c.doubt(t.rows[i].lane.topic)
		c.settle(t, i, Failed, fault)
	}
}
