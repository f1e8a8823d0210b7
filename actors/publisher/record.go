package publisher

import (
	"math/bits"
	"strconv"

	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
)

// The names of the position headers (cli.md, position-headers).
const (
	BucketHeader   = "x-outbox-bucket"
	SequenceHeader = "x-outbox-sequence"
)

// recordOf is a row as a Kafka record: the row's bytes and headers, and behind
// them the relay's own, the message id last. What the caller had under exactly
// these names is left out.
func (c *Config) recordOf(bucket int, row *outbox.Row, partition int32) Record {
	m := &row.Message
	headers := make([]outbox.Header, 0, len(m.Headers)+3)
	for _, h := range m.Headers {
		if !c.ownHeader(h.Key) {
			headers = append(headers, h)
		}
	}
	if c.PositionHeaders {
		headers = append(headers,
			outbox.Header{Key: BucketHeader, Value: strconv.AppendInt(nil, int64(bucket), 10)},
			outbox.Header{Key: SequenceHeader, Value: strconv.AppendInt(nil, row.Sequence, 10)})
	}
	headers = append(headers, outbox.Header{Key: c.MessageIDHeader, Value: []byte(m.ID.String())})
	return Record{Topic: m.Topic, Partition: partition, Key: m.Key, Value: m.Value, Headers: headers}
}

func (c *Config) ownHeader(name string) bool {
	return name == c.MessageIDHeader || c.PositionHeaders && (name == BucketHeader || name == SequenceHeader)
}

// partitionOf is the partition of a message in a topic with that many: the
// explicit one, else the key's as Java's client would choose it, else one that
// only the message id decides, so that a repeat lands where the first copy is.
// Whether the topic has an explicit partition is the caller's question.
func partitionOf(m *outbox.Message, partitions int32) int32 {
	switch {
	case m.Partition != nil:
		return *m.Partition
	case m.Key != nil:
		return hashed(m.Key, partitions)
	default:
		return hashed(idBytes(m.ID), partitions)
	}
}

func hashed(key []byte, partitions int32) int32 {
	return int32(outbox.Murmur2(key)&0x7fffffff) % partitions
}

// idBytes are the id in the order of its text. The bucket hash takes another
// order; with the same one, bucket and partition would be bound together, and a
// bucket's keyless rows would all go to a few partitions.
func idBytes(id uuid.UUID) []byte { return id[:] }

// batchOverhead are the bytes of a record batch of Kafka's format 2 before its
// first record, its offset and length included, as the broker counts them.
const batchOverhead = 61

// requestBytes is what the broker compares with max.message.bytes when the
// record is alone in an uncompressed request.
func requestBytes(r *Record) int {
	body := 1 + 1 + 1 // attributes, timestamp delta, offset delta
	body += nullableBytes(r.Key) + nullableBytes(r.Value) + varintBytes(len(r.Headers))
	for _, h := range r.Headers {
		body += varintBytes(len(h.Key)) + len(h.Key) + nullableBytes(h.Value)
	}
	return batchOverhead + varintBytes(body) + body
}

// RequestBytes is what the broker compares with max.message.bytes when the record of
// a bucket's row is alone in an uncompressed request: what a relay with this
// configuration goes by before it sends the row.
func (c Config) RequestBytes(bucket int, row *outbox.Row) int {
	c = c.WithDefaults()
	record := c.recordOf(bucket, row, 0)
	return requestBytes(&record)
}

func nullableBytes(b []byte) int {
	if b == nil {
		return varintBytes(-1)
	}
	return varintBytes(len(b)) + len(b)
}

// varintBytes is the length of a zigzag varint.
func varintBytes(n int) int {
	zigzag := uint64(n) << 1
	if n < 0 {
		zigzag = ^zigzag
	}
	return max(1, (bits.Len64(zigzag)+6)/7)
}

// clientOverhead is about what a client keeps for a record beside its bytes; it
// keeps empty records from being free.
const clientOverhead = 128

// budgetBytes is what a record takes of the budget while it is outstanding.
func budgetBytes(r *Record) int { return requestBytes(r) - batchOverhead + clientOverhead }
