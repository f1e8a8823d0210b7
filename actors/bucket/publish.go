package bucket

import (
	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/outbox"
)

// failure is why a row was not acknowledged.
type failure struct {
	sequence int64
	outcome  publisher.Outcome
	class    string // of the fault; "retriable" when the row was not submitted
	code     string
	reason   string // for people
	// partition is that which the record was meant for; -1: not known.
	partition int32
}

// refused: the row itself was rejected, alone in its request.
func (f *failure) refused() bool { return f.outcome == publisher.Refused }

// proved: no gap before these rows holds a message. Those that are set aside are
// moved, the others published.
func (c *core) proved(solid int) {
	b := c.batch
	b.solid, b.probes = solid, nil
	if solid == 0 { // a message has appeared before the first row
		c.transition(b.machine, fsm.Filled)
		b.rows, b.bytes, b.pages, b.cut, b.malformed = nil, 0, 0, false, nil
		c.read()
		return
	}
	b.last = b.rows[solid-1].Sequence
	b.next = b.last + 1
	c.takeAside()
	switch {
	case len(b.aside) > 0:
		c.transition(b.machine, fsm.SetAside)
		c.moveNext()
	case b.solid == 0 && b.tooLarge == 0:
		c.failBatch() // until rows may be moved
	case b.solid == 0:
		c.blockAt(b.tooLarge, tooLarge(b.rows[0].Size))
		c.failBatch()
	case c.forGood(&b.rows[0]):
		c.condemn(&b.rows[0])
	default:
		c.transition(b.machine, fsm.Probed)
		c.submit()
	}
}

// submit gives the solid rows to the publisher.
func (c *core) submit() { c.send(c.batch.rows[:c.batch.solid:c.batch.solid]) }

func (c *core) send(rows []outbox.Row) {
	if !c.valid() {
		c.withholdPublishing()
		return
	}
	c.batch.submittedAt = c.now
	c.watchLease()
	c.tellPublisher(publisher.Publish{
		Bucket:   c.cfg.Bucket,
		Batch:    c.batch.number,
		Rows:     rows,
		NotAfter: c.lease.validUntil,
	})
}

// withholdPublishing withholds while the publisher does not have the rows.
func (c *core) withholdPublishing() {
	c.dropBatch()
	c.lapsed()
}

// published takes the outcome of the batch.
func (c *core) published(m publisher.Published) {
	b := c.batch
	if b == nil || b.number != m.Batch || !b.machine.In(fsm.Publishing) {
		return
	}
	b.acknowledged = b.solid
	for i, result := range m.Results {
		if result.Outcome != publisher.Acknowledged {
			b.acknowledged, b.failure = i, failureOf(b.rows[i].Sequence, result)
			break
		}
	}
	c.failedOrRecovered()
	outcome := event.BatchPublished{
		Bucket: c.cfg.Bucket, Rows: b.solid, Acknowledged: b.acknowledged, Took: actors.Elapsed(b.submittedAt, c.now),
	}
	c.emit(outcome)
	c.trace(outcome)
	switch {
	case b.abandoned: // what made us abandon it may be over by now
		c.dropBatch()
	case !c.valid():
		c.withholdPublishing()
	case b.letter:
		c.letterPublished(m.Results[0])
	case b.acknowledged == 0:
		c.headFailed()
	default:
		c.transition(b.machine, fsm.Published)
		c.deleteNext()
	}
}

func failureOf(sequence int64, r publisher.Result) *failure {
	f := &failure{
		sequence: sequence, outcome: r.Outcome,
		class: publisher.Retriable.String(), code: r.Outcome.String(), reason: r.Outcome.String(),
		partition: r.Partition,
	}
	if r.Fault != nil {
		f.class, f.code, f.reason = r.Fault.Class.String(), r.Fault.Code, r.Fault.Error()
	}
	return f
}

// headFailed: the first row was not acknowledged. It is tried again after a pause,
// unless it was rejected for its own sake.
func (c *core) headFailed() {
	switch {
	case c.batch.keyed:
		c.retryFailed()
	case c.batch.failure.refused():
		c.rejected()
	default:
		c.failBatch()
	}
}

// rebind: the publisher that had the rows is gone.
func (c *core) rebind() {
	b := c.batch
	if b == nil || !b.machine.In(fsm.Publishing) {
		return
	}
	if b.abandoned {
		c.dropBatch()
		return
	}
	b.failure = failureOf(b.rows[0].Sequence, publisher.Result{Outcome: publisher.Unknown})
	c.failedOrRecovered()
	c.headFailed()
}

// failedOrRecovered says that rows came back unacknowledged, and when they do not
// any more. A row that was rejected for its own sake blocks the bucket, which is
// said then.
func (c *core) failedOrRecovered() {
	b := c.batch
	if b.failure == nil {
		c.recovered()
		return
	}
	c.doubtFence()
	since := c.failingSince()
	if since.IsZero() {
		*since = c.now
	}
	if !b.keyed {
		c.failed = b.failure.sequence
	}
	if b.failure.refused() {
		return
	}
	topic := b.rows[b.acknowledged].Message.Topic
	if b.letter {
		topic = c.cfg.DeadLetterTopic
	}
	c.emit(event.PublishFailed{
		Bucket: c.cfg.Bucket, Rows: b.solid - b.acknowledged, Topic: topic, Class: b.failure.class, Code: b.failure.code,
	})
}

// recovered: no row comes back unacknowledged any more.
func (c *core) recovered() {
	if since := c.failingSince(); !since.IsZero() {
		c.emit(event.PublishRecovered{Bucket: c.cfg.Bucket, After: actors.Elapsed(*since, c.now)})
		*since = actors.Instant{}
	}
}

// failingSince is since when rows come back unacknowledged: the head's, or those of
// retries. What becomes of the one says nothing of the other.
func (c *core) failingSince() *actors.Instant {
	if c.batch.keyed {
		return &c.parked.failing
	}
	return &c.failing
}
