package simulation

import (
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// brokerTransactionTimeout is how long the coordinator lets a transaction be open,
// and the client a record of one be without a report.
const brokerTransactionTimeout = 30 * time.Second

// brokerID is what the coordinator knows of a transactional id. The producer with
// the present epoch is the one that may use it.
type brokerID struct {
	pid   int64
	epoch int
	open  *brokerTransaction // nil: none
}

// brokerTransaction is one transaction. Its client makes it; the coordinator knows
// of it with its first record.
type brokerTransaction struct {
	state      transactionState
	partitions []*brokerPartition // that have records of it
}

type transactionState uint8

const (
	transactionOpen transactionState = iota
	transactionCommitted
	transactionAborted
)

// brokerSession is what a transactional producer's client knows.
type brokerSession struct {
	id          *brokerID
	initialized bool
	fenced      bool
	tx          *brokerTransaction // begun and not ended; nil: none
	failed      bool               // it can only be aborted
	committing  bool               // a commit of it timed out: it can only be committed
}

// brokerTransactional is a producer with a transactional id.
type brokerTransactional struct{ *brokerProducer }

var _ publisher.Transactional = brokerTransactional{}

func (b *Broker) transactionalID(name string) *brokerID {
	id, known := b.ids[name]
	if !known {
		b.lastPID++
		id = &brokerID{pid: b.lastPID}
		b.ids[name] = id
	}
	return id
}

// Initialize takes the fence: what is open is aborted, and the epoch is the next.
func (t brokerTransactional) Initialize(timeout time.Duration) {
	p, id := t.brokerProducer, t.session.id
	epoch := 0
	p.conclude(publisher.Initialize, timeout, func() string {
		p.broker.endTransaction(id.open, transactionAborted)
		id.open = nil
		id.epoch++
		epoch = id.epoch
		return ""
	}, func() {
		p.pid, p.epoch, p.session.initialized = id.pid, epoch, true
	})
}

// Begin begins a transaction, in the client only.
func (t brokerTransactional) Begin() error {
	p, s := t.brokerProducer, t.session
	switch {
	case s.fenced:
		return brokerFault(brokerOldEpoch)
	case p.closed, !s.initialized, s.tx != nil:
		return &publisher.Fault{Class: publisher.Fatal, Code: "_STATE", Text: "not the state to begin a transaction in"}
	}
	tx := &brokerTransaction{}
	s.tx, s.failed, s.committing = tx, false, false
	p.broker.cfg.Clock.At(brokerTransactionTimeout, func() {
		if s.tx == tx && !p.closed {
			p.expire()
		}
	})
	return nil
}

// Commit makes the transaction's records visible.
func (t brokerTransactional) Commit(timeout time.Duration) {
	p, s := t.brokerProducer, t.session
	if s.failed {
		p.post(publisher.Concluded{Producer: p.options.Number, Call: publisher.Commit, MustAbort: true,
			Fault: &publisher.Fault{Class: publisher.Retriable, Code: "_STATE", Text: "a record of the transaction failed"}})
		return
	}
	s.committing = true
	p.conclude(publisher.Commit, timeout, p.end(transactionCommitted), func() { s.tx, s.committing = nil, false })
}

// Abort drops what has no report, and then the transaction. The producer goes on in
// the next epoch: what it had on the wire is refused.
func (t brokerTransactional) Abort(timeout time.Duration) {
	p, s := t.brokerProducer, t.session
	if s.committing {
		p.post(publisher.Concluded{Producer: p.options.Number, Call: publisher.Abort,
			Fault: &publisher.Fault{Class: publisher.Fatal, Code: "_CONFLICT", Text: "a commit timed out before"}})
		return
	}
	p.Purge()
	end, id := p.end(transactionAborted), s.id
	next := 0
	p.conclude(publisher.Abort, timeout, func() string {
		code := end()
		if code == "" && next == 0 {
			id.epoch++
			next = id.epoch
		}
		return code
	}, func() {
		s.tx, s.failed, p.epoch = nil, false, next
		for _, q := range p.order {
			q.next = 0
		}
	})
}

// end is the coordinator's part of a commit or an abort, which may be asked for
// more than once.
func (p *brokerProducer) end(as transactionState) func() string {
	id, tx, epoch := p.session.id, p.session.tx, p.epoch
	done := false
	return func() string {
		switch {
		case done:
			return ""
		case id.epoch != epoch, tx == nil, tx.state != transactionOpen && tx.state != as:
			return brokerOldEpoch
		}
		done = true
		p.broker.endTransaction(tx, as)
		if id.open == tx {
			id.open = nil
		}
		return ""
	}
}

// conclude makes a call: apply is what the coordinator does, each time that the
// request arrives, done what the client does with its answer. The client repeats
// what gets no answer until the timeout.
func (p *brokerProducer) conclude(call publisher.Call, timeout time.Duration, apply func() string, done func()) {
	b := p.broker
	deadline := b.cfg.Clock.Now() + timeout
	concluded := false
	conclude := func(fault *publisher.Fault) {
		if concluded || p.closed {
			return
		}
		concluded = true
		if fault == nil {
			done()
		} else if fault.Class == publisher.Fenced {
			p.session.fenced = true
		}
		p.post(publisher.Concluded{Producer: p.options.Number, Call: call, Fault: fault})
	}
	b.cfg.Clock.At(timeout, func() {
		conclude(&publisher.Fault{Class: publisher.Ambiguous, Code: publisher.CodeTimedOut, Text: "the coordinator did not answer"})
	})
	var try func()
	try = func() {
		if concluded || p.closed || b.cfg.Clock.Now() >= deadline {
			return
		}
		var fault BrokerFault
		if f := b.cfg.Faults.Conclude; f != nil {
			fault = f(p.owner, call)
		}
		b.cfg.Clock.At(b.latency()+fault.Delay, func() {
			if b.unreachable(p.owner) || fault.LoseRequest || fault.FailOver || p.crashed && b.cfg.Rand.IntN(2) == 0 {
				b.cfg.Clock.At(brokerRetryBackoff, try)
				return
			}
			code := apply()
			b.cfg.Clock.At(b.latency(), func() {
				switch {
				case fault.LoseAnswer:
					b.cfg.Clock.At(brokerRetryBackoff, try)
				case code == "":
					conclude(nil)
				default:
					conclude(brokerFault(code))
				}
			})
		})
	}
	try()
}

// expire: the records that have no report by now have timed out.
func (p *brokerProducer) expire() {
	var reports []publisher.Report
	for _, q := range p.order {
		for _, r := range slices.Concat(q.inFlight, q.retry) {
			p.settle(q, r, brokerFault(brokerTimedOut))
		}
		q.retry = nil
		for _, e := range q.waiting {
			p.queued--
			reports = append(reports, publisher.Report{Token: e.token, Fault: brokerFault(brokerTimedOut)})
		}
		q.waiting = nil
	}
	p.session.failed = true
	p.report(reports)
}

// join is the coordinator's look at a request's transaction; "" when it may be
// appended. The first request makes the transaction known, and its time begins.
func (b *Broker) join(id *brokerID, r *brokerRequest) string {
	switch {
	case id.epoch != r.epoch, r.tx.state != transactionOpen, id.open != nil && id.open != r.tx:
		return brokerOldEpoch
	case id.open == nil:
		id.open = r.tx
		b.cfg.Clock.At(brokerTransactionTimeout, func() {
			if id.open == r.tx {
				id.open = nil
				id.epoch++
				b.endTransaction(r.tx, transactionAborted)
			}
		})
	}
	return ""
}

// endTransaction writes the markers: consumers read on, in the order of offsets.
func (b *Broker) endTransaction(tx *brokerTransaction, as transactionState) {
	if tx == nil || tx.state != transactionOpen {
		return
	}
	tx.state = as
	if len(tx.partitions) > 0 {
		b.lastOpen = b.cfg.Clock.Now()
	}
	for _, partition := range tx.partitions {
		b.show(partition)
	}
}

// store appends a record to a partition.
func (b *Broker) store(partition *brokerPartition, record BrokerRecord) {
	if tx := record.tx; tx != nil && !slices.Contains(tx.partitions, partition) {
		tx.partitions = append(tx.partitions, partition)
	}
	partition.end++
	partition.unstable = append(partition.unstable, record)
	b.show(partition)
}

// show lets consumers see what is stable: all up to the first record whose
// transaction is open, but for those whose transaction was aborted.
func (b *Broker) show(partition *brokerPartition) {
	for len(partition.unstable) > 0 {
		r := partition.unstable[0]
		if r.tx != nil && r.tx.state == transactionOpen {
			return
		}
		partition.unstable = partition.unstable[1:]
		if r.tx != nil && r.tx.state == transactionAborted {
			continue
		}
		r.tx = nil
		if len(b.log) == cap(b.log) { // append would grow a long one by a quarter only
			b.log = slices.Grow(b.log, len(b.log)+1)
		}
		b.log = append(b.log, r)
		if b.cfg.Appended != nil {
			b.cfg.Appended(r)
		}
	}
}

// Open tells whether a transaction has records that are neither committed nor aborted.
// What others append behind them no consumer of committed records sees.
func (b *Broker) Open() bool {
	for _, id := range b.ids { // the order does not matter
		if id.open != nil {
			return true
		}
	}
	return false
}

// OpenUntil is the last instant at which a transaction was open: the present one while
// one is, and 0 when none ever was. Until then one partition's records may have been held
// back while consumers saw another's.
func (b *Broker) OpenUntil() time.Duration {
	if b.Open() {
		return b.cfg.Clock.Now()
	}
	return b.lastOpen
}

// Unseen tells whether a committed record is held back from consumers, since an
// earlier one of its partition is in a transaction that is open.
func (b *Broker) Unseen(match func(BrokerRecord) bool) bool {
	for _, id := range b.ids { // the order does not matter
		if id.open == nil {
			continue
		}
		for _, partition := range id.open.partitions {
			for _, r := range partition.unstable {
				if (r.tx == nil || r.tx.state == transactionCommitted) && match(r) {
					return true
				}
			}
		}
	}
	return false
}
