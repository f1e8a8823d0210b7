package main

import (
	"fmt"

	"github.com/bucketbrigade/relay/store"
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
	byBucket := map[int]store.Lease{}
	var beyond []int
	for _, lease := range f.leases {
		if lease.Bucket < f.settings.Relay.BucketCount {
			byBucket[lease.Bucket] = lease
		} else if !lease.Unreadable && lease.Owner != "" && lease.Expires > f.now {
			beyond = append(beyond, lease.Bucket)
		}
	}
	relays := map[string]store.RelayRecord{}
	for _, r := range f.relays {
		relays[r.ID] = r
	}
	var order []unowned
	buckets := map[unowned][]int{}
	sound := 0
	for bucket := range f.settings.Relay.BucketCount {
		lease, exists := byBucket[bucket]
		trouble, troubled := f.unowned(lease, exists, relays)
		if !troubled {
			sound++
			continue
		}
		if buckets[trouble] == nil {
			order = append(order, trouble)
		}
		buckets[trouble] = append(buckets[trouble], bucket)
	}
	var found []checkDocument
	for _, trouble := range order {
		document := warned(checkLeases, bucketsText(buckets[trouble]), trouble.found, trouble.advice)
		if trouble.fails {
			document.Status = statusFailure
		}
		if trouble.held {
			document.Advice += fmt.Sprintf(": relay lease release --bucket %d", buckets[trouble][0])
		}
		found = append(found, document)
	}
	if len(beyond) > 0 {
		found = append(found, failed(checkBucketCount, "leases of "+bucketsText(beyond),
			fmt.Sprintf("are held, and the settings here have %d buckets: some relay has another bucket-count", f.settings.Relay.BucketCount),
			"give all relays and writers the same bucket-count; it can be changed only while the outbox is empty"))
	}
	if sound > 0 {
		fine := "each is leased to an active relay, or between two owners"
		if len(f.actives()) == 0 {
			fine = "none is held by a relay that has gone"
		}
		found = append(found, passed(checkLeases, counted(sound, "bucket"), fine))
	}
	return found
}

// unowned judges one lease. Without active relays nobody could own it: that is the
// trouble of another check.
func (f *fleetChecks) unowned(lease store.Lease, exists bool, relays map[string]store.RelayRecord) (unowned, bool) {
	someActive := len(f.actives()) > 0
	patience := patienceInLeases * f.settings.Relay.LeaseDuration
	free := !exists || lease.Owner == "" || lease.Expires <= f.now
	switch {
	case lease.Unreadable: // coordination tells
		return unowned{}, false
	case free && !someActive:
		return unowned{}, false
	case free && (!exists || lease.Expires == 0):
		return unowned{found: "has no owner yet, and relays are active",
			advice: "if this lasts for longer than a few rounds, look at the relays' logs: clock.skewed, heartbeat.refused, store.throttled"}, true
	case free && f.now.Sub(lease.Expires) > patience:
		return unowned{fails: true, found: fmt.Sprintf("has had no owner for more than %s, and relays are active", ageText(patience)),
			advice: "look at the relays' logs: clock.skewed, heartbeat.refused, store.throttled; and at their bucket-count"}, true
	case free:
		return unowned{}, false
	}
	owner, known := relays[lease.Owner]
	if known && f.active(owner) {
		return unowned{}, false
	}
	state := "has no record"
	switch {
	case known && owner.Stopped != 0:
		state = "has stopped"
	case known:
		state = "is silent"
	}
	return unowned{
		held:   true,
		found:  fmt.Sprintf("leased to %s, which %s", legible(lease.Owner), state),
		advice: "a peer takes over when the lease expires, or sooner, if the owner is gone for good, after",
	}, true
}
