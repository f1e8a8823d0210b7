package simulation

import (
	"slices"
	"strings"
	"time"

	"github.com/bucketbrigade/relay"
)

// scenarioParser reads settings first, then steps.
type scenarioParser struct {
	scenario *Scenario
	begun    bool     // the opening comment is over
	started  []string // processes
	written  []string // messages
}

// line reads one line: a setting, or a time and what happens then.
func (p *scenarioParser) line(n int, text string, w *words) {
	s := p.scenario
	if s.whole {
		w.take("")
		w.fail("nothing follows \"run for\"")
		return
	}
	if len(s.steps) == 0 && p.setting(w) {
		w.end()
		return
	}
	if w.has("run for") {
		p.wholeRun(w)
		w.end()
		return
	}
	if w.has("end open") {
		s.open = true
		w.end()
		return
	}
	if s.open {
		w.take("")
		w.fail("nothing follows \"end open\"")
		return
	}
	step := scenarioStep{line: n, text: text, wait: func(now time.Duration) time.Duration { return now }}
	switch {
	case w.has("at"):
		at := w.duration("an instant")
		step.wait = func(now time.Duration) time.Duration { return at }
		if at < p.latest() {
			w.fail("time does not go backwards")
		}
	case w.has("after"):
		d := w.positive("a while")
		step.wait = func(now time.Duration) time.Duration { return now + d }
	}
	if w.peek() != "" {
		step.do = p.command(w)
	}
	w.end()
	if step.do == nil && w.err == nil && len(w.all) < 2 {
		w.fail("this is no step")
	}
	s.steps = append(s.steps, step)
}

// latest is the last instant that was named, as far as it is known.
func (p *scenarioParser) latest() time.Duration {
	var now time.Duration
	for _, step := range p.scenario.steps {
		now = step.wait(now)
	}
	return now
}

// setting reads a setting; false when the line is none.
func (p *scenarioParser) setting(w *words) bool {
	s := p.scenario
	o := &s.Options
	durations := map[string]*time.Duration{
		"lease": &o.LeaseDuration, "interval": &o.LeaseRenewInterval, "skew": &o.MaxClockSkew,
		"poll": &o.PollInterval, "latency": &s.Latency, "heal-within": &o.HealWithin, "broker-memory": &s.memory,
	}
	numbers := map[string]*int{
		"buckets": &o.Buckets, "batch": &o.BatchSize, "relays": &s.relays, "poison-after": &o.PoisonAfter, "request-records": &s.records,
	}
	word := w.peek()
	switch {
	case durations[word] != nil:
		w.take("")
		*durations[word] = w.positive(word)
	case numbers[word] != nil:
		w.take("")
		if *numbers[word] = w.number(word); *numbers[word] < 1 {
			w.fail("%s is at least 1", word)
		}
	case w.has("mode"):
		o.Mode = readMode(w)
	case w.has("seed"):
		o.Seed = w.seed()
	case w.has("poison"):
		o.Poison = readPolicy(w)
	case w.has("rate"):
		o.Rate, s.random = w.rate("the rate"), true
	case w.has("without dates"):
		s.dateless = true
	case w.has("without topic"):
		s.without[w.take("a topic")] = true
	case w.has("faults"):
		o.Faults, o.Only = Rates{}, nil
		switch w.oneOf("the faults", "none", "default", "storm") {
		case "default":
			o.Faults = Default()
		case "storm":
			o.Faults = Storm()
		}
	case w.has("fault"):
		p.fault(w)
	default:
		return false
	}
	return true
}

func readMode(w *words) relay.Mode {
	return relay.Mode(w.oneOf("the mode", string(relay.ModeOrdered), string(relay.ModeFenced)))
}

func readPolicy(w *words) relay.PoisonPolicy {
	return relay.PoisonPolicy(w.oneOf("the policy", "park", "block", "dead-letter"))
}

// fault reads a kind, its rate, and which of its happenings are to be.
func (p *scenarioParser) fault(w *words) {
	o := &p.scenario.Options
	i := slices.Index(faultNames[:], w.take("a kind"))
	if i < 0 {
		w.fail("the kinds are %s", strings.Join(faultNames[:], ", "))
		return
	}
	o.Faults[i] = w.rate("the rate")
	delete(o.Only, Fault(i))
	var only []int
	switch {
	case w.has("never"):
		only = []int{}
	case w.has("only"):
		for len(only) == 0 || w.peek() != "" {
			n := w.number("which of them")
			if n < 1 {
				w.fail("the first is 1")
			}
			only = append(only, n)
		}
	default:
		return
	}
	if o.Only == nil {
		o.Only = Happenings{}
	}
	o.Only[Fault(i)] = only
}

// wholeRun reads for how long a random run goes on until everything is healed.
func (p *scenarioParser) wholeRun(w *words) {
	s := p.scenario
	if len(s.steps) > 0 || s.open || s.Latency != 0 || len(s.without) > 0 || s.memory != 0 || s.records != 0 {
		w.fail("a random run has neither steps, nor latency, nor topics that do not exist, nor settings of the broker")
	}
	s.whole, s.Options.Duration, s.Options.Relays = true, w.positive("a while"), s.relays
}

// command reads what happens or must be seen.
func (p *scenarioParser) command(w *words) func(*stage) error {
	verb := w.take("a command")
	if read, ok := scenarioVerbs[verb]; ok {
		return read(p, w)
	}
	w.fail("there is no such command or setting, or a setting stands behind the first step")
	return nil
}

// scenarioVerbs are the commands by their first word.
var scenarioVerbs = map[string]func(*scenarioParser, *words) func(*stage) error{
	"start":      readStart,
	"stop":       readStop,
	"kill":       readKill,
	"stall":      readStall,
	"suspend":    readSuspend,
	"set":        readSetClock,
	"notify":     readNotify,
	"put":        readPut,
	"commit":     readCommit,
	"reserve":    readReserve,
	"abandon":    readAbandon,
	"spoil":      readSpoil,
	"mend":       readMend,
	"reset":      readReset,
	"lose":       readRule(ruleLose),
	"silence":    readRule(ruleSilence),
	"repeat":     readRule(ruleRepeat),
	"throttle":   readRule(ruleThrottle),
	"hold":       readRule(ruleHold),
	"delay":      readRule(ruleDelay),
	"answer":     readRule(ruleAnswer),
	"cut":        readCut,
	"leave":      readLeave,
	"fail-over":  readRule(ruleFailOver),
	"forget":     readRule(ruleForget),
	"operator":   readOperator,
	"write":      readWriteAgain,
	"land":       readLand,
	"calm":       readCalm,
	"broker":     readBroker,
	"reconnect":  readReconnect,
	"create":     readCreateTopic,
	"delete":     readDeleteTopic,
	"limit":      readLimit,
	"partitions": readPartitions,
	"forbid":     readForbid,
	"allow":      readAllow,
	"reject":     readReject,
	"accept":     readAccept,
	"expect":     readExpect,
	"within":     readWithin,
	"throughout": readThroughout,
}

// messages reads names of messages that were written before, up to a word of the
// grammar.
func (p *scenarioParser) messages(w *words, until ...string) []string {
	names := w.names(until)
	for _, name := range names {
		if w.err == nil && !slices.Contains(p.written, name) {
			w.fail("no message of that name is written")
		}
	}
	return names
}

// process reads the name of a process that was started before.
func (p *scenarioParser) process(w *words) string {
	name := w.take("a process")
	if w.err == nil && p.scenario.relays == 0 && !slices.Contains(p.started, name) {
		w.fail("no process of that name was started")
	}
	return name
}
