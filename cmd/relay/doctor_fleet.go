package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// fleetChecks are about the relays: their records, their leases, their clocks. The
// table's clock decides, not this host's, wherever the table tells it.
type fleetChecks struct {
	app      *app
	client   *store.Client
	settings *settings.Settings
	outbox   *outboxChecks // what waits, and what is set aside

	seen  picture.Fleet
	fault error // why it was not seen
}

func (f *fleetChecks) gather(ctx context.Context) {
	f.seen, f.fault = picture.ReadFleet(ctx, f.client, f.app.pictureOptions(f.settings))
}

func (f *fleetChecks) subject() string { return "table " + f.settings.Relay.Table }

func (f *fleetChecks) judge() []checkDocument {
	if f.fault != nil {
		return notLooked(f.subject(), f.fault, checkCoordination, checkClock, checkRelayClocks, checkRelays, checkSilent,
			checkForeign, checkModes, checkDurations, checkLeases, checkPauses)
	}
	found := []checkDocument{f.readable(), f.clock(), f.relayClocks(), f.anybody(), f.silent(), f.foreign(), f.modes(), f.durations()}
	found = append(found, f.owned()...)
	return append(found, f.pauses()...)
}

func (f *fleetChecks) readable() checkDocument {
	if n := len(f.seen.Unreadable); n > 0 {
		return failed(checkCoordination, counted(n, "item"), "cannot be read, the first: "+f.seen.Unreadable[0].Error(),
			"a lease that cannot be read is nobody's to claim: put right what is named, or delete the item while no relay runs")
	}
	return passed(checkCoordination, f.subject(), fmt.Sprintf("the leases and %s can be read", counted(len(f.seen.Relays), "relay record")))
}

// clock judges this host's: a relay here would withdraw when it is certainly off by
// more than half of max-clock-skew.
func (f *fleetChecks) clock() checkDocument {
	const subject = "this host"
	clock := f.seen.Clock
	if !clock.Dated {
		return skipped(checkClock, subject, "the table's answers have no date to compare with")
	}
	found := fmt.Sprintf("its clock is between %s and %s ahead of the table's", offsetText(clock.AheadLeast), offsetText(clock.AheadMost))
	if clock.AheadMost < 0 {
		found = fmt.Sprintf("its clock is between %s and %s behind the table's", offsetText(-clock.AheadMost), offsetText(-clock.AheadLeast))
	}
	if clock.IsOff() {
		return failed(checkClock, subject, found, fmt.Sprintf("%s (max-clock-skew %s)", clockAdvice, f.settings.Relay.MaxClockSkew))
	}
	return passed(checkClock, subject, found)
}

