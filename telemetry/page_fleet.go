package telemetry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// fleetView is the fleet in the words of the page.
type fleetView struct {
	Seen   string // how long ago
	Relays []relayRow
	Hidden int
	// Notes tell of buckets that are in nobody's hands, or that are paused.
	Notes []note
}

type relayRow struct {
	ID, State, Mode, LastSeen, Buckets string
	Owned                              int
	Tone                               string
	Self                               bool
}

type note struct{ Text, Tone string }

// newFleetView lists the relays, those in need of a look first. Nil: nothing was seen
// yet.
func newFleetView(s Status, now time.Time) *fleetView {
	f := s.Fleet
	if f == nil {
		return nil
	}
	v := &fleetView{Seen: ago(f.SeenAt, now)}
	for _, r := range f.Relays {
		v.Relays = append(v.Relays, relayRow{
			ID: r.ID, State: r.State, Mode: r.Mode, LastSeen: ago(r.LastSeen, now), Owned: r.Owned, Buckets: ranges(r.Buckets),
			Tone: toneOfPeer(r), Self: r.ID == s.Relay,
		})
	}
	slices.SortStableFunc(v.Relays, func(a, b relayRow) int { return cmp.Compare(rank(a.Tone), rank(b.Tone)) })
	if v.Hidden = max(0, len(v.Relays)-pageRows); v.Hidden > 0 {
		v.Relays = v.Relays[:pageRows]
	}
	for _, n := range []struct {
		buckets    []int
		says, tone string
	}{
		{f.Unreadable, "lease unreadable, nobody may claim", bad},
		{f.Lapsed, "owner's time is over", warn},
		{f.Free, "nobody owns", warn},
		{f.Paused, "paused by an operator", warn},
	} {
		if len(n.buckets) > 0 {
			v.Notes = append(v.Notes, note{n.says + " " + ranges(n.buckets), n.tone})
		}
	}
	return v
}

// toneOfPeer: a relay that is away is wrong only while leases are in its name.
func toneOfPeer(r RelayStatus) string {
	switch {
	case r.State == "active":
		return good
	case r.Owned > 0:
		return bad
	}
	return warn
}

// ago is how long before now something was.
func ago(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return duration(now.Sub(*t)) + " ago"
}

// pageRanges is how many ranges of buckets one line has at most.
const pageRanges = 12

// ranges writes ascending numbers as 0–3, 7. What is left out is said.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		if len(parts) == pageRanges {
			return fmt.Sprintf("%s and %d more", strings.Join(parts, ", "), len(numbers)-i)
		}
		if end == i {
			parts = append(parts, fmt.Sprint(numbers[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d–%d", numbers[i], numbers[end]))
		}
		i = end + 1
	}
	return strings.Join(parts, ", ")
}
