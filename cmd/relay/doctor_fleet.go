package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// fleetChecks are about the relays: their records, their leases, their clocks. The
// table's clock decides, not this host's, wherever the table tells it.
type fleetChecks struct {
	app      *app
	client   *store.Client
	settings *settings.Settings
	outbox   *outboxChecks // what waits, and what is set aside

	leases     []store.Lease // ascending by bucket
	relays     []store.RelayRecord
	unreadable []error
	fault      error // why there are none of these

	now   store.Ticks // when they were read, by the table's clock
	dated bool        // the table told its clock
	// This host's clock is ahead of the table's by at least and at most this.
	aheadLeast, aheadMost time.Duration
}

// gather reads the coordination partition. The Date of each answer is in whole seconds,
// rounded downwards, so that each bounds the difference of the clocks to a second and
// the time of the answer (protocol.md section 3, clock guard).
func (f *fleetChecks) gather(ctx context.Context) {
	for after := ""; ; {
		sent := f.app.ticks()
		reply := f.client.Do(ctx, store.ReadCoordination{After: after})
		f.now = f.app.ticks()
		if reply.Class != store.Done {
			f.fault = reply.Err
			return
		}
		if reply.Date != 0 {
			f.bound(sent.Sub(reply.Date)-time.Second, f.now.Sub(reply.Date))
		}
		page := reply.Result.(store.CoordinationPage)
		f.leases = append(f.leases, page.Leases...)
		f.relays = append(f.relays, page.Relays...)
		f.unreadable = append(f.unreadable, page.Unreadable...)
		if after = page.Next; after == "" {
			break
		}
	}
	// The least correction that agrees with what is known: none within the bounds.
	f.now = f.now.Add(-min(max(0, f.aheadLeast), f.aheadMost))
}

func (f *fleetChecks) bound(least, most time.Duration) {
	if !f.dated {
		f.dated, f.aheadLeast, f.aheadMost = true, least, most
		return
	}
	f.aheadLeast, f.aheadMost = max(f.aheadLeast, least), min(f.aheadMost, most)
}

func (f *fleetChecks) subject() string { return "table " + f.settings.Relay.Table }

func (f *fleetChecks) judge() []checkDocument {
	if f.fault != nil {
		return skippedAll(f.subject(), notSeen(f.fault), checkCoordination, checkClock, checkRelayClocks, checkRelays, checkSilent,
			checkForeign, checkModes, checkDurations, checkLeases, checkPauses)
	}
	found := []checkDocument{f.readable(), f.clock(), f.relayClocks(), f.anybody(), f.silent(), f.foreign(), f.modes(), f.durations()}
	found = append(found, f.owned()...)
	return append(found, f.pauses()...)
}

func (f *fleetChecks) readable() checkDocument {
	if n := len(f.unreadable); n > 0 {
		return failed(checkCoordination, counted(n, "item"), "cannot be read, the first: "+f.unreadable[0].Error(),
			"a lease that cannot be read is nobody's to claim: put right what is named, or delete the item while no relay runs")
	}
	return passed(checkCoordination, f.subject(), fmt.Sprintf("has %s and %s", counted(len(f.leases), "lease"), counted(len(f.relays), "relay record")))
}

// clock judges this host's: a relay here would withdraw when it is certainly off by
// more than half of max-clock-skew.
func (f *fleetChecks) clock() checkDocument {
	const subject = "this host"
	if !f.dated {
		return skipped(checkClock, subject, "the table's answers have no date to compare with")
	}
	allowed := f.settings.Relay.MaxClockSkew / 2
	found := fmt.Sprintf("its clock is between %s and %s ahead of the table's", offsetText(f.aheadLeast), offsetText(f.aheadMost))
	if f.aheadMost < 0 {
		found = fmt.Sprintf("its clock is between %s and %s behind the table's", offsetText(-f.aheadMost), offsetText(-f.aheadLeast))
	}
	if f.aheadLeast > allowed || f.aheadMost < -allowed {
		return failed(checkClock, subject, found, fmt.Sprintf("set it right, by NTP: a relay here claims nothing and withdraws (max-clock-skew %s)", f.settings.Relay.MaxClockSkew))
	}
	return passed(checkClock, subject, found)
}

