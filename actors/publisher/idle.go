package publisher

import (
	"slices"
	"time"
)

// carefulIdle is how long a careful producer is kept that nobody uses, poolIdle a
// shared one of a pool for topics with a small limit: the limit may be another one by
// now, or the topic gone.
const (
	carefulIdle = time.Minute
	poolIdle    = 10 * time.Minute
)

// idleDue closes a producer that nobody has used in the meantime.
func (c *core) idleDue(m idleDue) {
	p := c.producer(m.producer)
	switch {
	case p == nil || p.state != open || p.users > 0:
	case p.uses == m.uses && p.outstanding == 0:
		p.state = ending
		c.close(p, 0)
		if p.slot != nil {
			p.slot.producer = nil
			c.dropEmptyPools()
		}
	case p.slot != nil:
		c.wake(poolIdle, idleDue{p.options.Number, p.uses})
	}
}

// dropEmptyPools makes room for pools of other limits.
func (c *core) dropEmptyPools() {
	c.pools = slices.DeleteFunc(c.pools, func(p *pool) bool {
		return !slices.ContainsFunc(p.slots, func(s *slot) bool { return s.producer != nil || s.failing() })
	})
}
