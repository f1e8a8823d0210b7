package bucket

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// maxTransaction is how many items a transaction has at most.
const maxTransaction = 100

func (c *core) tenure() store.Tenure {
	return store.Tenure{Bucket: c.cfg.Bucket, Relay: c.cfg.Relay, Incarnation: c.cfg.Incarnation, Claim: c.cfg.Claim}
}

// transactionToken is one that no other transaction ever has.
func (c *core) transactionToken() string {
	c.lastTransaction++
	name := fmt.Sprintf("%s/%d/%d/%d", c.cfg.Incarnation, c.cfg.Bucket, c.cfg.Claim, c.lastTransaction)
	hash := sha256.Sum256([]byte(name))
	return hex.EncodeToString(hash[:16])
}

// transact sends a transaction, once no lease write is under way: both concern the
// lease item, and one of them would fail for the other's sake.
func (c *core) transact(r store.Request) {
	c.batch.queued = r
	c.sendQueued()
}

func (c *core) sendQueued() {
	b := c.batch
	if b == nil || b.queued == nil || c.lease.token != 0 || c.lease.deferred {
		return
	}
	r := withDeadline(b.queued, c.lease.validUntil)
	b.queued = nil
	if !c.valid() {
		c.dropBatch()
		c.lapsed()
		return
	}
	c.unanswered, c.repeating = r, c.unanswered != nil
	b.token = c.do(r)
}

// transacting: a transaction is under way.
func (c *core) transacting() bool { return c.unanswered != nil && c.batch != nil && c.batch.token != 0 }

// unfinished: a transaction may still take effect, and may be repeated. It is, before
// the lease is handed back: what a clean release leaves behind is seen as a whole.
func (c *core) unfinished() bool {
	return c.unanswered != nil && c.valid() && c.lease.barrier == 0
}

// withDeadline is the transaction with another deadline.
func withDeadline(r store.Request, notAfter actors.Instant) store.Request {
	switch r := r.(type) {
	case store.Mark:
		r.NotAfter = notAfter
		return r
	case store.Move:
		r.NotAfter = notAfter
		return r
	case store.RemoveParked:
		r.NotAfter = notAfter
		return r
	case store.Unmark:
		r.NotAfter = notAfter
		return r
	case store.EndRetry:
		r.NotAfter = notAfter
		return r
	default:
		panic(fmt.Sprintf("bucket: %T is no transaction", r))
	}
}

// transacted takes the end of a transaction. One that may still take effect is repeated
// under its token before anything else of the bucket; one that was certainly not
// applied, the only time that it was sent, is forgotten. A refused one means that what
// is set aside is not what we believe, so that it is read again, or that the lease is
// not this tenure's, which it never is again; a lease write under way finds that too.
// A mark that is refused when it is repeated ends the tenure: the table does not know its
// token, and the first sending may arrive when the marker in its way is gone. From the
// release on, the lease check refuses it.
func (c *core) transacted(m actors.Replied) {
	b := c.batch
	// What the service never accepts, it did not when it was sent first either.
	never := m.Reply.Class == store.Retriable && (!c.repeating || errors.Is(m.Reply.Err, store.ErrInvalid))
	if never || m.Reply.Class == store.Done || m.Reply.Class == store.Refused {
		c.unanswered = nil
	}
	if m.Reply.Class != store.Done {
		c.parked.known = c.parked.known && m.Reply.Class != store.Refused
		result, _ := m.Reply.Result.(store.MoveResult)
		if move, moves := m.Request.(store.Move); moves && result.Refusal == store.RowRefused {
			c.moveRefused(move.Rows[0].Row.Sequence)
		}
		c.emit(event.MoveFailed{
			Bucket: c.cfg.Bucket, Request: m.Request.RequestName(), Refusal: result.Refusal.String(), Err: m.Reply.Err,
		})
		if result.Refusal == store.LeaseRefused && c.lease.token == 0 {
			c.lose(nil)
			return
		}
		c.failBatch()
		if _, marks := m.Request.(store.Mark); marks && m.Reply.Class == store.Refused && c.repeating {
			c.drain(Yield)
		}
		return
	}
	if b.machine.In(fsm.Fetching) {
		c.repeated(m.Request)
		return
	}
	switch r := m.Request.(type) {
	case store.Mark:
		c.marked(r)
	case store.Move:
		c.moved(r)
	case store.RemoveParked:
		c.parkedRemoved(r)
	case store.Unmark:
		c.unmarked(r.Marker)
	case store.EndRetry:
		c.retryEnded(r)
	}
}

