package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// Codes of the model broker, by librdkafka's names.
const (
	brokerTooLarge       = "MSG_SIZE_TOO_LARGE"
	brokerNoTopic        = "UNKNOWN_TOPIC_OR_PART"
	brokerNotLeader      = "NOT_LEADER_FOR_PARTITION"
	brokerOutOfOrder     = "OUT_OF_ORDER_SEQUENCE_NUMBER"
	brokerOldEpoch       = "INVALID_PRODUCER_EPOCH"
	brokerNotAuthorized  = "TOPIC_AUTHORIZATION_FAILED"
	brokerTopicException = "TOPIC_EXCEPTION"
	brokerGapless        = "_GAPLESS_GUARANTEE"
	brokerPurgedQueue    = "_PURGE_QUEUE"
	brokerPurgedInFlight = "_PURGE_INFLIGHT"
	brokerTimedOut       = "_MSG_TIMED_OUT"
)

// brokerTopic is one topic.
type brokerTopic struct {
	maxBytes   int
	forbidden  bool
	partitions []*brokerPartition
}

// brokerPartition is a log and what its leader knows of producers.
type brokerPartition struct {
	end    int64 // offset of the next record
	states map[int64]*brokerState
	// unstable are the records that consumers of committed records do not see yet.
	unstable []BrokerRecord
}

// brokerState is what a partition knows of one producer id: its epoch and the
// last five requests, by which repeats are known.
type brokerState struct {
	epoch    int
	last     int           // last sequence appended
	appended time.Duration // when that was
	batches  []brokerBatch
}

type brokerBatch struct{ base, records int }

// cachedBatches is how many requests of a producer a partition remembers.
const cachedBatches = 5

// CreateTopic makes a topic, or one anew under the same name. MaxMessageBytes is
// its max.message.bytes; 0: the broker's default of 1,048,588.
func (b *Broker) CreateTopic(name string, partitions, maxMessageBytes int) {
	b.topics[name] = &brokerTopic{}
	b.LimitTopic(name, maxMessageBytes)
	b.AddPartitions(name, partitions)
}

// legalTopic is Kafka's rule for names of topics.
func legalTopic(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return name != "" && name != "." && name != ".." && len(name) <= 249 && strings.Trim(name, letters) == ""
}

// AddPartitions gives a topic more partitions. Like the other changes of a topic
// it does nothing to one that is not there.
func (b *Broker) AddPartitions(name string, more int) {
	t, known := b.topics[name]
	if !known {
		return
	}
	for range more {
		t.partitions = append(t.partitions, &brokerPartition{states: map[int64]*brokerState{}})
	}
}

// LimitTopic changes a topic's max.message.bytes.
func (b *Broker) LimitTopic(name string, maxMessageBytes int) {
	if maxMessageBytes == 0 {
		maxMessageBytes = 1_048_588
	}
	if t, known := b.topics[name]; known {
		t.maxBytes = maxMessageBytes
	}
}

// ForbidTopic takes away the permission to write to a topic; AllowTopic gives it.
func (b *Broker) ForbidTopic(name string) { b.permit(name, true) }

// AllowTopic gives the permission to write to a topic.
func (b *Broker) AllowTopic(name string) { b.permit(name, false) }

func (b *Broker) permit(name string, forbidden bool) {
	if t, known := b.topics[name]; known {
		t.forbidden = forbidden
	}
}

// DeleteTopic deletes a topic. Log still has its records.
func (b *Broker) DeleteTopic(name string) { delete(b.topics, name) }

