package main

import (
	"fmt"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
)

// patienceInLeases is how many lease durations a bucket may be without an owner, while
// relays are active, before that is a failure: a claim takes a round or two.
const patienceInLeases = 3

// unowned is a way in which a lease does not name a live owner.
type unowned struct {
	found, advice string
	fails         bool
	held          bool // the lease runs on, and could be released
}

// owned judges the leases of all buckets. The same trouble of several is one document.
func (f *fleetChecks) owned() []checkDocument {
	var alike sharing[unowned]
	sound := 0
	for _, lease := range f.seen.Leases {
		if lease.Unreadable { // nobody knows whose it is: coordination tells
			continue
		}
		if trouble, troubled := f.unowned(lease); troubled {
			alike.add(trouble, lease.Bucket)
		} else {
			sound++
		}
	}
	var beyond []int
	for _, lease := range f.seen.Beyond {
		if lease.Held {
			beyond = append(beyond, lease.Bucket)
		}
	}
	var found []checkDocument
	for _, trouble := range alike.keys {
		document := warned(checkLeases, bucketsText(alike.buckets[trouble]), trouble.found, trouble.advice)
		if trouble.fails {
			document.Status = statusFailure
		}
		if trouble.held {
			document.Advice += fmt.Sprintf("%s: relay lease release --bucket %d", byNumber(alike.buckets[trouble]), alike.buckets[trouble][0])
		}
		found = append(found, document)
	}
	if len(beyond) > 0 {
		found = append(found, failed(checkBucketCount, leasesText(beyond),
			fmt.Sprintf("not expired, and the settings here have %d buckets: some relay has another bucket-count", f.settings.Relay.BucketCount),
			"give all relays and writers the same bucket-count; it can be changed only while the outbox is empty"))
	}
	if sound > 0 {
		fine := "each is leased to an active relay, or between two owners"
		if f.seen.Count(picture.Active) == 0 {
			fine = "none is held by a relay that has gone"
		}
		found = append(found, passed(checkLeases, counted(sound, "bucket"), fine))
	}
	return found
}

// unowned judges one lease. Without active relays nobody could own it: that is the
// trouble of another check.
func (f *fleetChecks) unowned(lease picture.Lease) (unowned, bool) {
	patience := patienceInLeases * f.settings.Relay.LeaseDuration
	switch {
	case lease.Held && lease.Holder != picture.Active:
		return unowned{
			held:   true,
			found:  fmt.Sprintf("leased to %s, which %s", legible(lease.Owner), holderText(lease.Holder)),
			advice: "a peer takes over when the lease expires, or sooner, if the owner is gone for good, after",
		}, true
	case lease.Held || f.seen.Count(picture.Active) == 0:
		return unowned{}, false
	case lease.Expires == 0:
		return unowned{found: "without an owner yet, while relays are active",
			advice: "if this lasts for longer than a few rounds, look at the relays' logs: clock.skewed, heartbeat.refused, store.throttled, broker.unreachable"}, true
	case f.seen.Now().Sub(lease.Expires) > patience:
		return unowned{fails: true, found: fmt.Sprintf("without an owner for more than %s, while relays are active", ageText(patience)),
			advice: "look at the relays' logs: clock.skewed, heartbeat.refused, store.throttled, broker.unreachable; and at their bucket-count"}, true
	default:
		return unowned{}, false
	}
}
