package main

import (
	"context"
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
	"github.com/bucketbrigade/relay/store"
)

// interruptible is what a read of a person's input results in, unless ctx ends before: a
// read cannot be interrupted, and the process ends without it.
func interruptible[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	end := make(chan outcome, 1)
	go func() {
		value, err := read()
		end <- outcome{value, err}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case o := <-end:
		return o.value, o.err
	}
}

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

// timeOrNull is a time of the table in JSON; null when there is none.
func timeOrNull(at store.Ticks) *string {
	if at == 0 {
		return nil
	}
	text := rfc3339(at.Time())
	return &text
}

// textOrNull is a text of the table in JSON; null when there is none.
func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// seconds is a duration in JSON: to the millisecond.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// coloured tells whether text on w may be coloured: only on a terminal that the
// environment does not call off colours for.
func (a *app) coloured(w io.Writer) bool { return isTerminal(w) && !a.colourless() }

// colourless tells whether the environment wants no colours: NO_COLOR has a value,
// whichever, or TERM is dumb, a terminal that would print the codes.
func (a *app) colourless() bool {
	return slices.ContainsFunc(a.environ, func(entry string) bool {
		value, found := strings.CutPrefix(entry, "NO_COLOR=")
		return found && value != "" || entry == "TERM=dumb"
	})
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
	// elastic columns are cut when the table is wider than the text, and stiff ones when
	// that is not enough.
	elastic, stiff bool
	// spare columns are left out of a window that is too narrow for all, those with the
	// highest number first; 0: never.
	spare int
}

const (
	columnGap  = "  "
	leastWidth = 8 // of an elastic column
	bold       = "\x1b[1m"
	plain      = "\x1b[0m"
)

// printTable writes aligned columns with a title line, at most textColumns wide
// as long as the elastic and the stiff columns can give.
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
// long as the elastic and the stiff columns can give.
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

// fitting are the columns, and what the rows have in them, that a window has room for.
func fitting(columns []column, rows [][]string, width int) ([]column, [][]string) {
	for {
		total := len(columnGap) * (len(columns) - 1)
		for _, w := range columnWidths(columns, rows, width) {
			total += w
		}
		out := 0
		for i, c := range columns {
			if c.spare > columns[out].spare {
				out = i
			}
		}
		if total <= width || columns[out].spare == 0 {
			return columns, rows
		}
		columns = slices.Delete(slices.Clone(columns), out, out+1)
		for i, row := range rows {
			if i == 0 {
				rows = slices.Clone(rows)
			}
			rows[i] = slices.Delete(slices.Clone(row), out, out+1)
		}
	}
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
	for _, gives := range []func(column) bool{func(c column) bool { return c.elastic }, func(c column) bool { return c.stiff }} {
		for i, c := range columns {
			if over := total - width; gives(c) && over > 0 {
				give := min(over, max(0, widths[i]-leastWidth))
				widths[i] -= give
				total -= give
			}
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

// wrapped is text of at most textColumns, broken at blanks: what follows the
// first line begins with indent, and all but the last end with more. No-break
// spaces hold together what they stand between, and become blanks. A word that no line
// has room for is cut, but where lines end with more: those are to be copied.
func wrapped(text, indent, more string) string {
	var lines []string
	start := len(text) - len(strings.TrimLeft(text, " "))
	for len([]rune(text)) > textColumns {
		end := strings.LastIndex(string([]rune(text)[:textColumns-len(more)+1]), " ")
		rest := end + 1 // behind the blank
		if end <= start {
			if more != "" {
				break
			}
			end = len(string([]rune(text)[:textColumns]))
			rest = end
		}
		lines = append(lines, strings.TrimRight(text[:end], " ")+more)
		text, start = indent+text[rest:], len(indent)
	}
	return strings.ReplaceAll(strings.Join(append(lines, text), "\n"), "\u00a0", " ")
}

// shortened is text of at most width characters, with a mark where it was cut.
func shortened(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}
