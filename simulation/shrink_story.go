package simulation

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// storyWidth is for how many columns the story of a shrunk run is broken into
// lines, and storyEvents how many events it tells at most.
const (
	storyWidth  = 94
	storyEvents = 40
)

// WriteScenario writes the smallest run as a scenario that fails in the same way,
// with the same digest. Its opening comment names the promise, the seed that it
// came from, what was taken away, and what happens to the fleet until the promise
// is broken. For the last it makes the run once more.
func (s Shrunk) WriteScenario(w io.Writer) error {
	broken := s.Broken()
	var b strings.Builder
	for _, line := range folded(broken.Detail + ".") {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintf(&b, "\nThis is the smallest of %d runs, from seed %d. From\n", s.Runs, s.From.Seed)
	fmt.Fprintf(&b, "  %v\nthis is left:\n  %v\n", s.Before, s.After)
	fmt.Fprint(&b, "\nWhat happens in it:\n")
	for _, line := range s.happened() {
		fmt.Fprintln(&b, "  "+line)
	}
	return WriteScenario(w, s.Options, fmt.Sprintf("%s is broken, found in seed %d and shrunk", broken.Invariant, s.From.Seed), b.String())
}

// happened is what happens to the fleet until the promise is broken, a line for
// each event; the last ones, when there are many.
func (s Shrunk) happened() []string {
	var lines []string
	over := false
	o := s.Options
	o.Observe = func(e Event) {
		if text := storyOf(e); text != "" && !over {
			lines = append(lines, fmt.Sprintf("%10s  %-7s %s", instant(e.At), e.Who, text))
		}
		over = over || e.Name == promiseBroken
	}
	Run(o)
	if left := len(lines) - storyEvents; left > 0 {
		lines = append([]string{fmt.Sprintf("… %d more before", left)}, lines[left:]...)
	}
	return lines
}

// storyOf words an event of the world around the relays; empty for those that
// happen all the time.
func storyOf(e Event) string {
	name := strings.Replace(e.Name, ".", " ", 1)
	switch d := e.Detail.(type) {
	case started:
		text := fmt.Sprintf("%s as %s, %s, its clock at %+.3fs", name, d.Relay, d.Mode, d.Ahead.Seconds())
		if d.Drift != 0 {
			text += fmt.Sprintf(" and drifting %+.1f%%", 100*d.Drift)
		}
		return text
	case paused:
		return fmt.Sprintf("%s for %.3fs", name, d.For.Seconds())
	case clockSet:
		return fmt.Sprintf("%s by %+.3fs", name, d.By.Seconds())
	case ended:
		if d.Err != nil {
			return fmt.Sprintf("%s: %v", name, d.Err)
		}
		return name
	case faultOf:
		if d.Of != "" {
			return fmt.Sprintf("fault %v of %s", d.Kind, d.Of)
		}
		return fmt.Sprintf("fault %v", d.Kind)
	case Violation:
		return d.Invariant + " is broken"
	}
	switch e.Name {
	case processStopping, processDied, processResumed, processCut, processConnected, brokerLeft, brokerReturned:
		return name
	case worldHealed:
		return "all faults end"
	}
	return ""
}

// instant is a virtual time to the millisecond.
func instant(at time.Duration) string { return fmt.Sprintf("%.3fs", at.Seconds()) }

// folded breaks a text into lines at its blanks.
func folded(text string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > storyWidth {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
