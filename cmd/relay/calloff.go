package main

import (
	"fmt"

	"github.com/bucketbrigade/relay/store"
)

// This file is how commands see retries that are under way, and call them off.

// retries are those under way in one bucket, as its markers have them.
type retries struct {
	markers []asideMarker
	now     store.Ticks // by the table's clock
}

// ofBucket are the retries of one of the buckets.
func (a aside) ofBucket(bucket int, now store.Ticks) retries {
	r := retries{now: now}
	for _, m := range a.markers {
		if m.bucket == bucket {
			r.markers = append(r.markers, m)
		}
	}
	return r
}

// find is the marker of a key, or, without a key id, of a topic.
func (r retries) find(keyID, topic string) (store.Marker, bool) {
	for _, m := range r.markers {
		if m.KeyID == keyID && (keyID != "" || m.Topic == topic) {
			return m.Marker, true
		}
	}
	return store.Marker{}, false
}

// underWay tells whether what a marker stands for is being delivered again: somebody has
// asked for it, or for its topic's with which it was set aside, or the topic's pause is
// over. Since is when; in words why.
func (r retries) underWay(m store.Marker) (since store.Ticks, why string) {
	switch {
	case m.RetryAt != 0:
		return m.RetryAt, "asked for"
	case m.PausedUntil != 0 && m.PausedUntil <= r.now:
		return m.PausedUntil, "begun when its pause was over"
	case m.KeyID != "" && m.Reason == store.ReasonTopic:
		if topic, is := r.find("", m.Topic); is {
			if since, why = r.underWay(topic); since != 0 {
				return since, "with its topic, " + why
			}
		}
	}
	return 0, ""
}

// setAside is the request that sets a key, or a topic, aside: its retry is called off
// when one is under way, so that the end of that does not undo it.
func (r retries) setAside(bucket int, m store.Marker, reasonGiven bool) store.Request {
	seen, is := r.find(m.KeyID, m.Topic)
	since, _ := r.underWay(seen)
	if !is || since == 0 {
		return store.SetAside{Bucket: bucket, Marker: m}
	}
	return callOff(bucket, seen, m.ParkedAt, m.Reason, reasonGiven)
}

// callOff keeps the reason that is known, for it names what is wrong, unless another was
// given. That of a key which was set aside with its topic does not stay: the key would go
// on being retried with the topic.
func callOff(bucket int, seen store.Marker, at store.Ticks, reason string, reasonGiven bool) store.CallOff {
	r := store.CallOff{Bucket: bucket, Seen: seen, ParkedAt: max(at, seen.ParkedAt+1), Reason: seen.Reason}
	if reasonGiven || seen.Reason == store.ReasonTopic && seen.KeyID != "" {
		r.Reason = reason
	}
	return r
}

// fact says why a retry is under way, and since when; empty when none is.
func (r retries) fact(m store.Marker) string {
	since, why := r.underWay(m)
	if since == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s ago", why, ageText(r.now.Sub(since)))
}
