package simulation

import (
	"strconv"
	"strings"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// watch is a factory whose producers are watched: no relay submits a record of a
// bucket whose lease is not valid.
func (c *checker) watch(p *process, f publisher.Factory) publisher.Factory {
	return watchedFactory{c, p, f}
}

type watchedFactory struct {
	checker *checker
	process *process
	publisher.Factory
}

// Open opens a watched producer.
func (f watchedFactory) Open(o publisher.Options, sink publisher.Sink) (publisher.Producer, error) {
	watched := func(message any) {
		f.checker.witness(f.process).reported(message)
		sink(message)
	}
	producer, err := f.Factory.Open(o, watched)
	w := watchedProducer{producer, f.checker, f.process, o.Number}
	if t, transactional := producer.(publisher.Transactional); transactional {
		f.checker.witness(f.process).transactions[o.Number] = nil
		return watchedTransactional{w, t, bucketOf(o.TransactionalID)}, err
	}
	return w, err
}

// bucketOf is the bucket that a transactional id is for.
func bucketOf(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, transactionalIDPrefix+"-"))
	if err != nil {
		panic("simulation: a transactional id of nobody: " + id)
	}
	return n
}

type watchedProducer struct {
	publisher.Producer
	checker *checker
	process *process
	number  int
}

// Produce checks the lease and passes the record on.
func (w watchedProducer) Produce(r publisher.Record, t publisher.Token) error {
	if w.process.ended {
		w.checker.about(w.process.name, t.Bucket).violated("I-33", "%s submits row %d of bucket %d although its relay has ended", w.process.name, t.Sequence, t.Bucket)
	}
	if !w.checker.holds(w.process, t.Bucket) {
		w.checker.about(w.process.name, t.Bucket).violated("I-6", "%s submits row %d of bucket %d without a valid lease", w.process.name, t.Sequence, t.Bucket)
	}
	err := w.Producer.Produce(r, t)
	if err == nil {
		w.checker.submits(w.process, t)
		w.checker.witness(w.process).submitted(w.checker, w.process, t, r.Topic, w.number)
	}
	return err
}

// Close passes the end on.
func (w watchedProducer) Close() {
	w.checker.witness(w.process).closed(w.number)
	w.Producer.Close()
}

// watchedTransactional is a watched producer with transactions.
type watchedTransactional struct {
	watchedProducer
	transactional publisher.Transactional
	bucket        int
}

// Initialize checks that the fence is taken under a lease that was renewed less than
// one LeaseRenewInterval ago.
func (w watchedTransactional) Initialize(timeout time.Duration) {
	c, p := w.checker, w.process
	if age := c.renewed(p, w.bucket); age >= c.fleet.o.LeaseRenewInterval {
		c.about(p.name, w.bucket).violated("I-42", "%s takes the fence of bucket %d under a lease that was renewed %v ago", p.name, w.bucket, age)
	}
	w.transactional.Initialize(timeout)
}

// Begin, Commit and Abort pass the call on.
func (w watchedTransactional) Begin() error                 { return w.transactional.Begin() }
func (w watchedTransactional) Commit(timeout time.Duration) { w.transactional.Commit(timeout) }
func (w watchedTransactional) Abort(timeout time.Duration)  { w.transactional.Abort(timeout) }
