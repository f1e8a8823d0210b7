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
	var halted map[batchName]bool // nil until something is refused
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
			if halted == nil {
				halted = map[batchName]bool{}
			}
			halted[name] = true
			refused.refusals = append(refused.refusals, refusal{e.producer, e.token, fault})
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
		case tell:
			f.tell(f.listener, e.message)
		case emit:
			f.observe(e.event)
		}
	}
	if len(refused.refusals) > 0 {
		feedback = slices.Insert(feedback, 0, any(refused))
	}
	return feedback
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
	f.producers[options.Number] = p
	f.last = options.Number
	return opened{options.Number}
}

func (f *performer) produce(e produce) *Fault {
	err := f.producers[e.producer].Produce(e.record, e.token)
	if err == nil {
		return nil
	}
	var fault *Fault
	if errors.As(err, &fault) {
		return fault
	}
	return &Fault{Class: Retriable, Code: "REFUSED", Text: err.Error()}
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
