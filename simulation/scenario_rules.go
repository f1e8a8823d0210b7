package simulation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/store"
)

// rule is what happens to the next requests of a kind.
type rule struct {
	target
	left int // how often it still strikes; negative: always
	verb ruleVerb
	d    time.Duration // of delay and answer
	n    int           // of cut and leave
}

// target names requests: their kind, and of which process and bucket they are.
type target struct {
	kind    string // a request's name, "produce", or those of a lane or of all
	process string // "anyone": of all
	bucket  int    // -1: of all
}

// ruleVerb is what a rule does.
type ruleVerb string

const (
	ruleLose     ruleVerb = "lose"      // it never arrives, and is not answered
	ruleSilence  ruleVerb = "silence"   // it is applied, and not answered
	ruleRepeat   ruleVerb = "repeat"    // it is applied, not answered, and sent again by the SDK
	ruleThrottle ruleVerb = "throttle"  // it is refused for want of capacity
	ruleHold     ruleVerb = "hold"      // it is on the way until it is to land
	ruleDelay    ruleVerb = "delay"     // it is on the way for so long
	ruleAnswer   ruleVerb = "answer"    // its answer is on the way for so long
	ruleCut      ruleVerb = "cut"       // its page ends after so many rows
	ruleLeave    ruleVerb = "leave"     // so many of its last items are not processed
	ruleFailOver ruleVerb = "fail-over" // the broker does not lead the partition
	ruleForget   ruleVerb = "forget"    // the broker has dropped what it knew of the producer
)

// ofTable, ofBroker and ofTransactions are the verbs for requests to the table, for
// produce requests, and for the requests of transactional producers.
var (
	ofTable        = []ruleVerb{ruleLose, ruleSilence, ruleRepeat, ruleThrottle, ruleHold, ruleDelay, ruleAnswer}
	ofBroker       = []ruleVerb{ruleLose, ruleSilence, ruleDelay, ruleFailOver, ruleForget}
	ofTransactions = []ruleVerb{ruleLose, ruleSilence, ruleDelay, ruleFailOver}
)

// requestKinds are the words for kinds of requests.
var requestKinds = []string{
	"heartbeat", "readCoordination", "claim", "keep", "release", "stampStopped", "prune",
	"discover", "fetch", "probe", "delete",
	"readMarkers", "fetchParked", "mark", "move", "removeParked", "unmark", "endRetry",
	"coordination", "messages", "request", // those of a lane, and all
	"produce", "initialize", "commit", "abort", // those to the broker
}

// verbs are those that apply to a kind of requests.
func verbs(kind string) []ruleVerb {
	switch kind {
	case "produce":
		return ofBroker
	case "initialize", "commit", "abort":
		return ofTransactions
	}
	return ofTable
}

// readTarget reads "claim of A in bucket 3".
func readTarget(p *scenarioParser, w *words) target {
	t := target{kind: w.oneOf("a request", requestKinds...), bucket: -1}
	w.must("of")
	if w.has("anyone") {
		t.process = "anyone"
	} else {
		t.process = p.process(w)
	}
	if slices.Contains(verbs(t.kind), ruleHold) && w.has("in bucket") { // it is one to the table
		t.bucket = w.bucket()
	}
	return t
}

func (t target) matches(p *process, r store.Request) bool {
	kind := t.kind == "request" || t.kind == r.RequestName() || t.kind == r.Lane().String()
	return kind && (t.process == "anyone" || t.process == p.name) && (t.bucket < 0 || t.bucket == r.ConcernsBucket())
}

// readRule reads "lose claim of A in bucket 3 2 times" and its like.
func readRule(verb ruleVerb) func(*scenarioParser, *words) func(*stage) error {
	return func(p *scenarioParser, w *words) func(*stage) error {
		r := rule{verb: verb, target: readTarget(p, w)}
		if !slices.Contains(verbs(r.kind), verb) {
			w.fail("%s does not apply to %s", verb, r.kind)
		}
		switch verb {
		case ruleDelay:
			w.must("by")
			r.d = w.positive("the delay")
		case ruleAnswer:
			w.must("after")
			r.d = w.positive("the delay")
		}
		return r.repeated(w)
	}
}

