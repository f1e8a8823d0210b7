package picture

import (
	"time"

	"github.com/bucketbrigade/relay/store"
)

// Clock is what the answers of a read tell of this machine's clock. Each has the
// service's time in whole seconds, rounded downwards, so that it bounds the difference
// of the clocks to a second and the time that the answer took (protocol.md section 3,
// clock guard).
type Clock struct {
	Dated bool // the answers told the time; without that nothing is known
	// This machine's clock is ahead of the service's by at least and at most this,
	// negative when it is behind.
	AheadLeast, AheadMost time.Duration
	// Tolerated is by how much it may be ahead or behind: a relay whose clock is
	// certainly further off claims nothing, and withdraws.
	Tolerated time.Duration
}

// With is what is known with one more answer, by this machine's clock at the time of
// the request and at the time of the answer. Answers bound the difference together.
func (c Clock) With(sent, received time.Time, date store.Ticks) Clock {
	if date == 0 {
		return c
	}
	least, most := sent.Sub(date.Time())-time.Second, received.Sub(date.Time())
	if c.Dated {
		least, most = max(c.AheadLeast, least), min(c.AheadMost, most)
	}
	c.Dated, c.AheadLeast, c.AheadMost = true, least, most
	return c
}

// Ahead is the least correction of this machine's clock that agrees with what is known:
// none within the bounds, where it is the finer one of the two clocks.
func (c Clock) Ahead() time.Duration { return min(max(0, c.AheadLeast), c.AheadMost) }

// IsOff tells whether the clock is certainly wrong by more than what is tolerated.
func (c Clock) IsOff() bool { return c.Ahead().Abs() > c.Tolerated }
