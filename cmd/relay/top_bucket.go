package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/store"
)

// bucketLines are the details of a bucket: all that the picture has of it.
func bucketLines(p picture.Table, i, width int) []string {
	b := p.Buckets[i]
	facts := [][2]string{
		{"bucket", fmt.Sprintf("%d, %s", i, b.Lease.State)},
		{"owner", ownerText(p, b.Lease)},
	}
	if b.Lease.State == picture.Paused {
		facts = append(facts, [2]string{"", "paused " + pauseText(b.Lease.PausedUntil, b.Lease.PausedBy, b.Lease.PauseReason)})
	}
	facts = append(facts, [2]string{"waiting", pendingText(b)})
	if b.Head.Waiting {
		facts = append(facts, [2]string{"first", firstText(b)})
	}
	facts = append(facts, asideFacts(p, b)...)
	var lines []string
	for _, fact := range facts {
		lines = append(lines, hung(fmt.Sprintf("%-11s", fact[0]), fact[1], width)...)
	}
	var own []trouble
	for _, t := range troublesOf(p) {
		if slices.Contains(t.Buckets, i) {
			own = append(own, t)
		}
	}
	if len(own) > 0 {
		lines = append(append(lines, ""), troubleLines(own, width)...)
	}
	return append(lines, "", fmt.Sprintf("what waits here: relay message list --bucket %d", i))
}

func ownerText(p picture.Table, l picture.Lease) string {
	if l.Owner == "" {
		return "none"
	}
	text := fmt.Sprintf("relay %s (%s)", legible(l.Owner), l.Holder)
	if l.Expires != 0 {
		verb := "expired"
		if l.Held {
			verb = "expires"
		}
		text += fmt.Sprintf(", the lease %s %s", verb, expiryText(p.Fleet, l))
	}
	if l.Incarnation != "" {
		text += fmt.Sprintf(", claim %d of incarnation %s", l.Claim, legible(l.Incarnation))
	}
	return text
}

func pendingText(b picture.Bucket) string {
	switch {
	case b.Fault != nil && !b.Head.Waiting:
		return "not known: " + legible(b.Fault.Error())
	case b.Fault != nil:
		return limitText(b.Pending, true, "message") + ", the rest is not known: " + legible(b.Fault.Error())
	case b.Pending == 0:
		return "nothing"
	default:
		return limitText(b.Pending, b.PendingIsLimit, "message")
	}
}

// firstText is what is known of the first message without its content.
func firstText(b picture.Bucket) string {
	text := "a row whose number cannot be read"
	if b.Head.Sequence != 0 {
		text = fmt.Sprintf("row %d", b.Head.Sequence)
	}
	text += ", topic " + cmp.Or(legible(b.Head.Topic), "not readable")
	if b.Head.Created > 0 {
		text += fmt.Sprintf(", waits for %s, since %s", ageText(b.Oldest), rfc3339(b.Head.Created.Time()))
	}
	if b.Head.BucketCount != 0 {
		text += ", written for " + counted(b.Head.BucketCount, "bucket")
	}
	return text
}

func asideFacts(p picture.Table, b picture.Bucket) [][2]string {
	facts := [][2]string{{"set aside", "nothing"}}
	if len(b.Markers) > 0 {
		facts[0][1] = asideText(b) + ", " + limitText(b.ParkedRows, b.ParkedIsLimit, "row")
	}
	for _, m := range b.Markers {
		facts = append(facts, [2]string{"", standingText(p.Fleet, m)})
	}
	return facts
}

// standingText is what is set aside, for how long, and why.
func standingText(f picture.Fleet, m store.Marker) string {
	var text string
	switch since := agoText(f, m.ParkedAt); {
	case m.KeyID != "":
		text = fmt.Sprintf("key %s of topic %s, rejected %s, for %s%s", m.KeyID, cmp.Or(legible(m.Topic), "not readable"),
			counted(m.Attempts, "time"), since, reasonText(m.Reason))
	case pauseIsOver(m, f.Now()):
		text = fmt.Sprintf("topic %s, for %s, was paused %s", legible(m.Topic), since, endedPauseText(m, f.Now()))
	case m.PausedUntil != 0:
		text = fmt.Sprintf("topic %s, for %s, paused %s", legible(m.Topic), since, pauseText(m.PausedUntil, m.PausedBy, m.Reason))
	default:
		text = fmt.Sprintf("topic %s as a whole, for %s%s", legible(m.Topic), since, reasonText(m.Reason))
	}
	if m.RetryAt != 0 {
		text += "; a retry was asked for " + agoText(f, m.RetryAt) + " ago"
	}
	return text
}
