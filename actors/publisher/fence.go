package publisher

import (
	"strconv"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
)

// callGrace is how much longer than its timeout a call is waited for.
const callGrace = 5 * time.Second

// ask takes a bucket's wish for its fence. Rows of an earlier tenure are not
// wanted any more: the fence is given when they have ended.
func (f *fencing) ask(m Fence) {
	b := f.bucket(m.Bucket)
	x := f.fenceOf(b)
	f.answerFence(x, &Fault{Retriable, CodeNotFenced, "asked for anew"})
	f.dropWaiting(b)
	if b.active != nil {
		f.giveUp(x, &Fault{Retriable, CodeAbandoned, "a later tenure of the bucket has begun"})
	}
	if x.phase == initializing {
		f.release(x) // under another lease, perhaps
	}
	x.asked, x.leaving = &m, false
}

// settleFence answers the wish for a fence, and lets go of one that nobody wants.
// The bucket has no batch.
func (f *fencing) settleFence(x *fence) {
	if x.leaving && x.producer != nil {
		f.release(x)
	}
	if x.asked == nil || x.phase == initializing {
		return
	}
	if x.phase == held && x.holder.Equal(x.asked.ReplyTo) {
		f.answerFence(x, nil)
		return
	}
	if x.phase == held {
		f.release(x) // it was taken for an earlier tenure
	}
	if !f.renewed(x) {
		f.refuseFence(x, &Fault{Retriable, CodeLeaseTooOld, "the lease was not renewed lately"})
		return
	}
	x.phase = initializing
	x.producer = f.open(Options{TransactionalID: f.settings.TransactionalIDPrefix + "-" + strconv.Itoa(x.bucket.number)})
	x.producer.fence, x.producer.since = x, f.now
}

// renewed tells whether the lease was renewed less than one LeaseRenewInterval ago,
// and since another took the fence. What came first is asked of the monotonic clock:
// the wall clock may have been set back between the two.
func (f *fencing) renewed(x *fence) bool {
	if !x.lostAt.IsZero() && x.asked.NotAfter.Mono-x.lostAt.Mono <= f.settings.LeaseValidity {
		return false
	}
	return f.now.Until(x.asked.NotAfter) > f.settings.LeaseValidity-f.settings.LeaseRenewInterval
}

// conclude makes a call of the fence's producer.
func (f *fencing) conclude(x *fence, in phase, call Call) {
	f.calls++
	x.phase, x.call = in, f.calls
	number := x.producer.options.Number
	f.do(conclude{number, call, f.settings.CallTimeout})
	f.wake(f.settings.CallTimeout+callGrace, callDue{number, x.call})
}

// concluded takes the end of a call.
func (f *fencing) concluded(x *fence, m Concluded) {
	switch {
	case x.phase == initializing && m.Call == Initialize:
		f.initialized(x, m.Fault)
	case x.phase == committing && m.Call == Commit:
		f.commitEnded(x, m)
	case x.phase == aborting && m.Call == Abort:
		f.abortEnded(x, m.Fault)
	}
}

// initialized: the fence is taken, or it is not. A lease that has lapsed meanwhile
// may have a successor whose fence is older than this one: nothing is handed over.
func (f *fencing) initialized(x *fence, fault *Fault) {
	switch {
	case fault != nil:
		f.lose(x, fault)
	case x.asked.NotAfter.PassedAt(f.now):
		f.lose(x, &Fault{Retriable, CodeLeaseTooOld, "the lease has lapsed while the fence was taken"})
	default:
		p := x.producer
		x.phase, x.holder = held, x.asked.ReplyTo
		f.reached(p.options.Number)
		f.emit(event.FenceTaken{Bucket: x.bucket.number, Producer: p.options.Number, Took: actors.Elapsed(p.since, f.now)})
		f.answerFence(x, nil)
	}
}

// lose closes a producer that is of no use any more. What became of its
// transaction is not known: the next one to take the fence learns it from the
// broker, which has committed or aborted it by then.
func (f *fencing) lose(x *fence, fault *Fault) {
	p := x.producer
	f.noteLoss(x, fault)
	if x.phase == initializing {
		f.refuseFence(x, fault)
	} else {
		if fault.Class == Fenced {
			x.fault = fault // it says more than what came of it before
		}
		f.emit(event.ProducerFailed{Producer: p.options.Number, Code: fault.Code, Outstanding: p.outstanding})
		f.endTransaction(x, Unknown, fault)
	}
	f.release(x)
}

// noteLoss takes note of a fault that says that another has taken the fence.
func (f *fencing) noteLoss(x *fence, fault *Fault) {
	if fault.Class == Fenced {
		x.lostAt = f.now
	}
}

// release closes the fence's producer. Nothing is open.
func (f *fencing) release(x *fence) {
	p := x.producer
	x.phase, x.producer, x.holder = unfenced, nil, nil
	p.state = ending
	f.close(p, 0)
}

// refuseFence answers a wish that is not granted.
func (f *fencing) refuseFence(x *fence, fault *Fault) {
	f.emit(event.FenceFailed{Bucket: x.bucket.number, Code: fault.Code})
	f.answerFence(x, fault)
}

// answerFence answers the wish for the fence, if there is one.
func (f *fencing) answerFence(x *fence, fault *Fault) {
	if x.asked == nil {
		return
	}
	f.do(answerFence{x.asked.ReplyTo, FenceTaken{Bucket: x.bucket.number, Number: x.asked.Number, Fault: fault}})
	x.asked = nil
}

// leave: the bucket's lease has ended. Its transaction is aborted, and the producer
// closed after that, or after the grace.
func (f *fencing) leave(x *fence) {
	b := x.bucket
	f.answerFence(x, &Fault{Retriable, CodeAbandoned, "the bucket's lease has ended"})
	f.dropWaiting(b)
	x.leaving = true
	if x.phase == initializing {
		f.release(x)
	}
	if b.active == nil {
		return // the producer is closed when the bucket is served
	}
	f.giveUp(x, &Fault{Retriable, CodeAbandoned, "the bucket's lease has ended"})
	if x.open() {
		f.wake(f.core.cfg.AbandonGrace, graceOver{b.number, b.active.number})
	}
}
