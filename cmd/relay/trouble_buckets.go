package main

import (
	"fmt"
	"strings"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/store"
)

// foreignStamps are buckets whose first message was written for another bucket
// count. Relays stop at such a row, all of them, for good (protocol.md section 3,
// Misconfiguration).
func foreignStamps(p picture.Table) (found []trouble) {
	var stamps sharing[int]
	for i, b := range p.Buckets {
		if isForeign(p, b) {
			stamps.add(b.Head.BucketCount, i)
		}
	}
	for _, stamp := range stamps.keys {
		buckets := stamps.buckets[stamp]
		found = append(found, newTrouble(foreignStamp, buckets,
			fmt.Sprintf("%s: the first message was written for %s, but these settings say %d",
				bucketsText(buckets), counted(stamp, "bucket"), len(p.Buckets)),
			fmt.Sprintf("if the outbox has %s, say --bucket-count %d; if not, the writer is wrong and no relay passes such a row",
				counted(stamp, "bucket"), stamp)))
	}
	return found
}

// isForeign tells whether a bucket's first message was written for another bucket count.
func isForeign(p picture.Table, b picture.Bucket) bool {
	return b.Head.BucketCount != 0 && b.Head.BucketCount != len(p.Buckets)
}

func unreadableHeads(p picture.Table) (found []trouble) {
	for i, b := range p.Buckets {
		if b.HeadFault == nil {
			continue
		}
		advice := "its sort key is no number: keep its attributes, delete the item, and enqueue the message anew"
		if b.Head.Sequence != 0 {
			advice = fmt.Sprintf("repair the row, or set it aside: relay message park --bucket %d --sequence %d", i, b.Head.Sequence)
		}
		found = append(found, newTrouble(unreadableHead, []int{i},
			fmt.Sprintf("bucket %d is stuck: its first message cannot be read: %s", i, legible(b.HeadFault.Error())), advice))
	}
	return found
}

func unreadableItems(p picture.Table) (found []trouble) {
	for _, fault := range p.Unreadable {
		found = append(found, newTrouble(unreadableItem, nil, "cannot be read: "+legible(fault.Error()), "repair the item"))
	}
	for i, b := range p.Buckets {
		for _, fault := range b.UnreadableMarkers {
			found = append(found, newTrouble(unreadableItem, []int{i}, "cannot be read: "+legible(fault.Error()),
				fmt.Sprintf("repair the item: bucket %d stands still until then", i)))
		}
	}
	return found
}

// longWaits are messages that wait for longer than it takes a bucket to find a new
// owner when a relay dies. What is paused, or stuck on a row, is told as that, and
// where nobody is there at all, nobody can be expected.
func longWaits(p picture.Table) (found []trouble) {
	someActive := p.Count(picture.Active) > 0
	waits := func(b picture.Bucket) bool {
		return b.Oldest > p.Patience && b.HeadFault == nil && !isForeign(p, b) && b.Lease.State != picture.Paused
	}
	lone := bucketsWhere(p, func(b picture.Bucket) bool {
		return waits(b) && b.Lease.State != picture.Owned && someActive
	})
	if len(lone) > 0 {
		found = append(found, newTrouble(notServed, lone,
			fmt.Sprintf("%s: messages wait and no relay has claimed %s%s", bucketsText(lone), itOrThem(lone), oldestText(p, lone)),
			"relays claim nothing while clocks are off, the table refuses them, or no broker answers: see their logs, and relay doctor"))
	}
	served := bucketsWhere(p, func(b picture.Bucket) bool { return waits(b) && b.Lease.State == picture.Owned })
	if len(served) > 0 {
		found = append(found, newTrouble(waitsLong, served,
			fmt.Sprintf("%s: messages wait%s", bucketsText(served), oldestText(p, served)),
			"see the owner's log or /status, and relay doctor: brokers, topic and permissions, or more messages than it can carry"))
	}
	return found
}

// oldestText tells of the oldest message in some buckets, as the end of a sentence.
func oldestText(p picture.Table, buckets []int) string {
	i := oldestOf(p, buckets)
	b := p.Buckets[i]
	text := fmt.Sprintf(", the oldest for %s", ageText(b.Oldest))
	if len(buckets) > 1 {
		text += fmt.Sprintf(" in bucket %d", i)
	}
	if b.Head.Topic != "" {
		text += ", topic " + legible(b.Head.Topic)
	}
	if b.Lease.Owner != "" {
		text += ", owner " + legible(b.Lease.Owner)
	}
	return text
}

// asideGroup is what is set aside of one topic.
type asideGroup struct {
	topic   string
	buckets []int // ascending
	keys    int
	first   store.Ticks  // when the first was
	last    store.Marker // the one set aside last
	retried int          // how many a retry is asked for
}

