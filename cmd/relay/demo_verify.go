package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
)

// maxProblems is how many problems a verdict words; the counts are complete.
const maxProblems = 20

// verdict is what a comparison of what was enqueued with what a consumer saw
// has found.
type verdict struct {
	Enqueued   int
	Delivered  int // messages that were seen at least once
	Lost       int
	Duplicates int // records beyond the first of a message
	Keys       int // distinct topic and key, with at least one message enqueued
	Disordered int // first deliveries that came after a later one of their key
	Altered    int // records that differ from their message, or are of no message
	Problems   []string
}

// sound tells whether all was delivered as it was enqueued. Duplicates are
// sound: delivery is at least once.
func (v *verdict) sound() bool { return v.Lost == 0 && v.Disordered == 0 && v.Altered == 0 }

func (v *verdict) problem(format string, args ...any) {
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

// stream is what must keep its order: one key of one topic.
type stream struct{ topic, key string }

// expectation is one enqueued message and what was seen of it.
type expectation struct {
	message  outbox.Message
	stream   stream
	position int // among its stream's messages, from 0
	seen     int
}

// verify compares the messages, those of one topic and key in the order of
// their commits, with the records of all topics by partition, then offset. All
// messages have a key. It is pure: whatever produced the two, it says what is
// wrong between them.
func verify(enqueued []outbox.Message, consumed []kafka.Record) verdict {
	v := verdict{Enqueued: len(enqueued)}
	expected, streams := expect(enqueued)
	v.Keys = len(streams)
	// The position of the last first delivery, and its partition, per stream.
	type progress struct {
		position  int
		partition int32
	}
	latest := map[stream]progress{}
	for _, record := range consumed {
		id, err := messageID(record)
		e := expected[id]
		if err != nil || e == nil {
			v.Altered++
			v.problem("%s: a record of no message", place(record))
			continue
		}
		if difference := compare(e.message, record); difference != "" {
			v.Altered++
			v.problem("%s: message %s: %s", place(record), id, difference)
		}
		e.seen++
		if e.seen > 1 {
			v.Duplicates++
			continue
		}
		last, begun := latest[e.stream]
		if begun && (e.position < last.position || record.Partition != last.partition) {
			v.Disordered++
			v.problem("%s: message %s, number %d of its key, came after number %d on partition %d",
				place(record), id, e.position+1, last.position+1, last.partition)
		}
		if !begun || e.position > last.position {
			latest[e.stream] = progress{e.position, record.Partition}
		}
	}
	for _, m := range enqueued {
		if expected[m.ID].seen == 0 {
			v.Lost++
			v.problem("message %s for topic %s was never delivered", m.ID, m.Topic)
		}
	}
	v.Delivered = v.Enqueued - v.Lost
	return v
}

// expect numbers the messages within their streams.
func expect(enqueued []outbox.Message) (map[uuid.UUID]*expectation, map[stream]int) {
	expected := make(map[uuid.UUID]*expectation, len(enqueued))
	streams := map[stream]int{}
	for _, m := range enqueued {
		s := stream{m.Topic, string(m.Key)}
		expected[m.ID] = &expectation{message: m, stream: s, position: streams[s]}
		streams[s]++
	}
	return expected, streams
}

// messageID is the id that the relay gave the record, in its last header.
func messageID(record kafka.Record) (uuid.UUID, error) {
	for _, h := range slices.Backward(record.Headers) {
		if h.Key == relay.DefaultMessageIDHeader {
			return uuid.ParseBytes(h.Value)
		}
	}
	return uuid.Nil, fmt.Errorf("no header %s", relay.DefaultMessageIDHeader)
}

// compare says in what a record differs from its message; empty: in nothing.
// Null and empty differ.
func compare(m outbox.Message, record kafka.Record) string {
	headers := slices.DeleteFunc(slices.Clone(record.Headers), func(h outbox.Header) bool {
		return h.Key == relay.DefaultMessageIDHeader
	})
	switch {
	case record.Topic != m.Topic:
		return "its topic differs"
	case !same(record.Key, m.Key):
		return "its key differs"
	case !same(record.Value, m.Value):
		return "its value differs"
	case !slices.EqualFunc(headers, m.Headers, func(a, b outbox.Header) bool {
		return a.Key == b.Key && same(a.Value, b.Value)
	}):
		return "its headers differ"
	default:
		return ""
	}
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func place(record kafka.Record) string {
	return fmt.Sprintf("%s/%d@%d", record.Topic, record.Partition, record.Offset)
}
