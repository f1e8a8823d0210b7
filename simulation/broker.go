package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// BrokerClock is the virtual time that the model broker runs in. Functions given
// to At with equal times run in the order in which they were given.
type BrokerClock interface {
	Now() time.Duration
	At(d time.Duration, f func())
}

// BrokerConfig is what a model broker needs. Clock and Rand are required.
type BrokerConfig struct {
	Clock  BrokerClock
	Rand   *rand.Rand
	Faults BrokerFaults
	// Appended is told of each record as consumers of committed records see it, which
	// is at once unless a transaction is open on its partition; nil: nobody is.
	Appended func(BrokerRecord)
	// Latency is the least time of one way over the network, up to twice of which it
	// takes; default 1 ms.
	Latency time.Duration
	// Linger is how long a producer collects records for a request; default 2 ms.
	// Careful producers do not wait, and send one record in one request at a time.
	Linger time.Duration
	// QueueRecords is how many records a producer keeps; default 100,000.
	QueueRecords int
	// RequestRecords is how many records one request has at most; default 10,000.
	RequestRecords int
	// InFlight is how many requests to one partition are under way; default 5.
	InFlight int
	// Memory is for how long a partition knows a producer of which it appends nothing,
	// whatever waits for it in the client; 0: for ever, but for BrokerFault.Forget.
	Memory time.Duration
}

// BrokerFaults decide what goes wrong. Nil functions let nothing go wrong.
type BrokerFaults struct {
	// Reject is the code with which the broker refuses a record for good, whatever
	// producer it comes from; "": it does not. The whole request fails with it.
	Reject func(publisher.Record) string
	// Request decides on each request as it leaves its producer, repeats included.
	Request func(BrokerRequest) BrokerFault
	// Conclude decides on each request of a process that initializes, commits or aborts,
	// repeats included.
	Conclude func(owner string, call publisher.Call) BrokerFault
	// Full tells whether the client's queue has no room for a record just now; for a
	// later, smaller one it may have some.
	Full func(owner string) bool
	// Mute tells whether a record that was in flight when its producer was purged
	// gets no report, ever.
	Mute func(publisher.Token) bool
}

// BrokerRequest is what is known of a request when its fault is decided.
type BrokerRequest struct {
	Owner     string
	Producer  int
	Careful   bool
	Topic     string
	Partition int32
	Records   int
	Idle      time.Duration // since the producer's last request to the partition; 0 when one was not answered yet
}

// BrokerFault is what happens to one request. The zero value is nothing.
type BrokerFault struct {
	// Delay is added to its way to the broker. What leaves after it on the same
	// connection waits behind it; after 30 s the client gives the connection up and
	// repeats its requests, and the delayed ones still land.
	Delay time.Duration
	// LoseRequest: the connection breaks before the broker has it.
	LoseRequest bool
	// LoseAnswer: it is applied, and the connection breaks before the answer.
	LoseAnswer bool
	// FailOver: the broker does not lead the partition at that moment.
	FailOver bool
	// Forget: the broker has dropped what it knew of the producer on the partition,
	// before it was sent.
	Forget bool
}

// BrokerRecord is one appended record.
type BrokerRecord struct {
	Topic     string
	Partition int32
	Offset    int64
	At        time.Duration // virtual time of the append
	Owner     string        // the process whose producer it was
	Producer  int           // the producer's number within its process
	Record    publisher.Record
	// Token is the relay's own name for the submission. It is not on the wire; the
	// checkers know rows by it.
	Token publisher.Token
	// Fenced tells whether it was sent in a transaction.
	Fenced bool
	tx     *brokerTransaction // that it is in, until consumers see it; nil: none
}

// Broker is a model of a Kafka cluster and of the client that talks to it, as far
// as kafka.md measured both: idempotent sequences per producer and partition,
// shared requests that fail whole, gap-less producers, purges, requests that are
// stuck and land later, transactions and who may use their ids. It is single-threaded and knows no time but the clock's.
type Broker struct {
	cfg       BrokerConfig
	topics    map[string]*brokerTopic
	ids       map[string]*brokerID // by transactional id
	log       []BrokerRecord
	producers []*brokerProducer // all that are not closed
	lastPID   int64
	// lastOpen is when a transaction that has records ended, the last of them.
	lastOpen time.Duration
	away     bool
	cutOff   map[string]bool // processes that no broker answers
}