// moveRefused: rows are gone, or another message has one of their numbers where they
// are to go, which only a counter that was set back brings about. The first time what
// was read may be out of date; after that it stops the bucket.
func (c *core) moveRefused(first int64) {
	if c.refusedMove == first {
		c.blockAt(first, "it, or a row close behind it, cannot be set aside: another message has its number there")
	}
	c.refusedMove = first
}

// repeated: a transaction of an earlier batch has taken effect, now or when it was sent
// first. That is said; all else is read again.
func (c *core) repeated(r store.Request) {
	switch r := r.(type) {
	case store.Mark:
		if r.Markers[0].KeyID == c.condemned.keyID {
			c.recordParked()
		}
	case store.Move:
		c.rowsMoved(r)
		// What shows up behind them has committed late, also if it was probed empty before.
		c.expected = max(c.expected, r.Rows[len(r.Rows)-1].Row.Sequence+1)
	case store.Unmark:
		c.cleared(r.Marker)
	case store.EndRetry:
		c.retryRejected(r)
	}
	c.parked.known = false
	c.proceed()
}

// elderGone tells whether no older process of our id is at work any more, under leases that
// we have resumed. Until these lapse it may be, and not know what is set aside by now: it
// would take the gap that a moved row leaves for none, and publish the key's next rows past
// it. So rows are not moved before that, nor is the lease handed to somebody who would.
// Both of our clocks have to say so: one that is set forward does not end its lease.
func (c *core) elderGone() bool {
	lapses := c.elderLapses
	return lapses.IsZero() || c.now.Wall > lapses.Wall && c.now.Mono >= lapses.Mono
}

// maxElder bounds how long an older process is waited for, whatever the table says.
const maxElder = 365 * 24 * time.Hour

// elderLives: an older process of our id has the lease until then.
func (c *core) elderLives(until store.Ticks) {
	lapses := c.now.Add(min(until.Sub(c.now.Ticks()), maxElder))
	c.elderLapses.Wall = max(c.elderLapses.Wall, lapses.Wall)
	c.elderLapses.Mono = max(c.elderLapses.Mono, lapses.Mono)
}

// takeAside takes the rows that are to be moved out of the solid ones. A row that
// is too large to be moved ends them.
func (c *core) takeAside() {
	b := c.batch
	if len(c.parked.keys) == 0 && len(c.parked.topics) == 0 {
		return
	}
	var rest []outbox.Row
	for i := range b.rows[:b.solid] {
		row := &b.rows[i]
		keyID, aside := c.parked.aside(row)
		if aside && (row.Size > store.MaxMovedRowBytes || !c.elderGone()) {
			b.solid, b.cut = i, true
			if row.Size > store.MaxMovedRowBytes {
				b.tooLarge = row.Sequence
			}
			if i > 0 {
				b.last = b.rows[i-1].Sequence
			}
			break
		}
		if aside {
			b.aside = append(b.aside, store.Moving{KeyID: keyID, Row: *row})
		} else {
			rest = append(rest, *row)
		}
	}
	if len(b.aside) == 0 {
		return
	}
	behind := b.rows[b.solid:]
	b.solid = len(rest)
	b.rows = append(rest, behind...)
}

