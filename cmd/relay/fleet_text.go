package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// This file has the one wording of what stands in the coordination partition, for all
// commands that show it: whoever has seen it in one knows it again in another.

// readFleet reads the coordination partition for a command that may go on to change what
// it has found. All that such a command says and writes of times is by the fleet's Now, so
// that it is told at once of a host whose clock is wrong. The error is advised.
func (a *app) readFleet(ctx context.Context, s *settings.Settings) (*store.Client, picture.Fleet, error) {
	client, err := a.client(ctx, s)
	if err != nil {
		return nil, picture.Fleet{}, err
	}
	f, err := picture.ReadFleet(ctx, client, a.pictureOptions(s))
	if fact := clockText(f.Clock); fact != "" {
		a.printFacts([]string{fact})
	}
	return client, f, advised(err, s)
}

// unreadableFault says at the end of a command that some items could not be read.
func unreadableFault(f picture.Fleet) error {
	if len(f.Unreadable) == 0 {
		return nil
	}
	return fmt.Errorf("%s of the coordination partition cannot be read, the first: %w", counted(len(f.Unreadable), "item"), f.Unreadable[0])
}

// clockText says that this host's clock is wrong, with the clock that is meant instead;
// empty when it is not.
func clockText(c picture.Clock) string {
	if !c.IsOff() {
		return ""
	}
	side := "ahead of"
	if c.Ahead() < 0 {
		side = "behind"
	}
	return fmt.Sprintf("this host's clock is %s %s the table's: the table's is meant here", ageText(c.Ahead().Abs()), side)
}

// clockAdvice is what to do about it.
const clockAdvice = "set it right, by NTP: a relay here claims nothing and withdraws"

// agoText is for how long, until the fleet was read, an instant of the table has been
// over.
func agoText(f picture.Fleet, at store.Ticks) string { return ageText(f.Now().Sub(at)) }

// seenText is when a relay was last seen.
func seenText(f picture.Fleet, r picture.Relay) string {
	if r.Ahead > 0 {
		return "in " + ageText(r.Ahead)
	}
	return agoText(f, r.LastSeen) + " ago"
}

// expiryText is how long a lease is good for, or since when it is not.
func expiryText(f picture.Fleet, l picture.Lease) string {
	switch {
	case l.Owner == "" || l.Expires == 0:
		return "-"
	case l.Held:
		return "in " + ageText(l.Expires.Sub(f.Now()))
	default:
		return agoText(f, l.Expires) + " ago"
	}
}

// holderText is what the holder of a lease does, as the end of a sentence.
func holderText(state picture.RelayState) string {
	switch state {
	case picture.Stopped:
		return "has stopped"
	case picture.Unknown:
		return "has no record"
	default:
		return "is " + string(state)
	}
}

// endText is the end of a pause.
func endText(until store.Ticks) string {
	if until >= store.NoEnd {
		return "until resumed"
	}
	return "until " + momentText(until.Time())
}

// pauseText is until when something is paused, by whom and why.
func pauseText(until store.Ticks, by, reason string) string {
	return fmt.Sprintf("%s, by %s: %s", endText(until), legible(cmp.Or(by, "somebody")), legible(cmp.Or(reason, "no reason given")))
}

// pauseOfBuckets is one pause, of as many buckets as it has been asked for: one command
// pauses many.
type pauseOfBuckets struct {
	buckets []int // ascending
	text    string
}

// pausesOf are the pauses on some leases that are on, in the order of the first bucket
// of each.
func pausesOf(leases []picture.Lease) (found []pauseOfBuckets) {
	var alike sharing[string]
	for _, l := range leases {
		if l.State == picture.Paused {
			alike.add(pauseText(l.PausedUntil, l.PausedBy, l.PauseReason), l.Bucket)
		}
	}
	for _, text := range alike.keys {
		found = append(found, pauseOfBuckets{alike.buckets[text], text})
	}
	return found
}

// sentence says what is paused. Further words come before the pause, such as " already".
func (p pauseOfBuckets) sentence(further string) string {
	verb := "is"
	if len(p.buckets) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s %s paused%s %s", bucketsText(p.buckets), verb, further, p.text)
}

