package coordinator

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/store"
)

// clocks is a process's two clocks beside the service's, whose time is now.
type clocks struct {
	now  time.Duration
	wall time.Duration // ahead of the service's
	mono time.Duration // less than now, by what went by before the process began, or slept
}

func (c *clocks) instant() actors.Instant {
	return actors.Instant{Wall: begin + c.now + c.wall, Mono: c.now - c.mono}
}

// ask sends a request whose answer comes back after two ways.
func (c *clocks) ask(g *guard, out, back time.Duration) {
	sent := c.instant()
	c.now += out
	date := actors.Instant{Wall: (begin + c.now).Truncate(time.Second)}.Ticks()
	c.now += back
	g.look(c.instant())
	g.heard(actors.Replied{
		Request: store.ReadCoordination{}, Reply: store.Reply{Date: date}, Sent: sent, Received: c.instant(),
	})
}

// Whatever happens to the clocks, the guard never says of a clock that is right
// within half of MaxClockSkew that it is off, and knows one that is off by more than
// that, a second, and the time of an answer.
func TestGuardIsNeverWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := func(name string, from, to time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(int64(from), int64(to)).Draw(t, name))
		}
		g := &guard{limit: time.Second}
		c := &clocks{now: time.Hour, mono: time.Hour, wall: duration("wall", -2*time.Second, 2*time.Second)}
		g.look(c.instant())
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0: // set
				c.wall = duration("wall", -time.Hour, time.Hour)
			case 1: // suspended, with a monotonic clock that stands still
				slept := duration("sleep", time.Second, time.Minute)
				c.now, c.mono = c.now+slept, c.mono+slept
			case 2: // set right
				c.wall = 0
			}
			c.now += duration("pause", 0, 20*time.Second)
			g.look(c.instant())
			out, back := duration("out", 0, 2*time.Second), duration("back", 0, 2*time.Second)
			c.ask(g, out, back)
			s := g.at(c.instant())
			if c.wall < s.low || c.wall > s.high {
				t.Fatalf("it says from %v to %v ahead; it is %v", s.low, s.high, c.wall)
			}
			ahead, off := g.off(c.instant())
			if off && c.wall.Abs() <= g.limit || off && (ahead > 0) != (c.wall > 0) {
				t.Fatalf("it says off, by %v; it is %v ahead", ahead, c.wall)
			}
			if least := g.limit + dateGrain + out + back; !off && c.wall.Abs() > least {
				t.Fatalf("it sees nothing; it is %v ahead", c.wall)
			}
		}
	})
}

// The more answers, the closer: the bounds of a minute are intersected.
func TestGuardLearns(t *testing.T) {
	g, c := &guard{limit: time.Second}, &clocks{now: time.Hour, mono: time.Hour, wall: 1500 * time.Millisecond}
	g.look(c.instant())
	for i := range 5 {
		c.now += 10*time.Second + time.Duration(i)*170*time.Millisecond
		c.ask(g, 5*time.Millisecond, 5*time.Millisecond)
	}
	s := g.at(c.instant())
	if s.high-s.low > 400*time.Millisecond {
		t.Errorf("after five answers it knows from %v to %v", s.low, s.high)
	}
	if _, off := g.off(c.instant()); !off {
		t.Errorf("it does not see that the clock is 1.5 s ahead: from %v to %v", s.low, s.high)
	}
}

// A service that says no time is no guard; nor is one that has stopped to.
func TestNoDateNoGuard(t *testing.T) {
	g, c := &guard{limit: time.Second}, &clocks{now: time.Hour, mono: time.Hour, wall: time.Hour}
	g.look(c.instant())
	dateless := actors.Replied{Request: store.ReadCoordination{}, Sent: c.instant(), Received: c.instant()}
	g.heard(dateless)
	if _, off := g.offRound(c.instant(), c.instant()); off || g.doubtful(c.instant()) {
		t.Error("without a date it doubts the clock")
	}
	c.ask(g, 0, 0)
	if _, off := g.offRound(c.instant(), c.instant()); !off || !g.doubtful(c.instant()) {
		t.Error("with a date it does not see that the clock is an hour ahead")
	}
	g.heard(dateless)
	if _, off := g.offRound(c.instant(), c.instant()); off || g.doubtful(c.instant()) {
		t.Error("it still doubts the clock")
	}
}