// moveNext moves the next chunk of the rows that are set aside. Those of a topic
// that have no marker of their own get it first: whoever owns the bucket next
// knows of it then, even while the rows are still under way (case M-08).
func (c *core) moveNext() {
	b := c.batch
	if len(b.aside) == 0 {
		c.allMoved()
		return
	}
	move := store.Move{Tenure: c.tenure()}
	var missing []store.Marker
	bytes := 0
	for _, moving := range b.aside {
		marker, known := c.markerOf(moving, move.Markers, missing)
		items := 1 + len(move.Markers) + len(missing) + 2*(len(move.Rows)+1)
		if !known {
			items++
		}
		bytes += moving.Row.Size
		if len(move.Rows) == store.MaxMoves || items > maxTransaction || len(move.Rows) > 0 && bytes > store.MaxMoveBytes {
			break
		}
		move.Rows = append(move.Rows, moving)
		switch {
		case known:
		case marker.ParkedAt == 0:
			marker.ParkedAt = c.now.Ticks()
			missing = append(missing, marker)
		default:
			move.Markers = append(move.Markers, marker)
		}
	}
	if len(missing) > 0 {
		c.transact(store.Mark{Tenure: c.tenure(), Markers: missing, Token: c.transactionToken()})
		return
	}
	move.Token = c.transactionToken()
	c.transact(move)
}

// markerOf is the marker under which a row is moved, and whether it is among those
// of the chunk already. One without a ParkedAt is not in the table yet.
func (c *core) markerOf(moving store.Moving, chunk, missing []store.Marker) (marker store.Marker, known bool) {
	for _, m := range chunk {
		if m.KeyID == moving.KeyID {
			return m, true
		}
	}
	for _, m := range missing {
		if m.KeyID == moving.KeyID {
			return m, true
		}
	}
	if i, set := c.parked.find(moving.KeyID); set {
		return c.parked.keys[i].Marker, false
	}
	return store.Marker{KeyID: moving.KeyID, Topic: moving.Row.Message.Topic, Reason: store.ReasonTopic}, false
}

// marked: the markers are in the table. Of a rejected record's key all rows are
// read again now, and moved.
func (c *core) marked(r store.Mark) {
	for _, m := range r.Markers {
		c.parked.add(m)
	}
	b := c.batch
	if b.condemning {
		c.recordParked()
	}
	switch {
	case c.machine.In(fsm.Draining):
		c.dropBatch()
	case b.condemning:
		c.failures = 0
		c.recovered()
		c.unblock()
		c.transition(b.machine, fsm.Marked)
		c.lastBatch++
		c.batch = &batch{machine: b.machine, number: c.lastBatch}
		c.read()
	default:
		c.moveNext()
	}
}

// moved: a chunk is set aside.
func (c *core) moved(r store.Move) {
	b := c.batch
	for _, m := range r.Rows {
		c.parked.fill(m.KeyID)
	}
	b.aside = b.aside[len(r.Rows):]
	// They are gone, whatever becomes of the rest of the batch: a row that shows up among
	// those before its first row that is left has committed late.
	for _, m := range r.Rows {
		if len(b.rows) == 0 || m.Row.Sequence < b.rows[0].Sequence {
			c.expected = max(c.expected, m.Row.Sequence+1)
		}
	}
	c.refusedMove = 0
	c.rowsMoved(r)
	c.failures = 0
	if c.machine.In(fsm.Draining) {
		c.dropBatch()
		return
	}
	c.moveNext()
}

func (c *core) rowsMoved(r store.Move) {
	c.emit(event.RowsMoved{Bucket: c.cfg.Bucket, Rows: len(r.Rows), Last: r.Rows[len(r.Rows)-1].Row.Sequence})
}

// allMoved goes on with the rows that are left.
func (c *core) allMoved() {
	b := c.batch
	if b.solid > 0 {
		c.transition(b.machine, fsm.Moved)
		c.submit()
		return
	}
	c.goOn(fsm.Emptied)
}