// asideByTopic groups markers by topic, those of whole topics or those of keys, in
// the order of the first bucket of each.
func asideByTopic(p picture.Table, ofTopics func(store.Marker) bool) []asideGroup {
	var groups []asideGroup
	at := map[string]int{}
	for i, b := range p.Buckets {
		for _, m := range b.Markers {
			if !ofTopics(m) {
				continue
			}
			n, known := at[m.Topic]
			if !known {
				n = len(groups)
				at[m.Topic] = n
				groups = append(groups, asideGroup{topic: m.Topic, first: m.ParkedAt})
			}
			g := &groups[n]
			g.keys++
			if len(g.buckets) == 0 || g.buckets[len(g.buckets)-1] != i {
				g.buckets = append(g.buckets, i)
			}
			g.first = min(g.first, m.ParkedAt)
			if m.ParkedAt >= g.last.ParkedAt {
				g.last = m
			}
			if m.RetryAt != 0 {
				g.retried++
			}
		}
	}
	return groups
}

// topicsAside are topics that are set aside as a whole: for good, or for a pause.
func topicsAside(p picture.Table) (found []trouble) {
	for _, g := range asideByTopic(p, func(m store.Marker) bool { return m.KeyID == "" }) {
		topic, where := "topic "+legible(g.topic), whereText(g.buckets, len(p.Buckets))
		kind, text := topicSetAside, fmt.Sprintf("%s is set aside as a whole%s, for %s%s", topic, where, agoText(p.Fleet, g.first), reasonText(g.last.Reason))
		advice := "to deliver it: relay parked retry --topic " + shellWord(g.topic)
		callOff := "; to stop that: relay parked retry --call-off --topic " + shellWord(g.topic)
		if g.last.PausedUntil != 0 {
			kind, text = pausedTopic, fmt.Sprintf("%s is paused%s %s", topic, where, pauseText(g.last.PausedUntil, g.last.PausedBy, g.last.Reason))
			advice = "to go on: relay resume --topic " + shellWord(g.topic)
		}
		if g.retried > 0 {
			text += "; it is being delivered again"
		}
		switch {
		case g.retried == g.keys: // as many as there are buckets
			advice = "nothing, it has been asked for" + callOff
		case pauseIsOver(g.last, p.Now()):
			text = fmt.Sprintf("%s was paused%s %s", topic, where, endedPauseText(g.last, p.Now()))
			advice = "nothing, its relays do that by themselves; if it goes on for long, see their logs or /status" + callOff
		}
		found = append(found, newTrouble(kind, g.buckets, text, advice))
	}
	return found
}

func keysAside(p picture.Table) (found []trouble) {
	for _, g := range asideByTopic(p, func(m store.Marker) bool { return m.KeyID != "" }) {
		topic, since := "a topic that cannot be read", "for"
		if g.topic != "" {
			topic = "topic " + legible(g.topic)
		}
		advice := "look: relay parked list"
		if g.keys == 1 {
			advice = "look: relay parked show " + g.last.KeyID
			if g.retried == 0 {
				advice += "; when the cause is gone: relay parked retry with the same id"
			}
		} else {
			since = "the first for"
		}
		text := fmt.Sprintf("%s of %s set aside in %s, %s %s", counted(g.keys, "key"), topic, bucketsText(g.buckets), since, agoText(p.Fleet, g.first))
		if g.retried > 0 {
			text += fmt.Sprintf(", %d being retried", g.retried)
		}
		found = append(found, newTrouble(keysSetAside, g.buckets, text+reasonText(g.last.Reason), advice))
	}
	return found
}

// strayRows are rows set aside that no relay knows of.
func strayRows(p picture.Table) (found []trouble) {
	for i, b := range p.Buckets {
		if len(b.Strays) == 0 {
			continue
		}
		found = append(found, newTrouble(rowsWithoutMarker, []int{i},
			fmt.Sprintf("bucket %d: rows of %s are set aside without a marker, and newer ones pass them", i, counted(len(b.Strays), "key")),
			"have them delivered: relay parked retry "+listedKeys(b.Strays)))
	}
	return found
}

// listedKeys are key ids as arguments; of many, all that is set aside is meant.
func listedKeys(keyIDs []string) string {
	const most = 2 // that a line has room for
	if len(keyIDs) > most {
		return "--all"
	}
	return strings.Join(keyIDs, " ")
}

// blanks are the buckets that could not be read.
func blanks(p picture.Table) []trouble {
	blank := bucketsWhere(p, func(b picture.Bucket) bool { return b.Fault != nil })
	if len(blank) == 0 {
		return nil
	}
	return []trouble{newTrouble(pictureHasBlanks, blank,
		fmt.Sprintf("%s could not be read, or not to the end: %s", bucketsText(blank), legible(p.Fault().Error())),
		"what is shown of the others is true; look again")}
}
