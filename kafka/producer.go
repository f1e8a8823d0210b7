package kafka

import (
	"context"
	"sync"
	"sync/atomic"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

const (
	logsBuffered = 64
	// slabTokens is how many tokens share one allocation. The slab lives until
	// its last token's report.
	slabTokens = 256
)

// producer is one librdkafka producer.
//
// Three parties use it: the publisher's actor (Produce, Purge, Describe, Close),
// its reader, and short background calls (link.go). Its end is in this order:
// nothing comes to the sink any more; no new call enters the client; background
// calls end; the client is freed, which ends the reader.
type producer struct {
	number   int
	client   *ck.Producer
	config   Config
	codes    codebook
	settings settings
	freed    func(*producer)

	life  context.Context // ends with Close; for background calls only
	stop  context.CancelFunc
	calls sync.WaitGroup // background calls inside the client
	slots chan struct{}  // bounds them: each holds an operating system thread
	read  chan struct{}  // closed when the reader ends
	done  chan struct{}  // closed when the client is freed

	// gate keeps calls and Close apart: a call into a client that is being freed
	// crashes the process.
	gate   sync.Mutex
	closed bool
	// What Produce uses again for each record; the client copies all of it.
	message ck.Message
	headers []ck.Header
	topics  map[string]*string
	slab    []publisher.Token
	learns  map[string]bool // topics whose metadata is being read since the client refused a record

	// out orders what comes to the sink, and ends it.
	out    sync.Mutex
	sink   publisher.Sink
	silent bool // Invariant: never false again
	link   link

	// outstanding are the records accepted, less the reports given to the sink.
	outstanding atomic.Int64
}

var (
	_ publisher.Producer = (*producer)(nil)
	_ publisher.Factory  = (*Factory)(nil)
)

func (f *Factory) newProducer(number int, client *ck.Producer, s settings, sink publisher.Sink) *producer {
	life, stop := context.WithCancel(context.Background())
	return &producer{
		number: number, client: client, config: f.config, codes: f.codes, settings: s, freed: f.freed, sink: sink,
		life: life, stop: stop,
		slots:  make(chan struct{}, backgroundCalls),
		read:   make(chan struct{}),
		done:   make(chan struct{}),
		topics: make(map[string]*string),
		learns: make(map[string]bool),
	}
}

func (p *producer) start(logs <-chan ck.LogEvent) {
	go p.readAll(logs)
	p.out.Lock()
	defer p.out.Unlock()
	p.watch()
}

// Produce implements publisher.Producer.
func (p *producer) Produce(r publisher.Record, token publisher.Token) error {
	if fault := inspect(r); fault != nil {
		return fault
	}
	p.gate.Lock()
	defer p.gate.Unlock()
	if p.closed {
		return p.codes.fault(ck.ErrState)
	}
	p.fill(r, token)
	p.outstanding.Add(1) // before the report can come
	err := p.client.Produce(&p.message, nil)
	p.message.Key, p.message.Value, p.message.Opaque = nil, nil, nil
	clear(p.headers)
	if err == nil {
		return nil
	}
	p.outstanding.Add(-1)
	p.slab = p.slab[:len(p.slab)-1]
	return p.refusal(r, err)
}

// fill makes the client's message of a record. The timestamp stays unset, so
// that the client sets the time of publishing.
func (p *producer) fill(r publisher.Record, token publisher.Token) {
	topic, known := p.topics[r.Topic]
	if !known {
		name := r.Topic // not &r.Topic, which would put every record on the heap
		topic = &name
		p.topics[name] = topic
	}
	p.headers = p.headers[:0]
	for _, h := range r.Headers {
		p.headers = append(p.headers, ck.Header{Key: h.Key, Value: h.Value})
	}
	if len(p.slab) == cap(p.slab) {
		p.slab = make([]publisher.Token, 0, slabTokens)
	}
	p.slab = append(p.slab, token)
	p.message.TopicPartition = ck.TopicPartition{Topic: topic, Partition: r.Partition}
	p.message.Key, p.message.Value, p.message.Headers = r.Key, r.Value, p.headers
	p.message.Opaque = &p.slab[len(p.slab)-1]
}

// refusal is the fault of a record that Produce did not take.
func (p *producer) refusal(r publisher.Record, err error) *publisher.Fault {
	fault := p.codes.faultOf(err)
	switch {
	case fault.Code == "MSG_SIZE_TOO_LARGE":
		fault.Text = tooLargeText(sizeOf(r), p.settings.limits.record)
	case fault.Class == publisher.Fatal:
		// The client says -150 to everything after a fatal error: name the first.
		if first := p.client.GetFatalError(); first != nil {
			if e, ok := first.(ck.Error); ok {
				return p.codes.fatal(e)
			}
		}
	case fault.Code == publisher.CodeUnknownPartition || fault.Code == "_UNKNOWN_TOPIC":
		p.learn(r.Topic)
	}
	return fault
}

// learn has the client read the metadata of a topic of which it knows less than
// there is. It would find out by itself too, but only minutes later, whatever
// another producer has learned meanwhile. One question a topic is under way. For
// who holds gate, of a producer that is not closed.
func (p *producer) learn(topic string) {
	if p.learns[topic] {
		return
	}
	p.learns[topic] = true
	p.calls.Add(1)
	go func() {
		defer p.calls.Done()
		select {
		case p.slots <- struct{}{}:
			// The records tell whether it helped.
			_, _ = p.client.GetMetadata(&topic, false, int(attemptTimeout.Milliseconds()))
			<-p.slots
		case <-p.life.Done():
		}
		p.gate.Lock()
		defer p.gate.Unlock()
		delete(p.learns, topic)
	}()
}

// Purge implements publisher.Producer.
func (p *producer) Purge() {
	p.gate.Lock()
	defer p.gate.Unlock()
	if p.closed {
		return
	}
	// Its only error is a wrong flag.
	_ = p.client.Purge(ck.PurgeQueue | ck.PurgeInFlight | ck.PurgeNonBlocking)
}

// Close implements publisher.Producer.
func (p *producer) Close() {
	p.out.Lock()
	p.silent = true
	p.out.Unlock()

	p.gate.Lock()
	defer p.gate.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.stop()
	go p.free()
}

// free ends the client: about 0.1 s when it is idle, about 1 s with requests
// that get no answer.
func (p *producer) free() {
	p.calls.Wait()
	p.client.Close() // closes the events, which ends the reader
	<-p.read
	p.freed(p)
	close(p.done)
}

// unreported is how many accepted records had no report.
func (p *producer) unreported() int { return int(p.outstanding.Load()) }

// emit gives a message to the sink, unless the producer was closed.
func (p *producer) emit(msg any) {
	p.out.Lock()
	defer p.out.Unlock()
	p.tell(msg)
}

// tell is emit for who holds out.
func (p *producer) tell(msg any) {
	if !p.silent {
		p.sink(msg)
	}
}
