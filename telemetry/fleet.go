package telemetry

import (
	"cmp"
	"slices"
	"time"

	"github.com/bucketbrigade/relay/event"
)

// Fleet is all relays and all leases, as the relay's last coordination round has
// read them: before the round's own writes, so a lease that the round has claimed
// is shown by the next.
type Fleet struct {
	SeenAt *time.Time    `json:"seenAt"`
	Relays []RelayStatus `json:"relays"` // ascending by id; never nil
	// Free are the buckets that nobody owns, Lapsed those whose owner's time is over,
	// and Paused those that an operator has paused, whoever owns them; ascending.
	Free   []int `json:"free"`
	Lapsed []int `json:"lapsed"`
	Paused []int `json:"paused"`
	// Unreadable are the buckets whose lease cannot be read, so that nobody may claim it.
	Unreadable []int `json:"unreadable"`
}

// RelayStatus is one relay of the fleet.
type RelayStatus struct {
	ID string `json:"id"`
	// State is active, stopped, silent (it was not seen within the lease duration), or
	// unknown (there are leases in its name, but no record).
	State     string     `json:"state"`
	Mode      string     `json:"mode"` // empty on records of the peer
	LastSeen  *time.Time `json:"lastSeen"`
	StoppedAt *time.Time `json:"stoppedAt"`
	// Owned is how many buckets it holds, paused ones too, and none whose lease has lapsed.
	Owned   int   `json:"owned"`
	Buckets []int `json:"buckets"` // the owned ones, ascending
}

// NewFleet is what a round has seen, at a time.
func NewFleet(at time.Time, seen event.FleetSeen) *Fleet {
	f := &Fleet{SeenAt: Moment(at), Relays: []RelayStatus{}, Free: []int{}, Lapsed: []int{}, Paused: []int{}, Unreadable: []int{}}
	relays := map[string]*RelayStatus{}
	for _, r := range seen.Relays {
		relays[r.Relay] = &RelayStatus{
			ID: r.Relay, State: stateOfRelay(r), Mode: r.Mode, LastSeen: Moment(r.LastSeen), StoppedAt: Moment(r.Stopped), Buckets: []int{},
		}
	}
	for b, lease := range seen.Leases {
		if !lease.PausedUntil.IsZero() {
			f.Paused = append(f.Paused, b)
		}
		switch {
		case lease.Unreadable:
			f.Unreadable = append(f.Unreadable, b)
			continue
		case lease.Owner == "":
			f.Free = append(f.Free, b)
			continue
		}
		owner := relays[lease.Owner]
		if owner == nil {
			owner = &RelayStatus{ID: lease.Owner, State: "unknown", Buckets: []int{}}
			relays[lease.Owner] = owner
		}
		if lease.Lapsed { // anybody's to claim
			f.Lapsed = append(f.Lapsed, b)
			continue
		}
		owner.Owned++
		owner.Buckets = append(owner.Buckets, b)
	}
	for _, r := range relays {
		f.Relays = append(f.Relays, *r)
	}
	slices.SortFunc(f.Relays, func(a, b RelayStatus) int { return cmp.Compare(a.ID, b.ID) })
	return f
}

func stateOfRelay(r event.RelaySeen) string {
	switch {
	case r.Active:
		return "active"
	case !r.Stopped.IsZero():
		return "stopped"
	}
	return "silent"
}