// append applies a request and returns its code, "" for done. Limits and
// permissions are checked before sequences: a rejected request leaves no trace,
// so what follows it is out of order, unless the partition does not know the
// producer.
//
// A request for a topic that was deleted and created again meanwhile is refused,
// as brokers do that know topics by id. What is sent later meets partitions that
// know no producer.
func (b *Broker) append(p *brokerProducer, q *brokerQueue, r *brokerRequest, f BrokerFault) string {
	topic, known := b.topics[q.topic]
	switch {
	case !known || r.topic != topic || int(q.partition) >= len(topic.partitions):
		return brokerNoTopic
	}
	partition := topic.partitions[q.partition]
	switch {
	case f.FailOver:
		return brokerNotLeader
	case topic.forbidden:
		return brokerNotAuthorized
	case r.bytes() > topic.maxBytes:
		return brokerTooLarge
	}
	if reject := b.cfg.Faults.Reject; reject != nil {
		for _, e := range r.entries {
			if code := reject(e.record); code != "" {
				return code
			}
		}
	}
	if r.tx != nil && p.session.id.epoch != r.epoch {
		return brokerOldEpoch
	}
	b.outlive(partition, p.pid)
	if code, fresh := partition.admit(p.pid, r); !fresh {
		return code
	}
	partition.states[p.pid].appended = b.cfg.Clock.Now()
	if r.tx != nil {
		if code := b.join(p.session.id, r); code != "" {
			return code
		}
	}
	for _, e := range r.entries {
		b.store(partition, BrokerRecord{Topic: q.topic, Partition: q.partition, Offset: partition.end,
			At: b.cfg.Clock.Now(), Owner: p.owner, Producer: p.options.Number, Record: e.record, Token: e.token, Fenced: r.tx != nil, tx: r.tx})
	}
	return ""
}

// dropState drops what a partition knows of a producer.
func (b *Broker) dropState(p *brokerProducer, q *brokerQueue) {
	if topic, known := b.topics[q.topic]; known && int(q.partition) < len(topic.partitions) {
		delete(topic.partitions[q.partition].states, p.pid)
	}
}

// outlive drops what a partition knows of a producer when that is too old.
func (b *Broker) outlive(pt *brokerPartition, pid int64) {
	s, known := pt.states[pid]
	if known && b.cfg.Memory > 0 && b.cfg.Clock.Now()-s.appended > b.cfg.Memory {
		delete(pt.states, pid)
	}
}

// admit checks a request's sequence and takes note of it. Fresh tells whether it
// is to be appended; a repeat is done already.
func (pt *brokerPartition) admit(pid int64, r *brokerRequest) (code string, fresh bool) {
	s, known := pt.states[pid]
	switch {
	case !known:
		// A partition that does not know the producer takes any first sequence.
		s = &brokerState{epoch: r.epoch}
		pt.states[pid] = s
	case r.epoch < s.epoch:
		return brokerOldEpoch, false
	case r.epoch > s.epoch:
		if r.base != 0 {
			return brokerOutOfOrder, false
		}
		*s = brokerState{epoch: r.epoch}
	default:
		for _, batch := range s.batches {
			if batch == (brokerBatch{r.base, len(r.entries)}) {
				return "", false
			}
		}
		if r.base != s.last+1 {
			return brokerOutOfOrder, false
		}
	}
	s.last = r.base + len(r.entries) - 1
	s.batches = append(s.batches, brokerBatch{r.base, len(r.entries)})
	if len(s.batches) > cachedBatches {
		s.batches = s.batches[1:]
	}
	return "", true
}

// describe answers a question for a topic's metadata.
func (b *Broker) describe(p *brokerProducer, name string) publisher.Described {
	d := publisher.Described{Producer: p.options.Number, Topic: name}
	topic, known := b.topics[name]
	switch {
	case b.unreachable(p.owner):
		d.Fault = &publisher.Fault{Class: publisher.Retriable, Code: "_ALL_BROKERS_DOWN", Text: "no broker answers"}
	case !known:
		d.Fault = brokerFault(brokerNoTopic)
	case topic.forbidden:
		d.Fault = brokerFault(brokerNotAuthorized)
	default:
		d.Partitions, d.MaxMessageBytes = int32(len(topic.partitions)), topic.maxBytes
	}
	return d
}

// brokerFault is a code with its class. Codes that the faults' Reject made up are
// rejections.
func brokerFault(code string) *publisher.Fault {
	class := publisher.Rejected
	switch code {
	case brokerNoTopic, brokerNotLeader, brokerNotAuthorized:
		class = publisher.Retriable
	case brokerOldEpoch:
		class = publisher.Fenced
	case brokerPurgedQueue, brokerPurgedInFlight, brokerTimedOut:
		class = publisher.Ambiguous
	case brokerOutOfOrder, brokerGapless:
		class = publisher.Fatal
	}
	return &publisher.Fault{Class: class, Code: code, Text: fmt.Sprintf("the model broker says %s", code)}
}
