package simulation

import (
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// brokerRequest is one produce request: consecutive records of one partition. It
// keeps its boundaries and sequences when it is sent again.
type brokerRequest struct {
	base    int // sequence of the first record
	epoch   int
	entries []brokerEntry
	topic   *brokerTopic       // that it was made for; nil: there was none
	attempt int                // counts the times it was sent
	settled bool               // its records have their reports, or never get any
	tx      *brokerTransaction // nil: none
}

// bytes is what the broker compares with max.message.bytes.
func (r *brokerRequest) bytes() int {
	n := brokerBatchOverhead
	for i, e := range r.entries {
		n += brokerRecordBytes(e.record, i)
	}
	return n
}

// brokerRecordBytes is the size of a record in a request of format 2.
func brokerRecordBytes(r publisher.Record, offset int) int {
	varint := func(n int) int {
		z, size := uint64(n<<1)^uint64(n>>63), 1
		for ; z >= 0x80; z >>= 7 {
			size++
		}
		return size
	}
	field := func(b []byte) int {
		if b == nil {
			return 1
		}
		return varint(len(b)) + len(b)
	}
	n := 2 + varint(offset) + field(r.Key) + field(r.Value) + varint(len(r.Headers))
	for _, h := range r.Headers {
		n += varint(len(h.Key)) + len(h.Key) + field(h.Value)
	}
	return varint(n) + n
}

func (p *brokerProducer) schedule(q *brokerQueue, d time.Duration) {
	if q.scheduled || p.closed {
		return
	}
	q.scheduled = true
	p.broker.cfg.Clock.At(d, func() {
		q.scheduled = false
		p.send(q)
	})
}

func (p *brokerProducer) scheduleAll(d time.Duration) {
	for _, q := range p.order {
		p.schedule(q, d)
	}
}

// send lets requests leave: repeats first, then new ones, up to the limit of
// requests in flight.
func (p *brokerProducer) send(q *brokerQueue) {
	if p.closed || p.fatal || !p.ready || p.session != nil && (p.session.tx == nil || p.session.failed) {
		return
	}
	if p.bumping && !p.bump() {
		return
	}
	for len(q.inFlight) < p.inFlight() {
		switch {
		case len(q.retry) > 0:
			r := q.retry[0]
			q.retry = q.retry[1:]
			p.dispatch(q, r)
		case len(q.waiting) > 0:
			p.dispatch(q, p.form(q))
		default:
			return
		}
	}
}

// inFlight is how many requests to one partition may be under way.
func (p *brokerProducer) inFlight() int {
	if p.options.Careful {
		return 1
	}
	return p.broker.cfg.InFlight
}

// form makes a request of the records at the head of the queue, whichever buckets
// they are of; of one record when the producer is careful.
func (p *brokerProducer) form(q *brokerQueue) *brokerRequest {
	n, size, most := 0, brokerBatchOverhead, p.broker.cfg.RequestRecords
	if p.options.Careful {
		most = 1
	}
	for n < len(q.waiting) && n < most {
		size += brokerRecordBytes(q.waiting[n].record, n)
		if n > 0 && size > p.options.MaxMessageBytes {
			break
		}
		n++
	}
	r := &brokerRequest{base: q.next, epoch: p.epoch, entries: q.waiting[:n:n], topic: p.broker.topics[q.topic]}
	if p.session != nil {
		r.tx = p.session.tx
	}
	q.waiting = q.waiting[n:]
	q.next += n
	return r
}

// dispatch puts a request on the wire.
func (p *brokerProducer) dispatch(q *brokerQueue, r *brokerRequest) {
	b := p.broker
	at := 0
	for at < len(q.inFlight) && q.inFlight[at].base < r.base {
		at++
	}
	q.inFlight = slices.Insert(q.inFlight, at, r)
	r.attempt++
	attempt := r.attempt
	now := b.cfg.Clock.Now()
	idle := now - q.lastSent
	if attempt > 1 || len(q.inFlight) > 1 || len(q.retry) > 0 {
		idle = 0 // it was waiting
	}
	var fault BrokerFault
	if f := b.cfg.Faults.Request; f != nil {
		fault = f(BrokerRequest{Owner: p.owner, Producer: p.options.Number, Careful: p.options.Careful, Topic: q.topic,
			Partition: q.partition, Records: len(r.entries), Idle: idle})
	}
	if fault.Forget { // while it was idle: not when the request, which may be stuck, arrives
		b.dropState(p, q)
	}
	q.lastSent = now
	p.arrival = max(p.arrival, now+b.latency()+fault.Delay)
	sent := *r // as it is on the wire, whatever becomes of the client's own
	b.cfg.Clock.At(p.arrival-now, func() {
		if b.unreachable(p.owner) || fault.LoseRequest || p.crashed && b.cfg.Rand.IntN(2) == 0 {
			b.cfg.Clock.At(b.latency(), func() { p.broken(q, r, attempt) })
			return
		}
		code := b.append(p, q, &sent, fault)
		b.cfg.Clock.At(b.latency(), func() {
			if fault.LoseAnswer {
				p.broken(q, r, attempt)
			} else {
				p.answered(q, r, attempt, code)
			}
		})
	})
	b.cfg.Clock.At(brokerSocketTimeout, func() {
		if p.awaits(r, attempt) {
			p.arrival = 0 // a new connection
			p.broken(q, r, attempt)
		}
	})
}

// awaits tells whether the client still waits for the answer to that attempt.
func (p *brokerProducer) awaits(r *brokerRequest, attempt int) bool {
	return !p.closed && !r.settled && r.attempt == attempt
}

// broken: there will be no answer; the request is sent again as it was.
func (p *brokerProducer) broken(q *brokerQueue, r *brokerRequest, attempt int) {
	if p.awaits(r, attempt) {
		r.attempt++ // an answer that comes nevertheless is not waited for
		p.again(q, r)
	}
}

// again moves a request from in flight to the repeats.
func (p *brokerProducer) again(q *brokerQueue, r *brokerRequest) {
	q.take(r)
	at := 0
	for at < len(q.retry) && q.retry[at].base < r.base {
		at++
	}
	q.retry = slices.Insert(q.retry, at, r)
	p.schedule(q, brokerRetryBackoff)
}

func (q *brokerQueue) take(r *brokerRequest) {
	q.inFlight = slices.DeleteFunc(q.inFlight, func(other *brokerRequest) bool { return other == r })
}

// answered takes the broker's answer to a request.
func (p *brokerProducer) answered(q *brokerQueue, r *brokerRequest, attempt int, code string) {
	if !p.awaits(r, attempt) {
		return
	}
	switch code {
	case "":
		p.settle(q, r, nil)
		p.schedule(q, 0)
	case brokerNotLeader:
		p.again(q, r)
	case brokerNoTopic:
		// The client gives up all that it has for the partition; it is not fatal.
		for _, r := range slices.Concat(q.inFlight, q.retry) {
			p.settle(q, r, brokerFault(code))
		}
		q.retry = nil
		if p.session != nil {
			p.session.failed = true
		}
	case brokerOutOfOrder:
		p.outOfOrder(q, r)
	default:
		p.settle(q, r, brokerFault(code))
		switch {
		case p.session != nil:
			p.session.failed = true
		case p.options.Careful:
			p.bumping = true
		default:
			p.fail(brokerGapless)
		}
	}
	if p.bumping {
		p.scheduleAll(0)
	}
}

// outOfOrder: an earlier request of the partition is still to be acknowledged, and
// this one follows it again; or something was lost for good.
func (p *brokerProducer) outOfOrder(q *brokerQueue, r *brokerRequest) {
	earlier := func(o *brokerRequest) bool { return o.base < r.base }
	switch {
	case p.fatal || slices.ContainsFunc(q.inFlight, earlier) || slices.ContainsFunc(q.retry, earlier):
		p.again(q, r)
	case p.session != nil:
		p.settle(q, r, brokerFault(brokerOutOfOrder))
		p.session.failed = true
	case p.options.Careful:
		p.bumping = true
		p.again(q, r)
	default:
		p.settle(q, r, brokerFault(brokerOutOfOrder))
		p.fail(brokerOutOfOrder)
	}
}

// settle reports all records of a request.
func (p *brokerProducer) settle(q *brokerQueue, r *brokerRequest, fault *publisher.Fault) {
	q.take(r)
	r.settled = true
	reports := make([]publisher.Report, 0, len(r.entries))
	for _, e := range r.entries {
		p.queued--
		reports = append(reports, publisher.Report{Token: e.token, Fault: fault})
	}
	p.report(reports)
}

// fail is the end of the producer: what waits is purged; what is in flight or to
// be repeated stays as it is until it is purged from outside.
func (p *brokerProducer) fail(code string) {
	if p.fatal {
		return
	}
	p.fatal = true
	p.post(publisher.Fataled{Producer: p.options.Number, Fault: brokerFault(code)})
	for _, q := range p.order {
		p.report(p.dropWaiting(q))
	}
}

// bump begins a new epoch as soon as nothing is in flight: all sequences begin at
// zero, and what is to be repeated gets new ones. So what was sent behind a
// rejected record is appended although that one never was.
func (p *brokerProducer) bump() bool {
	for _, q := range p.order {
		if len(q.inFlight) > 0 {
			return false
		}
	}
	p.bumping = false
	p.epoch++
	for _, q := range p.order {
		q.next = 0
		for _, r := range q.retry {
			r.base, r.epoch = q.next, p.epoch
			q.next += len(r.entries)
		}
	}
	p.scheduleAll(0)
	return true
}
