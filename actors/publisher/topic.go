package publisher

import (
	"fmt"
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors"
)

// The pause before a topic without metadata is asked for again: doubled each
// time, with jitter.
const (
	askPause    = 250 * time.Millisecond
	maxAskPause = 5 * time.Second
)

// topic is what is known of one topic.
type topic struct {
	name string
	// The last good answer.
	known      bool
	partitions int32
	compressed bool
	readAt     actors.Instant
	// maxBytes is the topic's max.message.bytes, as far as it is known: what the
	// last good answer told, if limitTold; else what was told before, or less than what
	// was rejected. 0: nothing is known.
	maxBytes  int
	limitTold bool
	// doubted: it may have changed, so it is read again before the next batch uses it,
	// by a question later than doubtAsk, the last one that was put before the doubt.
	doubted  bool
	doubtAsk uint64
	// era counts the doubts and the bad answers: each may mean that the topic was
	// deleted and created again, so its partitions are primed anew.
	era int
	// Invariant: at most one question is under way; number and producer are its own.
	asked    bool
	ask      uint64
	producer int
	answered uint64 // the last question with a good answer
	// The last bad answer.
	failed  uint64 // its question
	fault   *Fault // nil once there is a good answer
	retryAt actors.Instant
	misses  int // bad answers in a row
}

func (c *core) topic(name string) *topic {
	tp, known := c.topics[name]
	if !known {
		tp = &topic{name: name}
		c.topics[name] = tp
	}
	return tp
}

// doubt has a topic's metadata read again before its next use. It may be another
// topic by now.
func (c *core) doubt(name string) { c.reread(name).era++ }

func (c *core) reread(name string) *topic {
	tp := c.topic(name)
	tp.doubted, tp.doubtAsk = true, c.asks
	return tp
}

// outgrown takes note of a request that was rejected as too large, alone: with one
// record. The limit may have been lowered, and each request that goes by the old one
// would end a producer of many buckets. Where nobody tells the limit, requests are half
// as large from now on.
func (c *core) outgrown(l *lane, alone bool) {
	tp := c.reread(l.topic)
	if less := l.poolBytes/2 + poolMargin; !alone && !tp.limitTold && (tp.maxBytes == 0 || less < tp.maxBytes) {
		tp.maxBytes = less
	}
}

// poolBytes is the limit of the pool of producers for the topic's records.
func (tp *topic) poolBytes() int {
	if tp.maxBytes == 0 {
		return defaultMessageBytes
	}
	return min(tp.maxBytes-poolMargin, defaultMessageBytes)
}

// prepare decides a row's partition and makes its record. It is false when the
// row cannot go yet, or was settled.
func (c *core) prepare(t *batch, i int) bool {
	r, row := &t.rows[i], &t.request.Rows[i]
	tp := c.topic(row.Message.Topic)
	if !c.usable(tp, t, i) {
		return false
	}
	partition := partitionOf(&row.Message, tp.partitions)
	r.partition, r.decided = partition, true
	if partition >= tp.partitions {
		c.foreseen(tp, t, i, &Fault{Rejected, CodeUnknownPartition,
			fmt.Sprintf("the topic has %d partitions, the message asks for number %d", tp.partitions, partition)})
		return false
	}
	record := c.cfg.recordOf(t.bucket.number, row, partition)
	size := requestBytes(&record)
	if tp.limitTold && size > tp.maxBytes && !tp.compressed {
		c.foreseen(tp, t, i, &Fault{Rejected, CodeTooLarge,
			fmt.Sprintf("alone in its request the record takes %d bytes, the topic's max.message.bytes is %d; it was not sent",
				size, tp.maxBytes)})
		return false
	}
	r.prepared = true
	r.record = record
	r.bytes = budgetBytes(&record)
	r.lane = t.lane(tp, partition)
	r.tight = size > r.lane.poolBytes
	r.keyed = t.keyOf(&row.Message)
	return true
}

// usable tells whether the topic's metadata can be used for a row of the batch.
// While it cannot, the question is under way, or the row has failed: a batch does
// not wait for a topic that is missing.
func (c *core) usable(tp *topic, t *batch, i int) bool {
	switch {
	case tp.known && !tp.doubted:
		if !tp.asked && actors.Elapsed(tp.readAt, c.now) >= c.cfg.RefreshInterval {
			c.question(tp)
		}
		return true
	case tp.asked:
		return false
	case tp.fault != nil && (tp.failed > t.asks || !tp.retryAt.PassedAt(c.now)):
		c.withoutTopic(tp, t, i)
		return false
	}
	c.ask(tp, t, i)
	return false
}

