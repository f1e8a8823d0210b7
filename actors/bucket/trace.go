package bucket

import (
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/outbox"
)

// trace tells in which traces the messages of a batch were written, when somebody asks
// for it. Of the messages themselves nothing but these ids leaves the core.
func (c *core) trace(outcome event.BatchPublished) {
	if c.cfg.TraceLinks == 0 {
		return
	}
	b := c.batch
	traced := event.BatchTraced{Bucket: c.cfg.Bucket, Batch: outcome, Topic: c.topicOf(b)}
	if b.failure != nil {
		traced.Class, traced.Code = b.failure.class, b.failure.code
	}
	seen := map[event.Trace]bool{}
	for _, row := range b.rows[:b.solid] {
		of, ok := traceOf(row.Message.Headers)
		switch {
		case !ok || seen[of]:
			continue
		case len(traced.Traces) < c.cfg.TraceLinks:
			traced.Traces = append(traced.Traces, of)
		default:
			traced.Unlinked++
		}
		seen[of] = true
	}
	c.emit(traced)
}

// topicOf is where the messages of a batch go; empty when that is to several topics.
func (c *core) topicOf(b *batch) string {
	if b.letter {
		return c.cfg.DeadLetterTopic
	}
	topic := b.rows[0].Message.Topic
	for _, row := range b.rows[1:b.solid] {
		if row.Message.Topic != topic {
			return ""
		}
	}
	return topic
}

// traceOf is the trace that a message's headers name. Of several the first counts, as it
// does for the consumers that OpenTelemetry instruments.
func traceOf(headers []outbox.Header) (event.Trace, bool) {
	for _, h := range headers {
		if h.Key == event.TraceHeader {
			return event.ParseTrace(h.Value)
		}
	}
	return event.Trace{}, false
}
