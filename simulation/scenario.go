package simulation

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Scenario is a script for one fleet: the engine, the actors, the table, the
// broker and the checker of Run, with what happens and what must be seen written
// down instead of drawn. ParseScenario makes one; testdata has many, and its
// README the language.
type Scenario struct {
	// Name is the file's, for messages.
	Name string
	// Title and Story are the comment that opens the file: its first line, and the
	// rest.
	Title, Story string
	// Options are the settings. Those which a scenario does not set have their
	// defaults, but nobody writes at random unless it sets a rate. The caller may
	// set Seed and Observe.
	Options Options
	// Latency of one way to the table; 0: drawn anew for each request.
	Latency time.Duration

	dateless bool            // the table's answers do not say the time
	memory   time.Duration   // for which brokers know a producer that appends nothing; 0: for ever
	records  int             // of one produce request at most; 0: the seed draws that
	without  map[string]bool // topics that do not exist at the beginning
	random   bool            // it sets a rate: writers write at random too
	whole    bool            // it is a whole random run, "run for 60s", and has no steps
	relays   int             // that start at random instants within the first second
	steps    []scenarioStep
	open     bool // ends without healing: the story is over before all is well
}

// scenarioStep is one line: it waits, and then it does or expects something.
type scenarioStep struct {
	line int
	text string
	// wait is the time that passes first: until an instant, or for a while.
	wait func(now time.Duration) (until time.Duration)
	do   func(*stage) error // nil: it only waits
}

// ScenarioError is a line that cannot be read.
type ScenarioError struct {
	File string
	Line int
	Word string // at which reading ended; empty at the end of the line
	Err  error
}

func (e *ScenarioError) Error() string {
	if e.Word == "" {
		return fmt.Sprintf("%s:%d: at the end of the line: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s:%d: %q: %v", e.File, e.Line, e.Word, e.Err)
}

func (e *ScenarioError) Unwrap() error { return e.Err }

// ParseScenario reads a scenario. Its error joins one *ScenarioError for each
// line that cannot be read.
func ParseScenario(name string, r io.Reader) (*Scenario, error) {
	s := &Scenario{Name: name, without: map[string]bool{}}
	p := scenarioParser{scenario: s}
	var faults []error
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if comment, ok := strings.CutPrefix(text, "#"); ok {
			s.tell(strings.TrimSpace(comment), p.begun)
			continue
		}
		p.begun = p.begun || s.Title != ""
		text, _, _ = strings.Cut(text, " #")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		w := &words{all: strings.Fields(text)}
		p.line(n, text, w)
		if w.err != nil {
			faults = append(faults, &ScenarioError{File: name, Line: n, Word: w.at, Err: w.err})
		}
	}
	if err := lines.Err(); err != nil {
		faults = append(faults, fmt.Errorf("read %s: %w", name, err))
	}
	if s.Title == "" {
		faults = append(faults, &ScenarioError{File: name, Line: 1, Err: errors.New("a scenario opens with its story, a comment")})
	}
	if s.whole && len(faults) == 0 {
		if err := s.Options.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("%s: a random run with these settings: %w", name, err))
		}
	}
	return s, errors.Join(faults...)
}

// IsRandomRun tells whether the scenario is a whole random run, that of its
// Options, and has no steps. WriteScenario writes such scenarios, and Shrink makes
// them smaller.
func (s *Scenario) IsRandomRun() bool { return s.whole }

// tell takes a line of the opening comment.
func (s *Scenario) tell(line string, begun bool) {
	switch {
	case begun:
	case s.Title == "":
		s.Title = line
	default:
		s.Story = strings.TrimSpace(s.Story + "\n" + line)
	}
}

// Run plays the scenario. An expectation that is not met is a violation of the
// invariant "scenario", and ends the run as a broken promise does. At the end
// everything is healed and progress demanded, unless the scenario says that it
// ends open. A random run is that of the function Run.
func (s *Scenario) Run() Report {
	if s.whole {
		return Run(s.Options)
	}
	o := s.Options.WithDefaults()
	t := newStage(s, o)
	f := t.fleet
	for range s.relays {
		id := f.newID()
		f.At(f.between(0, time.Second), func() { f.boot(id) })
	}
	if s.random {
		f.writers.start()
	}
	f.trouble()
	t.through(s.steps)
	switch {
	case f.failed():
	case s.open:
		f.checker.catchUp()
	default:
		t.heal()
		f.settle()
	}
	return f.report()
}
