package main

import (
	"slices"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
)

// troubleKind is what sort of trouble something is: a stable name, for scripts.
type troubleKind string

// The kinds, the gravest first: the order in which troubles are shown. docs/status.md
// says what each means and what to do.
const (
	foreignStamp      troubleKind = "foreignStamp"      // a first message was written for another bucket count
	bucketsBeyond     troubleKind = "bucketsBeyond"     // there are leases that these settings have no bucket for
	noActiveRelay     troubleKind = "noActiveRelay"     // nobody moves messages
	unreadableHead    troubleKind = "unreadableHead"    // a bucket is stuck on a message that cannot be read
	unreadableItem    troubleKind = "unreadableItem"    // a lease, a relay's record or a marker cannot be read
	rowsWithoutMarker troubleKind = "rowsWithoutMarker" // rows are set aside, and no relay knows of them
	notServed         troubleKind = "notServed"         // messages wait for long in buckets that nobody holds
	waitsLong         troubleKind = "waitsLong"         // messages wait for long although somebody holds their bucket
	silentRelay       troubleKind = "silentRelay"       // a relay was not seen for long and has not said goodbye
	futureHeartbeat   troubleKind = "futureHeartbeat"   // a relay's clock is ahead of the table's
	leftBehind        troubleKind = "leftBehind"        // a lease names a relay that has stopped, or has no record
	topicSetAside     troubleKind = "topicSetAside"     // a topic is set aside as a whole
	pausedTopic       troubleKind = "pausedTopic"       // an operator has paused a topic
	keysSetAside      troubleKind = "keysSetAside"      // keys are set aside
	pausedBuckets     troubleKind = "pausedBuckets"     // an operator has paused buckets
	modesDiffer       troubleKind = "modesDiffer"       // active relays have different modes
	clockDisagrees    troubleKind = "clockDisagrees"    // this host's clock is not the table's
	pictureHasBlanks  troubleKind = "pictureHasBlanks"  // some buckets could not be read
)

// trouble is one thing that is wrong, or that whoever looks should know of.
type trouble struct {
	Kind    troubleKind `json:"kind"`
	Text    string      `json:"text"`    // what is the matter, in one line
	Advice  string      `json:"advice"`  // what to do; empty when there is nothing
	Buckets []int       `json:"buckets"` // that it is about, ascending; empty, never nil, when it is about none
	Relay   *string     `json:"relay"`   // that it is about; null for none
}

// newTrouble is a trouble of some buckets, or of none.
func newTrouble(kind troubleKind, buckets []int, text, advice string) trouble {
	if buckets == nil {
		buckets = []int{}
	}
	return trouble{Kind: kind, Buckets: buckets, Text: text, Advice: advice}
}

// ofRelay makes it a trouble of a relay.
func (t trouble) ofRelay(id string) trouble {
	t.Relay = &id
	return t
}

// troublesOf is what is wrong in a picture, the gravest first.
func troublesOf(p picture.Table) []trouble {
	all := []trouble{}
	for _, find := range []func(picture.Table) []trouble{
		foreignStamps, leasesBeyond, absentFleet, unreadableHeads, unreadableItems, strayRows, longWaits, silentRelays,
		futureHeartbeats, leasesLeftBehind, topicsAside, keysAside, pauses, mixedModes, wrongClock, blanks,
	} {
		all = append(all, find(p)...)
	}
	return all
}

// sharing puts the buckets that have something in common together, in the order of
// the first bucket of each.
type sharing[K comparable] struct {
	keys    []K
	buckets map[K][]int // ascending
}

func (s *sharing[K]) add(key K, bucket int) {
	if s.buckets == nil {
		s.buckets = map[K][]int{}
	}
	if _, known := s.buckets[key]; !known {
		s.keys = append(s.keys, key)
	}
	s.buckets[key] = append(s.buckets[key], bucket)
}

// bucketsWhere are the buckets of which something holds, ascending.
func bucketsWhere(p picture.Table, holds func(picture.Bucket) bool) []int {
	var found []int
	for i, b := range p.Buckets {
		if holds(b) {
			found = append(found, i)
		}
	}
	return found
}

// oldestOf is the bucket among some whose first message has waited for longest.
func oldestOf(p picture.Table, buckets []int) int {
	return slices.MaxFunc(buckets, func(a, b int) int { return int(p.Buckets[a].Oldest - p.Buckets[b].Oldest) })
}
