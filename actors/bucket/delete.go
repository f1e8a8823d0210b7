package bucket

import (
	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/store"
)

// deleteNext deletes the next chunk of acknowledged rows, or ends when there is
// none. Chunks go one after another, ascending, so that what remains after any
// failure is some rows of one chunk and a suffix (case D-08).
func (c *core) deleteNext() {
	b := c.batch
	if b.removed == b.acknowledged {
		c.allDeleted()
		return
	}
	size := store.MaxDeletes
	if b.keyed {
		size = store.MaxMoves
	}
	rows := b.rows[b.removed:min(b.removed+size, b.acknowledged)]
	chunk := make([]int64, len(rows))
	for i, row := range rows {
		chunk[i] = row.Sequence
	}
	b.chunk, b.attempts = chunk, 0
	if b.keyed {
		c.removeParked(chunk)
		return
	}
	c.sendDelete()
}

func (c *core) sendDelete() {
	b := c.batch
	if !c.valid() {
		b.chunk = nil
		c.lapsed()
		return
	}
	b.attempts++
	b.token = c.do(store.Delete{Bucket: c.cfg.Bucket, Sequences: b.chunk, NotAfter: c.lease.validUntil})
}

// chunkDeleted takes the end of a delete. Unprocessed rows, and a chunk without
// an answer, are sent again before the next; after eight attempts the bucket is
// fetched again: duplicates, no loss.
func (c *core) chunkDeleted(m actors.Replied) {
	b := c.batch
	deleted, done := m.Reply.Result.(store.Deleted)
	if done && len(deleted.Unprocessed) == 0 {
		b.removed = min(b.removed+store.MaxDeletes, b.acknowledged)
		b.chunk = nil
		c.expected = max(c.expected, b.rows[b.removed-1].Sequence+1)
		c.deleteNext()
		return
	}
	if done {
		b.chunk = deleted.Unprocessed
	}
	if b.attempts == maxDeleteAttempts {
		c.emit(event.DeleteFailed{Bucket: c.cfg.Bucket, Rows: b.acknowledged - b.removed, Err: m.Reply.Err})
		c.failBatch()
		return
	}
	pause := backoff(firstDeletePause, b.attempts-1, maxBackoff)
	c.arm(retryTimer, pause, pause)
}

// allDeleted: the acknowledged rows are gone. What is behind them decides how
// the bucket goes on.
func (c *core) allDeleted() {
	b := c.batch
	last := b.rows[b.removed-1].Sequence
	c.emit(event.BatchRemoved{Bucket: c.cfg.Bucket, Rows: b.removed, Last: last})
	if b.keyed {
		c.retriedRows()
		return
	}
	if last >= c.blocked.sequence && b.malformed == nil {
		c.unblock()
	}
	c.failures = 0
	if b.failure != nil {
		c.headFailed()
		return
	}
	c.goOn(fsm.Deleted)
}

// goOn: all solid rows are gone, removed or set aside.
func (c *core) goOn(ended fsm.Event) {
	b := c.batch
	c.expected = max(c.expected, b.last+1)
	if b.last >= c.blocked.sequence && b.malformed == nil {
		c.unblock() // the row was set aside
	}
	if b.last >= c.failed {
		c.recovered()
	}
	switch {
	case c.machine.In(fsm.Draining):
		c.dropBatch()
		return
	case b.cut:
		c.woken = "full batch"
	case b.solid < len(b.rows):
		c.advance()
		return
	case b.malformed != nil: // the next fetch meets that row at its head
		c.woken = "full batch"
	case b.more || b.read >= c.cfg.BatchSize:
		c.woken = "full batch"
	default:
		c.parked.drained = true
	}
	c.endBatch(ended)
}

// advance goes on with the rows behind the ninth gap, as they were read.
func (c *core) advance() {
	b := c.batch
	b.rows = b.rows[b.solid:]
	b.solid, b.acknowledged, b.removed = 0, 0, 0
	c.lastBatch++
	b.number = c.lastBatch
	c.transition(b.machine, fsm.Advance)
	c.probe()
}
