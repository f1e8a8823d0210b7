package publisher

import "github.com/bucketbrigade/relay/event"

// commitTries is how often a commit is called before its producer is given up.
const commitTries = 3

// submit hands over the active batch's rows, in order, as far as it goes now, and
// ends the transaction when it goes no further.
func (f *fencing) submit(x *fence) {
	t := x.bucket.active
	if x.phase == transacting && t.lapsed(f.now) {
		f.giveUp(x, &Fault{Retriable, CodeAbandoned, "the lease has lapsed"})
	}
	switch x.phase {
	case unfenced, initializing:
		if !t.stopped && t.pending > 0 {
			f.settle(t, t.next, Failed, &Fault{Retriable, CodeNotFenced, "the bucket's fence is not held"})
		}
		return
	case committing, aborting:
		return
	case held, transacting:
	}
	if t.lapsed(f.now) {
		t.stop()
	}
	for !t.stopped && f.more(x) {
		switch f.offerNext(x) {
		case pauses:
			return
		case waits:
			f.commitDelivered(x)
			return
		case handedOver:
		}
	}
	f.commitDelivered(x)
}

// more tells whether the batch has a row for the transaction that is open, or for
// one that is to begin.
func (f *fencing) more(x *fence) bool {
	t := x.bucket.active
	if x.phase == held {
		return t.pending > 0
	}
	return x.handed < x.until
}

// offerNext looks at the next row. It waits for the end of the transaction when
// the row cannot go by now, so that what is before it is not held up.
func (f *fencing) offerNext(x *fence) verdict {
	t, i := x.bucket.active, x.bucket.active.next
	if x.phase == transacting {
		i = x.handed
	}
	r := &t.rows[i]
	if !r.prepared && !f.prepare(t, i) {
		return waits
	}
	if x.producer.full || !r.lane.admits(r.bytes) || !f.budget.admits(x.bucket.bytes, r.bytes) {
		return pauses
	}
	if x.phase == held {
		f.begin(x, i)
	}
	r.lane.bytes += r.bytes
	x.handed = i + 1
	return f.handOver(t, i, x.producer)
}

// admits tells whether a record may join those that are outstanding on the
// partition. Of a topic with a small limit no more are outstanding than fit one
// request: the client would put more into one, and all would be rejected with it.
func (l *lane) admits(bytes int) bool {
	return l.poolBytes == defaultMessageBytes || l.bytes == 0 || l.bytes+bytes <= l.poolBytes
}

// begin begins a transaction at row i. While a guilty row is looked for it has that
// row alone.
func (f *fencing) begin(x *fence, i int) {
	t := x.bucket.active
	x.phase = transacting
	x.transaction = transaction{first: i, handed: i, until: len(t.rows)}
	if t.request.Rows[i].Sequence <= x.bucket.careful {
		x.until = i + 1
	}
	f.do(begin{x.producer.options.Number, batchName{x.bucket.number, t.request.Batch}})
}

// reports takes a burst of delivery reports. A record that failed fails its
// transaction; a rejection counts against it only when it was alone.
func (f *fencing) reports(x *fence, m Reported) {
	x.producer.full = false
	told := x.fault != nil && x.fault.Class == Rejected
	for _, report := range m.Reports {
		t, i, found := f.locate(m.Producer, report.Token)
		if !found {
			continue
		}
		f.deliver(t, i)
		if report.Fault == nil {
			x.producer.proven = true
			f.reached(m.Producer)
			continue
		}
		f.blame(x, i, report.Fault)
		if report.Fault.Code == CodeTooLarge {
			f.outgrown(t.rows[i].lane, x.alone())
		}
		if report.Fault.Class == Rejected && !x.alone() && !told {
			told = true
			f.tellRejected(t, i, report.Fault, false)
		}
	}
	if x.fault != nil && x.phase == transacting {
		f.abort(x)
	}
}

// deliver: the row has its report.
func (f *fencing) deliver(t *batch, i int) {
	r := &t.rows[i]
	r.lane.bytes -= r.bytes
	f.takeBack(t, i)
	r.state = delivered
}

// blame notes why the transaction fails. A rejection says more than what comes of
// it for the others.
func (f *fencing) blame(x *fence, i int, fault *Fault) {
	t := x.bucket.active
	f.noteLoss(x, fault)
	switch fault.Class {
	case Rejected:
		x.bucket.careful = max(x.bucket.careful, t.request.Rows[i].Sequence)
	case Retriable:
		f.doubt(t.request.Rows[i].Message.Topic)
	}
	if x.fault == nil || fault.Class == Rejected && x.fault.Class != Rejected {
		x.fault = fault
	}
	t.stop()
}

