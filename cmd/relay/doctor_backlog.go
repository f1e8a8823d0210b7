package main

import (
	"fmt"
	"slices"
	"time"
)

// lateInLeases is the age, in lease durations, from which a row has waited for longer
// than any takeover explains.
const lateInLeases = 10

// age is that of the oldest row that waits in some buckets, as far as is known; 0: none
// does.
func (o *outboxChecks) age(buckets []int) time.Duration {
	oldest := o.now
	for _, bucket := range buckets {
		if at := o.buckets[bucket].oldest; at != 0 {
			oldest = min(oldest, at)
		}
	}
	return o.now.Sub(oldest)
}

// isLate tells whether a row has waited for too long.
func (o *outboxChecks) isLate(age time.Duration) bool {
	return age > lateInLeases*o.settings.Relay.LeaseDuration
}

// late tells whether a row has waited for too long that nobody wants to wait.
func (o *outboxChecks) late() bool { return o.isLate(o.age(o.unpaused())) }

// waiting are the buckets in which something waits.
func (o *outboxChecks) waiting() []int {
	return o.numbered(func(seen bucketSeen) bool { return seen.rows > 0 || seen.malformed != nil })
}

// unpaused are those of them that no operator has paused.
func (o *outboxChecks) unpaused() []int {
	return slices.DeleteFunc(o.waiting(), func(bucket int) bool {
		return slices.ContainsFunc(o.pauses, func(p pauseOfBuckets) bool { return slices.Contains(p.buckets, bucket) })
	})
}

// backlog judges what waits. In a paused bucket it waits until that is resumed, whatever
// relays do.
func (o *outboxChecks) backlog() (found []checkDocument) {
	waiting, unpaused := o.waiting(), o.unpaused()
	if len(waiting) == 0 {
		return []checkDocument{passed(checkBacklog, bucketsCounted(o.settings), "nothing waits")}
	}
	if len(unpaused) > 0 {
		found = append(found, o.backlogOf(unpaused, "", "see what is wrong with relays, leases, pauses, rows and topics here, and the relays' logs for "+
			"bucket.blocked, publish.failed and record.rejected; if nothing is, they need time or more buckets"))
	}
	for _, pause := range o.pauses {
		held := slices.DeleteFunc(slices.Clone(waiting), func(bucket int) bool { return !slices.Contains(pause.buckets, bucket) })
		if len(held) > 0 {
			found = append(found, o.backlogOf(held, ": paused "+pause.text, pause.advice(o.settings.Relay.BucketCount)))
		}
	}
	return found
}

// backlogOf is what waits in some buckets, and why, with what to do if it is too long.
func (o *outboxChecks) backlogOf(buckets []int, why, advice string) checkDocument {
	rows, more := 0, false
	for _, bucket := range buckets {
		rows, more = rows+o.buckets[bucket].rows, more || o.buckets[bucket].more
	}
	age := o.age(buckets)
	found := fmt.Sprintf("%s waiting, the oldest for %s%s", limitText(rows, more, "message"), ageText(age), why)
	if o.isLate(age) {
		return warned(checkBacklog, bucketsText(buckets), found, advice)
	}
	return passed(checkBacklog, bucketsText(buckets), found)
}
