package store

import (
	"time"

	"github.com/bucketbrigade/relay/outbox"
)

// Instant is a moment as one process sees it, by both of its clocks. They go
// apart when the wall clock is set and when the machine is suspended, in which
// the monotonic clock stands still on some systems (case X-18).
type Instant struct {
	Wall time.Duration // since the Unix epoch
	Mono time.Duration // since the process began
}

// Add returns the instant d later by both clocks.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{Wall: i.Wall + d, Mono: i.Mono + d}
}

// IsZero tells whether the instant was never set.
func (i Instant) IsZero() bool { return i == Instant{} }

// PassedAt tells whether now is later than i by either clock: the clock that
// has gone further decides, so that neither a suspended machine nor a wall
// clock set back prolongs a deadline.
func (i Instant) PassedAt(now Instant) bool {
	return now.Wall > i.Wall || now.Mono > i.Mono
}

// Elapsed is how much time has gone by between two instants of one process, by
// the clock that has gone further.
func Elapsed(from, to Instant) time.Duration {
	return max(to.Wall-from.Wall, to.Mono-from.Mono)
}

// Until is how much time is left before deadline, by the clock that has gone
// further; negative when it has passed.
func (i Instant) Until(deadline Instant) time.Duration {
	return min(deadline.Wall-i.Wall, deadline.Mono-i.Mono)
}

// Time is the instant's wall clock.
func (i Instant) Time() time.Time { return time.Unix(0, int64(i.Wall)).UTC() }

// Ticks is the unit of time of the table: 100 ns since 0001-01-01 UTC, whole
// ticks, rounded downwards (protocol.md section 1).
type Ticks int64

// tick is the length of one tick.
const tick = 100 * time.Nanosecond

// Ticks is the instant's wall clock in ticks.
func (i Instant) Ticks() Ticks { return Ticks(outbox.Ticks(i.Time())) }

// Add returns the ticks d later, whole ticks.
func (t Ticks) Add(d time.Duration) Ticks { return t + Ticks(d/tick) }

// Sub is the time from u to t; of more than a Duration can hold, which is 292 years, the
// longest or the shortest: the table may say any year.
func (t Ticks) Sub(u Ticks) time.Duration { return t.Time().Sub(u.Time()) }

// Time is the moment as a time.Time in UTC.
func (t Ticks) Time() time.Time { return outbox.FromTicks(int64(t)) }
