package simulation

import (
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
)

const (
	brokerRecordOverhead = 36 // of one record, as the client counts it
	brokerBatchOverhead  = 61 // of one request, as the broker counts it
	brokerSocketTimeout  = 30 * time.Second
	brokerRetryBackoff   = 100 * time.Millisecond
	brokerUnreachedAfter = time.Second
)

// brokerPlace is one partition.
type brokerPlace struct {
	topic     string
	partition int32
}

// brokerProducer models one librdkafka producer with idempotence, and, unless it is
// careful or transactional, without a message timeout and with the gap-less
// guarantee.
type brokerProducer struct {
	broker  *Broker
	owner   string
	options publisher.Options
	sink    publisher.Sink
	pid     int64
	epoch   int
	ready   bool // has its producer id
	closed  bool
	crashed bool
	fatal   bool
	session *brokerSession // nil: it has no transactional id
	// bumping: waits until nothing is in flight, to begin a new epoch.
	bumping bool
	queued  int // records without a report
	queues  map[brokerPlace]*brokerQueue
	order   []*brokerQueue // as they were made
	// arrival is when the last request on the present connection arrives: no later one
	// overtakes it.
	arrival time.Duration
}

// brokerQueue is a producer's way to one partition.
type brokerQueue struct {
	brokerPlace
	waiting   []brokerEntry    // not in a request yet
	retry     []*brokerRequest // to be sent again, ascending
	inFlight  []*brokerRequest // ascending
	next      int              // sequence of the next new record
	scheduled bool
	lastSent  time.Duration
}

type brokerEntry struct {
	record publisher.Record
	token  publisher.Token
}

// Produce takes one record into the queue.
func (p *brokerProducer) Produce(r publisher.Record, t publisher.Token) error {
	topic, known := p.broker.topics[r.Topic]
	switch {
	case p.closed:
		return &publisher.Fault{Class: publisher.Retriable, Code: "_STATE", Text: "closed"}
	case p.session != nil && (p.session.tx == nil || p.session.failed || p.session.fenced):
		return &publisher.Fault{Class: publisher.Retriable, Code: "_STATE", Text: "no transaction takes records"}
	case p.fatal:
		return &publisher.Fault{Class: publisher.Fatal, Code: "_FATAL", Text: "a fatal error came before"}
	case !legalTopic(r.Topic):
		return brokerFault(brokerTopicException)
	case brokerPayload(r)+brokerRecordOverhead > p.options.MaxMessageBytes:
		return brokerFault(brokerTooLarge)
	case p.queued >= p.broker.cfg.QueueRecords, p.broker.cfg.Faults.Full != nil && p.broker.cfg.Faults.Full(p.owner):
		return &publisher.Fault{Class: publisher.Retriable, Code: publisher.CodeQueueFull, Text: "the queue is full"}
	case known && int(r.Partition) >= len(topic.partitions):
		return &publisher.Fault{Class: publisher.Retriable, Code: publisher.CodeUnknownPartition, Text: "no such partition"}
	}
	q := p.queue(brokerPlace{r.Topic, r.Partition})
	q.waiting = append(q.waiting, brokerEntry{r, t})
	p.queued++
	linger := p.broker.cfg.Linger
	if p.options.Careful {
		linger = 0
	}
	p.schedule(q, linger)
	return nil
}

func (p *brokerProducer) queue(at brokerPlace) *brokerQueue {
	q, known := p.queues[at]
	if !known {
		q = &brokerQueue{brokerPlace: at}
		p.queues[at] = q
		p.order = append(p.order, q)
	}
	return q
}

// Purge drops everything. Requests on the wire may still be applied. A gap-less
// producer that had anything to drop is finished.
func (p *brokerProducer) Purge() {
	var reports []publisher.Report
	dropped := false
	for _, q := range p.order {
		for _, r := range slices.Concat(q.inFlight, q.retry) {
			dropped = true
			r.settled = true
			for _, e := range r.entries {
				p.queued--
				if mute := p.broker.cfg.Faults.Mute; mute == nil || !mute(e.token) {
					reports = append(reports, publisher.Report{Token: e.token, Fault: brokerFault(brokerPurgedInFlight)})
				}
			}
		}
		q.inFlight, q.retry = nil, nil
		dropped = dropped || len(q.waiting) > 0
		reports = append(reports, p.dropWaiting(q)...)
	}
	if p.session != nil {
		p.session.failed = p.session.failed || dropped
	} else if dropped && !p.options.Careful && !p.fatal {
		p.fatal = true
		p.post(publisher.Fataled{Producer: p.options.Number, Fault: brokerFault(brokerGapless)})
	}
	p.report(reports)
}

// Describe asks for a topic's metadata.
func (p *brokerProducer) Describe(topic string) {
	d := 2 * p.broker.latency()
	if p.broker.unreachable(p.owner) {
		d = 5 * time.Second
	}
	p.broker.cfg.Clock.At(d, func() { p.post(p.broker.describe(p, topic)) })
}

// Close ends the producer. Reports are dropped, requests on the wire may land.
func (p *brokerProducer) Close() {
	p.closed = true
	p.broker.forget(p)
}

// greet learns whether the cluster answers, and gets the producer id with the
// first answer.
func (p *brokerProducer) greet() {
	if p.closed {
		return
	}
	if p.broker.unreachable(p.owner) {
		p.broker.cfg.Clock.At(brokerUnreachedAfter, func() {
			if p.broker.unreachable(p.owner) {
				p.post(publisher.Unreached{Producer: p.options.Number, Reason: "no broker answers"})
			}
		})
		return
	}
	p.ready = true
	p.post(publisher.Reached{Producer: p.options.Number})
	p.scheduleAll(0)
}

// post sends a message to the sink, in order, never from within a call.
func (p *brokerProducer) post(message any) {
	p.broker.cfg.Clock.At(0, func() {
		if !p.closed {
			p.sink(message)
		}
	})
}

func (p *brokerProducer) report(reports []publisher.Report) {
	if len(reports) > 0 {
		p.post(publisher.Reported{Producer: p.options.Number, Reports: reports})
	}
}

func (p *brokerProducer) dropWaiting(q *brokerQueue) []publisher.Report {
	var reports []publisher.Report
	for _, e := range q.waiting {
		p.queued--
		reports = append(reports, publisher.Report{Token: e.token, Fault: brokerFault(brokerPurgedQueue)})
	}
	q.waiting = nil
	return reports
}

// brokerPayload is what the client counts of a record beside its overhead.
func brokerPayload(r publisher.Record) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value) + 2
	}
	return n
}
