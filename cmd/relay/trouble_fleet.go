package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
)

// absentFleet is that nobody is there to move messages.
func absentFleet(p picture.Table) []trouble {
	if p.Count(picture.Active) > 0 {
		return nil
	}
	text := "no relay is active: none has a record here"
	if len(p.Relays) > 0 {
		last := slices.MaxFunc(p.Relays, func(a, b picture.Relay) int { return cmp.Compare(a.LastSeen, b.LastSeen) })
		text = fmt.Sprintf("no relay is active: the last, %s, was seen %s ago", legible(last.ID), agoText(p.Fleet, last.LastSeen))
	}
	return []trouble{newTrouble(noActiveRelay, nil, text, "start one: relay run")}
}

func silentRelays(p picture.Table) (found []trouble) {
	for _, r := range p.Relays {
		if r.State != picture.Silent {
			continue
		}
		named := bucketsWhere(p, func(b picture.Bucket) bool { return b.Lease.Owner == r.ID })
		text := fmt.Sprintf("relay %s was last seen %s ago and has not said goodbye", legible(r.ID), agoText(p.Fleet, r.LastSeen))
		if len(named) > 0 {
			text += "; it is the last owner of " + bucketsText(named)
		}
		found = append(found, newTrouble(silentRelay, named, text,
			"it crashed, is cut off from the table, or its clock is off; others take over what it held").ofRelay(r.ID))
	}
	return found
}

// futureHeartbeats are of relays whose clock is ahead by more than clocks may differ. A
// relay that has stopped renews nothing any more.
func futureHeartbeats(p picture.Table) (found []trouble) {
	for _, r := range p.In(picture.Active) {
		if r.Ahead == 0 {
			continue
		}
		found = append(found, newTrouble(futureHeartbeat, nil,
			fmt.Sprintf("the heartbeat of relay %s is %s in the future: if it dies, nobody knows until then", legible(r.ID), ageText(r.Ahead)),
			"set its host's clock right, by NTP, or this host's; the leases that it writes last too long").ofRelay(r.ID))
	}
	return found
}

// leasesLeftBehind are leases of relays that are not coming back to renew them. A
// silent relay's are told with it.
func leasesLeftBehind(p picture.Table) (found []trouble) {
	var owners sharing[string]
	for i, l := range p.Leases {
		if l.Holder == picture.Stopped || l.Holder == picture.Unknown {
			owners.add(l.Owner, i)
		}
	}
	for _, owner := range owners.keys {
		buckets := owners.buckets[owner]
		why := holderText(p.StateOf(owner))
		found = append(found, newTrouble(leftBehind, buckets,
			fmt.Sprintf("%s: the owner, relay %s, %s", bucketsText(buckets), legible(owner), why),
			fmt.Sprintf("others claim what has expired; to free the rest at once%s: relay lease release --bucket %d", byNumber(buckets), buckets[0])).ofRelay(owner))
	}
	return found
}

// leasesBeyond are leases of buckets that the settings do not have. Relays ignore
// what a greater bucket count has left there, so that it is worth a word only while
// somebody renews it, or while nobody is there to tell what is right.
func leasesBeyond(p picture.Table) []trouble {
	var buckets []int
	for _, l := range p.Beyond {
		if l.Held || p.Count(picture.Active) == 0 {
			buckets = append(buckets, l.Bucket)
		}
	}
	if len(buckets) == 0 {
		return nil
	}
	return []trouble{newTrouble(bucketsBeyond, buckets,
		fmt.Sprintf("the table has %s; these settings say %s", leasesText(buckets), counted(len(p.Buckets), "bucket")),
		fmt.Sprintf("if the outbox has %d buckets or more, say so by --bucket-count: this picture lacks some",
			buckets[len(buckets)-1]+1))}
}

func pauses(p picture.Table) (found []trouble) {
	for _, pause := range pausesOf(p.Leases) {
		found = append(found, newTrouble(pausedBuckets, pause.buckets, pause.sentence(""), pause.advice(len(p.Buckets))))
	}
	return found
}

// mixedModes is that active relays differ in their mode. A fleet is fenced only when all
// of it is (docs/modes.md).
func mixedModes(p picture.Table) []trouble {
	modes := modesOf(p.In(picture.Active))
	if len(modes) < 2 {
		return nil
	}
	return []trouble{newTrouble(modesDiffer, nil, "the fleet has relays of both modes, "+modesText(modes), modesAdvice)}
}

func wrongClock(p picture.Table) []trouble {
	text := clockText(p.Clock)
	if text == "" {
		return nil
	}
	return []trouble{newTrouble(clockDisagrees, nil, text, clockAdvice)}
}
