package bucket

import (
	"fmt"
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Limits of one batch (protocol.md section 5).
const (
	maxDeleteAttempts = 8 // of one chunk
	firstDeletePause  = 50 * time.Millisecond
	maxBackoff        = 30 * time.Second
)

// batch is some rows of the bucket's head on their way.
type batch struct {
	machine *fsm.Machine
	number  uint64 // to the publisher

	// keyed: it is about the rows of a key that were set aside, or of a whole topic,
	// and not about the bucket's head. Looking: only about whether there are any.
	keyed, looking bool
	key            store.Marker

	rows  []outbox.Row // read and not removed, ascending
	read  int          // so many were read
	bytes int
	pages int // that the rows came in
	// more: the table had rows behind these when they were read.
	more bool
	// malformed is why the row behind rows cannot be read; nil: none such.
	malformed error

	// solid is how many rows at the head may be published: no gap before them
	// holds a message, asked after they were read.
	// Invariant: rows are published, and deleted, out of the solid ones only.
	solid int
	next  int64 // the number that follows what is solid
	last  int64 // the highest number of what is, or was, solid
	// cut: a gap behind the solid rows has been filled; the bucket is fetched
	// again after them, and its gaps probed anew.
	cut    bool
	probes []probe

	aside      []store.Moving // solid rows that are to be moved, ascending
	tooLarge   int64          // the row at which solid ends, since it cannot be moved; 0: none
	condemning bool           // the first row's key is being set aside
	letter     bool           // the only row goes to the dead-letter topic
	queued     store.Request  // a transaction that waits for a lease write; nil: none

	acknowledged int      // rows at the head that may be deleted
	failure      *failure // why the row behind them was not acknowledged; nil: all were
	chunk        []int64  // of the delete under way, or to be repeated
	attempts     int      // of that chunk
	removed      int

	abandoned   bool   // the lease lapsed while the publisher had the rows
	token       uint64 // of the request under way, but for probes; 0: none
	submittedAt actors.Instant
}

func (b *batch) awaits(token uint64) bool {
	return token != 0 && (token == b.token || slices.ContainsFunc(b.probes, func(p probe) bool { return p.token == token }))
}

// begin starts a batch at the bucket's head. A stored cursor never decides
// where: what commits late, behind what was removed, is found there (case O-07).
func (c *core) begin() {
	if !c.valid() {
		c.lapsed()
		return
	}
	c.emit(event.BucketWoken{Bucket: c.cfg.Bucket, Cause: c.woken})
	c.woken = ""
	c.lastBatch++
	c.batch = &batch{machine: fsm.NewBatch(), number: c.lastBatch}
	c.proceed()
}

// fetch reads the next page of the batch, when the bucket's fence is held.
func (c *core) fetch() {
	if !c.fenced() {
		return
	}
	b := c.batch
	var after int64
	if len(b.rows) > 0 {
		after = b.rows[len(b.rows)-1].Sequence
	}
	if b.keyed {
		c.fetchParked(after)
		return
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
	case store.ReadMarkers:
		c.markersRead(m)
	case store.FetchParked:
		c.pageFetched(m)
	default:
		c.transacted(m)
		c.keepDeferred()
	}
}

// pageFetched takes one page; the batch is whole when the rows or bytes are
// enough or the table has no more.
func (c *core) pageFetched(m actors.Replied) {
	page, ok := m.Reply.Result.(store.Fetched)
	b := c.batch
	switch {
	case !ok && b.looking: // nothing waits for it
		c.dropBatch()
		return
	case !ok:
		c.failBatch()
		return
	}
	b.pages++
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
	if b.more && b.malformed == nil && len(b.rows) < c.cfg.BatchSize && b.bytes < c.cfg.MaxBatchBytes && !b.looking {
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
	b.read = len(b.rows)
	if b.keyed {
		c.parkedFetched()
		return
	}
	c.emit(event.BatchFetched{Bucket: c.cfg.Bucket, Rows: len(b.rows), Bytes: b.bytes, Refetched: c.refetched()})
	if len(b.rows) == 0 || b.rows[0].Sequence > c.failed {
		c.recovered() // what failed is gone, whoever removed it
	}
	if c.vanished() {
		c.parked.known = false
		if len(b.rows) > 0 {
			b.rows, b.bytes, b.pages, b.malformed = nil, 0, 0, nil
			c.read()
			return
		}
		c.wake("attention")
	}
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
		c.parked.drained = true
		c.endBatch(fsm.Empty)
		return
	}
	c.fetched = max(c.fetched, b.rows[len(b.rows)-1].Sequence)
	b.next = c.expected
	if b.rows[0].Sequence < c.expected || b.pages > 1 {
		// A commit that came late, behind what was removed: whatever was probed
		// empty there before may be filled by the same transaction by now. Or several
		// pages: between two of them a commit may come late before the first row, and
		// after it one of the same key that the later page has.
		b.next = 1
	}
	c.transition(b.machine, fsm.Fetched)
	c.probe()
}

// vanished: the row that could not be read is not there any more. Whoever has moved it
// out of the way may have set its key aside with it, so that what is set aside is read
// before the rows that were behind it.
func (c *core) vanished() bool {
	before := c.malformed
	if b := c.batch; b.more && b.malformed == nil && b.rows[len(b.rows)-1].Sequence < before {
		return false // the batch ends in front of it
	}
	c.malformed = 0
	if c.batch.malformed != nil {
		c.malformed = malformedSequence(c.batch.malformed)
	}
	return before > 0 && c.malformed != before &&
		!slices.ContainsFunc(c.batch.rows, func(row outbox.Row) bool { return row.Sequence == before })
}

// malformedSequence is the number of a row that cannot be read; 0: not even that can.
func malformedSequence(err error) int64 {
	item, ok := err.(*outbox.ItemError)
	if !ok {
		return 0
	}
	sequence, err := outbox.ParseSequence(item.SortKey)
	if err != nil {
		_, sequence, _ = outbox.ParseParkedRow(item.SortKey)
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
			c.lapsed()
			return
		}
		c.transition(b.machine, fsm.Retry)
		c.lastBatch++
		c.batch = &batch{machine: b.machine, number: c.lastBatch}
		c.proceed()
	}
}

