package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-isatty"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// textColumns is the width that all text for people fits.
const textColumns = 100

// format is how a command prints its result.
type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

func outputArgument(field *format) settings.Argument {
	*field = formatText
	return settings.Argument{Name: "output", Value: settings.Choice(field, []format{formatText, formatJSON}),
		Doc: "text, or json for one JSON document"}
}

// printJSON writes one JSON document.
func printJSON(w io.Writer, document any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// rfc3339 is how times are printed: UTC, as they are known.
func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// coloured tells whether text on w may be coloured: only on a terminal, and
// never with NO_COLOR, whatever its value unless empty.
func (a *app) coloured(w io.Writer) bool {
	for _, entry := range a.environ {
		if value, found := strings.CutPrefix(entry, "NO_COLOR="); found && value != "" {
			return false
		}
	}
	return isTerminal(w)
}

// results is where a command prints to. It remembers the first fault, so that a
// result that nobody got is no success, whatever printed it.
type results struct {
	io.Writer
	fault error
}

// Write implements io.Writer.
func (r *results) Write(text []byte) (int, error) {
	n, err := r.Writer.Write(text)
	if err != nil && r.fault == nil {
		r.fault = err
	}
	return n, err
}

func isTerminal(w io.Writer) bool {
	if printed, wraps := w.(*results); wraps {
		w = printed.Writer
	}
	file, isFile := w.(*os.File)
	return isFile && isatty.IsTerminal(file.Fd())
}

// column is one column of a table for people.
type column struct {
	title string
	right bool // numbers stand right
	// elastic columns are cut when the table is wider than the text.
	elastic bool
}

const (
	columnGap  = "  "
	leastWidth = 8 // of an elastic column
	bold       = "\x1b[1m"
	plain      = "\x1b[0m"
)

// printTable writes aligned columns with a title line, at most textColumns wide
// as long as the elastic columns can give.
func (a *app) printTable(columns []column, rows [][]string) {
	head, lines := tableLines(columns, rows, textColumns)
	if a.coloured(a.stdout) {
		head = bold + head + plain
	}
	fmt.Fprintln(a.stdout, head)
	for _, line := range lines {
		fmt.Fprintln(a.stdout, line)
	}
}

// tableLines are aligned columns below a line of titles, at most as wide as is said as
// long as the elastic columns can give.
func tableLines(columns []column, rows [][]string, width int) (head string, lines []string) {
	widths := columnWidths(columns, rows, width)
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	for _, row := range rows {
		lines = append(lines, tableLine(columns, widths, row))
	}
	return tableLine(columns, widths, titles), lines
}

func columnWidths(columns []column, rows [][]string, width int) []int {
	widths := make([]int, len(columns))
	total := len(columnGap) * (len(columns) - 1)
	for i, c := range columns {
		widths[i] = utf8.RuneCountInString(c.title)
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		total += widths[i]
	}
	for i, c := range columns {
		if over := total - width; c.elastic && over > 0 {
			give := min(over, max(0, widths[i]-leastWidth))
			widths[i] -= give
			total -= give
		}
	}
	return widths
}

func tableLine(columns []column, widths []int, cells []string) string {
	padded := make([]string, len(cells))
	for i, cell := range cells {
		cell = shortened(cell, widths[i])
		padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if columns[i].right {
			padded[i] = padding + cell
		} else {
			padded[i] = cell + padding
		}
	}
	return strings.TrimRight(strings.Join(padded, columnGap), " ")
}

// printWrapped writes a sentence in lines that fit, the further ones indented.
func printWrapped(w io.Writer, text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > textColumns:
			fmt.Fprintln(w, line)
			line = "  " + word
		default:
			line += " " + word
		}
	}
	fmt.Fprintln(w, line)
}

// shortened is text of at most width characters, with a mark where it was cut.
func shortened(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}

// ageText is a duration in its two largest units at most: 4m, 3h12m, 2d7h.
func ageText(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	d = max(d, 0)
	first := slices.IndexFunc(units, func(u struct {
		name string
		size time.Duration
	}) bool {
		return d >= u.size
	})
	if first < 0 {
		return "0s"
	}
	text := fmt.Sprintf("%d%s", d/units[first].size, units[first].name)
	if first+1 < len(units) {
		if rest := d % units[first].size / units[first+1].size; rest > 0 {
			text += fmt.Sprintf("%d%s", rest, units[first+1].name)
		}
	}
	return text
}
