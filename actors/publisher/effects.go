package publisher

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/event"
)

// An effect is what the core wants done. The performer carries them out in their
// order, which is a contract: a record that is behind another one in the list is
// handed to its producer after it.
type effect interface{ effect() }

type (
	// openProducer is answered by opened or notOpened before anything else.
	openProducer struct{ options Options }
	// produce hands one record over. A refusal is answered by notProduced; after it
	// no further produce of the same batch is carried out from the same list.
	produce struct {
		producer int
		record   Record
		token    Token
	}
	// purge, closeProducer and describe call the producer's methods.
	purge         struct{ producer int }
	closeProducer struct{ producer int }
	describe      struct {
		producer int
		topic    string
	}
	// wake sends the message back to the core when the time has gone by.
	wake struct {
		after   time.Duration
		message any
	}
	// begin begins a transaction. If that fails, notBegun answers, and no produce of
	// the batch is carried out from the same list.
	begin struct {
		producer int
		batch    batchName
	}
	// conclude makes a call of a transactional producer.
	conclude struct {
		producer int
		call     Call
		timeout  time.Duration
	}
	// answerFence sends one FenceTaken.
	answerFence struct {
		to    *actor.PID
		taken FenceTaken
	}
	// answer sends one Published.
	answer struct {
		to        *actor.PID
		published Published
	}
	// tell sends Connected, Disconnected or Unusable to the listener.
	tell struct{ message any }
	// emit tells the observers.
	emit struct{ event event.Event }
)

func (openProducer) effect()  {}
func (produce) effect()       {}
func (purge) effect()         {}
func (closeProducer) effect() {}
func (describe) effect()      {}
func (wake) effect()          {}
func (begin) effect()         {}
func (conclude) effect()      {}
func (answerFence) effect()   {}
func (answer) effect()        {}
func (tell) effect()          {}
func (emit) effect()          {}

// Messages of the performer to the core.
type (
	// start is the first message.
	start struct{}
	// opened and notOpened answer openProducer.
	opened    struct{ producer int }
	notOpened struct {
		producer int
		fault    *Fault
	}
	// notBegun answers begin.
	notBegun struct {
		producer int
		fault    *Fault
	}
	// notProduced answers all produce effects of one list that were not carried out.
	notProduced struct{ refusals []refusal }
	refusal     struct {
		producer int
		token    Token
		fault    *Fault // nil: held back, since an earlier record of the batch was refused
	}
)

// Messages of wake. Each carries what tells an outdated one apart.
type (
	// purgeDue: purge the ending producer again, or give it up.
	purgeDue struct{ producer int }
	// graceOver: an abandoned batch has had its time. Number is the core's own, since
	// a fresh actor of the bucket may count its batches from one again.
	graceOver struct {
		bucket int
		number uint64
	}
	// callDue: a transactional producer's call has had its time, and more. Number is
	// the call's own.
	callDue struct {
		producer int
		number   uint64
	}
	// memoryDue: records may have waited for too long behind another one.
	memoryDue struct {
		producer int
		place    place
	}
	// complaintDue: a producer may still reach no broker.
	complaintDue struct {
		producer int
		reason   string
	}
	// describeDue: a question for metadata has had its time.
	describeDue struct {
		topic string
		ask   uint64
	}
	// queueDue: a producer whose queue was full is offered records again.
	queueDue struct{ producer int }
	// reopenDue: a place without a producer has waited long enough.
	reopenDue struct{ slot *slot }
	// lettersDue: the dead-letter topic is asked for again.
	lettersDue struct{}
	// idleDue: a producer that nobody has used since is closed.
	idleDue struct {
		producer int
		uses     int
	}
)