// cutPause ends the pause of a batch that has failed: what it waits for may have come.
func (c *core) cutPause() {
	if c.batch == nil || !c.batch.machine.In(fsm.BackingOff) {
		return
	}
	c.disarmRetry()
	c.retry()
}

// failBatch pauses, longer each time, before the bucket's head is read again.
func (c *core) failBatch() {
	failures := c.failures
	c.failures++
	c.pauseBatch(backoff(c.cfg.ErrorBackoff, failures, maxBackoff))
}

// pauseBatch gives the batch up; after a pause the bucket's head is read again.
func (c *core) pauseBatch(pause time.Duration) {
	b := c.batch
	b.token, b.probes, b.queued, b.aside, b.chunk = 0, nil, nil, nil, nil
	c.transition(b.machine, fsm.Fail)
	if c.machine.In(fsm.Draining) && !c.unfinished() {
		c.dropBatch()
		return
	}
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

// dropBatch leaves what remains in the table.
func (c *core) dropBatch() { c.endBatch(fsm.Drop) }

func (c *core) endBatch(e fsm.Event) {
	c.transition(c.batch.machine, e)
	c.batch = nil
	c.disarmRetry()
}

func (c *core) disarmRetry() {
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
	must(c.unanswered == nil || !c.machine.In(fsm.Releasing, fsm.Released),
		"I-6: no transaction is in doubt when a release is sent")
	c.checkParked(must)
	if b := c.batch; b != nil {
		must(b.acknowledged <= b.solid && b.solid <= len(b.rows), "I-4: only solid rows are acknowledged")
		must(b.machine.In(fsm.Deleting) || len(b.chunk) == 0, "I-3: only acknowledged rows are deleted")
	}
}