// foreseen refuses a row that the topic cannot take, by metadata that was read
// for this attempt; older metadata is read again first. It waits for its turn.
func (c *core) foreseen(tp *topic, t *batch, i int, fault *Fault) {
	switch {
	case !t.isNext(i):
	case tp.answered > t.asks:
		c.refuse(t, i, fault)
	case tp.asked:
	case tp.fault != nil && tp.failed > t.asks:
		c.withoutTopic(tp, t, i)
	default:
		c.ask(tp, t, i)
	}
}

// withoutTopic settles a row whose topic has no usable metadata. Only a name that
// no topic can have is the record's own fault, which is said in the row's turn.
func (c *core) withoutTopic(tp *topic, t *batch, i int) {
	switch {
	case tp.fault.Class != Rejected:
		c.settle(t, i, Failed, tp.fault)
	case t.isNext(i):
		c.refuse(t, i, tp.fault)
	}
}

// isNext tells whether all rows before this one are acknowledged: a row that is not
// its bucket's first is not tried, so it must not be counted either.
func (t *batch) isNext(i int) bool { return i <= t.next && t.outstanding == 0 }

// ask puts the question, or fails the row when there is nobody to ask.
func (c *core) ask(tp *topic, t *batch, i int) {
	if !c.question(tp) && c.home.failing() {
		c.settle(t, i, Failed, c.home.fault)
	}
}

// question asks any open producer for the topic's metadata. It is false when
// there is none; one is on its way then, or the home slot is failing.
func (c *core) question(tp *topic) bool {
	for _, p := range c.producers {
		if p.state != open || p.options.Careful || p.fence != nil {
			continue
		}
		c.asks++
		tp.asked, tp.ask, tp.producer = true, c.asks, p.options.Number
		c.asked = append(c.asked, tp)
		c.do(describe{p.options.Number, tp.name})
		c.wake(c.cfg.DescribeTimeout, describeDue{tp.name, tp.ask})
		return true
	}
	return false
}

// described takes the answer to a question.
func (c *core) described(m Described) {
	tp := c.topic(m.Topic)
	if !tp.asked || tp.producer != m.Producer {
		return
	}
	c.unask(tp)
	if m.Fault == nil && m.Partitions > 0 {
		tp.known, tp.doubted = true, tp.doubted && tp.ask <= tp.doubtAsk
		tp.partitions, tp.compressed = m.Partitions, m.Compressed
		if tp.limitTold = m.MaxMessageBytes > 0; tp.limitTold {
			tp.maxBytes = m.MaxMessageBytes
		}
		tp.readAt, tp.answered = c.now, tp.ask
		tp.fault, tp.misses = nil, 0
		if p := c.producer(m.Producer); p != nil {
			p.answered = c.now
		}
		c.lettersAnswered(tp, nil)
		return
	}
	fault := m.Fault
	if fault == nil {
		fault = &Fault{Retriable, CodeUnknownPartition, "the topic has no partitions"}
	}
	c.missed(tp, fault)
}

// missed takes a bad answer. What was known before stays in use unless there is
// a reason to doubt it: the records themselves will tell.
func (c *core) missed(tp *topic, fault *Fault) {
	if tp.doubted {
		tp.known = false
	}
	pause := min(maxAskPause, askPause<<min(tp.misses, 10))
	tp.misses++
	tp.era++
	tp.failed, tp.fault = tp.ask, fault
	tp.readAt = c.now
	tp.retryAt = c.now.Add(c.jittered(pause))
	c.lettersAnswered(tp, fault)
}

// describeDue gives up a question that got no answer.
func (c *core) describeDue(m describeDue) {
	tp := c.topic(m.topic)
	if !tp.asked || tp.ask != m.ask {
		return
	}
	c.unask(tp)
	c.missed(tp, &Fault{Retriable, CodeTimedOut, "no answer to the question for the topic's metadata"})
}

func (c *core) unask(tp *topic) {
	tp.asked = false
	c.asked = slices.DeleteFunc(c.asked, func(other *topic) bool { return other == tp })
}

// forgetQuestions frees the questions that went to a producer which is closed:
// nothing comes from it any more. They are asked again when they are needed.
func (c *core) forgetQuestions(p *producer) {
	c.asked = slices.DeleteFunc(c.asked, func(tp *topic) bool {
		if tp.producer != p.options.Number {
			return false
		}
		tp.asked = false
		if c.letters.asked && tp.name == c.cfg.DeadLetterTopic {
			c.wake(lettersPause, lettersDue{})
		}
		return true
	})
}
