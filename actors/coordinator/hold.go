package coordinator

import (
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
)

// holdAll keeps what is ours, and plans nothing.
func (c *core) holdAll() {
	var holds []int
	for b, k := range c.children {
		if k.tenure != 0 {
			holds = append(holds, b)
		}
	}
	c.hold(holds)
}

// Leases are kept in four groups over half of the interval, so that a fleet of many
// buckets does not ask for a round's capacity in one burst. A group has a few, and
// at most as many as may be under way at once.
const (
	holdGroups   = 4
	fewestInTurn = 4
)

// hold keeps leases. Those that have no actor yet, and the first group, are kept at
// once.
func (c *core) hold(buckets []int) {
	c.inTurn = min(max(fewestInTurn, (len(buckets)+holdGroups-1)/holdGroups), c.cfg.MaxConcurrency)
	for _, b := range buckets {
		if c.children[b].tenure == 0 {
			c.attend(b, bucket.Hold)
		} else {
			c.paced = append(c.paced, b)
		}
	}
	c.holdNext()
}

// holdNext keeps the next group.
func (c *core) holdNext() {
	n := min(len(c.paced), c.inTurn)
	for _, b := range c.paced[:n] {
		if c.children[b].tenure != 0 {
			c.attend(b, bucket.Hold)
		}
	}
	c.paced = c.paced[n:]
	if left := len(c.paced); left > 0 {
		groups := (left + c.inTurn - 1) / c.inTurn
		rest := c.cfg.LeaseRenewInterval/2 - actors.Elapsed(c.round.now, c.now)
		c.arm(paceTimer, max(0, rest)/time.Duration(groups))
	}
}
