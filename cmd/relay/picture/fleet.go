package picture

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Asker carries out requests; *store.Client is the one that reaches a table.
type Asker interface {
	Do(ctx context.Context, r store.Request) store.Reply
}

// Options says what the picture is of, and what it may cost. All are required.
type Options struct {
	BucketCount   int              // buckets of the outbox, from 0
	LeaseDuration time.Duration    // after which a relay that was not seen is silent
	MaxClockSkew  time.Duration    // between the clocks of any two relays
	CountLimit    int              // items of one kind in one bucket that are counted at most
	Concurrency   int              // requests under way at once
	Now           func() time.Time // this machine's clock
}

// RelayState is what a relay's record says of it (protocol.md section 3, step 2).
type RelayState string

// The states of relays. Unknown is that of an owner who has no record.
const (
	Active  RelayState = "active"
	Stopped RelayState = "stopped" // it said goodbye
	Silent  RelayState = "silent"  // not seen for LeaseDuration, without a goodbye
	Unknown RelayState = "unknown"
)

// LeaseState is what becomes of a bucket as its lease stands.
type LeaseState string

// The states of leases.
const (
	Owned  LeaseState = "owned"
	Free   LeaseState = "free"   // nobody's: anybody may claim it
	Lapsed LeaseState = "lapsed" // its owner has let it expire: a relay's to claim
	Paused LeaseState = "paused" // by an operator, whoever holds it
	// Unreadable leases are nobody's to claim or to free.
	Unreadable LeaseState = "unreadable"
)

// Fleet is who is there and who holds what: all that the coordination partition
// says, in one read.
type Fleet struct {
	// At is when it was read, by the service's clock where that is known, which is
	// to the second.
	At     time.Time
	Clock  Clock   // this machine's
	Relays []Relay // ascending by id
	Leases []Lease // one for each bucket, at its number
	// Beyond are leases of buckets that these settings do not have, ascending.
	Beyond []Lease
	// Unreadable are the items that cannot be read, one error each.
	Unreadable []error
}

// Relay is a relay by its record.
type Relay struct {
	store.RelayRecord
	State RelayState
	// Ahead is how far in the future its last heartbeat is; 0 when it is not, or by no more
	// than clocks may differ.
	Ahead time.Duration
	Owned int // buckets that it holds, paused ones too; none of those beyond the bucket count
}

// Lease is a lease as it stands. A bucket without an item has one without an owner.
type Lease struct {
	store.Lease
	State LeaseState
	// Held tells that the owner may still work under it: it has not expired.
	Held bool
	// Holder is the state of the owner's record; empty without an owner.
	Holder RelayState
}

// ReadFleet reads the coordination partition, strongly consistent, and judges what
// stands there. An error wraps a sentinel of package store.
func ReadFleet(ctx context.Context, table Asker, o Options) (Fleet, error) {
	f := Fleet{Leases: make([]Lease, o.BucketCount), Clock: Clock{Tolerated: o.MaxClockSkew / 2}}
	for b := range f.Leases {
		f.Leases[b].Bucket = b
	}
	var records []store.RelayRecord
	for r := (store.ReadCoordination{}); ; {
		sent := o.Now()
		reply := table.Do(ctx, r)
		if reply.Class != store.Done {
			return Fleet{}, fmt.Errorf("read relays and leases: %w", reply.Err)
		}
		received := o.Now()
		f.Clock = f.Clock.With(sent, received, reply.Date)
		f.At = received.UTC().Add(-f.Clock.Ahead()) // of the last page: what was read is no newer
		page := reply.Result.(store.CoordinationPage)
		records = append(records, page.Relays...)
		for _, lease := range page.Leases {
			if lease.Bucket < o.BucketCount {
				f.Leases[lease.Bucket].Lease = lease
			} else {
				f.Beyond = append(f.Beyond, Lease{Lease: lease})
			}
		}
		f.Unreadable = append(f.Unreadable, page.Unreadable...)
		if r.After = page.Next; r.After == "" {
			break
		}
	}
	f.judge(records, o)
	return f, nil
}

// judge gives relays and leases their states, by the rules by which relays judge each
// other.
func (f *Fleet) judge(records []store.RelayRecord, o Options) {
	now := f.Now()
	for _, record := range records {
		relay := Relay{RelayRecord: record, State: Silent}
		switch {
		case record.Stopped != 0:
			relay.State = Stopped
		case record.LastSeen > now.Add(-o.LeaseDuration):
			relay.State = Active
		}
		if ahead := record.LastSeen.Sub(now); ahead > o.MaxClockSkew {
			relay.Ahead = ahead
		}
		f.Relays = append(f.Relays, relay)
	}
	slices.SortFunc(f.Relays, func(a, b Relay) int { return strings.Compare(a.ID, b.ID) })
	for b := range f.Leases {
		f.judgeLease(&f.Leases[b], now)
	}
	for i := range f.Beyond {
		f.judgeLease(&f.Beyond[i], now)
	}
	for i := range f.Relays {
		for _, lease := range f.Leases {
			if lease.Held && lease.Owner == f.Relays[i].ID {
				f.Relays[i].Owned++
			}
		}
	}
}

func (f *Fleet) judgeLease(l *Lease, now store.Ticks) {
	if l.Owner != "" {
		l.Holder = f.StateOf(l.Owner)
	}
	hasOwner := l.Owner != "" && l.Expires != 0
	l.Held = hasOwner && !l.Unreadable && l.Expires > now
	switch {
	case l.PausedUntil > now:
		l.State = Paused
	case l.Unreadable:
		l.State = Unreadable
	case l.Held:
		l.State = Owned
	case hasOwner:
		l.State = Lapsed
	default:
		l.State = Free
	}
}

// Now is when the fleet was read, as the table has times.
func (f *Fleet) Now() store.Ticks { return store.Ticks(outbox.Ticks(f.At)) }

// Relay is the relay with an id; known tells whether it has a record.
func (f *Fleet) Relay(id string) (relay Relay, known bool) {
	i := slices.IndexFunc(f.Relays, func(r Relay) bool { return r.ID == id })
	if i < 0 {
		return Relay{State: Unknown}, false
	}
	return f.Relays[i], true
}

// StateOf is the state of the relay with an id.
func (f *Fleet) StateOf(id string) RelayState {
	relay, _ := f.Relay(id)
	return relay.State
}

// In are the relays in a state, ascending by id.
func (f *Fleet) In(state RelayState) []Relay {
	return slices.DeleteFunc(slices.Clone(f.Relays), func(r Relay) bool { return r.State != state })
}

// Count is how many relays are in a state.
func (f *Fleet) Count(state RelayState) int { return len(f.In(state)) }
