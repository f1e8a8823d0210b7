package simulation

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// WriteScenario writes a random run as a scenario, with every setting and each
// kind of fault on a line of its own. ParseScenario reads the same options back,
// defaults filled in, and the scenario's run is that of Run, with its digest.
// Observe is not written.
//
// The title is one line; the story may have several, which stay as they are.
func WriteScenario(w io.Writer, o Options, title, story string) error {
	o = o.WithDefaults()
	b := bufio.NewWriter(w)
	opening := title
	if story != "" {
		opening += "\n\n" + story
	}
	for line := range strings.Lines(opening) {
		fmt.Fprintln(b, strings.TrimRight("# "+line, " \n"))
	}
	fmt.Fprintln(b)
	for _, setting := range []struct {
		name  string
		value any
	}{
		{"seed", o.Seed}, {"relays", o.Relays}, {"buckets", o.Buckets}, {"rate", decimal(o.Rate)},
		{"lease", shortDuration(o.LeaseDuration)}, {"interval", shortDuration(o.LeaseRenewInterval)},
		{"skew", shortDuration(o.MaxClockSkew)}, {"poll", shortDuration(o.PollInterval)}, {"batch", o.BatchSize},
		{"poison", o.Poison}, {"poison-after", o.PoisonAfter},
		{"heal-within", shortDuration(o.HealWithin)},
	} {
		fmt.Fprintln(b, setting.name, setting.value)
	}
	for _, kind := range FaultKinds() {
		only, limited := o.Only[kind]
		if o.Faults[kind] == 0 && !limited {
			continue
		}
		fmt.Fprintf(b, "fault %v %s", kind, decimal(o.Faults[kind]))
		switch {
		case limited && len(only) == 0:
			fmt.Fprint(b, " never")
		case limited:
			fmt.Fprint(b, " only ", strings.Trim(fmt.Sprint(only), "[]"))
		}
		fmt.Fprintln(b)
	}
	fmt.Fprintln(b, "run for", shortDuration(o.Duration))
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the scenario: %w", err)
	}
	return nil
}

// decimal is a number as people write it, and exactly that number.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// shortDuration is like 2m rather than 2m0s, and exactly that duration.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
