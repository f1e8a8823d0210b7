package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/simulation"
)

// seedPrinter prints results: seeds as they come, in their order, and then what
// they add up to.
type seedPrinter interface {
	seed(simulated)
	shrunk(shrunk) // of the seed before
	summary(*summary) error
}

func (c *simulate) printer() seedPrinter {
	if c.output == formatJSON {
		return &seedJSON{command: c, document: simulateDocument{Seeds: []seedDocument{}}}
	}
	return &seedText{command: c}
}

type seedJSON struct {
	command  *simulate
	document simulateDocument
}

func (p *seedJSON) seed(r simulated) {
	p.document.Seeds = append(p.document.Seeds, p.command.document(r))
}

func (p *seedJSON) shrunk(s shrunk) {
	p.document.Seeds[len(p.document.Seeds)-1].Shrunk = s.document()
}

func (p *seedJSON) summary(s *summary) error {
	p.document.Summary = s.document()
	return printJSON(p.command.app.stdout, p.document)
}

// seedText prints a table, whose widths cannot wait for its last row.
type seedText struct {
	command *simulate
	begun   bool
}

var (
	seedColumns = []column{{title: "SEED", right: true}, {title: "RESULT"}, {title: "ENQUEUED", right: true},
		{title: "DUPLICATES", right: true}, {title: "HANDOVERS", right: true}, {title: "FAULTS", right: true},
		{title: "LEASE", right: true}, {title: "POLL", right: true}, {title: "BATCH", right: true}, {title: "DIGEST"}}
	seedWidths = []int{8, 6, 8, 10, 9, 6, 5, 5, 5, 16}
)

func (p *seedText) seed(r simulated) {
	out := p.command.app.stdout
	if !p.begun {
		p.begun = true
		titles := make([]string, len(seedColumns))
		for i, c := range seedColumns {
			titles[i] = c.title
		}
		fmt.Fprintln(out, tableLine(seedColumns, seedWidths, titles))
	}
	result := "ok"
	if !r.report.OK {
		result = "BROKEN"
	}
	o, m := r.options, r.report.Messages
	fmt.Fprintln(out, tableLine(seedColumns, seedWidths, []string{
		fmt.Sprint(r.report.Seed), result, fmt.Sprint(m.Enqueued), fmt.Sprint(m.Duplicates), fmt.Sprint(r.report.Handovers),
		fmt.Sprint(total(r.report.Faults)), durationText(o.LeaseDuration), durationText(o.PollInterval), fmt.Sprint(o.BatchSize),
		r.report.Digest}))
	if !r.report.OK {
		p.violations(r)
	}
}

// violations prints what is needed to look into a seed: the promises, what came
// before the first, and how to see it again.
func (p *seedText) violations(r simulated) {
	out := p.command.app.stdout
	for _, v := range r.report.Violations {
		fmt.Fprintln(out, wrapped("  "+v.String(), "      ", ""))
	}
	if len(r.last) > 0 {
		fmt.Fprintf(out, "  the last events %s:\n", concerned(r.report.Violations[0]))
		for _, e := range r.last {
			fmt.Fprintln(out, wrapped("    "+e.String(), "        ", ""))
		}
	}
	fmt.Fprintln(out, "  see it again with:")
	replay := "    " + p.command.replay(r.options)
	if p.command.scenario == nil { // a file's name is not to be broken
		replay = wrapped(replay, "      ", ` \`)
	}
	fmt.Fprintln(out, replay)
}

func concerned(v simulation.Violation) string {
	switch {
	case v.Bucket >= 0:
		return fmt.Sprintf("of bucket %d", v.Bucket)
	case v.Process != "":
		return "of " + v.Process
	}
	return "before it"
}

// shrunk says what the smallest run is, and how to see it.
func (p *seedText) shrunk(s shrunk) {
	out := p.command.app.stdout
	fmt.Fprintf(out, "  shrunk in %d runs\n", s.Runs)
	fmt.Fprintln(out, wrapped(fmt.Sprintf("    from %v", s.Before), "        ", ""))
	fmt.Fprintln(out, wrapped(fmt.Sprintf("    to   %v:", s.After), "        ", ""))
	fmt.Fprintln(out, wrapped("    "+s.Broken().String(), "        ", ""))
	fmt.Fprintln(out, "  see the small one with:")
	fmt.Fprintln(out, "    "+s.replay())
}

func (p *seedText) summary(s *summary) error {
	out := p.command.app.stdout
	speed := ""
	if s.wall > 0 {
		speed = fmt.Sprintf(" in %v, %.0f virtual seconds a second",
			s.wall.Round(100*time.Millisecond), s.virtual.Seconds()/s.wall.Seconds())
	}
	fmt.Fprintf(out, "\n%s: %d ok, %d with broken promises; %v of virtual time%s\n",
		counted(s.seeds, "seed"), s.seeds-len(s.failed), len(s.failed), s.virtual.Round(time.Second), speed)
	fmt.Fprintf(out, "messages   %d enqueued, %d published, %d duplicates, %d parked, %d pending\n",
		s.messages.Enqueued, s.messages.Published, s.messages.Duplicates, s.messages.Parked, s.messages.Pending)
	fmt.Fprintf(out, "handovers  %d\n", s.handovers)
	for _, line := range []struct {
		title  string
		counts map[string]int
	}{
		{fmt.Sprintf("refused    %d writes, %d of them in settled fleets:", total(s.refused), s.settled), s.refused},
		{"requests  ", s.requests}, {"faults    ", s.faults}, {"coverage  ", s.transition},
	} {
		fmt.Fprintln(out, wrapped(line.title+" "+countsText(line.counts), "           ", ""))
	}
	return nil
}

// countsText lists counts by name.
func countsText(counts map[string]int) string {
	if len(counts) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s\u00a0%d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

func durationText(d time.Duration) string { return settings.Duration(&d).String() }
