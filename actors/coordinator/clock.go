package coordinator

import (
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/store"
)

const (
	// boundsLast is for how long an answer says something about our clock.
	boundsLast = time.Minute
	// dateGrain is the resolution of a Date.
	dateGrain = time.Second
	// stepGrain is how much the two clocks may go apart unnoticed between two
	// looks: what a clock is slewed, and what it takes to read both.
	stepGrain = 50 * time.Millisecond
)

// guard knows by how much our wall clock differs from the service's, as far as the
// dates of its answers tell (protocol.md section 3, Clock guard). What they tell
// is kept in the time of the monotonic clock, which nobody sets; since a machine
// that was suspended may have stopped that one, a step between our two clocks
// makes it forget.
type guard struct {
	limit time.Duration // half of MaxClockSkew
	// dated: the service has said the time in its last answer that we waited for.
	// Without dates there is no guard.
	dated  bool
	bounds []bound // of the last minute, oldest first
	gap    time.Duration
	looked bool // gap is known
}

// bound is what one answer tells: the service's time less our monotonic clock lies
// between low and high.
type bound struct{ at, low, high time.Duration }

// skew is by how much our wall clock is ahead of the service's, at most and at
// least; negative: behind.
type skew struct{ low, high time.Duration }

// gapOf is the wall clock less the monotonic one, which only a step changes.
func gapOf(i actors.Instant) time.Duration { return i.Wall - i.Mono }

// look notices that the wall clock has stepped against the monotonic one since the
// last look, and by how much.
func (g *guard) look(now actors.Instant) (step time.Duration) {
	if g.looked {
		step = gapOf(now) - g.gap
	}
	g.gap, g.looked = gapOf(now), true
	if step.Abs() > stepGrain {
		g.bounds = nil
	}
	return step
}

// heard takes the date of an answer. A step while it was on its way makes it
// worthless.
func (g *guard) heard(m actors.Replied) {
	answered := m.Reply.Class == store.Done || m.Reply.Class == store.Refused
	switch m.Request.(type) {
	case store.Heartbeat, store.ReadCoordination:
	default:
		return
	}
	if !answered {
		return
	}
	g.dated = m.Reply.Date != 0
	if !g.dated || (gapOf(m.Received)-gapOf(m.Sent)).Abs() > stepGrain || (gapOf(m.Received)-g.gap).Abs() > stepGrain {
		return
	}
	date := time.Duration(m.Reply.Date.Time().UnixNano())
	next := bound{at: m.Received.Mono, low: date - m.Received.Mono, high: date + dateGrain - m.Sent.Mono}
	g.bounds = append(g.bounds, next)
	for len(g.bounds) > 0 && next.at-g.bounds[0].at > boundsLast {
		g.bounds = g.bounds[1:]
	}
	if low, high := g.base(); low > high { // they contradict each other: the newest counts
		g.bounds = []bound{next}
	}
}

// base bounds the service's time less our monotonic clock.
func (g *guard) base() (low, high time.Duration) {
	low, high = g.bounds[0].low, g.bounds[0].high
	for _, b := range g.bounds[1:] {
		low, high = max(low, b.low), min(high, b.high)
	}
	return low, high
}

// known tells whether anything is known of our clock.
func (g *guard) known() bool { return g.dated && len(g.bounds) > 0 }

// forgot tells whether what was known is worth nothing any more: our clock has stepped,
// and nobody has told the time since.
func (g *guard) forgot() bool { return g.dated && !g.known() }

// at is our clock's skew at an instant; it must be known.
func (g *guard) at(i actors.Instant) skew {
	low, high := g.base()
	return skew{low: gapOf(i) - high, high: gapOf(i) - low}
}

// off is by how much our clock is wrong at an instant, and whether it certainly is
// by more than the limit. Positive: ahead.
func (g *guard) off(i actors.Instant) (ahead time.Duration, off bool) {
	if !g.known() {
		return 0, false
	}
	s := g.at(i)
	return (s.low + s.high) / 2, s.low > g.limit || s.high < -g.limit
}

// doubtful tells whether a round must read before it writes its heartbeat: our
// clock is ahead, or has stepped and nobody has told the time since.
func (g *guard) doubtful(now actors.Instant) bool {
	if !g.dated {
		return false
	}
	ahead, off := g.off(now)
	return g.forgot() || off && ahead > 0
}

// offRound is by how much our clock is wrong in a round that took its now at an
// instant, and whether that makes it an off round: the clock is wrong now, or was
// then, or has stepped in between.
func (g *guard) offRound(then, now actors.Instant) (ahead time.Duration, off bool) {
	if !g.dated {
		return 0, false
	}
	is, off := g.off(now)
	if off {
		return is, true
	}
	if was, off := g.off(then); off {
		return was, true
	}
	if step := gapOf(now) - gapOf(then); step.Abs() > g.limit {
		return is - step, true // what it was ahead by then
	}
	return is, false
}
