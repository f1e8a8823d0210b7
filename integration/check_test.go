package integration

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
)

// idHeader is the header that consumers deduplicate on.
const idHeader = "x-outbox-message-id"

// sent is one message that was committed.
type sent struct {
	message outbox.Message
	// stream is what must keep its order: a topic and key, or, without a key, a
	// topic and explicit partition. Empty: nothing promises an order.
	stream string
	began  time.Time // when the commit was called; the record cannot be older
}

// verdict is what check has found. All but sent, delivered, streams and
// duplicates must be zero.
type verdict struct {
	sent       int
	delivered  int // messages seen at least once
	streams    int // that have an order
	duplicates int // records beyond the first of a message; at least once allows them
	lost       int // messages never seen
	disordered int // first deliveries behind a later one of their stream
	altered    int // records that differ from their message in a byte, or in null and empty
	misplaced  int // records in another partition than Java's client would choose
	mistimed   int // records whose time is not that of their publishing
	foreign    int // records of no message
	problems   []string
}

func (v *verdict) sound() bool {
	return v.lost+v.disordered+v.altered+v.misplaced+v.mistimed+v.foreign == 0
}

func (v *verdict) String() string {
	s := fmt.Sprintf("%d messages sent, %d delivered, %d lost, %d duplicates; %d streams, %d out of order; "+
		"%d altered, %d in a wrong partition, %d with a wrong time, %d of no message",
		v.sent, v.delivered, v.lost, v.duplicates, v.streams, v.disordered,
		v.altered, v.misplaced, v.mistimed, v.foreign)
	for _, p := range v.problems {
		s += "\n  " + p
	}
	return s
}

// maxProblems is how many problems are worded; the counts are complete.
const maxProblems = 20

func (v *verdict) found(count *int, format string, args ...any) {
	*count++
	if len(v.problems) < maxProblems {
		v.problems = append(v.problems, fmt.Sprintf(format, args...))
	}
}

// expectation is a message and what was seen of it.
type expectation struct {
	sent
	position int // in its stream, from 0
	seen     bool
}

// check compares what was committed, each stream in the order of its commits,
// with all records of the topics, by partition, then offset. partitions has the
// number of partitions of each topic. No record is younger than until.
func check(messages []sent, records []kafka.Record, partitions map[string]int, until time.Time) verdict {
	v := verdict{sent: len(messages)}
	expected, positions := make(map[uuid.UUID]*expectation, len(messages)), map[string]int{}
	for _, m := range messages {
		expected[m.message.ID] = &expectation{sent: m, position: positions[m.stream]}
		if m.stream != "" {
			positions[m.stream]++
		}
	}
	v.streams = len(positions)
	if _, unordered := positions[""]; unordered {
		v.streams--
	}
	latest := map[string]*expectation{} // the first delivery of each stream that was furthest on
	for _, r := range records {
		e := expected[idOf(r)]
		if e == nil {
			v.found(&v.foreign, "%s is of no message", place(r))
			continue
		}
		v.compare(e, r, partitions[r.Topic], until)
		if e.seen {
			v.duplicates++
			continue
		}
		e.seen = true
		if e.stream == "" {
			continue
		}
		if last := latest[e.stream]; last != nil && last.position > e.position {
			v.found(&v.disordered, "%s, number %d of %s, came after number %d", place(r), e.position, e.stream, last.position)
			continue
		}
		latest[e.stream] = e
	}
	for _, m := range messages {
		if !expected[m.message.ID].seen {
			v.found(&v.lost, "message %s, topic %s, stream %q was never delivered", m.message.ID, m.message.Topic, m.stream)
		}
	}
	v.delivered = v.sent - v.lost
	return v
}

// compare looks at one record by itself.
func (v *verdict) compare(e *expectation, r kafka.Record, partitions int, until time.Time) {
	m := e.message
	if difference := differs(m, r); difference != "" {
		v.found(&v.altered, "%s: %s differs", place(r), difference)
	}
	if want := partitionOf(m, partitions); want >= 0 && want != r.Partition {
		v.found(&v.misplaced, "%s belongs in partition %d", place(r), want)
	}
	if r.Timestamp.Before(e.began.Truncate(time.Millisecond)) || r.Timestamp.After(until) {
		v.found(&v.mistimed, "%s has the time %v, its commit began at %v", place(r), r.Timestamp, e.began)
	}
}

// differs names the first part of the record that is not its message's; empty:
// none. The id is the last header, and the only one of its name.
func differs(m outbox.Message, r kafka.Record) string {
	headers := slices.DeleteFunc(slices.Clone(m.Headers), func(h outbox.Header) bool { return h.Key == idHeader })
	headers = append(headers, outbox.Header{Key: idHeader, Value: []byte(m.ID.String())})
	switch {
	case r.Topic != m.Topic:
		return "topic"
	case !same(r.Key, m.Key):
		return "key"
	case !same(r.Value, m.Value):
		return "value"
	case !slices.EqualFunc(r.Headers, headers, func(a, b outbox.Header) bool {
		return a.Key == b.Key && same(a.Value, b.Value)
	}):
		return fmt.Sprintf("headers: %d where %d were sent, or one of them", len(r.Headers), len(headers))
	default:
		return ""
	}
}

// same tells null and empty apart.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// partitionOf is where the message belongs: its explicit partition, or the one
// that Java's client chooses for its key, as another Kafka client computes it.
// -1: any.
func partitionOf(m outbox.Message, partitions int) int32 {
	switch {
	case m.Partition != nil:
		return *m.Partition
	case m.Key != nil:
		chosen := kgo.StickyKeyPartitioner(nil).ForTopic(m.Topic).Partition(&kgo.Record{Key: m.Key}, partitions)
		return int32(chosen)
	default:
		return -1
	}
}

// idOf is the message id that the record carries; the zero id when it has none.
// It must be in lower case, as it is written everywhere.
func idOf(r kafka.Record) uuid.UUID {
	if len(r.Headers) == 0 {
		return uuid.Nil
	}
	last := r.Headers[len(r.Headers)-1]
	id, err := uuid.ParseBytes(last.Value)
	if last.Key != idHeader || err != nil || strings.ToLower(string(last.Value)) != string(last.Value) {
		return uuid.Nil
	}
	return id
}

func place(r kafka.Record) string { return fmt.Sprintf("%s/%d@%d", r.Topic, r.Partition, r.Offset) }
