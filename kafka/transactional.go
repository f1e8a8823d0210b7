package kafka

import (
	"context"
	"errors"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// transactional is a producer with a transactional id. The client's calls block
// their thread until the coordinator has answered or their time is over, so each
// runs in the background; Close waits for the one that is under way.
type transactional struct{ *producer }

var _ publisher.Transactional = transactional{}

// Initialize implements publisher.Transactional.
func (t transactional) Initialize(timeout time.Duration) {
	t.call(publisher.Initialize, timeout, t.client.InitTransactions)
}

// Commit implements publisher.Transactional.
func (t transactional) Commit(timeout time.Duration) {
	t.call(publisher.Commit, timeout, t.client.CommitTransaction)
}

// Abort implements publisher.Transactional.
func (t transactional) Abort(timeout time.Duration) {
	t.call(publisher.Abort, timeout, t.client.AbortTransaction)
}

// Begin implements publisher.Transactional. The client only notes it.
func (t transactional) Begin() error {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.closed {
		return t.codes.fault(ck.ErrState)
	}
	if err := t.client.BeginTransaction(); err != nil {
		return t.codes.verdict(err).Fault
	}
	return nil
}

func (t transactional) call(call publisher.Call, timeout time.Duration, do func(context.Context) error) {
	if !t.enter() {
		return
	}
	go func() {
		defer t.calls.Done()
		// Not the producer's own life: the client does not look at a context's end, only
		// at its deadline.
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		concluded := t.codes.verdict(do(ctx))
		concluded.Producer, concluded.Call = t.number, call
		t.emit(concluded)
	}()
}

// verdict is what the end of a transactional call means for what may follow. The
// client says itself whether the call may be made again, or the transaction must
// be aborted; of whatever is neither, the producer does not recover.
func (b codebook) verdict(err error) publisher.Concluded {
	if err == nil {
		return publisher.Concluded{}
	}
	var e ck.Error
	if !errors.As(err, &e) {
		return publisher.Concluded{Fault: &publisher.Fault{Class: publisher.Fatal, Code: "CLIENT", Text: err.Error()}}
	}
	fault := b.fault(e.Code())
	fault.Text = e.String()
	switch {
	case e.TxnRequiresAbort() && !e.IsFatal():
		return publisher.Concluded{Fault: fault, MustAbort: true}
	case fault.Class == publisher.Fenced:
	case e.IsRetriable() && !e.IsFatal(), e.IsTimeout():
		if fault.Class == publisher.Fatal {
			fault.Class = publisher.Ambiguous // of this call only
		}
	default:
		fault.Class = publisher.Fatal
	}
	return publisher.Concluded{Fault: fault}
}
