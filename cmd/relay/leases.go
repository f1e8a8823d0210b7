package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// This file is what the commands about pauses and leases know of them: the coordination
// partition as it was read, and when.

// leases are what one read of the coordination partition has shown.
type leases struct {
	byBucket []store.Lease // of all buckets of the outbox; without an item: of nobody
	beyond   []store.Lease // of buckets that the outbox does not have
	relays   map[string]store.RelayRecord
	// unreadable are the items that cannot be read, one error each.
	unreadable []error
	// now is the instant of the read: by our clock, or, when that is too far from the
	// table's, by the table's, in whole seconds.
	now store.Ticks
	// ahead is by how much our clock is too far ahead of the table's, negative: behind;
	// 0: it is not.
	ahead time.Duration
}

// readLeases reads the coordination partition, strongly consistent.
func (a *app) readLeases(ctx context.Context, client *store.Client, s *settings.Settings) (leases, error) {
	found := leases{byBucket: make([]store.Lease, s.Relay.BucketCount), relays: map[string]store.RelayRecord{}}
	for b := range found.byBucket {
		found.byBucket[b].Bucket = b
	}
	for r := (store.ReadCoordination{}); ; {
		reply := client.Do(ctx, r)
		if reply.Class != store.Done {
			return found, fmt.Errorf("read the leases: %w", reply.Err)
		}
		page := reply.Result.(store.CoordinationPage)
		for _, lease := range page.Leases {
			if lease.Bucket < len(found.byBucket) {
				found.byBucket[lease.Bucket] = lease
			} else {
				found.beyond = append(found.beyond, lease)
			}
		}
		for _, record := range page.Relays {
			found.relays[record.ID] = record
		}
		found.unreadable = append(found.unreadable, page.Unreadable...)
		if r.After = page.Next; r.After == "" {
			found.now, found.ahead = trusted(a.ticks(), reply.Date, s.Relay.MaxClockSkew)
			return found, nil
		}
	}
}

// trusted is what to take for now: our own clock unless it is further from the table's
// than relays may be from each other. A wrong clock would make living relays look
// silent. The table says whole seconds, rounded down; 0: it does not say.
func trusted(own, table store.Ticks, skew time.Duration) (now store.Ticks, ahead time.Duration) {
	ahead = own.Sub(table)
	if table == 0 || ahead <= skew+time.Second && ahead >= -skew {
		return own, 0
	}
	return table, ahead
}

// clockFact says that our clock is wrong; empty when it is not.
func (l leases) clockFact() string {
	side := "ahead of"
	if l.ahead < 0 {
		side = "behind"
	}
	if l.ahead == 0 {
		return ""
	}
	return fmt.Sprintf("this host's clock is %s %s the table's: the table's is meant here", ageText(l.ahead.Abs()), side)
}

// leaseState is what becomes of a lease, in one word; a contract with scripts.
type leaseState string

const (
	leaseOwned      leaseState = "owned"
	leaseFree       leaseState = "free"   // nobody's
	leaseLapsed     leaseState = "lapsed" // not renewed in time: a relay's to claim
	leaseUnreadable leaseState = "unreadable"
)

func (l leases) stateOf(lease store.Lease) leaseState {
	switch {
	case lease.Unreadable:
		return leaseUnreadable
	case lease.Owner == "" || lease.Expires == 0:
		return leaseFree
	case lease.Expires <= l.now:
		return leaseLapsed
	default:
		return leaseOwned
	}
}

// relayState is what a relay's record says of it; a contract with scripts.
type relayState string

const (
	relayActive  relayState = "active"
	relayStopped relayState = "stopped" // it has said so
	relaySilent  relayState = "silent"  // not seen for a lease duration, or it has no record
)

// stateOfRelay judges a relay as its peers do (protocol.md section 3, step 2).
func (l leases) stateOfRelay(id string, leaseDuration time.Duration) relayState {
	record, known := l.relays[id]
	switch {
	case known && record.Stopped != 0:
		return relayStopped
	case known && record.LastSeen > l.now.Add(-leaseDuration):
		return relayActive
	default:
		return relaySilent
	}
}

// isPaused tells whether a pause on the lease is on.
func (l leases) isPaused(lease store.Lease) bool { return lease.PausedUntil > l.now }

// age is how long ago an instant was, by the clock that is meant.
func (l leases) age(at store.Ticks) string { return ageText(l.now.Sub(at)) }

// pauseFact says who has paused something, until when and why.
func pauseFact(until store.Ticks, by, reason string) string {
	return fmt.Sprintf("%s, by %s: %s", endText(until), legible(cmp.Or(by, "somebody")), legible(cmp.Or(reason, "no reason given")))
}

// endText is the end of a pause, for people.
func endText(until store.Ticks) string {
	if until >= store.NoEnd {
		return "until it is resumed"
	}
	return "until " + until.Time().Truncate(time.Second).Format(time.RFC3339)
}

// whoAsks names who runs this command, as user@host.
func (a *app) whoAsks() string {
	name := cmp.Or(a.variable("SUDO_USER"), a.variable("USER"), a.variable("LOGNAME"))
	if account, err := user.Current(); name == "" && err == nil {
		name = account.Username
	}
	name = cmp.Or(name, "somebody")
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}
