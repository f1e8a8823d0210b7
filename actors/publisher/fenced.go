package publisher

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
)

// fencing is the algorithm of fenced mode (kafka.md): a transactional producer for
// each bucket whose fence was taken, and one plain producer that asks for topics'
// metadata and shows whether a broker answers.
//
// What it keeps, in one sentence each:
//
//   - a fence is taken only under a lease that was renewed less than one
//     LeaseRenewInterval ago, and after another has taken the fence only under one
//     that was renewed since: who can renew its lease is no zombie;
//   - nothing is handed over before the lease was seen to
//     be valid after the fence had been taken;
//   - a batch is a row of transactions, one after another, and each has consecutive
//     rows: the next one begins when the one before is committed;
//   - a row is acknowledged when its transaction is committed, never before;
//   - a row is refused only when it was alone in its transaction.
//
// Order is kept on each partition. Of two partitions a consumer sees one's records
// before the other's as their own transactions end, those of other buckets too; so
// one key on two partitions has no order that anyone could keep.
//
// The second line is what keeps a zombie's records from anyone:
// its lease was valid after its fence was taken, so its successor's lease began
// later, and the successor's fence is the younger one.
type fencing struct {
	*core
	settings Fencing
	calls    uint64 // made of transactional producers, ever
}

// fence is one bucket's right to publish: its transactional producer and what that
// one is doing.
type fence struct {
	bucket *bucket
	phase  phase
	// Invariant: nil exactly while the phase is unfenced.
	producer *producer
	asked    *Fence         // not answered yet; nil: none
	holder   *actor.PID     // the actor that the fence was taken for
	lostAt   actors.Instant // when another was last seen to have taken it; zero: never
	// leaving: the lease has ended; the producer is closed when no transaction is
	// open any more.
	leaving bool
	call    uint64 // number of the call under way
	tries   int    // of the present commit
	transaction
}

// transaction is what is open.
type transaction struct {
	// Its rows are [first, handed) of the active batch; it takes none from until on.
	// Invariant: first <= handed <= until.
	first, handed, until int
	fault                *Fault // why it is, or is to be, aborted; nil: it is not
}

// phase is what a fence is doing.
type phase uint8

const (
	unfenced     phase = iota // there is no producer
	initializing              // the producer takes the fence
	held                      // the fence is held, no transaction is open
	transacting               // rows are handed over
	committing
	aborting
)

// open tells whether a transaction is.
func (x *fence) open() bool { return x.phase >= transacting }

// alone tells whether the transaction has, and takes, one row only.
func (x *fence) alone() bool { return x.until == x.first+1 }

// take takes the messages that fenced mode has a meaning of its own for, and
// tells whether this was one.
func (f *fencing) take(message any) bool {
	switch m := message.(type) {
	case Fence:
		f.ask(m)
	case Abandon:
		f.leave(f.fenceOf(f.bucket(m.Bucket)))
	case notProduced:
		f.untaken(m)
	case graceOver:
		f.graceOver(m)
	default:
		x := f.concerned(message)
		if x == nil {
			return false
		}
		f.hear(x, message)
	}
	return true
}

// concerned is the fence whose producer a message is of; nil: it is of none.
func (f *fencing) concerned(message any) *fence {
	number := 0
	switch m := message.(type) {
	case opened:
		number = m.producer
	case notOpened:
		number = m.producer
	case notBegun:
		number = m.producer
	case callDue:
		number = m.producer
	case Reported:
		number = m.Producer
	case Fataled:
		number = m.Producer
	case Concluded:
		number = m.Producer
	}
	return f.fenceWith(number)
}

// fenceWith is the fence that has that producer; nil: none has.
func (f *fencing) fenceWith(number int) *fence {
	if p := f.producer(number); p != nil {
		return p.fence
	}
	return nil
}

// hear takes what a fence's own producer has to say.
func (f *fencing) hear(x *fence, message any) {
	switch m := message.(type) {
	case opened:
		f.core.take(m)
		f.conclude(x, initializing, Initialize)
	case notOpened:
		f.lose(x, m.fault)
	case notBegun:
		f.endTransaction(x, Failed, m.fault) // nothing was sent
		f.lose(x, m.fault)
	case Reported:
		f.reports(x, m)
	case Fataled:
		f.lose(x, m.Fault)
	case Concluded:
		f.concluded(x, m)
	case callDue:
		if m.number == x.call && x.phase != held && x.phase != transacting {
			f.lose(x, &Fault{Ambiguous, CodeTimedOut, "a transactional producer's call did not end"})
		}
	}
}

// fenceOf is a bucket's fence, made when it is first heard of.
func (f *fencing) fenceOf(b *bucket) *fence {
	if b.fence == nil {
		b.fence = &fence{bucket: b}
	}
	return b.fence
}

// serve hands over what may be handed over, answers what is over, and gives the
// fence, or takes it away, when nothing is open.
func (f *fencing) serve(b *bucket) {
	x := f.fenceOf(b)
	for b.active != nil {
		f.submit(x)
		if !x.over() {
			return
		}
		f.finish(b)
	}
	f.settleFence(x)
}

// over tells whether the active batch can be answered.
func (x *fence) over() bool {
	t := x.bucket.active
	return !x.open() && (t.stopped || t.pending == 0)
}