func offsetText(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// active tells whether a relay counts, by the rule of the relays themselves.
func (f *fleetChecks) active(r store.RelayRecord) bool {
	return r.Stopped == 0 && r.LastSeen > f.now.Add(-f.settings.Relay.LeaseDuration)
}

func (f *fleetChecks) actives() []store.RelayRecord {
	return slices.DeleteFunc(slices.Clone(f.relays), func(r store.RelayRecord) bool { return !f.active(r) })
}

// named are relays for people, the first few by name.
func named(relays []store.RelayRecord, text func(store.RelayRecord) string) string {
	texts := make([]string, len(relays))
	for i, r := range relays {
		texts[i] = text(r)
	}
	return listed(texts, 5)
}

// relayClocks finds heartbeats from the future. One that is behind cannot be told from
// one that is late; its relay finds out by itself.
func (f *fleetChecks) relayClocks() checkDocument {
	ahead := slices.DeleteFunc(f.actives(), func(r store.RelayRecord) bool {
		return r.LastSeen.Sub(f.now) <= f.settings.Relay.MaxClockSkew
	})
	if len(ahead) == 0 {
		return passed(checkRelayClocks, counted(len(f.actives()), "active relay"), "no heartbeat is from the future")
	}
	return failed(checkRelayClocks, counted(len(ahead), "relay"), "heartbeats are from the future: "+named(ahead, func(r store.RelayRecord) string {
		return fmt.Sprintf("%s by %s", legible(r.ID), offsetText(r.LastSeen.Sub(f.now)))
	}), fmt.Sprintf("set the clocks of their hosts right, by NTP (or of this one: see %s); the leases that they write last too long", checkClock))
}

func (f *fleetChecks) anybody() checkDocument {
	actives := f.actives()
	switch {
	case len(actives) > 0:
		return passed(checkRelays, counted(len(actives), "active relay"), named(actives, func(r store.RelayRecord) string {
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
	silent := slices.DeleteFunc(slices.Clone(f.relays), func(r store.RelayRecord) bool { return r.Stopped != 0 || f.active(r) })
	if len(silent) == 0 {
		return passed(checkSilent, counted(len(f.relays), "relay record"), "each is of a relay that is active, or that has stopped and released its leases")
	}
	return warned(checkSilent, counted(len(silent), "relay"), "ended without a release, or hangs: "+named(silent, func(r store.RelayRecord) string {
		return fmt.Sprintf("%s was last seen %s ago", legible(r.ID), ageText(f.now.Sub(r.LastSeen)))
	}), "look at how they ended (killed, out of memory, shutdown-timeout longer than the platform's grace period); peers take over when leases expire, and remove such records after ten lease durations")
}

// foreign finds the peer's relays, which know nothing of what is set aside.
func (f *fleetChecks) foreign() checkDocument {
	foreign := slices.DeleteFunc(f.actives(), func(r store.RelayRecord) bool { return r.Incarnation != "" })
	if len(foreign) == 0 {
		return passed(checkForeign, counted(len(f.actives()), "active relay"), "none is of Dekaf.Outbox")
	}
	subject := counted(len(foreign), "relay")
	found := "of Dekaf.Outbox: " + named(foreign, func(r store.RelayRecord) string { return legible(r.ID) })
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
	relays := map[string]int{} // by mode
	for _, r := range f.actives() {
		if r.Mode != "" {
			relays[r.Mode]++
		}
	}
	modes := slices.Sorted(maps.Keys(relays))
	subject := counted(len(f.actives()), "active relay")
	switch ours := string(f.settings.Relay.Mode); {
	case len(modes) == 0:
		return skipped(checkModes, subject, "there is none that says its mode")
	case len(modes) > 1:
		var texts []string
		for _, mode := range modes {
			texts = append(texts, fmt.Sprintf("%d %s", relays[mode], legible(mode)))
		}
		return warned(checkModes, subject, listed(texts, 5)+": the fleet is fenced only when all of it is", "finish the change, or undo it: give all relays the same mode")
	case modes[0] != ours:
		return warned(checkModes, subject, fmt.Sprintf("mode %s, the settings here say %s", legible(modes[0]), ours), "give all relays, and doctor, the same mode")
	default:
		return passed(checkModes, subject, "mode "+ours)
	}
}

// durations compares what relays add to a round's time when they write a lease with
// our setting. The heartbeat of the same round has that time, or the next one's.
func (f *fleetChecks) durations() checkDocument {
	c := f.settings.Relay
	seen := map[string]store.Ticks{}
	for _, r := range f.actives() {
		seen[r.ID] = r.LastSeen
	}
	others := map[string]time.Duration{}
	compared := 0
	for _, lease := range f.leases {
		at, known := seen[lease.Owner]
		if !known || lease.Unreadable || lease.Expires <= f.now {
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
	for _, r := range f.actives() {
		if d, differs := others[r.ID]; differs {
			texts = append(texts, fmt.Sprintf("%s %s", legible(r.ID), ageText(d)))
		}
	}
	return warned(checkDurations, subject, fmt.Sprintf("last about %s from the heartbeat on, the settings here say %s", listed(texts, 5), c.LeaseDuration),
		"give all relays, and doctor, the same lease-duration: each judges its peers by its own")
}

// pauses: a paused bucket keeps its lease and its order, and its messages wait.
func (f *fleetChecks) pauses() []checkDocument {
	type pause struct {
		until      store.Ticks
		by, reason string
	}
	var order []pause
	buckets := map[pause][]int{}
	for _, lease := range f.leases {
		if lease.PausedUntil <= f.now || lease.Bucket >= f.settings.Relay.BucketCount {
			continue
		}
		p := pause{lease.PausedUntil, lease.PausedBy, lease.PauseReason}
		if buckets[p] == nil {
			order = append(order, p)
		}
		buckets[p] = append(buckets[p], lease.Bucket)
	}
	if len(order) == 0 {
		return []checkDocument{passed(checkPauses, bucketsCounted(f.settings), "none is paused")}
	}
	var found []checkDocument
	for _, p := range order {
		end := "without an end"
		if p.until < store.Ticks(outbox.MaxTicks) {
			end = "until " + rfc3339(p.until.Time())
		}
		resume := fmt.Sprintf("--bucket %d", buckets[p][0])
		if len(buckets[p]) == f.settings.Relay.BucketCount {
			resume = "--all"
		}
		found = append(found, warned(checkPauses, bucketsText(buckets[p]),
			fmt.Sprintf("paused %s by %s: %s", end, cmp.Or(legible(p.by), "nobody who is named"), cmp.Or(legible(p.reason), "no reason given")),
			"when the reason is gone: relay resume "+resume))
	}
	return found
}

func bucketsCounted(s *settings.Settings) string { return counted(s.Relay.BucketCount, "bucket") }
