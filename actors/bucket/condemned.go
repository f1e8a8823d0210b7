package bucket

import (
	"strconv"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// condemned is the row at the head that is rejected again and again.
type condemned struct {
	sequence  int64 // 0: none
	attempts  int   // counted rejections of it
	reason    string
	partition int32  // that it was meant for; -1: not known
	parked    bool   // its letter was rejected too: its key is set aside
	keyID     string // under which it is being set aside; empty: it is not
	message   string // the row's message id, and its topic
	topic     string
}

// forGood tells whether a row was rejected often enough for it not to be tried any
// more. With the policy Block none is. One that is too large to be set aside has to be
// accepted after all, and blocks the bucket until it is.
func (c *core) forGood(row *outbox.Row) bool {
	if row.Sequence != c.condemned.sequence || c.condemned.attempts < c.cfg.PoisonAfter {
		return false
	}
	switch c.cfg.Poison {
	case Park:
		return row.Size <= store.MaxMovedRowBytes
	case DeadLetter:
		return row.Size <= store.MaxMovedRowBytes || !c.condemned.parked
	default:
		return false
	}
}

// rejected counts a rejection of the first row, alone in its request, and decides
// what becomes of it.
func (c *core) rejected() {
	b := c.batch
	f := b.failure
	if c.condemned.sequence != f.sequence {
		c.condemned = condemned{sequence: f.sequence}
	}
	c.condemned.attempts++
	c.condemned.reason, c.condemned.partition = f.reason, f.partition
	switch row := &b.rows[b.removed]; {
	case c.machine.In(fsm.Draining): // nothing more is begun: whoever owns the bucket next counts anew
		c.failBatch()
	case c.forGood(row):
		c.condemn(row)
	case c.cfg.Poison != Park && c.cfg.Poison != DeadLetter:
		c.blockAt(f.sequence, f.reason)
		c.failBatch()
	case c.condemned.attempts >= c.cfg.PoisonAfter:
		c.blockAt(row.Sequence, tooLarge(row.Size))
		c.failBatch()
	default:
		// Nothing is wrong but this record, behind which all other keys of the bucket
		// wait: a pause that grows would make them wait for longer with each bad key.
		c.pauseBatch(c.cfg.ErrorBackoff / rejectionsPerBackoff)
	}
}

// rejectionsPerBackoff is how many rejections of a record are counted in the time of
// the first pause after a failure.
const rejectionsPerBackoff = 10

// condemn sets the key of a row that is rejected for good aside, or sends its letter.
func (c *core) condemn(row *outbox.Row) {
	if c.cfg.Poison == DeadLetter && !c.condemned.parked {
		c.sendLetter(row)
		return
	}
	b, f := c.batch, &c.condemned
	f.keyID, f.message, f.topic = outbox.ParkedKeyID(&row.Message), row.Message.ID.String(), row.Message.Topic
	b.condemning = true
	c.transition(b.machine, fsm.Condemn)
	c.transact(store.Mark{Tenure: c.tenure(), Token: c.transactionToken(), Markers: []store.Marker{{
		KeyID: f.keyID, Topic: f.topic, Reason: f.reason, Attempts: f.attempts, ParkedAt: c.now.Ticks(),
	}}})
}

// recordParked says that a rejected record's key is set aside now.
func (c *core) recordParked() {
	f := &c.condemned
	c.emit(event.RecordParked{
		Bucket: c.cfg.Bucket, Sequence: f.sequence, Message: f.message, Topic: f.topic,
		KeyID: f.keyID, Reason: f.reason, Attempts: f.attempts,
	})
	c.condemned = condemned{}
}

func tooLarge(size int) string {
	return "the row has " + strconv.Itoa(size) + " bytes, too many to be set aside: the limit is " +
		strconv.Itoa(store.MaxMovedRowBytes)
}

// Headers of a letter (protocol.md section 7).
const (
	headerTopic     = "x-outbox-original-topic"
	headerPartition = "x-outbox-original-partition"
	headerBucket    = "x-outbox-original-bucket"
	headerSequence  = "x-outbox-original-sequence"
	headerReason    = "x-outbox-reason"
	headerAttempts  = "x-outbox-attempts"
)

// sendLetter publishes the row to the dead-letter topic, alone.
func (c *core) sendLetter(row *outbox.Row) {
	b := c.batch
	c.transition(b.machine, fsm.Letter)
	b.letter, b.more = true, true
	b.rows, b.solid, b.acknowledged, b.removed, b.failure = []outbox.Row{*row}, 1, 0, 0, nil
	b.last = row.Sequence
	c.lastBatch++
	b.number = c.lastBatch
	c.send([]outbox.Row{c.letter(row)})
}

// letter is the row as it goes to the dead-letter topic: with what is known of its
// rejection in further headers.
func (c *core) letter(row *outbox.Row) outbox.Row {
	letter := *row
	m := &letter.Message
	m.Topic, m.Partition = c.cfg.DeadLetterTopic, nil
	header := func(name, value string) {
		m.Headers = append(m.Headers, outbox.Header{Key: name, Value: []byte(value)})
	}
	m.Headers = m.Headers[:len(m.Headers):len(m.Headers)]
	header(headerTopic, row.Message.Topic)
	if c.condemned.partition >= 0 {
		header(headerPartition, strconv.Itoa(int(c.condemned.partition)))
	}
	header(headerBucket, strconv.Itoa(c.cfg.Bucket))
	header(headerSequence, strconv.FormatInt(row.Sequence, 10))
	header(headerReason, c.condemned.reason)
	header(headerAttempts, strconv.Itoa(c.condemned.attempts))
	return letter
}

// letterPublished takes the letter's outcome. A letter that is rejected itself
// makes its row's key be set aside.
func (c *core) letterPublished(r publisher.Result) {
	b := c.batch
	row := &b.rows[0]
	switch {
	case r.Outcome == publisher.Acknowledged:
		c.emit(event.LetterPublished{
			Bucket: c.cfg.Bucket, Sequence: row.Sequence, Message: row.Message.ID.String(), Topic: row.Message.Topic,
			LetterTopic: c.cfg.DeadLetterTopic, Reason: c.condemned.reason,
		})
		b.acknowledged = 1
		c.condemned = condemned{}
		c.transition(b.machine, fsm.Published)
		c.deleteNext()
	case r.Outcome == publisher.Refused:
		c.condemned.parked = true
		c.condemned.reason = "letter rejected: " + failureOf(row.Sequence, r).reason + "; record rejected: " + c.condemned.reason
		switch {
		case c.machine.In(fsm.Draining):
			c.failBatch()
		case c.forGood(row):
			c.condemn(row)
		default:
			c.blockAt(row.Sequence, tooLarge(row.Size))
			c.failBatch()
		}
	default:
		b.failure = failureOf(row.Sequence, r)
		c.failBatch()
	}
}
