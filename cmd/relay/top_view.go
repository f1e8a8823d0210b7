package main

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// How parts of the screen are set off.
const (
	reverse = "\x1b[7m"
	faint   = "\x1b[2m"
	red     = "\x1b[31m"
)

// View implements tea.Model: a head, the page, and a line of keys, cut to the window.
func (m topModel) View() tea.View {
	lines := m.head()
	body := m.body(m.bodyHeight())
	for len(body) < m.bodyHeight() {
		body = append(body, "")
	}
	lines = append(append(lines, body...), m.foot())
	lines = lines[:min(len(lines), max(m.height, 0))]
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "…")
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	v.WindowTitle = "relay top " + legible(m.table)
	return v
}

// bodyHeight is how many lines are left for the page.
func (m topModel) bodyHeight() int { return max(0, m.height-len(m.head())-1) }

// leastBody is how many lines of the page the head leaves, and in a low window takes fewer
// of its own for.
const leastBody = 4

// head is what stays in sight whatever the page is: the age of the picture, the sums,
// why there is no newer picture, and the gravest trouble.
func (m topModel) head() []string {
	if lines := m.wholeHead(); m.height-len(lines)-1 >= leastBody {
		return lines
	}
	lines := m.lowHead()
	return upTo(lines, max(1, m.height-1-leastBody))
}

// lowHead is the head in a line each, the most telling first.
func (m topModel) lowHead() []string {
	lines := append([]string{m.title()}, m.faultLine()...)
	if m.shown == nil {
		return lines
	}
	lines = append(lines, waitsText(*m.shown))
	lines = append(lines, m.troubleLine()...)
	return append(lines, relaysText(*m.shown)+"; "+statesText(m.shown.Buckets))
}

// title is the name and the age of what is shown.
func (m topModel) title() string {
	title, age := " relay top  "+legible(m.table), m.ageText()+" "
	gap := max(1, m.width-ansi.StringWidth(title)-ansi.StringWidth(age))
	return styled(bold+reverse, title+strings.Repeat(" ", gap)+age)
}

// faultLine is why there is no newer picture, or none at all; none when there is.
func (m topModel) faultLine() []string {
	switch {
	case m.err == nil:
		return nil
	case m.shown == nil:
		return []string{styled(bold+red, "no picture yet: "+oneLine(m.err))}
	default:
		return []string{styled(bold+red, fmt.Sprintf("no new picture for %s: %s", ageText(m.now.Sub(m.shownAt)), oneLine(m.err)))}
	}
}

// troubleLine is the gravest trouble; none where there is none, or all are shown.
func (m topModel) troubleLine() []string {
	troubles := troublesOf(*m.shown)
	if len(troubles) == 0 || m.page == troublesPage {
		return nil
	}
	more := ""
	if len(troubles) > 1 {
		more = fmt.Sprintf(" (1 of %d, t shows all)", len(troubles))
	}
	return []string{styled(red, "! "+ansi.Truncate(troubles[0].Text, max(0, m.width-2-len(more)), "…")+more)}
}

func (m topModel) wholeHead() []string {
	lines := append([]string{m.title()}, m.faultLine()...)
	if m.shown == nil {
		return append(lines, "")
	}
	p := *m.shown
	lines = append(lines, folded(waitsText(p), m.width)...)
	if fleet := relaysText(p) + "; " + statesText(p.Buckets); ansi.StringWidth(fleet) <= m.width {
		lines = append(lines, fleet)
	} else {
		lines = append(lines, relaysText(p), statesText(p.Buckets))
	}
	return append(append(lines, m.troubleLine()...), "")
}

// ageText is how old the picture is, and what it takes.
func (m topModel) ageText() string {
	var parts []string
	if m.shown != nil {
		_, units := m.shown.Cost.Total()
		parts = append(parts, unitsText(units)+" read units each", ageText(m.now.Sub(m.shownAt))+" old")
	}
	if m.taking && m.now.Sub(m.began) >= slowTable {
		parts = append(parts, "reading for "+ageText(m.now.Sub(m.began)))
	}
	return strings.Join(parts, ", ")
}

// slowTable is from when on it is worth a word that a picture takes its time.
const slowTable = 2 * topTick

