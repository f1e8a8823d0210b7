package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// extent is how many of each kind are shown.
type extent struct{ troubles, relays, buckets int }

// screenful is what people can take in, and everything what they asked for.
func screenful() extent { return extent{troubles: 12, relays: 20, buckets: 24} }
func everything() extent {
	return extent{troubles: math.MaxInt, relays: math.MaxInt, buckets: math.MaxInt}
}

// printPicture shows a picture: the sums, what is wrong, relays, buckets.
func (a *app) printPicture(s *settings.Settings, p picture.Table, most extent) {
	for _, sentence := range headline(s.Relay.Table, p) {
		a.printFolded(sentence)
	}
	if troubles := troublesOf(p); len(troubles) > 0 {
		a.printTitle("WRONG, or worth knowing:")
		shown := upTo(troubles, most.troubles)
		for _, line := range troubleLines(shown, textColumns) {
			fmt.Fprintln(a.stdout, line)
		}
		a.printRest(len(troubles)-len(shown), "more of that")
	}
	if len(p.Relays) > 0 {
		fmt.Fprintln(a.stdout)
		shown := upTo(byConcern(p.Relays), most.relays)
		a.printTable(relayColumns, relayRows(p, shown))
		a.printRest(len(p.Relays)-len(shown), "more of the relays")
	}
	fmt.Fprintln(a.stdout)
	a.printBuckets(p, most.buckets)
}

func (a *app) printTitle(title string) {
	if a.coloured(a.stdout) {
		title = bold + title + plain
	}
	fmt.Fprintf(a.stdout, "\n%s\n", title)
}

func (a *app) printRest(rest int, what string) {
	if rest > 0 {
		fmt.Fprintf(a.stdout, "and %d %s; --all shows them\n", rest, what)
	}
}

// upTo is the beginning of a list, or all of it.
func upTo[T any](list []T, limit int) []T { return list[:min(limit, len(list))] }

// printBuckets shows the buckets in their order, or, of too many, those of which there
// is something to say, and the sum of the others.
func (a *app) printBuckets(p picture.Table, most int) {
	order := bucketsWhere(p, func(picture.Bucket) bool { return true })
	shown := order
	if len(order) > most {
		slices.SortStableFunc(order, func(i, j int) int { return compareConcern(p, i, j) })
		shown = upTo(order, min(most, len(bucketsWhere(p, func(b picture.Bucket) bool { return isConcern(p, b) }))))
	}
	var rows [][]string
	for _, i := range shown {
		rows = append(rows, bucketRow(p, i))
	}
	a.printTable(bucketColumns, rows)
	if len(shown) == len(order) {
		return
	}
	var rest picture.Table
	for _, i := range order[len(shown):] {
		rest.Buckets = append(rest.Buckets, p.Buckets[i])
	}
	text := "and more, " + statesText(rest.Buckets)
	if sum := rest.Totals(); sum.Pending > 0 {
		text += fmt.Sprintf("; %s, the oldest for %s", limitText(sum.Pending, sum.PendingIsLimit, "message"), ageText(sum.Oldest))
	}
	a.printFolded(text + "; --all shows them")
}

// printFolded prints a sentence that may need more than a line.
func (a *app) printFolded(sentence string) {
	for _, line := range folded(sentence, textColumns) {
		fmt.Fprintln(a.stdout, line)
	}
}

var costColumns = []column{{title: "REQUEST"}, {title: "COUNT", right: true}, {title: "READ UNITS", right: true}}

// printCost shows what a picture took.
func (a *app) printCost(c picture.Cost) {
	var rows [][]string
	for _, spent := range c.Requests {
		rows = append(rows, []string{spent.Request, strconv.Itoa(spent.Count), unitsText(spent.Units)})
	}
	requests, units := c.Total()
	rows = append(rows, []string{"all", strconv.Itoa(requests), unitsText(units)})
	fmt.Fprintln(a.stdout)
	a.printTable(costColumns, rows)
}
