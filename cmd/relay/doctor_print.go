package main

import (
	"fmt"
	"slices"
	"strings"
)

// The columns of a printed check.
const (
	statusColumn = 9
	idColumn     = 19
)

// printChecks prints checks in their order, with all that they say, and a last line with
// how many there are of each status. Checks that were skipped for one reason, one
// behind another, stand together.
func (a *app) printChecks(d doctorDocument) {
	for rest := d.Checks; len(rest) > 0; {
		alike := 1
		for rest[0].Status == statusSkipped && alike < len(rest) && rest[alike].Status == statusSkipped && rest[alike].Found == rest[0].Found {
			alike++
		}
		if alike > 1 {
			a.printSkipped(rest[:alike])
		} else {
			a.printCheck(rest[0])
		}
		rest = rest[alike:]
	}
	for _, request := range d.Requests {
		fmt.Fprintf(a.stdout, "would send: %s\n", request)
	}
	byStatus := map[string]int{}
	for _, check := range d.Checks {
		byStatus[check.Status]++
	}
	var counts []string
	for _, status := range []string{statusFailure, statusWarning, statusSkipped, statusOK} {
		if n := byStatus[status]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, status))
		}
	}
	fmt.Fprintf(a.stdout, "%s: %s\n", counted(len(d.Checks), "check"), strings.Join(counts, ", "))
}

func (a *app) printCheck(check checkDocument) {
	head := fmt.Sprintf("%-*s%-*s", statusColumn, check.Status, idColumn, check.ID)
	said := head + check.Subject + ": " + check.Found
	indent := strings.Repeat(" ", statusColumn+idColumn)
	text := wrapped(said, indent, "")
	if (check.Status == statusFailure || check.Status == statusWarning) && a.coloured(a.stdout) {
		text = bold + head + plain + strings.TrimPrefix(text, head)
	}
	fmt.Fprintln(a.stdout, text)
	if check.Advice != "" {
		fmt.Fprintln(a.stdout, wrapped(indent+"→ "+check.Advice, indent+"  ", ""))
	}
}

// printSkipped prints checks that were skipped for one reason.
func (a *app) printSkipped(checks []checkDocument) {
	var ids []string
	for _, check := range checks {
		if !slices.Contains(ids, check.ID) {
			ids = append(ids, check.ID)
		}
	}
	indent := strings.Repeat(" ", statusColumn)
	fmt.Fprintln(a.stdout, wrapped(fmt.Sprintf("%-*s%s: %s", statusColumn, statusSkipped, strings.Join(ids, ", "), checks[0].Found), indent, ""))
}