// repeated reads how often a rule strikes: once, "3 times" or "always".
func (r rule) repeated(w *words) func(*stage) error {
	r.left = 1
	switch {
	case w.has("always"):
		r.left = -1
	case w.peek() != "":
		r.left = w.number("how often")
		w.must("times")
	}
	return func(t *stage) error {
		mine := r
		t.rules = append(t.rules, &mine)
		return nil
	}
}

// readCut reads "cut fetch of A after 2", or "cut off A": no broker answers it.
func readCut(p *scenarioParser, w *words) func(*stage) error {
	if w.has("off") {
		name := w.take("a process")
		return func(t *stage) error {
			t.fleet.cutOff(name)
			return nil
		}
	}
	r := rule{verb: ruleCut, target: readTarget(p, w)}
	if r.kind != "fetch" && r.kind != "fetchParked" {
		w.fail("only a fetch can be cut")
	}
	w.must("after")
	r.n = w.number("rows")
	return r.repeated(w)
}

// readReconnect reads "reconnect A": its brokers answer again.
func readReconnect(p *scenarioParser, w *words) func(*stage) error {
	name := p.process(w)
	return func(t *stage) error {
		t.fleet.reconnect(name)
		return nil
	}
}

// readLeave reads "leave 2 of delete of A".
func readLeave(p *scenarioParser, w *words) func(*stage) error {
	n := w.number("items")
	w.must("of")
	r := rule{verb: ruleLeave, target: readTarget(p, w), n: n}
	if r.kind != "delete" {
		w.fail("only a delete can be processed in part")
	}
	return r.repeated(w)
}

// readCalm reads "calm": no rule is left. What is held stays held.
func readCalm(*scenarioParser, *words) func(*stage) error {
	return func(t *stage) error {
		t.rules = nil
		return nil
	}
}

// heldRequest is on its way until it is to land.
type heldRequest struct {
	process *process
	request store.Request
	land    func()
}

// readLand reads "land claim of A in bucket 3": what is held arrives now.
func readLand(p *scenarioParser, w *words) func(*stage) error {
	target := readTarget(p, w)
	return func(t *stage) error {
		var kept []heldRequest
		for _, h := range t.held {
			if target.matches(h.process, h.request) {
				h.land()
			} else {
				kept = append(kept, h)
			}
		}
		if len(kept) == len(t.held) {
			return errors.New("no such request is held")
		}
		t.held = kept
		return nil
	}
}

// strike is the rule for a request, if there is one.
func (t *stage) strike(matches func(target) bool) *rule {
	for i, r := range t.rules {
		if !matches(r.target) {
			continue
		}
		if r.left > 0 {
			r.left--
		}
		if r.left == 0 {
			t.rules = slices.Delete(t.rules, i, i+1)
		}
		return r
	}
	return nil
}

// route takes a request on its way; false when no rule is for it.
func (t *stage) route(p *process, r store.Request, done func(store.Reply)) bool {
	t.sent = append(t.sent, sending{t.fleet.now, p.name, r})
	rule := t.strike(func(target target) bool { return target.matches(p, r) })
	if rule == nil {
		return false
	}
	n, w := t.fleet.net, t.fleet.world
	w.record(p.name, ruleStruck, struck{string(rule.verb), r.RequestName()})
	out, back := n.way(), n.way()
	timeout := n.timeout(p, r)
	switch rule.verb {
	case ruleLose:
		n.reply(p, timeout, unanswered(r), done)
	case ruleThrottle:
		n.reply(p, out+back, throttled(r), done)
	case ruleSilence:
		w.At(out, func() { n.apply(p, r) })
		n.reply(p, timeout, unanswered(r), done)
	case ruleRepeat:
		w.At(out, func() { n.apply(p, r) })
		w.At(out+back, func() { n.reply(p, back, n.apply(p, r), done) })
	case ruleHold, ruleDelay:
		land := t.onItsWay(p, r, timeout, done)
		if rule.verb == ruleHold {
			t.held = append(t.held, heldRequest{p, r, land})
		} else {
			w.At(rule.d, land)
		}
	case ruleAnswer:
		w.At(out, func() { n.reply(p, min(rule.d, timeout), n.apply(p, r), done) })
	case ruleCut:
		w.At(out, func() { n.reply(p, back, cutAfter(n.apply(p, r), rule.n), done) })
	case ruleLeave:
		w.At(out, func() { n.reply(p, back, t.partly(p, r.(store.Delete), rule.n), done) })
	}
	return true
}