func offsetText(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// named are relays for people, the first few by name.
func named(relays []picture.Relay, text func(picture.Relay) string) string {
	texts := make([]string, len(relays))
	for i, r := range relays {
		texts[i] = text(r)
	}
	return listed(texts, 5)
}

// relayClocks finds heartbeats from the future. One that is behind cannot be told from
// one that is late; its relay finds out by itself.
func (f *fleetChecks) relayClocks() checkDocument {
	ahead := slices.DeleteFunc(f.seen.In(picture.Active), func(r picture.Relay) bool {
		return r.Ahead == 0
	})
	if len(ahead) == 0 {
		return passed(checkRelayClocks, counted(len(f.seen.In(picture.Active)), "active relay"), "no heartbeat is from the future")
	}
	return failed(checkRelayClocks, counted(len(ahead), "relay"), "heartbeats are from the future: "+named(ahead, func(r picture.Relay) string {
		return fmt.Sprintf("%s by %s", legible(r.ID), offsetText(r.Ahead))
	}), fmt.Sprintf("set the clocks of their hosts right, by NTP (or of this one: see %s); the leases that they write last too long", checkClock))
}

func (f *fleetChecks) anybody() checkDocument {
	actives := f.seen.In(picture.Active)
	switch {
	case len(actives) > 0:
		return passed(checkRelays, counted(len(actives), "active relay"), named(actives, func(r picture.Relay) string {
			return fmt.Sprintf("%s (%s)", legible(r.ID), cmp.Or(legible(r.Mode), "of the peer"))
		}))
	case f.outbox.late():
		return failed(checkRelays, f.subject(), "no relay is active, and messages have waited for long",
			"start one: relay run; if some run, look at why they are not ready (/readyz, their logs)")
	default:
		return warned(checkRelays, f.subject(), "no relay is active", "start one: relay run")
	}
}

func (f *fleetChecks) silent() checkDocument {
	silent := f.seen.In(picture.Silent)
	if len(silent) == 0 {
		return passed(checkSilent, counted(len(f.seen.Relays), "relay record"), "each is of a relay that is active, or that has stopped and released its leases")
	}
	return warned(checkSilent, counted(len(silent), "relay"), "ended without a release, or hangs: "+named(silent, func(r picture.Relay) string {
		return fmt.Sprintf("%s was last seen %s ago", legible(r.ID), agoText(f.seen, r.LastSeen))
	}), "look at how they ended (killed, out of memory, shutdown-timeout longer than the platform's grace period); peers take over when leases expire, and remove such records after ten lease durations")
}

// foreign finds the peer's relays, which know nothing of what is set aside.
func (f *fleetChecks) foreign() checkDocument {
	foreign := slices.DeleteFunc(f.seen.In(picture.Active), func(r picture.Relay) bool { return r.Incarnation != "" })
	if len(foreign) == 0 {
		return passed(checkForeign, counted(len(f.seen.In(picture.Active)), "active relay"), "none is of Dekaf.Outbox")
	}
	subject := counted(len(foreign), "relay")
	found := "of Dekaf.Outbox: " + named(foreign, func(r picture.Relay) string { return legible(r.ID) })
	switch {
	case f.outbox.setAside() > 0:
		return failed(checkForeign, subject, found+"; they publish later rows of the keys that are set aside, past those that wait",
			"stop them, or have everything delivered: set poison to block on ours, then relay parked retry --all")
	case f.settings.Relay.Poison != relay.PoisonBlock:
		return warned(checkForeign, subject, found+"; they would publish later rows of a key that ours set aside", "set poison to block on ours as long as both are at work")
	default:
		return passed(checkForeign, subject, found+"; with poison set to block, as here, both may be at work")
	}
}

// modes: a fleet is fenced only when all of it is.
func (f *fleetChecks) modes() checkDocument {
	actives := f.seen.In(picture.Active)
	modes := modesOf(actives)
	subject := counted(len(actives), "active relay")
	switch ours := string(f.settings.Relay.Mode); {
	case len(modes) == 0:
		return skipped(checkModes, subject, "there is none that says its mode")
	case len(modes) > 1:
		return warned(checkModes, subject, "of both modes, "+modesText(modes), modesAdvice)
	case modes[0].mode != ours:
		return warned(checkModes, subject, fmt.Sprintf("mode %s, the settings here say %s", legible(modes[0].mode), ours), "give all relays, and doctor, the same mode")
	default:
		return passed(checkModes, subject, "mode "+ours)
	}
}

// durations compares what relays add to a round's time when they write a lease with
// our setting. The heartbeat of the same round has that time, or the next one's.
func (f *fleetChecks) durations() checkDocument {
	c := f.settings.Relay
	seen := map[string]store.Ticks{}
	for _, r := range f.seen.In(picture.Active) {
		seen[r.ID] = r.LastSeen
	}
	others := map[string]time.Duration{}
	compared := 0
	for _, lease := range f.seen.Leases {
		at, known := seen[lease.Owner]
		if !known || !lease.Held {
			continue
		}
		compared++
		if d := lease.Expires.Sub(at); d > c.LeaseDuration+c.MaxClockSkew || d < c.LeaseDuration-2*c.LeaseRenewInterval-c.MaxClockSkew {
			others[lease.Owner] = max(others[lease.Owner], d)
		}
	}
	subject := counted(compared, "lease")
	if len(others) == 0 {
		return passed(checkDurations, subject, fmt.Sprintf("none lasts longer or shorter than by a lease-duration of %s", c.LeaseDuration))
	}
	var texts []string
	for _, r := range f.seen.In(picture.Active) {
		if d, differs := others[r.ID]; differs {
			texts = append(texts, fmt.Sprintf("%s %s", legible(r.ID), ageText(d)))
		}
	}
	return warned(checkDurations, subject, fmt.Sprintf("last about %s from the heartbeat on, the settings here say %s", listed(texts, 5), c.LeaseDuration),
		"give all relays, and doctor, the same lease-duration: each judges its peers by its own")
}

// pauses: a paused bucket keeps its lease and its order, and its messages wait. Those of
// a paused topic are set aside.
func (f *fleetChecks) pauses() []checkDocument {
	var found []checkDocument
	for _, pause := range pausesOf(f.seen.Leases) {
		found = append(found, warned(checkPauses, bucketsText(pause.buckets), "paused "+pause.text, pause.advice(f.settings.Relay.BucketCount)))
	}
	if f.outbox.fault != nil {
		found = append(found, skipped(checkPauses, "topics", notSeen(f.outbox.fault)))
	}
	for _, pause := range f.outbox.pausedTopics(f.seen.Now()) {
		found = append(found, warned(checkPauses, "topic "+legible(pause.topic), "paused"+whereText(pause.buckets, f.settings.Relay.BucketCount)+" "+pause.text,
			"to go on: relay resume --topic "+shellWord(pause.topic)))
	}
	if len(found) == 0 {
		found = append(found, passed(checkPauses, bucketsCounted(f.settings), "none is paused, and no topic is"))
	}
	return found
}

func bucketsCounted(s *settings.Settings) string { return counted(s.Relay.BucketCount, "bucket") }
