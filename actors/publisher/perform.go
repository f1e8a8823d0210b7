package publisher

import (
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
)

// performer carries out the core's effects. It keeps the producers by number and
// feeds what they refuse back into the core before it takes the next message.
type performer struct {
	step      func(actors.Instant, any) []effect // the core's
	factory   Factory
	listener  *actor.PID
	sink      Sink
	now       func() actors.Instant
	after     func(time.Duration, any)
	send      func(*actor.PID, any)
	observe   func(event.Event)
	producers map[int]Producer
	last      int // the highest number among them, ever
}

// batchName is a batch among those of all buckets.
type batchName struct {
	bucket int
	batch  uint64
}

// handle takes one message through the core, and all that comes of it at once:
// what was refused before anything else, or the core would hand over rows behind
// one that it believes to be on its way.
func (f *performer) handle(message any) {
	inbox := []any{message}
	for len(inbox) > 0 {
		message, inbox = inbox[0], inbox[1:]
		inbox = append(f.perform(f.step(f.now(), message)), inbox...)
	}
}

// perform carries out one list of effects and returns the core's answers to it.
// Once a record of a batch was refused, the list's later records of that batch
// are held back: they must not pass it.
func (f *performer) perform(effects []effect) (feedback []any) {
	var refused notProduced
	var unbegun []any
	halted := map[batchName]bool{}
	for _, e := range effects {
		switch e := e.(type) {
		case openProducer:
			feedback = append(feedback, f.open(e.options))
		case produce:
			var fault *Fault
			name := batchName{e.token.Bucket, e.token.Batch}
			if !halted[name] {
				if fault = f.produce(e); fault == nil {
					continue
				}
			}
			halted[name] = true
			refused.refusals = append(refused.refusals, refusal{e.producer, e.token, fault})
		case begin:
			if fault := f.begin(e); fault != nil {
				halted[e.batch] = true
				unbegun = append(unbegun, notBegun{e.producer, fault})
			}
		case conclude:
			f.conclude(e)
		case purge:
			if p := f.producers[e.producer]; p != nil {
				p.Purge()
			}
		case describe:
			if p := f.producers[e.producer]; p != nil {
				p.Describe(e.topic)
			}
		case closeProducer:
			if p := f.producers[e.producer]; p != nil {
				p.Close()
				delete(f.producers, e.producer)
			}
		case wake:
			f.after(e.after, e.message)
		case answer:
			f.tell(e.to, e.published)
		case answerFence:
			f.tell(e.to, e.taken)
		case tell:
			f.tell(f.listener, e.message)
		case emit:
			f.observe(e.event)
		}
	}
	if len(refused.refusals) > 0 {
		feedback = slices.Insert(feedback, 0, any(refused))
	}
	return append(unbegun, feedback...)
}

func (f *performer) tell(to *actor.PID, message any) {
	if to != nil {
		f.send(to, message)
	}
}

func (f *performer) open(options Options) any {
	p, err := f.factory.Open(options, f.sink)
	if err != nil {
		return notOpened{options.Number, &Fault{Class: Retriable, Code: CodeNotOpened, Text: err.Error()}}
	}
	if _, transactional := p.(Transactional); options.TransactionalID != "" && !transactional {
		p.Close()
		return notOpened{options.Number, &Fault{Class: Fatal, Code: CodeNotOpened, Text: "the factory has no transactional producers"}}
	}
	f.producers[options.Number] = p
	f.last = options.Number
	return opened{options.Number}
}

func (f *performer) produce(e produce) *Fault {
	return faultOf(f.producers[e.producer].Produce(e.record, e.token))
}

// faultOf is the fault of a synchronous refusal; nil: there was none.
func faultOf(err error) *Fault {
	if err == nil {
		return nil
	}
	var fault *Fault
	if errors.As(err, &fault) {
		return fault
	}
	return &Fault{Class: Retriable, Code: "REFUSED", Text: err.Error()}
}

func (f *performer) begin(e begin) *Fault {
	return faultOf(f.producers[e.producer].(Transactional).Begin())
}

// conclude makes a call, unless the producer was closed in the meantime.
func (f *performer) conclude(e conclude) {
	p, open := f.producers[e.producer].(Transactional)
	if !open {
		return
	}
	switch e.call {
	case Initialize:
		p.Initialize(e.timeout)
	case Commit:
		p.Commit(e.timeout)
	case Abort:
		p.Abort(e.timeout)
	}
}

// closeAll closes what is open. The records' fates are not known any more.
func (f *performer) closeAll() {
	for number := range f.last + 1 {
		if p := f.producers[number]; p != nil {
			delete(f.producers, number)
			p.Close()
		}
	}
}
