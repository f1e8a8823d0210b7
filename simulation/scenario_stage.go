package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/actors/coordinator"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// stage is a scenario that is being played.
type stage struct {
	fleet      *fleet
	scenario   *Scenario
	cast       map[string]*process // by name, the dead ones too
	rules      []*rule
	held       []heldRequest
	rejected   map[string]bool // messages, by name
	messages   map[string]*scripted
	names      map[uuid.UUID]string // of messages, by id
	read       int                  // records of the broker's log that were noted
	log        []string             // the names of their messages; empty for those that are not scripted
	deliveries map[string]int       // by name
	letters    map[string]int       // the same, to the dead-letter topic
	keys       map[string][]byte    // by name
	seen       []Event
	sent       []sending
}

// sending is a request that a process has sent.
type sending struct {
	at      time.Duration
	process string
	request store.Request
}

// farClock is how far a scenario may set a clock: further than any allowed skew.
const farClock = 1000 * time.Hour

func newStage(s *Scenario, o Options) *stage {
	t := &stage{
		scenario: s, cast: map[string]*process{}, rejected: map[string]bool{},
		messages: map[string]*scripted{}, names: map[uuid.UUID]string{}, deliveries: map[string]int{}, letters: map[string]int{}, keys: map[string][]byte{},
	}
	observe := o.Observe
	o.Observe = func(e Event) {
		t.seen = append(t.seen, e)
		if observe != nil {
			observe(e)
		}
	}
	f := newFleet(o)
	if o.Faults[BrokerForgets] == 0 { // as in production, where brokers forget nobody so soon
		f.primeAfter = publisher.DefaultPrimeAfter
	}
	t.fleet = f
	f.net.latency, f.net.dateless = s.Latency, s.dateless
	f.net.scripted = t.route
	f.broker.cfg.Memory = s.memory
	if s.records > 0 {
		f.broker.cfg.RequestRecords = s.records
	}
	faults := f.brokerFaults()
	faults.Request, faults.Conclude, faults.Reject = t.produce, t.conclude, t.reject
	f.broker.SetFaults(faults)
	for _, topic := range allTopics() {
		if !s.without[topic.name] {
			f.broker.CreateTopic(topic.name, topic.partitions, 0)
		}
	}
	return t
}

// through plays steps, until a promise is broken.
func (t *stage) through(steps []scenarioStep) {
	f := t.fleet
	for _, step := range steps {
		until := step.wait(f.now)
		if until < f.now {
			t.unmet(step, fmt.Errorf("it is %v already", f.now))
		}
		f.runUntil(until, f.failed)
		if f.failed() {
			return
		}
		t.play(step)
	}
}

// play does what a step says.
func (t *stage) play(step scenarioStep) {
	if step.do == nil {
		return
	}
	t.fleet.record("scenario", stepBegun, stepOf{step.line, step.text})
	if err := step.do(t); err != nil && !t.fleet.failed() {
		t.unmet(step, err)
	}
}

// unmet notes a step that could not be done, or an expectation that is not met.
func (t *stage) unmet(step scenarioStep, err error) {
	t.fleet.checker.violated("scenario", "%s:%d: %s: %v", t.scenario.Name, step.line, step.text, err)
}

// The events of a scenario.
const stepBegun = "step.begun" // stepOf

type stepOf struct {
	Line int
	Step string
}

// heal ends all faults, the scripted ones too. What is held lands.
func (t *stage) heal() {
	f := t.fleet
	t.rules, t.rejected = nil, map[string]bool{}
	for _, h := range t.held {
		h.land()
	}
	t.held = nil
	f.heal()
}

// reject is the broker's judgement of a record.
func (t *stage) reject(r publisher.Record) string {
	if id, ok := messageID(r); ok && t.rejected[t.names[id]] {
		t.fleet.writers.blamed[id] = true
		return "INVALID_RECORD"
	}
	return t.fleet.brokerFaults().Reject(r)
}

