package kafka

import (
	"errors"
	"fmt"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// codebook finds the class of a code.
type codebook map[ck.ErrorCode]class

func newCodebook() codebook {
	book := make(codebook)
	for _, c := range append(classes(), foreign()...) {
		book[c.code] = c
	}
	return book
}

// classify is the one place where a code becomes a class. A code of a later
// librdkafka, or of a broker ahead of it, may follow an append.
func (b codebook) classify(code ck.ErrorCode) class {
	if c, known := b[code]; known {
		return c
	}
	return class{code, fmt.Sprintf("CODE_%d", int(code)), publisher.Ambiguous, "unknown code; taken as if it may have been appended"}
}

// fault is what a code means for a record.
func (b codebook) fault(code ck.ErrorCode) *publisher.Fault {
	c := b.classify(code)
	return &publisher.Fault{Class: c.class, Code: c.name, Text: fmt.Sprintf("%s (%s)", code, c.reason)}
}

// faultOf takes an error of the Go client apart.
func (b codebook) faultOf(err error) *publisher.Fault {
	var e ck.Error
	if !errors.As(err, &e) {
		return &publisher.Fault{Class: publisher.Ambiguous, Code: "CLIENT", Text: err.Error()}
	}
	return b.fault(e.Code())
}

// fatal is what a fatal error means for its producer: that it was fenced, or
// that it is unusable, whatever the same code means for one record.
func (b codebook) fatal(e ck.Error) *publisher.Fault {
	c := b.classify(e.Code())
	f := &publisher.Fault{Class: publisher.Fatal, Code: c.name, Text: e.String()}
	if c.class == publisher.Fenced {
		f.Class = publisher.Fenced
	}
	return f
}

// inspect refuses what the client would send mutilated, or panic over. The Go
// client hands names to C as strings that end with their first zero byte.
func inspect(r publisher.Record) *publisher.Fault {
	if f := inspectTopic(r.Topic); f != nil {
		return f
	}
	for i, h := range r.Headers {
		for j := range len(h.Key) {
			if h.Key[j] == 0 {
				return &publisher.Fault{Class: publisher.Rejected, Code: "INVALID_RECORD",
					Text: fmt.Sprintf("the name of header %d has a zero byte, which the client cannot send", i)}
			}
		}
	}
	return nil
}

const maxTopicBytes = 249

// inspectTopic applies Kafka's rule for names of topics: 1 to 249 of letters,
// digits, dot, underscore and hyphen, and neither "." nor "..".
func inspectTopic(topic string) *publisher.Fault {
	reason := ""
	switch {
	case topic == "":
		reason = "is empty"
	case topic == "." || topic == "..":
		reason = "is reserved"
	case len(topic) > maxTopicBytes:
		reason = fmt.Sprintf("has %d bytes, of at most %d", len(topic), maxTopicBytes)
	default:
		for i := range len(topic) {
			if c := topic[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
				reason = fmt.Sprintf("has an illegal byte 0x%02x at %d", c, i)
				break
			}
		}
	}
	if reason == "" {
		return nil
	}
	return &publisher.Fault{Class: publisher.Rejected, Code: "TOPIC_EXCEPTION", Text: "the name of the topic " + reason}
}

// sizeOf is a record's size as the client counts it, in bytes.
func sizeOf(r publisher.Record) int {
	n := len(r.Key) + len(r.Value) + recordOverhead
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}
