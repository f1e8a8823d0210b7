package explore

import (
	"fmt"
	"strings"
	"time"
)

// scene writes a way through a search as a scenario of simulation/testdata. What the
// search lets happen at one instant comes a little apart there, in the same order:
// each request is held on its way, and lands when it is its turn; one that lands late
// is delayed by so long. Where a few milliseconds decide, the numbered lines in the
// comment are what counts.
type scene struct {
	rules []string        // by request, in the order of their sending
	sent  map[wireKey]int // index into the rules
	left  map[wireKey]time.Duration
	born  map[int]time.Duration // when processes started, in their ticks
	steps []string
	count int // steps with a time of their own
}

type wireKey struct {
	process int
	to      string
	token   uint64
}

const (
	firstStep = 50 * time.Millisecond // of a tick
	stepApart = 5 * time.Millisecond
	wide      = 10 // steps between a late landing and what is before and after it
)

// scenario is the way to a violation in the language of scenarios; empty where that
// cannot say it: rows, and what was before the beginning.
func (x *search) scenario(v *Violation) string {
	o := x.o
	if len(o.Rows) > 0 || o.Former || o.RoundsBefore > 0 {
		return ""
	}
	s := scene{sent: map[wireKey]int{}, left: map[wireKey]time.Duration{}, born: map[int]time.Duration{}}
	w := x.beginning()
	for _, c := range x.path {
		s.stepOf(w, c)
		w = w.after(c)
		s.sends(w, c)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n#\n# Found by simulation/explore, which breaks %s so:\n#\n", v.Detail, v.Invariant)
	for i, line := range v.Trace {
		fmt.Fprintf(&b, "# %d  %s\n", i+1, line)
	}
	fmt.Fprintf(&b, "\nbuckets %d\nlease %v\ninterval %v\nskew %v\nlatency 500us\nwithout dates\n\n",
		o.Buckets, o.leaseDuration(), o.interval(), time.Duration(o.Skew)*tick)
	for _, line := range s.steps { // a rule names its process, which must have started
		fmt.Fprintln(&b, line)
		if !strings.HasPrefix(line, "start ") {
			continue
		}
		name := strings.Fields(line)[1]
		for _, rule := range s.rules {
			if strings.Contains(rule+" ", " of "+name+" ") {
				fmt.Fprintln(&b, rule)
			}
		}
	}
	fmt.Fprintf(&b, "after %v\nend open\n", time.Duration(o.Lease)*tick)
	return b.String()
}

// sends notes the requests that are new on their way. Each is held, unless something
// else happens to it.
func (s *scene) sends(w *world, c choice) {
	for _, one := range w.wires {
		key := keyOf(one)
		if _, known := s.sent[key]; known {
			continue
		}
		s.sent[key] = len(s.rules)
		s.rules = append(s.rules, "hold "+target(w, one))
		s.left[key] = s.now(w)
		if c.kind == elapse { // by a timer, which counts from the start
			s.left[key] = time.Duration(w.tick)*tick + s.born[one.process]
		}
	}
}

// number is how many requests like this one were sent, up to it.
func (s *scene) number(w *world, one wire) int {
	n := 0
	for _, rule := range s.rules[:s.sent[keyOf(one)]+1] {
		if strings.Contains(rule+" ", " "+target(w, one)+" ") {
			n++
		}
	}
	return n
}

func keyOf(one wire) wireKey { return wireKey{one.process, one.to.Id, one.token} }

// target names a request.
func target(w *world, one wire) string {
	name := fmt.Sprintf("%s of %s", one.request.RequestName(), w.processes[one.process].name)
	if b := one.request.ConcernsBucket(); b >= 0 {
		name += fmt.Sprintf(" in bucket %d", b)
	}
	return name
}

// stepOf notes what a choice is in the scenario.
func (s *scene) stepOf(w *world, c choice) {
	switch c.kind {
	case land:
		one := w.wires[c.index]
		s.count += wide
		s.rules[s.sent[keyOf(one)]] = fmt.Sprintf("delay %s by %v", target(w, one), s.now(w)-s.left[keyOf(one)])
		s.count += wide
	case arrive:
		if one := w.wires[c.index]; one.reply == nil && !one.again {
			s.at(w, fmt.Sprintf("within %v at least %d sent %s", stepApart, s.number(w, one), target(w, one)))
			s.steps = append(s.steps, "land "+target(w, one))
		}
	case repeat, throttle, slowAnswer:
		one := w.wires[c.index]
		verb := map[choiceKind]string{repeat: "repeat ", throttle: "throttle ", slowAnswer: "answer "}[c.kind]
		rule := verb + target(w, one)
		if c.kind == slowAnswer {
			rule += fmt.Sprintf(" after %v", tick)
		}
		s.rules[s.sent[keyOf(one)]] = rule
	case start:
		s.starts(w, c)
	case stop:
		s.at(w, "stop "+w.processes[c.index].name)
	case crash:
		s.at(w, "kill "+w.processes[c.index].name)
	case stall:
		s.at(w, fmt.Sprintf("stall %s for %v", w.processes[c.index].name, time.Duration(c.operand)*tick))
	case setClock:
		s.at(w, "set clock of "+w.processes[c.index].name+" "+s.clock(w, c.operand))
	}
}

func (s *scene) starts(w *world, c choice) {
	relay := relayID(c.index)
	name := w.freeName(relay)
	if name == relay {
		s.at(w, "start "+relay)
	} else {
		s.at(w, fmt.Sprintf("start %s as %s", name, relay))
	}
	s.born[len(w.processes)] = s.now(w)%tick + 2*stepApart
	if c.operand != 0 {
		s.steps = append(s.steps, "set clock of "+name+" "+s.clock(w, c.operand))
	}
}

func (s *scene) clock(w *world, offset int) string {
	switch half := w.search.o.halfSkew(); {
	case offset < 0:
		return fmt.Sprintf("%v behind", half)
	case offset > 0:
		return fmt.Sprintf("%v ahead", half)
	}
	return "right"
}

// at notes a step at its time: in its tick, behind all that came before it.
func (s *scene) at(w *world, step string) {
	s.count++
	s.steps = append(s.steps, fmt.Sprintf("at %v", s.now(w)), step)
}

// now is the time of the latest step, in the present tick.
func (s *scene) now(w *world) time.Duration {
	return time.Duration(w.tick)*tick + firstStep + time.Duration(s.count)*stepApart
}