// untaken takes back rows that the producer did not take. Those without a fault were
// held back behind one that has: they are pending as before.
func (f *fencing) untaken(m notProduced) {
	for _, refusal := range m.refusals {
		t, i, found := f.locate(refusal.producer, refusal.token)
		if !found {
			continue
		}
		x, p := t.bucket.fence, t.rows[i].via
		f.deliver(t, i)
		if refusal.fault != nil && refusal.fault.Code != CodeQueueFull {
			f.blame(x, i, refusal.fault)
			continue
		}
		t.rows[i].state = pending
		t.pending++
		x.handed = min(x.handed, i)
		if refusal.fault != nil {
			f.notTaken(t, i, p, refusal.fault)
		}
	}
	for _, refusal := range m.refusals {
		if x := f.fenceWith(refusal.producer); x != nil && x.fault != nil && x.phase == transacting {
			f.abort(x)
		}
	}
}

// commitDelivered commits the transaction when all its rows are delivered.
func (f *fencing) commitDelivered(x *fence) {
	t := x.bucket.active
	switch {
	case x.phase != transacting || t.outstanding > 0:
		return
	case x.handed == x.first: // the producer's queue was full
		if t.stopped {
			f.giveUp(x, &Fault{Retriable, CodeAbandoned, "the batch was stopped"})
		}
		return
	}
	x.tries = 1
	f.conclude(x, committing, Commit)
}

// commitEnded: after a commit that timed out only commit may be called again.
func (f *fencing) commitEnded(x *fence, m Concluded) {
	switch {
	case m.Fault == nil:
		f.committed(x)
	case m.MustAbort:
		f.noteLoss(x, m.Fault)
		x.fault = m.Fault
		f.abort(x)
	case unusable(m.Fault) || x.tries == commitTries:
		f.lose(x, m.Fault)
	default:
		x.tries++
		f.conclude(x, committing, Commit)
	}
}

func unusable(fault *Fault) bool { return fault.Class == Fatal || fault.Class == Fenced }

// committed: the transaction's rows are acknowledged.
func (f *fencing) committed(x *fence) {
	t := x.bucket.active
	x.phase = held
	t.next = x.handed
	for i := x.first; i < x.handed; i++ {
		f.acknowledged(t, i, x.producer)
	}
	x.transaction = transaction{}
}

// giveUp ends the active batch: what is open is aborted.
func (f *fencing) giveUp(x *fence, fault *Fault) {
	x.bucket.active.stop()
	if x.phase == transacting {
		if x.fault == nil {
			x.fault = fault
		}
		f.abort(x)
	}
}

// abort drops the transaction's records. What has no report is purged first: the
// client's abort waits for it, and at times for ever. The producer is closed after
// that, since librdkafka purges the first records of the transaction that follows
// one with a failed record; measured, it takes longer to find that out than to open
// another producer.
func (f *fencing) abort(x *fence) {
	x.bucket.active.stop()
	f.do(purge{x.producer.options.Number})
	f.conclude(x, aborting, Abort)
}

// abortEnded: when the abort failed, the next producer ends the transaction by
// taking the fence.
func (f *fencing) abortEnded(x *fence, fault *Fault) {
	if fault != nil {
		f.lose(x, fault)
		return
	}
	f.emit(event.TransactionAborted{Bucket: x.bucket.number, Rows: x.handed - x.first, Code: x.fault.Code})
	f.endTransaction(x, Failed, x.fault)
	f.release(x)
}

// endTransaction settles the rows of a transaction that was not committed. One that
// was rejected when it was alone is refused.
func (f *fencing) endTransaction(x *fence, outcome Outcome, fault *Fault) {
	t := x.bucket.active
	if x.fault != nil {
		fault = x.fault
	}
	for i := x.first; i < x.handed; i++ {
		if t.rows[i].state == outstanding {
			f.deliver(t, i)
		}
		if fault.Class == Rejected && x.alone() {
			x.bucket.convict(t.request.Rows[i].Sequence)
			f.refuse(t, i, fault)
		} else {
			f.settle(t, i, outcome, fault)
		}
	}
	if t != nil {
		t.next = max(t.next, x.handed)
		t.stop()
	}
	x.transaction = transaction{}
}

// graceOver gives up an abandoned bucket's transaction that is still open.
func (f *fencing) graceOver(m graceOver) {
	b := f.bucket(m.bucket)
	if b.active == nil || b.active.number != m.number || !b.fence.open() {
		return
	}
	x := b.fence
	f.emit(event.ProducerRetired{
		Producer: x.producer.options.Number, Reason: "a bucket's lease ended with a transaction open", Outstanding: x.producer.outstanding,
	})
	f.endTransaction(x, Unknown, &Fault{Ambiguous, CodeTimedOut, "the transaction did not end in time"})
	f.release(x)
}
