package bucket

import (
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/fsm"
)

// fence is what the bucket knows of its fence, in fenced mode: the right to publish
// that earlier owners lose. Taking a bucket over is lease, then fence, then fetch:
// what an earlier owner has committed by then is settled before a row is read.
//
// Invariant: in fenced mode no fetch is sent while it is not held (I-44).
type fence struct {
	held  bool
	asked uint64 // number of the question under way; 0: none
	last  uint64
	// refused: the last answer was no, perhaps since the lease was not renewed lately.
	refused bool
}

// fenced tells whether a fetch may be sent. If not, it waits in its batch for the
// fence, which is asked for, if that was not done yet.
func (c *core) fenced() bool {
	if !c.cfg.Fenced || c.fence.held {
		return true
	}
	if c.fence.asked == 0 {
		c.fence.last++
		c.fence.asked = c.fence.last
		c.tellPublisher(publisher.Fence{Bucket: c.cfg.Bucket, Number: c.fence.asked, NotAfter: c.lease.validUntil})
	}
	return false
}

// fenceTaken takes the answer, and lets the fetch that waits go.
func (c *core) fenceTaken(m publisher.FenceTaken) {
	if m.Number != c.fence.asked {
		return
	}
	c.fence.asked = 0
	c.fence.held, c.fence.refused = m.Fault == nil, m.Fault != nil
	if !c.waitsForFence() {
		return
	}
	if m.Fault != nil {
		c.failBatch()
		return
	}
	c.read()
}

// askAgain asks for a fence that was refused, now that the lease is renewed, without
// waiting for the pause's end: what refused it may have been the lease.
func (c *core) askAgain() {
	if c.fence.refused {
		c.cutPause()
	}
}

// waitsForFence tells whether the batch's first fetch does; a transaction of an earlier
// batch waits for something else.
func (c *core) waitsForFence() bool {
	return c.batch != nil && c.batch.machine.In(fsm.Fetching) && c.batch.token == 0 && c.batch.queued == nil
}

// doubtFence has the fence asked for before the next fetch: it may be lost, or given
// up. That costs nothing when it is not.
func (c *core) doubtFence() { c.fence.held = false }

// forgetFence: the publisher that held it, or was asked for it, is gone.
func (c *core) forgetFence() {
	c.fence.held, c.fence.asked = false, 0
	if c.waitsForFence() {
		c.read()
	}
}

// leavesPublisher tells whether the publisher has something to give up when the
// tenure ends: rows, or in fenced mode a producer, which takes memory.
func (c *core) leavesPublisher() bool {
	return c.fence.last > 0 || c.batch != nil && c.batch.machine.In(fsm.Publishing)
}