// body is the page, in at most so many lines.
func (m topModel) body(height int) []string {
	switch {
	case m.page != keysPage && m.shown == nil && m.err == nil:
		return []string{"reading the table ..."}
	case m.page != keysPage && m.shown == nil:
		return foldedLines(m.err.Error(), m.width)
	case m.page == bucketsPage:
		return m.bucketList(height)
	case m.page == relaysPage:
		return m.relayList(height)
	default:
		lines := m.pageLines()
		return upTo(lines[within(m.scroll, len(lines)):], height)
	}
}

// pageLines are all lines of a page that is no list; never none.
func (m topModel) pageLines() []string {
	switch {
	case m.page == keysPage:
		return keyLines(m.width)
	case m.shown == nil:
		return []string{""}
	case m.page == bucketPage:
		return bucketLines(*m.shown, m.chosenBucket, m.width)
	default:
		if troubles := troublesOf(*m.shown); len(troubles) > 0 {
			return troubleLines(troubles, m.width)
		}
		return []string{"nothing is wrong"}
	}
}

func (m topModel) bucketList(height int) []string {
	buckets := m.buckets()
	if len(buckets) == 0 {
		return []string{"no bucket passes the filter"}
	}
	at := m.bucketAt(buckets)
	from, to := window(at, len(buckets), height-1)
	var rows [][]string
	for _, i := range buckets[from:to] {
		rows = append(rows, bucketRow(*m.shown, i))
	}
	return m.list(bucketColumns, rows, at-from)
}

func (m topModel) relayList(height int) []string {
	relays := m.relays()
	if len(relays) == 0 {
		return []string{"no relay passes the filter"}
	}
	at := m.relayAt(relays)
	from, to := window(at, len(relays), height-1)
	return m.list(relayColumns, relayRows(*m.shown, relays[from:to]), at-from)
}

// list is a table with one row chosen.
func (m topModel) list(columns []column, rows [][]string, chosen int) []string {
	columns, rows = fitting(columns, rows, m.width)
	head, lines := tableLines(columns, rows, m.width)
	if chosen < len(lines) {
		padding := max(0, m.width-ansi.StringWidth(lines[chosen]))
		lines[chosen] = styled(reverse, lines[chosen]+strings.Repeat(" ", padding))
	}
	return append([]string{styled(bold, head)}, lines...)
}

// window is the part of a list that is shown, with what is chosen in the middle as far
// as the ends allow.
func window(chosen, length, height int) (from, to int) {
	height = max(0, min(height, length))
	from = max(0, min(chosen-height/2, length-height))
	return from, from + height
}

// foot is what the keys do here.
func (m topModel) foot() string {
	if m.typing {
		return "filter: " + legible(m.filter) + "_  enter keeps it, esc clears it"
	}
	keys := map[page]string{
		bucketsPage:  "enter details  s sort: " + m.sort.String() + "  / filter  tab relays",
		relaysPage:   "enter its buckets  / filter  tab troubles",
		troublesPage: "up, down  tab buckets",
		bucketPage:   "up, down  esc back",
		keysPage:     "esc back",
	}[m.page]
	if m.reversed && m.page == bucketsPage {
		keys = strings.Replace(keys, "sort: ", "sort: reversed ", 1)
	}
	if m.filter != "" && m.page < troublesPage {
		keys = "filter: " + legible(m.filter) + " (esc clears it)  " + keys
	}
	return styled(faint, "q quit  ? keys  "+keys)
}

// keyLines say what the keys do.
func keyLines(width int) []string {
	var lines []string
	for _, key := range [][2]string{
		{"tab, shift+tab", "buckets, relays, what is wrong"},
		{"up, down, j, k", "choose, or scroll; pgup, pgdown, home and end too"},
		{"enter", "a bucket's details; a relay's buckets"},
		{"esc", "back; in a list, without the filter"},
		{"t", "what is wrong, and what to do"},
		{"/", "show only what has a text in it: an owner, a state, a topic; or a bucket's number"},
		{"s, R", "sort the buckets by something else; the other way round"},
		{"r, space", "take a picture now"},
		{"q, ctrl+c", "quit"},
	} {
		lines = append(lines, hung(fmt.Sprintf("%-16s", key[0]), key[1], width)...)
	}
	lines = append(lines, "")
	return append(lines, folded("This screen changes nothing in the table. A + behind a number means that there may be more.", width)...)
}

// oneLine is an error without its advice, which is on further lines.
func oneLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return legible(first)
}

func styled(style, text string) string { return style + text + plain }
