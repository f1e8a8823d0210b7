package kafka

import (
	"errors"
	"fmt"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// maxBurst bounds the reports of one message to the sink.
const maxBurst = 1024

// reader is the one that takes what a producer's client says, for the client's
// whole life. It waits for nothing but the client: an unread event would stop
// the client's poller, and with it every report of this producer.
type reader struct {
	producer *producer
	events   <-chan ck.Event
	burst    []publisher.Report                // read, not yet given to the sink
	faults   map[ck.ErrorCode]*publisher.Fault // reports of one code share one fault
	fataled  bool
}

// readAll runs until the client is freed. Logs are taken and dropped: what matters
// of them comes as events too, and unread ones would go to stderr, where they
// would break the relay's own lines.
func (p *producer) readAll(logs <-chan ck.LogEvent) {
	defer close(p.read)
	r := &reader{producer: p, events: p.client.Events(), faults: make(map[ck.ErrorCode]*publisher.Fault)}
	for {
		select {
		case event, open := <-r.events:
			if !open {
				return
			}
			r.take(event)
			r.drain()
			r.flush()
		case <-logs:
		}
	}
}

// drain takes what is there already, so that one message carries many reports.
func (r *reader) drain() {
	for {
		select {
		case event, open := <-r.events:
			if !open {
				return // readAll sees it too
			}
			r.take(event)
		default:
			return
		}
	}
}

func (r *reader) take(event ck.Event) {
	switch e := event.(type) {
	case *ck.Message:
		r.report(e)
	case ck.Error:
		r.flush() // keeps the order of what the sink sees
		r.trouble(e)
	}
}

func (r *reader) report(m *ck.Message) {
	token, ours := m.Opaque.(*publisher.Token)
	if !ours {
		return
	}
	if r.burst == nil {
		r.burst = make([]publisher.Report, 0, min(len(r.events)+1, maxBurst))
	}
	r.burst = append(r.burst, publisher.Report{Token: *token, Fault: r.fault(m.TopicPartition.Error)})
	if len(r.burst) == maxBurst {
		r.flush()
	}
}

// flush gives the burst to the sink, which owns it from then on.
func (r *reader) flush() {
	if len(r.burst) == 0 {
		return
	}
	p := r.producer
	acknowledged := false
	for _, report := range r.burst {
		acknowledged = acknowledged || report.Fault == nil
	}
	p.out.Lock()
	defer p.out.Unlock()
	if !p.silent {
		p.outstanding.Add(-int64(len(r.burst)))
		if acknowledged {
			p.answered()
		}
		p.tell(publisher.Reported{Producer: p.number, Reports: r.burst})
	}
	r.burst = nil
}

// fault is the fault of a report; nil: acknowledged.
func (r *reader) fault(err error) *publisher.Fault {
	if err == nil {
		return nil
	}
	var e ck.Error
	if !errors.As(err, &e) {
		return r.producer.codes.faultOf(err)
	}
	fault, known := r.faults[e.Code()]
	if !known {
		fault = r.producer.codes.fault(e.Code())
		if fault.Code == "MSG_SIZE_TOO_LARGE" {
			fault.Text = fmt.Sprintf("the broker refuses the request as over the topic's max.message.bytes; this producer's requests have at most %d bytes (batch.size), or one record",
				r.producer.settings.limits.batch)
		}
		r.faults[e.Code()] = fault
	}
	return fault
}

// trouble takes an error that belongs to no record.
func (r *reader) trouble(e ck.Error) {
	p := r.producer
	if e.IsFatal() {
		if !r.fataled {
			r.fataled = true
			p.emit(publisher.Fataled{Producer: p.number, Fault: p.codes.fatal(e)})
		}
		return
	}
	p.out.Lock()
	defer p.out.Unlock()
	if e.Code() == ck.ErrAllBrokersDown {
		p.allDown()
	} else {
		p.link.reason = scrub(e.String(), p.config.Properties)
	}
}

func tooLargeText(size, limit int) string {
	return fmt.Sprintf("the client refuses the record: key, value, headers and %d have %d bytes, over its message.max.bytes of %d",
		recordOverhead, size, limit)
}