// onItsWay is a request that lands when it is told to. Its sender gives up after
// a while, and hears nothing of what comes later.
func (t *stage) onItsWay(p *process, r store.Request, timeout time.Duration, done func(store.Reply)) (land func()) {
	n := t.fleet.net
	n.late++
	answered := false
	once := func(reply store.Reply) {
		if !answered {
			answered = true
			done(reply)
		}
	}
	n.reply(p, timeout, unanswered(r), once)
	return func() {
		n.late--
		n.reply(p, n.way(), n.apply(p, r), once)
	}
}

func cutAfter(reply store.Reply, rows int) store.Reply {
	if page, ok := reply.Result.(store.Fetched); ok && len(page.Rows) > rows {
		page.Rows, page.More, page.Malformed = page.Rows[:rows], true, nil
		reply.Result = page
	}
	return reply
}

// partly applies a delete but for its last items.
func (t *stage) partly(p *process, r store.Delete, left int) store.Reply {
	done := max(0, len(r.Sequences)-left)
	rest := r.Sequences[done:]
	if done == 0 {
		return store.Reply{Class: store.Done, Result: store.Deleted{Unprocessed: rest}}
	}
	r.Sequences = r.Sequences[:done:done]
	reply := t.fleet.net.apply(p, r)
	if reply.Class == store.Done {
		reply.Result = store.Deleted{Unprocessed: rest}
	}
	return reply
}

// produce is what happens to a produce request.
func (t *stage) produce(r BrokerRequest) BrokerFault {
	fault, found := t.strikeBroker("produce", r.Owner, fmt.Sprintf("%s/%d", r.Topic, r.Partition))
	if !found {
		return t.fleet.brokerFaults().Request(r)
	}
	return fault
}

// conclude is what happens to a request that initializes, commits or aborts.
func (t *stage) conclude(owner string, call publisher.Call) BrokerFault {
	fault, found := t.strikeBroker(call.String(), owner, call.String())
	if !found {
		return t.fleet.brokerFaults().Conclude(owner, call)
	}
	return fault
}

// strikeBroker is what a rule does to a request to the broker; false when no rule is
// for it.
func (t *stage) strikeBroker(kind, owner, of string) (BrokerFault, bool) {
	rule := t.strike(func(target target) bool {
		return target.kind == kind && (target.process == "anyone" || target.process == owner)
	})
	if rule == nil {
		return BrokerFault{}, false
	}
	t.fleet.record(owner, ruleStruck, struck{string(rule.verb), of})
	return rule.toBroker(), true
}

// toBroker is what the rule does to a request to the broker.
func (r *rule) toBroker() BrokerFault {
	switch r.verb {
	case ruleLose:
		return BrokerFault{LoseRequest: true}
	case ruleSilence:
		return BrokerFault{LoseAnswer: true}
	case ruleDelay:
		return BrokerFault{Delay: r.d}
	case ruleFailOver:
		return BrokerFault{FailOver: true}
	}
	return BrokerFault{Forget: true}
}

// ruleStruck is the event of a rule that was applied.
const ruleStruck = "rule.struck" // struck

type struck struct{ Verb, Of string }
