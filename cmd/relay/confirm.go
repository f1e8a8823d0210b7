package main

import (
	"bufio"
	"fmt"
	"strings"
)

// confirmed asks on stderr, so that stdout keeps the result alone, and reads one
// line of standard input. Only y and yes are a yes: no answer, as from a script
// without --yes, is none.
func (a *app) confirmed(question string) bool {
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	default:
		return false
	}
}
