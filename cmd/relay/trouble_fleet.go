package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/store"
)

// absentFleet is that nobody is there to move messages.
func absentFleet(p picture.Table) []trouble {
	if p.Count(picture.Active) > 0 {
		return nil
	}
	text := "no relay is active: none has a record here"
	if len(p.Relays) > 0 {
		last := slices.MaxFunc(p.Relays, func(a, b picture.Relay) int { return cmp.Compare(a.LastSeen, b.LastSeen) })
		text = fmt.Sprintf("no relay is active: the last, %s, was seen %s ago", legible(last.ID), agoText(p, last.LastSeen))
	}
	return []trouble{newTrouble(noActiveRelay, nil, text, "start one: relay run")}
}

func silentRelays(p picture.Table) (found []trouble) {
	for _, r := range p.Relays {
		if r.State != picture.Silent {
			continue
		}
		named := bucketsWhere(p, func(b picture.Bucket) bool { return b.Lease.Owner == r.ID })
		text := fmt.Sprintf("relay %s was last seen %s ago and has not said goodbye", legible(r.ID), agoText(p, r.LastSeen))
		if len(named) > 0 {
			text += "; it is the last owner of " + bucketsText(named)
		}
		found = append(found, newTrouble(silentRelay, named, text,
			"it crashed, is cut off from the table, or its clock is off; others take over what it held").ofRelay(r.ID))
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
		why := "has no record"
		if p.StateOf(owner) == picture.Stopped {
			why = "has stopped without handing over"
		}
		found = append(found, newTrouble(leftBehind, buckets,
			fmt.Sprintf("%s: the owner, relay %s, %s", bucketsText(buckets), legible(owner), why),
			fmt.Sprintf("others claim what has expired; to free it at once: relay lease release --bucket %d", buckets[0])).ofRelay(owner))
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
		fmt.Sprintf("the table has leases of %s; these settings say %s", bucketsText(buckets), counted(len(p.Buckets), "bucket")),
		fmt.Sprintf("if the outbox has %d buckets or more, say so by --bucket-count: this picture lacks some",
			buckets[len(buckets)-1]+1))}
}

func pauses(p picture.Table) (found []trouble) {
	type pause struct {
		by, reason string
		until      store.Ticks
	}
	var alike sharing[pause]
	for i, l := range p.Leases {
		if l.State == picture.Paused {
			alike.add(pause{l.PausedBy, l.PauseReason, l.PausedUntil}, i)
		}
	}
	for _, of := range alike.keys {
		buckets := alike.buckets[of]
		resume := fmt.Sprintf("relay resume --bucket %d", buckets[0])
		if len(buckets) == len(p.Buckets) {
			resume = "relay resume --all"
		}
		found = append(found, newTrouble(pausedBuckets, buckets,
			bucketsText(buckets)+" paused"+pauseText(p, of.until, of.by, of.reason), "to go on: "+resume))
	}
	return found
}

// pauseText says by whom something is paused, until when, and why, as the end of a
// sentence.
func pauseText(p picture.Table, until store.Ticks, by, reason string) string {
	text := " until it is resumed"
	if until < store.NoEnd {
		text = fmt.Sprintf(" for another %s, until %s", ageText(until.Time().Sub(p.At)), until.Time().UTC().Format(time.DateTime+"Z"))
	}
	if by != "" {
		text += ", by " + legible(by)
	}
	return text + reasonText(reason)
}

// clockTolerance is by how much this machine's clock may differ from the service's
// without a word: what relays allow each other by default.
const clockTolerance = 2 * time.Second

func wrongClock(p picture.Table) []trouble {
	if p.ClockAhead.Abs() <= clockTolerance {
		return nil
	}
	direction := "ahead of"
	if p.ClockAhead < 0 {
		direction = "behind"
	}
	return []trouble{newTrouble(clockDisagrees, nil,
		fmt.Sprintf("this machine's clock is %s %s DynamoDB's, by which all ages here are told", ageText(p.ClockAhead.Abs()), direction),
		"a relay must not run here before it is set")}
}

// agoText is how long before the picture an instant of the table was.
func agoText(p picture.Table, at store.Ticks) string { return ageText(p.At.Sub(at.Time())) }
