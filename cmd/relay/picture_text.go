package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// headline is what one look must tell: how much waits, since when, and who is there.
func headline(table string, p picture.Table) []string {
	sum := p.Totals()
	waits := "nothing waits"
	if sum.Pending > 0 || sum.PendingIsLimit {
		waits = fmt.Sprintf("%s wait%s, the oldest for %s", limitText(sum.Pending, sum.PendingIsLimit, "message"), ending(sum.Pending, sum.PendingIsLimit), ageText(sum.Oldest))
	}
	if sum.ParkedKeys+sum.ParkedTopics > 0 {
		waits += fmt.Sprintf("; %s of %s set aside", limitText(sum.ParkedRows, sum.ParkedIsLimit, "row"), counted(sum.ParkedKeys, "key"))
	}
	return []string{
		fmt.Sprintf("table %s at %s: %s", table, p.At.UTC().Format(time.DateTime+"Z"), waits),
		fmt.Sprintf("%s: %s; %s: %s", counted(len(p.Relays), "relay"), relayStates(p),
			counted(len(p.Buckets), "bucket"), bucketStates(p.Buckets)),
	}
}

// limitText counts things of which there may be more.
func limitText(n int, isLimit bool, noun string) string {
	if isLimit {
		return fmt.Sprintf("%d or more %ss", n, noun)
	}
	return counted(n, noun)
}

// ending is that of a verb whose subject is one thing, or several.
func ending(n int, isLimit bool) string {
	if n == 1 && !isLimit {
		return "s"
	}
	return ""
}

func relayStates(p picture.Table) string {
	var parts []string
	for _, state := range []picture.RelayState{picture.Active, picture.Silent, picture.Stopped} {
		if n := p.Count(state); n > 0 || state == picture.Active {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

func bucketStates(buckets []picture.Bucket) string {
	var parts []string
	for _, state := range []picture.LeaseState{picture.Owned, picture.Free, picture.Lapsed, picture.Paused} {
		n := 0
		for _, b := range buckets {
			if b.Lease.State == state {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

// troubleLines are troubles, each with its advice, wrapped to a width.
func troubleLines(troubles []trouble, width int) []string {
	var lines []string
	add := func(mark, text string) {
		for i, line := range strings.Split(ansi.Wrap(text, width-len(mark), ""), "\n") {
			if i > 0 {
				mark = strings.Repeat(" ", len(mark))
			}
			lines = append(lines, mark+line)
		}
	}
	for _, t := range troubles {
		add("! ", t.Text)
		if t.Advice != "" {
			add("  > ", t.Advice)
		}
	}
	return lines
}

var relayColumns = []column{
	{title: "RELAY", elastic: true}, {title: "STATE"}, {title: "SEEN", right: true}, {title: "STARTED", right: true},
	{title: "OWNS", right: true}, {title: "MODE"},
}

// byConcern has the relays that somebody should look at first, and else keeps the
// order of their ids.
func byConcern(relays []picture.Relay) []picture.Relay {
	order := []picture.RelayState{picture.Silent, picture.Active, picture.Stopped}
	sorted := slices.Clone(relays)
	slices.SortStableFunc(sorted, func(a, b picture.Relay) int {
		return cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State))
	})
	return sorted
}

func relayRows(p picture.Table, relays []picture.Relay) [][]string {
	var rows [][]string
	for _, r := range relays {
		rows = append(rows, []string{legible(r.ID), string(r.State), agoText(p, r.LastSeen) + " ago", startedText(p, r.Incarnation),
			strconv.Itoa(r.Owned), cmp.Or(legible(r.Mode), "-")})
	}
	return rows
}

// startedText is when a relay's process began, by its incarnation, which begins with
// that in ticks.
func startedText(p picture.Table, incarnation string) string {
	digits, _, _ := strings.Cut(incarnation, "-")
	ticks, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || ticks < 0 || ticks > outbox.MaxTicks {
		return "-"
	}
	return agoText(p, store.Ticks(ticks)) + " ago"
}

var bucketColumns = []column{
	{title: "BUCKET", right: true}, {title: "STATE"}, {title: "OWNER", elastic: true}, {title: "EXPIRES", right: true},
	{title: "WAITING", right: true}, {title: "OLDEST", right: true}, {title: "ASIDE"}, {title: "NOTE", elastic: true},
}

// isConcern tells whether there is more to say of a bucket than that somebody holds it.
func isConcern(p picture.Table, b picture.Bucket) bool {
	return b.Head.Waiting || len(b.Markers) > 0 || b.Lease.State != picture.Owned || bucketNote(p, b) != ""
}

// compareConcern puts the bucket first that somebody should look at: one with a note,
// then one that nobody holds, then the one whose message waits for longest, then one of
// which something is set aside.
func compareConcern(p picture.Table, i, j int) int {
	a, b := p.Buckets[i], p.Buckets[j]
	return cmp.Or(
		trueFirst(bucketNote(p, a) != "", bucketNote(p, b) != ""),
		trueFirst(a.Lease.State != picture.Owned, b.Lease.State != picture.Owned),
		cmp.Compare(b.Oldest, a.Oldest),
		cmp.Compare(b.Pending, a.Pending),
		trueFirst(len(a.Markers) > 0, len(b.Markers) > 0),
	)
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func bucketRow(p picture.Table, i int) []string {
	b := p.Buckets[i]
	waiting, oldest := strconv.Itoa(b.Pending), "-"
	if b.PendingIsLimit {
		waiting += "+"
	}
	if b.Fault != nil && !b.Head.Waiting {
		waiting = "?"
	}
	if b.Head.Waiting {
		oldest = "?"
		if b.Head.Created > 0 {
			oldest = ageText(b.Oldest)
		}
	}
	return []string{strconv.Itoa(i), string(b.Lease.State), cmp.Or(legible(b.Lease.Owner), "-"), expiryText(p, b.Lease),
		waiting, oldest, asideText(b), bucketNote(p, b)}
}

// expiryText is how long a lease is good for, or since when it is not.
func expiryText(p picture.Table, l picture.Lease) string {
	switch {
	case l.Owner == "" || l.Expires == 0:
		return "-"
	case l.Held:
		return "in " + ageText(l.Expires.Time().Sub(p.At))
	default:
		return agoText(p, l.Expires) + " ago"
	}
}

// asideText is what is set aside in a bucket.
func asideText(b picture.Bucket) string {
	keys, topics := b.Parked()
	var parts []string
	if keys > 0 {
		parts = append(parts, limitText(keys, b.ParkedIsLimit, "key"))
	}
	if topics > 0 {
		parts = append(parts, counted(topics, "topic"))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// bucketNote is the gravest thing that a bucket has to say, in a few words.
func bucketNote(p picture.Table, b picture.Bucket) string {
	switch {
	case b.Fault != nil:
		return "could not be read"
	case isForeign(p, b):
		return "written for " + counted(b.Head.BucketCount, "bucket")
	case b.HeadFault != nil:
		return "first message cannot be read"
	case len(b.UnreadableMarkers) > 0:
		return "a marker cannot be read"
	case b.Lease.Unreadable:
		return "the lease cannot be read"
	case b.Lease.State == picture.Paused:
		return strings.TrimPrefix(pauseText(p, b.Lease), "paused ")
	case b.Lease.Holder != "" && b.Lease.Holder != picture.Active:
		return "owner " + string(b.Lease.Holder)
	default:
		return ""
	}
}

// unitsText is an amount of capacity; the least that is sold is half a unit.
func unitsText(units float64) string { return strconv.FormatFloat(units, 'f', 1, 64) }