// advice is how to end the pause, in an outbox with this many buckets.
func (p pauseOfBuckets) advice(bucketCount int) string {
	if len(p.buckets) == bucketCount {
		return "to go on: relay resume --all"
	}
	return fmt.Sprintf("to go on%s: relay resume --bucket %d", byNumber(p.buckets), p.buckets[0])
}

// topicFacts say how a topic is set aside, or paused, by its markers, and where. Further
// words come behind the verb, such as " already".
func topicFacts(topic string, markers []asideMarker, now store.Ticks, bucketCount int, further string) (facts []string) {
	type manner struct{ is, why string }
	var alike sharing[manner]
	for _, m := range markers {
		how := manner{"is set aside" + further, reasonText(m.Reason)}
		switch {
		case pauseIsOver(m.Marker, now):
			how = manner{"was paused", " " + endedPauseText(m.Marker, now)}
		case m.PausedUntil != 0:
			how = manner{"is paused" + further, " " + pauseText(m.PausedUntil, m.PausedBy, m.Reason)}
		}
		alike.add(how, m.bucket)
	}
	for _, how := range alike.keys {
		facts = append(facts, fmt.Sprintf("topic %s %s%s%s", legible(topic), how.is, whereText(alike.buckets[how], bucketCount), how.why))
	}
	return facts
}

// pauseIsOver tells whether the pause that a topic is set aside for has come to its end:
// then its owners deliver what was set aside, as they do when somebody asks for it.
func pauseIsOver(m store.Marker, now store.Ticks) bool {
	return m.PausedUntil != 0 && m.PausedUntil <= now
}

// endedPauseText is what became of a topic's pause that is over, behind "was paused".
func endedPauseText(m store.Marker, now store.Ticks) string {
	return fmt.Sprintf("%s; that ended %s ago, and it is being delivered again", pauseText(m.PausedUntil, m.PausedBy, m.Reason), ageText(now.Sub(m.PausedUntil)))
}

// whereText names the buckets in which something is so; empty when it is in all.
func whereText(buckets []int, bucketCount int) string {
	if len(buckets) == bucketCount {
		return ""
	}
	return " in " + bucketsText(buckets)
}

// pauseDocument is a pause as JSON has it.
type pauseDocument struct {
	Until  *string `json:"until"` // null: until resumed
	By     string  `json:"by"`
	Reason string  `json:"reason"`
}

// describePauseOf is a pause as JSON has it; nil for none.
func describePauseOf(until store.Ticks, by, reason string) *pauseDocument {
	if until == 0 {
		return nil
	}
	d := &pauseDocument{By: by, Reason: reason}
	if until < store.NoEnd {
		d.Until = timeOrNull(until)
	}
	return d
}

// describeLeasePause is the pause on a lease that is on; nil for none.
func describeLeasePause(l picture.Lease) *pauseDocument {
	if l.State != picture.Paused {
		return nil
	}
	return describePauseOf(l.PausedUntil, l.PausedBy, l.PauseReason)
}

// reasonText is why something is set aside, as the end of a sentence.
func reasonText(reason string) string {
	if strings.TrimSpace(reason) == "" {
		return ""
	}
	return ": " + legible(reason)
}

// modeCount is how many relays have a mode.
type modeCount struct {
	mode   string
	relays int
}

// modesOf counts relays by mode, ascending by its name. Those of the peer say none.
func modesOf(relays []picture.Relay) (modes []modeCount) {
	byMode := map[string]int{}
	for _, r := range relays {
		if r.Mode != "" {
			byMode[r.Mode]++
		}
	}
	for _, mode := range slices.Sorted(maps.Keys(byMode)) {
		modes = append(modes, modeCount{mode, byMode[mode]})
	}
	return modes
}

// modesAdvice is what to know, and to do, while a fleet has relays of both modes
// (docs/modes.md, A fleet of both).
const modesAdvice = "finish the change, or undo it: until all are fenced, late copies of what a frozen or dead relay had on its way may be " +
	"seen, and as long as one is, consumers must read committed records"

// modesText says how many relays have which mode.
func modesText(modes []modeCount) string {
	var texts []string
	for _, m := range modes {
		texts = append(texts, fmt.Sprintf("%d %s", m.relays, legible(m.mode)))
	}
	return listed(texts, 5) + ": a fleet is fenced only when all of it is"
}
