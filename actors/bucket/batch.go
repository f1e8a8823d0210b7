package bucket

import (
	"fmt"
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Limits of one batch (protocol.md section 5).
const (
	maxProbes         = 8 // gaps in one step
	maxDeleteAttempts = 8 // of one chunk
	firstDeletePause  = 50 * time.Millisecond
	maxBackoff        = 30 * time.Second
)

// batch is some rows of the bucket's head on their way.
type batch struct {
	machine *fsm.Machine
	number  uint64 // to the publisher

	rows  []outbox.Row // read and not removed, ascending
	bytes int
	// more: the table had rows behind these when they were read.
	more bool
	// malformed is why the row behind rows cannot be read; nil: none such.
	malformed error

	// solid is how many rows at the head may be published: no gap before them
	// holds a message, asked after they were read.
	// Invariant: rows are published, and deleted, out of the solid ones only.
	solid int
	next  int64 // the number that follows what is solid
	// cut: a gap behind the solid rows has been filled; the bucket is fetched
	// again after them, and its gaps probed anew.
	cut    bool
	probes []probe

	acknowledged int      // rows at the head that may be deleted
	failure      *failure // why the row behind them was not acknowledged; nil: all were
	chunk        []int64  // of the delete under way, or to be repeated
	attempts     int      // of that chunk
	removed      int

	abandoned   bool   // the lease lapsed while the publisher had the rows
	token       uint64 // of the fetch or delete under way; 0: none
	submittedAt actors.Instant
}

// probe is the question whether one gap holds a message.
type probe struct {
	from, to int64
	before   int // index of the row behind the gap
	token    uint64
	filled   bool
}

// failure is why a row was not acknowledged.
type failure struct {
	sequence int64
	outcome  publisher.Outcome
	class    string // of the fault; "retriable" when the row was not submitted
	code     string
	reason   string // for people
}

func (b *batch) awaits(token uint64) bool {
	return token != 0 && (token == b.token || slices.ContainsFunc(b.probes, func(p probe) bool { return p.token == token }))
}

// begin starts a batch at the bucket's head. A stored cursor never decides
// where: what commits late, behind what was removed, is found there (case O-07).
func (c *core) begin() {
	if !c.valid() {
		c.withhold("lease lapsed")
		return
	}
	c.emit(event.BucketWoken{Bucket: c.cfg.Bucket, Cause: c.woken})
	c.woken = ""
	c.lastBatch++
	c.batch = &batch{machine: fsm.NewBatch(), number: c.lastBatch}
	c.fetch()
}

// fetch reads the next page of the batch.
func (c *core) fetch() {
	b := c.batch
	var after int64
	if len(b.rows) > 0 {
		after = b.rows[len(b.rows)-1].Sequence
	}
	b.token = c.do(store.Fetch{
		Bucket:   c.cfg.Bucket,
		After:    after,
		Limit:    c.cfg.BatchSize - len(b.rows),
		NotAfter: c.lease.validUntil,
	})
}

func (c *core) batchReplied(m actors.Replied) {
	if m.Token == c.batch.token {
		c.batch.token = 0
	}
	switch m.Request.(type) {
	case store.Fetch:
		c.pageFetched(m)
	case store.Probe:
		c.probed(m)
	case store.Delete:
		c.chunkDeleted(m)
	}
}

// pageFetched takes one page; the batch is whole when the rows or bytes are
// enough or the table has no more.
func (c *core) pageFetched(m actors.Replied) {
	page, ok := m.Reply.Result.(store.Fetched)
	if !ok {
		c.failBatch()
		return
	}
	b := c.batch
	for _, row := range page.Rows {
		if row.BucketCount != 0 && row.BucketCount != c.cfg.BucketCount {
			c.mismatched(row)
			return
		}
		if len(b.rows) > 0 && b.bytes+row.Size > c.cfg.MaxBatchBytes {
			b.more = true
			c.allFetched()
			return
		}
		b.rows, b.bytes = append(b.rows, row), b.bytes+row.Size
	}
	b.more, b.malformed = page.More, page.Malformed
	if b.more && b.malformed == nil && len(b.rows) < c.cfg.BatchSize && b.bytes < c.cfg.MaxBatchBytes {
		c.fetch()
		return
	}
	c.allFetched()
}

// mismatched: the table was written with another bucket count. Nothing of this
// bucket is published or deleted any more (protocol.md, Misconfiguration).
func (c *core) mismatched(row outbox.Row) {
	c.tellCoordinator(Mismatched{Bucket: c.cfg.Bucket, Sequence: row.Sequence, Stamped: row.BucketCount})
	c.drain(Hold)
}

func (c *core) allFetched() {
	b := c.batch
	c.emit(event.BatchFetched{Bucket: c.cfg.Bucket, Rows: len(b.rows), Bytes: b.bytes, Refetched: c.refetched()})
	if c.blocked.sequence > 0 && (len(b.rows) == 0 || b.rows[0].Sequence > c.blocked.sequence) && b.malformed == nil {
		c.unblock()
	}
	if len(b.rows) == 0 {
		if b.malformed != nil {
			c.blockAt(malformedSequence(b.malformed), b.malformed.Error())
			c.failBatch()
			return
		}
		c.unblock()
		c.failures = 0
		c.endBatch(fsm.Empty)
		return
	}
	c.fetched = max(c.fetched, b.rows[len(b.rows)-1].Sequence)
	b.next = c.expected
	if b.rows[0].Sequence < c.expected {
		// A commit that came late, behind what was removed: whatever was probed
		// empty there before may be filled by the same transaction by now.
		b.next = 1
	}
	c.transition(b.machine, fsm.Fetched)
	c.probe()
}

func malformedSequence(err error) int64 {
	item, ok := err.(*outbox.ItemError)
	if !ok {
		return 0
	}
	sequence, err := outbox.ParseSequence(item.SortKey)
	if err != nil {
		return 0
	}
	return sequence
}

// refetched is how many of the batch's rows were read before and not removed.
func (c *core) refetched() int {
	var n int
	for _, row := range c.batch.rows {
		if row.Sequence >= c.expected && row.Sequence <= c.fetched {
			n++
		}
	}
	return n
}

// probe asks for the next gaps, eight at most; the rows up to the ninth follow
// when all are empty.
func (c *core) probe() {
	b := c.batch
	b.probes = b.probes[:0]
	for i := b.solid; i < len(b.rows); i++ {
		sequence := b.rows[i].Sequence
		if sequence > b.next {
			if len(b.probes) == maxProbes {
				break
			}
			from, to := b.next, sequence-1
			token := c.do(store.Probe{Bucket: c.cfg.Bucket, From: from, To: to, NotAfter: c.lease.validUntil})
			b.probes = append(b.probes, probe{from: from, to: to, before: i, token: token})
		}
		b.next = max(b.next, sequence+1)
	}
	if len(b.probes) == 0 {
		c.publish(len(b.rows))
	}
}

// probed takes one answer; the last one decides how far the rows are solid.
func (c *core) probed(m actors.Replied) {
	b := c.batch
	answer, ok := m.Reply.Result.(store.Probed)
	if !ok {
		c.failBatch()
		return
	}
	open := 0
	for i := range b.probes {
		p := &b.probes[i]
		if p.token == m.Token {
			p.token, p.filled = 0, answer.Filled
			c.emit(event.GapProbed{Bucket: c.cfg.Bucket, From: p.from, To: p.to, Filled: p.filled})
		}
		if p.token != 0 {
			open++
		}
	}
	if open > 0 {
		return
	}
	for _, p := range b.probes {
		if p.filled {
			b.cut = true
			c.publish(p.before)
			return
		}
	}
	c.publish(c.beforeNextGap())
}

// beforeNextGap is the index of the row behind the first gap that was not
// probed yet, or the number of rows.
func (c *core) beforeNextGap() int {
	b := c.batch
	for i := b.probes[len(b.probes)-1].before; i < len(b.rows)-1; i++ {
		if b.rows[i+1].Sequence > b.rows[i].Sequence+1 {
			return i + 1
		}
	}
	return len(b.rows)
}

// publish gives the solid rows to the publisher.
func (c *core) publish(solid int) {
	b := c.batch
	b.solid, b.probes = solid, nil
	if solid == 0 { // a message has appeared before the first row
		c.transition(b.machine, fsm.Filled)
		b.rows, b.bytes, b.cut, b.malformed = nil, 0, false, nil
		c.fetch()
		return
	}
	b.next = b.rows[solid-1].Sequence + 1
	c.transition(b.machine, fsm.Probed)
	if !c.valid() {
		c.withholdPublishing()
		return
	}
	b.submittedAt = c.now
	c.tellPublisher(publisher.Publish{
		Bucket:   c.cfg.Bucket,
		Batch:    b.number,
		Rows:     b.rows[:solid:solid],
		NotAfter: c.lease.validUntil,
	})
}

// withholdPublishing withholds while the publisher does not have the rows.
func (c *core) withholdPublishing() {
	c.dropBatch()
	c.withhold("lease lapsed")
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
	c.emit(event.BatchPublished{
		Bucket: c.cfg.Bucket, Rows: b.solid, Acknowledged: b.acknowledged, Took: actors.Elapsed(b.submittedAt, c.now),
	})
	switch {
	case b.abandoned: // what made us abandon it may be over by now
		c.dropBatch()
	case !c.valid():
		c.withholdPublishing()
	case b.acknowledged == 0:
		c.rejectedAtHead()
		c.failBatch()
	default:
		c.transition(b.machine, fsm.Published)
		c.deleteNext()
	}
}

func failureOf(sequence int64, r publisher.Result) *failure {
	f := &failure{
		sequence: sequence, outcome: r.Outcome,
		class: publisher.Retriable.String(), code: r.Outcome.String(), reason: r.Outcome.String(),
	}
	if r.Fault != nil {
		f.class, f.code, f.reason = r.Fault.Class.String(), r.Fault.Code, r.Fault.Error()
	}
	return f
}

// rejectedAtHead blocks the bucket when its first row is rejected for its own
// sake: it stays there, in order, and tries again from pause to pause.
func (c *core) rejectedAtHead() {
	if f := c.batch.failure; f != nil && f.outcome == publisher.Refused {
		c.blockAt(f.sequence, f.reason)
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
	c.failBatch()
}

// retry goes on after a pause: with the delete of a chunk, or with the bucket's
// head.
func (c *core) retry() {
	b := c.batch
	switch {
	case b == nil:
	case b.machine.In(fsm.Deleting):
		c.sendDelete()
	case b.machine.In(fsm.BackingOff):
		if !c.valid() {
			c.dropBatch()
			c.withhold("lease lapsed")
			return
		}
		c.transition(b.machine, fsm.Retry)
		c.lastBatch++
		c.batch = &batch{machine: b.machine, number: c.lastBatch}
		c.fetch()
	}
}

// failBatch pauses, longer each time, before the bucket's head is read again.
func (c *core) failBatch() {
	b := c.batch
	b.token, b.probes = 0, nil
	c.transition(b.machine, fsm.Fail)
	if c.machine.In(fsm.Draining) {
		c.dropBatch()
		return
	}
	pause := backoff(c.cfg.ErrorBackoff, c.failures, maxBackoff)
	c.failures++
	c.arm(retryTimer, pause, pause/4)
}

// backoff is first, doubled with each failure before, up to limit.
func backoff(first time.Duration, failures int, limit time.Duration) time.Duration {
	pause := first
	for range failures {
		if pause >= limit {
			break
		}
		pause *= 2
	}
	return min(pause, max(first, limit))
}

// failedOrRecovered says that rows came back unacknowledged, and when they do not
// any more.
func (c *core) failedOrRecovered() {
	switch b := c.batch; {
	case b.failure != nil:
		if c.failing.IsZero() {
			c.failing = c.now
		}
		c.emit(event.PublishFailed{
			Bucket: c.cfg.Bucket, Rows: b.solid - b.acknowledged, Class: b.failure.class, Code: b.failure.code,
		})
	case !c.failing.IsZero():
		c.emit(event.PublishRecovered{Bucket: c.cfg.Bucket, After: actors.Elapsed(c.failing, c.now)})
		c.failing = actors.Instant{}
	}
}

// dropBatch leaves what remains in the table.
func (c *core) dropBatch() { c.endBatch(fsm.Drop) }

func (c *core) endBatch(e fsm.Event) {
	c.transition(c.batch.machine, e)
	c.batch = nil
	c.effects = append(c.effects, disarm{retryTimer})
	c.timers[retryTimer]++
}

// checkInvariants panics when the core is in a state that must not be. The
// numbers are those of docs/invariants.md.
func (c *core) checkInvariants() {
	must := func(holds bool, invariant string) {
		if !holds {
			panic(fmt.Sprintf("bucket %d: %s", c.cfg.Bucket, invariant))
		}
	}
	must(c.expected >= 1, "I-8: expected is at least 1")
	must(c.batch == nil || !c.machine.In(fsm.Claiming, fsm.Releasing, fsm.Released, fsm.Lost),
		"I-6: nothing is in flight when a release is sent or the bucket is not ours")
	if b := c.batch; b != nil {
		must(b.acknowledged <= b.solid && b.solid <= len(b.rows), "I-4: only solid rows are acknowledged")
		must(b.machine.In(fsm.Deleting) || len(b.chunk) == 0, "I-3: only acknowledged rows are deleted")
	}
}
