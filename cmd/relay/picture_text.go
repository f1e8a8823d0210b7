package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// headline is what one look must tell: how much waits, since when, and who is there.
func headline(table string, p picture.Table) []string {
	return []string{
		fmt.Sprintf("table %s at %s: %s", table, momentText(p.At), waitsText(p)),
		relaysText(p) + "; " + statesText(p.Buckets),
	}
}

// waitsText is how much waits, and what is set aside.
func waitsText(p picture.Table) string {
	sum := p.Totals()
	text := "nothing waits"
	if sum.Pending > 0 || sum.PendingIsLimit {
		text = fmt.Sprintf("%s wait%s, the oldest for %s", limitText(sum.Pending, sum.PendingIsLimit, "message"),
			ending(sum.Pending, sum.PendingIsLimit), ageText(sum.Oldest))
	}
	if sum.ParkedKeys > 0 {
		text += fmt.Sprintf("; %s of %s set aside", limitText(sum.ParkedRows, sum.ParkedIsLimit, "row"), counted(sum.ParkedKeys, "key"))
	}
	return text
}

// relaysText is how many relays there are, by state.
func relaysText(p picture.Table) string {
	var parts []string
	for _, state := range []picture.RelayState{picture.Active, picture.Silent, picture.Stopped} {
		if n := p.Count(state); n > 0 || state == picture.Active {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return counted(len(p.Relays), "relay") + ": " + strings.Join(parts, ", ")
}

// statesText is how many buckets there are, by state.
func statesText(buckets []picture.Bucket) string {
	var parts []string
	for _, state := range []picture.LeaseState{picture.Owned, picture.Free, picture.Lapsed, picture.Paused, picture.Unreadable} {
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
	return counted(len(buckets), "bucket") + ": " + strings.Join(parts, ", ")
}

// troubleLines are troubles, each with its advice, wrapped to a width.
func troubleLines(troubles []trouble, width int) []string {
	var lines []string
	for _, t := range troubles {
		lines = append(lines, hung("! ", t.Text, width)...)
		if t.Advice != "" {
			lines = append(lines, hung("  > ", t.Advice, width)...)
		}
	}
	return lines
}

// hung is a text that begins with a mark, in lines of at most some width, the further
// ones below the beginning of the text.
func hung(mark, text string, width int) []string {
	lines := folded(text, width-len(mark))
	for i := range lines {
		lines[i] = mark + lines[i]
		mark = strings.Repeat(" ", len(mark))
	}
	return lines
}

// folded is a text in lines of at most some width, broken at blanks where there are
// some: a command, an id or a time is to be copied as a whole, so that hyphens, at
// which ansi would break too, are taken for others that hold together meanwhile.
func folded(text string, width int) []string {
	const holding = "\u2011"
	text = ansi.Wrap(strings.ReplaceAll(text, "-", holding), max(1, width), "")
	return strings.Split(strings.ReplaceAll(text, holding, "-"), "\n")
}

// foldedLines is the same of a text of several lines, each of which keeps its indent.
func foldedLines(text string, width int) (lines []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		start := len(line) - len(strings.TrimLeft(line, " "))
		lines = append(lines, hung(line[:start], line[start:], width)...)
	}
	return lines
}

var relayColumns = []column{
	{title: "RELAY", elastic: true}, {title: "STATE"}, {title: "SEEN", right: true}, {title: "STARTED", right: true, spare: 2},
	{title: "OWNS", right: true}, {title: "MODE", spare: 1},
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
		rows = append(rows, []string{legible(r.ID), string(r.State), seenText(p.Fleet, r), startedText(p, r.Incarnation),
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
	return agoText(p.Fleet, store.Ticks(ticks)) + " ago"
}

var bucketColumns = []column{
	{title: "BUCKET", right: true}, {title: "STATE"}, {title: "OWNER", elastic: true, spare: 1}, {title: "EXPIRES", right: true, spare: 4},
	{title: "WAITING", right: true}, {title: "OLDEST", right: true}, {title: "ASIDE", spare: 3}, {title: "NOTE", elastic: true, spare: 2},
}

// isConcern tells whether there is more to say of a bucket than that somebody holds it.
func isConcern(p picture.Table, b picture.Bucket) bool {
	return b.Head.Waiting || len(b.Markers) > 0 || b.Lease.State != picture.Owned || noteOf(p, b).gravity > 0
}

// compareConcern puts the bucket first that somebody should look at: the one with the
// gravest note, then one that nobody holds, then the one whose message waits for
// longest, then one of which something is set aside.
func compareConcern(p picture.Table, i, j int) int {
	a, b := p.Buckets[i], p.Buckets[j]
	return cmp.Or(
		cmp.Compare(noteOf(p, b).gravity, noteOf(p, a).gravity),
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
	return []string{strconv.Itoa(i), string(b.Lease.State), cmp.Or(legible(b.Lease.Owner), "-"), expiryText(p.Fleet, b.Lease),
		waiting, oldest, asideText(b), noteOf(p, b).text}
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

// note is what there is to say of a bucket beside its figures, in a few words.
type note struct {
	text    string
	gravity int // 0: nothing
}

// noteOf is the gravest thing that there is to say of a bucket.
func noteOf(p picture.Table, b picture.Bucket) note {
	switch {
	case isForeign(p, b):
		return note{"written for " + counted(b.Head.BucketCount, "bucket"), 7}
	case b.HeadFault != nil:
		return note{"first message cannot be read", 6}
	case len(b.UnreadableMarkers) > 0:
		return note{"a marker cannot be read", 5}
	case b.Lease.Unreadable:
		return note{"the lease cannot be read", 4}
	case b.Fault != nil:
		return note{"could not be read", 3}
	case b.Lease.Holder != "" && b.Lease.Holder != picture.Active && b.Lease.State != picture.Paused:
		return note{"owner " + string(b.Lease.Holder), 2}
	case b.Lease.State == picture.Paused:
		return note{pauseText(b.Lease.PausedUntil, b.Lease.PausedBy, b.Lease.PauseReason), 1}
	default:
		return note{}
	}
}
