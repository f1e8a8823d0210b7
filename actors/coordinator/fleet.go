package coordinator

import (
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// fleetSeen is what the round has read of the fleet, judged by its now.
func (c *core) fleetSeen() event.FleetSeen {
	active := map[string]bool{}
	for _, id := range c.activeRelays() {
		active[id] = true
	}
	seen := event.FleetSeen{
		Relays: make([]event.RelaySeen, len(c.round.view.relays)),
		Leases: make([]event.LeaseSeen, len(c.round.view.leases)),
	}
	for i, r := range c.round.view.relays {
		seen.Relays[i] = event.RelaySeen{Relay: r.ID, Mode: r.Mode, LastSeen: r.LastSeen.Time(), Active: active[r.ID]}
		if r.Stopped != 0 {
			seen.Relays[i].Stopped = r.Stopped.Time()
		}
	}
	for b, lease := range c.round.view.leases {
		if lease != nil {
			seen.Leases[b] = leaseSeen(*lease, c.round.now.Ticks())
		}
	}
	return seen
}

func leaseSeen(lease store.Lease, now store.Ticks) event.LeaseSeen {
	if lease.Unreadable {
		return event.LeaseSeen{Unreadable: true}
	}
	var seen event.LeaseSeen
	if lease.Expires != 0 { // a lease without an expiry has no owner
		seen.Owner, seen.Lapsed = lease.Owner, lease.Expires <= now
	}
	if lease.PausedUntil > now {
		seen.PausedUntil = lease.PausedUntil.Time()
	}
	return seen
}