// NewBroker makes a cluster without topics.
func NewBroker(cfg BrokerConfig) *Broker {
	if cfg.Latency == 0 {
		cfg.Latency = time.Millisecond
	}
	if cfg.Linger == 0 {
		cfg.Linger = 2 * time.Millisecond
	}
	if cfg.QueueRecords == 0 {
		cfg.QueueRecords = 100_000
	}
	if cfg.RequestRecords == 0 {
		cfg.RequestRecords = 10_000
	}
	if cfg.InFlight == 0 {
		cfg.InFlight = 5
	}
	return &Broker{cfg: cfg, topics: map[string]*brokerTopic{}, ids: map[string]*brokerID{}, cutOff: map[string]bool{}}
}

// SetFaults replaces the faults, as when a run is healed.
func (b *Broker) SetFaults(f BrokerFaults) { b.cfg.Faults = f }

// Factory opens producers of one process.
func (b *Broker) Factory(owner string) publisher.Factory { return brokerFactory{b, owner} }

type brokerFactory struct {
	broker *Broker
	owner  string
}

// Open makes a producer. It cannot send before it has a producer id, for which a
// broker must answer.
func (f brokerFactory) Open(o publisher.Options, sink publisher.Sink) (publisher.Producer, error) {
	b := f.broker
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = 1_000_000
	}
	b.lastPID++
	p := &brokerProducer{broker: b, owner: f.owner, options: o, sink: sink, pid: b.lastPID, queues: map[brokerPlace]*brokerQueue{}}
	b.producers = append(b.producers, p)
	b.cfg.Clock.At(2*b.latency(), p.greet)
	if o.TransactionalID != "" {
		p.session = &brokerSession{id: b.transactionalID(o.TransactionalID)}
		return brokerTransactional{p}, nil
	}
	return p, nil
}

// Leave takes the whole cluster away: requests that arrive meanwhile are lost.
func (b *Broker) Leave() {
	b.away = true
	for _, p := range b.producers {
		p.greet()
	}
}

// Return brings the cluster back with all that it had.
func (b *Broker) Return() {
	b.away = false
	for _, p := range b.producers {
		b.cfg.Clock.At(b.latency(), p.greet)
	}
}

// CutOff takes the whole cluster away from one process.
func (b *Broker) CutOff(owner string) {
	b.cutOff[owner] = true
	for _, p := range b.producers {
		if p.owner == owner {
			p.greet()
		}
	}
}

// Reconnect brings the cluster back to a process.
func (b *Broker) Reconnect(owner string) {
	if !b.cutOff[owner] {
		return
	}
	delete(b.cutOff, owner)
	for _, p := range b.producers {
		if p.owner == owner {
			b.cfg.Clock.At(b.latency(), p.greet)
		}
	}
}

// unreachable tells whether no broker answers a process.
func (b *Broker) unreachable(owner string) bool { return b.away || b.cutOff[owner] }

// Crash ends the producers of a process. What is on the wire may still land, or
// not, request by request.
func (b *Broker) Crash(owner string) {
	kept := b.producers[:0]
	for _, p := range b.producers {
		if p.owner == owner {
			p.crashed, p.closed = true, true
		} else {
			kept = append(kept, p)
		}
	}
	b.producers = kept
}

// Log is everything that consumers of committed records have seen, in the order in
// which they could.
func (b *Broker) Log() []BrokerRecord { return b.log }

// Records are those of one topic in Log.
func (b *Broker) Records(topic string) []BrokerRecord {
	var out []BrokerRecord
	for _, r := range b.log {
		if r.Topic == topic {
			out = append(out, r)
		}
	}
	return out
}

// latency is the time of one way, now.
func (b *Broker) latency() time.Duration {
	return b.cfg.Latency + time.Duration(b.cfg.Rand.Int64N(int64(b.cfg.Latency)+1))
}

func (b *Broker) forget(p *brokerProducer) {
	for i, other := range b.producers {
		if other == p {
			b.producers = append(b.producers[:i:i], b.producers[i+1:]...)
			return
		}
	}
}

func (r BrokerRecord) String() string {
	return fmt.Sprintf("%v %s/%d@%d bucket %d sequence %d by %s:%d", r.At, r.Topic, r.Partition, r.Offset,
		r.Token.Bucket, r.Token.Sequence, r.Owner, r.Producer)
}