// process is the one of a name, dead or alive.
func (t *stage) process(name string) (*process, error) {
	for _, p := range t.fleet.processes {
		if p.name == name {
			return p, nil
		}
	}
	if p := t.cast[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("there is no process %s", name)
}

// alive is a process that has not died.
func (t *stage) alive(name string) (*process, error) {
	p, err := t.process(name)
	if err == nil && p.dead {
		err = fmt.Errorf("%s has died", name)
	}
	return p, err
}

// each reads the names of processes, and does something with each.
func each(p *scenarioParser, w *words, do func(*stage, *process)) func(*stage) error {
	names := []string{p.process(w)}
	for w.peek() != "" && w.peek() != "for" {
		names = append(names, p.process(w))
	}
	return func(t *stage) error {
		for _, name := range names {
			process, err := t.alive(name)
			if err != nil {
				return err
			}
			do(t, process)
		}
		return nil
	}
}

// start A B C; start A2 as A; start B with poison block; start C with mode fenced.
func readStart(p *scenarioParser, w *words) func(*stage) error {
	names := w.names([]string{"as", "with"})
	as, policy, mode := "", bucket.Poison(""), relay.Mode("")
	if w.has("as") {
		as = w.take("a relay id")
	}
	for w.err == nil && w.has("with") {
		switch w.oneOf("what it has of its own", "poison", "mode") {
		case "poison":
			policy = bucket.Poison(readPolicy(w))
		case "mode":
			mode = readMode(w)
		}
	}
	p.started = append(p.started, names...)
	return func(t *stage) error {
		for _, name := range names {
			if old := t.cast[name]; old != nil && !old.dead {
				return fmt.Errorf("%s runs already", name)
			}
			id := as
			if id == "" {
				id = name
			}
			if policy != "" {
				t.fleet.policies[name] = policy
			}
			if mode != "" {
				t.fleet.modes[name] = mode
			}
			process := t.fleet.bootNamed(name, id)
			process.clock.half = farClock
			t.cast[name] = process
		}
		return nil
	}
}

// stop A: gracefully, as SIGTERM does.
func readStop(p *scenarioParser, w *words) func(*stage) error {
	return each(p, w, func(t *stage, a *process) { t.fleet.stopGracefully(a) })
}

// kill A: it is gone at once; what it has sent may still land.
func readKill(p *scenarioParser, w *words) func(*stage) error {
	return each(p, w, func(t *stage, a *process) { t.fleet.bury(a) })
}

// stall A for 40s: nothing of it runs.
func readStall(p *scenarioParser, w *words) func(*stage) error {
	var d time.Duration
	do := each(p, w, func(_ *stage, a *process) { a.stall(d) })
	w.must("for")
	d = w.positive("a while")
	return do
}

// suspend A for 40s: the same, and its monotonic clock stands still.
func readSuspend(p *scenarioParser, w *words) func(*stage) error {
	var d time.Duration
	do := each(p, w, func(_ *stage, a *process) { a.suspend(d) })
	w.must("for")
	d = w.positive("a while")
	return do
}

// set clock of A 40s ahead|behind; set clock of A right.
func readSetClock(p *scenarioParser, w *words) func(*stage) error {
	w.must("clock of")
	name := p.process(w)
	var ahead time.Duration
	if !w.has("right") {
		ahead = w.positive("the distance")
		if w.oneOf("the direction", "ahead", "behind") == "behind" {
			ahead = -ahead
		}
	}
	return func(t *stage) error {
		process, err := t.alive(name)
		if err == nil {
			process.setClock(ahead - process.clock.ahead(t.fleet.now))
		}
		return err
	}
}

// notify A of bucket 3: a commit in A's process has told its relay.
func readNotify(p *scenarioParser, w *words) func(*stage) error {
	name := p.process(w)
	w.must("of bucket")
	buckets := w.buckets()
	return func(t *stage) error {
		process, err := t.alive(name)
		if err == nil {
			process.system.Root.Send(process.coordinator, coordinator.Notify{Buckets: buckets})
		}
		return err
	}
}

// put lease 0-3 of gone until 30s | without expiry | with a spoilt expiry;
// put record of gone seen 5s: items of relays that the story does not tell of.
func readPut(_ *scenarioParser, w *words) func(*stage) error {
	if w.has("record of") {
		relay := w.take("a relay id")
		w.must("seen")
		at := w.duration("an instant")
		return func(t *stage) error {
			return t.put(outbox.RelaySortKey(relay), map[string]types.AttributeValue{outbox.AttrLastSeenUtc: ticksAt(at)})
		}
	}
	w.must("lease")
	buckets := w.buckets()
	w.must("of")
	item := map[string]types.AttributeValue{outbox.AttrOwner: &types.AttributeValueMemberS{Value: w.take("a relay id")}}
	switch {
	case w.has("until"):
		item[outbox.AttrExpiresAtUtc] = ticksAt(w.duration("an instant"))
	case w.has("with a spoilt expiry"):
		item[outbox.AttrExpiresAtUtc] = &types.AttributeValueMemberS{Value: "tomorrow"}
	default:
		w.must("without expiry")
	}
	return func(t *stage) error {
		for _, b := range buckets {
			if err := t.put(outbox.LeaseSortKey(b), item); err != nil {
				return err
			}
		}
		return nil
	}
}

func ticksAt(at time.Duration) types.AttributeValue {
	ticks := store.Instant{Wall: epoch + at}.Ticks()
	return &types.AttributeValueMemberN{Value: fmt.Sprint(int64(ticks))}
}

// put writes an item of the coordination partition.
func (t *stage) put(sortKey string, attributes map[string]types.AttributeValue) error {
	s := t.fleet.schema
	item := s.Key(s.CoordinationKey(), sortKey)
	for name, value := range attributes {
		item[name] = value
	}
	_, err := t.fleet.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &s.Table, Item: item})
	return err
}
