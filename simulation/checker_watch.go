package simulation

import "github.com/bucketbrigade/relay/actors/publisher"

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
	return watchedProducer{producer, f.checker, f.process, o.Number}, err
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
		w.checker.witness(w.process).submitted(w.checker, w.process, t, r.Topic, w.number)
	}
	return err
}

// Close passes the end on.
func (w watchedProducer) Close() {
	w.checker.witness(w.process).closed(w.number)
	w.Producer.Close()
}
