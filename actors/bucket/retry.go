package bucket

import (
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/store"
)

// proceed decides what a batch is about. What an earlier transaction has done is
// found out first, and then what is set aside, before a row is read.
func (c *core) proceed() {
	p := &c.parked
	switch {
	case c.unanswered != nil:
		c.transact(c.unanswered)
	case c.machine.In(fsm.Draining):
		c.dropBatch()
	case !p.known:
		c.readMarkers("")
	case c.retryDue() && !p.headTurn:
		p.headTurn = true
		wanted, _ := p.wanted(c.now)
		c.beginRetry(wanted)
	case (p.checking || p.owed) && c.checkDue():
		if p.owed {
			c.woken = "poll" // the messages are next
		}
		p.checking, p.owed = false, false
		doubtful, _ := p.doubtful()
		c.batch.key, c.batch.keyed, c.batch.looking = doubtful, true, true
		c.fetch()
	default:
		p.headTurn, p.checking = false, false
		c.fetch()
	}
}

// read reads what the batch is about: at once, unless that is the head, and somebody has
// rung since the batch began.
func (c *core) read() {
	if !c.parked.known && !c.batch.keyed {
		c.readMarkers("")
		return
	}
	c.fetch()
}

// beginRetry delivers rows of a key that were set aside. Of a whole topic nothing
// is left when it is its turn.
func (c *core) beginRetry(wanted store.Marker) {
	c.batch.key, c.batch.keyed = wanted, true
	if wanted.KeyID == "" {
		c.clear()
		return
	}
	c.parked.served = wanted.KeyID
	c.fetch()
}

// fetchParked reads the next page of the key's rows.
func (c *core) fetchParked(after int64) {
	b := c.batch
	limit := c.cfg.BatchSize - len(b.rows)
	if b.looking {
		limit = 1
	}
	b.token = c.do(store.FetchParked{
		Bucket: c.cfg.Bucket, KeyID: b.key.KeyID, After: after, Limit: limit, NotAfter: c.lease.validUntil,
	})
}

// parkedFetched: the rows of a key that were set aside are read. None is behind a
// gap: whoever moved them has probed.
func (c *core) parkedFetched() {
	b := c.batch
	switch {
	case b.looking && (len(b.rows) > 0 || b.malformed != nil):
		c.parked.fill(b.key.KeyID)
		c.endBatch(fsm.Drop)
	case len(b.rows) == 0 && b.malformed != nil:
		// It is no use to the broker either: the key waits for an operator.
		c.transition(b.machine, fsm.Fetched)
		b.failure = &failure{
			sequence: malformedSequence(b.malformed), outcome: publisher.Refused, reason: b.malformed.Error(), partition: -1,
		}
		c.retryFailed()
	case len(b.rows) == 0:
		c.clear()
	default:
		c.transition(b.machine, fsm.Fetched)
		b.solid, b.last = len(b.rows), b.rows[len(b.rows)-1].Sequence
		c.transition(b.machine, fsm.Probed)
		c.submit()
	}
}

// clear removes the marker of a key, or a topic, of which nothing is left. Nothing
// was moved since that was seen, for this tenure alone moves rows, and has read
// nothing new meanwhile.
func (c *core) clear() {
	c.transition(c.batch.machine, fsm.Clear)
	c.transact(store.Unmark{Tenure: c.tenure(), Marker: c.batch.key, Token: c.transactionToken()})
}

func (c *core) unmarked(m store.Marker) {
	c.cleared(m)
	c.recovered()
	c.endRetry()
}

// cleared: a marker is gone, since its retry has ended, or nothing is left of its key.
func (c *core) cleared(m store.Marker) {
	switch {
	case m.KeyID == "":
		c.emit(event.TopicRetried{Bucket: c.cfg.Bucket, Topic: m.Topic})
	case c.parked.toRetry(m):
		c.emit(event.KeyRetried{Bucket: c.cfg.Bucket, KeyID: m.KeyID, Topic: m.Topic})
	default:
		c.emit(event.KeyCleared{Bucket: c.cfg.Bucket, KeyID: m.KeyID, Topic: m.Topic})
	}
	c.parked.remove(m)
	c.sayPausedTopics()
}

// endRetry ends a batch that was about a key. The head is next.
func (c *core) endRetry() {
	c.failures = 0
	if c.machine.In(fsm.Draining) {
		c.dropBatch()
		return
	}
	c.woken = "retry"
	c.endBatch(fsm.Emptied)
}

// removeParked removes rows that were set aside and are acknowledged now.
func (c *core) removeParked(sequences []int64) {
	c.transact(store.RemoveParked{
		Tenure: c.tenure(), KeyID: c.batch.key.KeyID, Sequences: sequences, Token: c.transactionToken(),
	})
}

func (c *core) parkedRemoved(r store.RemoveParked) {
	b := c.batch
	b.removed += len(r.Sequences)
	b.chunk = nil
	c.deleteNext()
}

// retriedRows: the acknowledged rows of the key are removed. When the last page had
// fewer than a batch, nothing is left.
func (c *core) retriedRows() {
	b := c.batch
	c.failures = 0
	switch {
	case b.failure != nil:
		c.retryFailed()
	case c.machine.In(fsm.Draining):
		c.dropBatch()
	case b.more || b.malformed != nil:
		c.woken = "retry"
		c.endBatch(fsm.Deleted)
	default:
		c.clear()
	}
}

// retryFailed: a row of the key was not acknowledged. Rejected again, the key stays
// set aside, and waits for an operator.
func (c *core) retryFailed() {
	b := c.batch
	if !b.failure.refused() {
		c.retryLater()
		return
	}
	c.parked.rejected = b.failure.sequence
	c.transition(b.machine, fsm.Condemn)
	c.transact(store.EndRetry{
		Tenure: c.tenure(), Marker: b.key, Reason: b.failure.reason, Attempts: b.key.Attempts + 1, Token: c.transactionToken(),
	})
}

// retryLater ends a retry that met an outage, say. The key rests, longer each time,
// and neither the head nor other keys wait for it; a poll finds that it has rested.
func (c *core) retryLater() {
	c.parked.rest(c.batch.key.KeyID, c.now, c.cfg.ErrorBackoff)
	c.transition(c.batch.machine, fsm.Fail)
	c.dropBatch()
	if !c.machine.In(fsm.Draining) {
		c.woken = "retry"
	}
}

func (c *core) retryRejected(r store.EndRetry) {
	m := r.Marker
	c.emit(event.RetryRejected{
		Bucket: c.cfg.Bucket, KeyID: m.KeyID, Topic: m.Topic, Sequence: c.parked.rejected, Reason: r.Reason,
	})
}

func (c *core) retryEnded(r store.EndRetry) {
	c.retryRejected(r)
	m := r.Marker
	m.RetryAt, m.Reason, m.Attempts = 0, r.Reason, r.Attempts
	c.parked.add(m)
	c.parked.fill(m.KeyID)
	c.recovered()
	c.endRetry()
}
