package simulation

import "time"

// clock is a process's wall clock against virtual time, and what its monotonic
// clock has missed. However it is set and drifts, it stays within half of the
// allowed skew, so that any two clocks differ by at most that; but for a leap, which
// is far beyond it.
type clock struct {
	half  time.Duration // of the allowed skew
	skew  time.Duration // ahead of virtual time, at since
	since time.Duration
	drift float64       // seconds a second
	stood time.Duration // for how long the monotonic clock stood still
	leap  time.Duration // ahead, besides
	leapt bool          // it has ever
}

// ahead is by how much the wall clock is ahead of virtual time.
func (c clock) ahead(now time.Duration) time.Duration {
	ahead := c.skew + time.Duration(c.drift*float64(now-c.since))
	return max(-c.half, min(c.half, ahead)) + c.leap
}

// set moves the wall clock by d, as far as it may.
func (c *clock) set(now, d time.Duration) {
	c.skew = max(-c.half, min(c.half, c.ahead(now)-c.leap+d))
	c.since = now
}
