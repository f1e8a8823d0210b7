package simulation

import (
	"time"

	"github.com/bucketbrigade/relay/store"
)

// withClock checks that nothing is sent to the coordination partition by a clock
// that is far off: neither heartbeat nor lease write while it is ahead, and no
// claim and no pruning while it is behind either.
func (c *checker) withClock(p *process, r store.Request) {
	now, limit := c.fleet.trueTime(), c.fleet.o.MaxClockSkew
	ahead := func(by store.Ticks, of string) {
		if by.Sub(now) > limit {
			c.about(p.name, r.ConcernsBucket()).violated("I-35", "%s sends a %s by a clock that is %v ahead", p.name, of, by.Sub(now))
		}
	}
	behind := func(by store.Ticks, of string) {
		if now.Sub(by) > limit+c.fleet.o.LeaseRenewInterval+2*time.Second {
			c.about(p.name, r.ConcernsBucket()).violated("I-35", "%s sends a %s by a clock that is %v behind", p.name, of, now.Sub(by))
		}
	}
	switch r := r.(type) {
	case store.Heartbeat:
		ahead(r.LastSeen, "heartbeat")
	case store.Keep:
		ahead(r.Expires.Add(-c.fleet.o.LeaseDuration), "keep")
	case store.Claim:
		ahead(r.Now, "claim")
		behind(r.Now, "claim")
	case store.Prune:
		then := r.Stopped.Add(c.fleet.o.LeaseDuration)
		ahead(then, "prune")
		behind(then, "prune")
	}
}

// trueTime is the service's time.
func (f *fleet) trueTime() store.Ticks { return store.Instant{Wall: epoch + f.now}.Ticks() }
