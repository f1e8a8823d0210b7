package publisher

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
)

// step gives the core one message through a real performer, whose ports write
// down what they are asked for.
func (s *stage) step(message any) {
	f := performer{
		factory:   s,
		now:       s.instant,
		producers: map[int]Producer{},
		observe:   s.observe,
		send:      s.send,
		listener:  audience,
		step: func(now actors.Instant, message any) []effect {
			effects := s.core.step(now, message)
			if err := s.core.checkInvariants(); err != nil {
				s.t.Errorf("at %v: %v", s.now, err)
			}
			return s.keepTimers(effects)
		},
	}
	for _, p := range s.core.producers {
		f.producers[p.options.Number] = s.scripted(p.options)
	}
	f.handle(message)
}

// audience is whom answers and tidings go to.
var audience = actor.NewPID("stage", "audience")

// keepTimers takes the timers out of the effects: the stage fires them itself, and
// a scenario does not show them.
func (s *stage) keepTimers(effects []effect) []effect {
	return slices.DeleteFunc(effects, func(e effect) bool {
		w, timed := e.(wake)
		if timed {
			s.timers = append(s.timers, timer{s.now + w.after, w.message})
		}
		return timed
	})
}

func (s *stage) send(_ *actor.PID, message any) {
	if taken, isFence := message.(FenceTaken); isFence {
		is := "held"
		if taken.Fault != nil {
			is = taken.Fault.Code
		}
		s.say("answer bucket %d: its fence is %s", taken.Bucket, is)
		return
	}
	published, isAnswer := message.(Published)
	if !isAnswer {
		s.say("tell %s", strings.TrimPrefix(fmt.Sprintf("%T", message), "publisher."))
		return
	}
	var results []string
	for _, r := range published.Results {
		result := r.Outcome.String()
		if r.Fault != nil {
			result += " (" + r.Fault.Code + ")"
		}
		results = append(results, result)
	}
	s.say("answer bucket %d: %s", published.Bucket, strings.Join(results, ", "))
}

func (s *stage) observe(e event.Event) {
	switch e := e.(type) {
	case event.RecordRejected:
		with := "with others"
		if e.Alone {
			with = "alone"
		}
		s.say("event %s %d:%d %s", e.EventName(), e.Bucket, e.Sequence, with)
	case event.ProducerFailed:
		s.say("event %s %d %s, %d outstanding", e.EventName(), e.Producer, e.Code, e.Outstanding)
	case event.ProducerRetired:
		s.say("event %s %d, %d without a report: %s", e.EventName(), e.Producer, e.Outstanding, e.Reason)
	case event.FenceTaken:
		s.say("event %s %d by %d, after %v", e.EventName(), e.Bucket, e.Producer, e.Took)
	case event.FenceFailed:
		s.say("event %s %d %s", e.EventName(), e.Bucket, e.Code)
	case event.TransactionAborted:
		s.say("event %s %d, %d rows: %s", e.EventName(), e.Bucket, e.Rows, e.Code)
	case event.BrokerReached:
		s.say("event %s after %v", e.EventName(), e.After)
	case event.BrokerUnreachable:
		s.say("event %s", e.EventName())
	}
}

// Open is the stage as a Factory.
func (s *stage) Open(o Options, _ Sink) (Producer, error) {
	what := fmt.Sprintf("limit %d", o.MaxMessageBytes)
	if o.Careful {
		what = "careful"
	}
	if o.TransactionalID != "" {
		what = o.TransactionalID
	}
	if s.noOpen != nil {
		s.say("open %d, %s: fails", o.Number, what)
		return nil, s.noOpen
	}
	s.say("open %d, %s", o.Number, what)
	return s.scripted(o), nil
}

func (s *stage) scripted(o Options) Producer {
	if o.TransactionalID != "" {
		return transactional{scripted{s, o.Number}}
	}
	return scripted{s, o.Number}
}

// scripted is a producer of the stage.
type scripted struct {
	s      *stage
	number int
}

func (p scripted) Produce(r Record, t Token) error {
	row := fmt.Sprintf("%d:%d", t.Bucket, t.Sequence)
	script := fmt.Sprint(p.number, " ", row)
	if fault, found := p.s.refusals[script]; found {
		delete(p.s.refusals, script)
		p.s.say("produce %d %s to %s/%d: refused %s", p.number, row, r.Topic, r.Partition, fault.Code)
		return fault
	}
	p.s.say("produce %d %s to %s/%d", p.number, row, r.Topic, r.Partition)
	return nil
}

func (p scripted) Purge()                { p.s.say("purge %d", p.number) }
func (p scripted) Close()                { p.s.say("close %d", p.number) }
func (p scripted) Describe(topic string) { p.s.say("describe %s by %d", topic, p.number) }

// transactional is a transactional producer of the stage.
type transactional struct{ scripted }

func (p transactional) Initialize(time.Duration) { p.s.say("initialize %d", p.number) }
func (p transactional) Commit(time.Duration)     { p.s.say("commit %d", p.number) }
func (p transactional) Abort(time.Duration)      { p.s.say("abort %d", p.number) }

func (p transactional) Begin() error {
	script := fmt.Sprint(p.number, " begin")
	if fault, found := p.s.refusals[script]; found {
		delete(p.s.refusals, script)
		p.s.say("begin %d: refused %s", p.number, fault.Code)
		return fault
	}
	p.s.say("begin %d", p.number)
	return nil
}
