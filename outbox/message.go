package outbox

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// Header is one header of a message. Keys may repeat and may be empty; the order is kept. A nil Value
// is a null value, which differs from an empty one.
type Header struct {
	Key   string
	Value []byte
}

// Message is one record to be, as an application hands it over. It is a value: after it was handed
// over, neither it nor the bytes behind its slices may be changed.
type Message struct {
	// ID names the message for ever. Consumers deduplicate on it (header x-outbox-message-id), so an
	// application that may repeat an enqueue keeps the ID. The zero ID is refused.
	ID uuid.UUID
	// Topic is the Kafka topic. A blank one is refused.
	Topic string
	// Key orders and places the record: records of one topic and key arrive in the order in which
	// they were committed. Nil is a keyless record; an empty Key is a key like any other.
	Key []byte
	// Value is the payload. Nil is a tombstone, which differs from an empty payload.
	Value []byte
	// Headers are sent in this order, before the relay's own.
	Headers []Header
	// Partition sends the record to this partition of its topic, whatever its key. Nil leaves the
	// choice to the key. A negative one is refused.
	Partition *int32
	// CreatedAt is stored in whole ticks of 100 ns, as UTC, for people and metrics: records carry the
	// time of their publishing. Zero means the time at which the Writer gets the message.
	CreatedAt time.Time
}

// NewMessage is a message with a new random ID, created now. A nil key makes it keyless, a nil value
// a tombstone. The message keeps both slices.
func NewMessage(topic string, key, value []byte) Message {
	return Message{ID: uuid.New(), Topic: topic, Key: key, Value: value, CreatedAt: time.Now().UTC()}
}

// Bucket is the bucket, from 0 to bucketCount-1, that holds the message: its explicit partition modulo
// the count, else the hash of its key, else (keyless) the hash of its ID. All writers and relays of a
// table must use one count, since another count sends the same key elsewhere. The count must be at
// least 1 and a partition not negative. Protocol, section 1.
func (m Message) Bucket(bucketCount int) int {
	if m.Partition != nil {
		return int(*m.Partition) % bucketCount
	}
	hashed := m.Key
	if hashed == nil {
		id := guidBytes(m.ID)
		hashed = id[:]
	}
	return int(Murmur2(hashed)&0x7fffffff) % bucketCount
}

// guidBytes are the bytes of id as .NET holds a GUID in memory: the first three groups little-endian,
// the rest as written. A keyless message is hashed over these, so that both peers choose one bucket.
func guidBytes(id uuid.UUID) [16]byte {
	out := [16]byte(id)
	binary.LittleEndian.PutUint32(out[0:], binary.BigEndian.Uint32(id[0:]))
	binary.LittleEndian.PutUint16(out[4:], binary.BigEndian.Uint16(id[4:]))
	binary.LittleEndian.PutUint16(out[6:], binary.BigEndian.Uint16(id[6:]))
	return out
}

// Murmur2 is Kafka's hash of a record key: the 32-bit murmur2 with Kafka's seed, 0x9747b28c, over
// little-endian words. Kafka's default partitioner takes Murmur2(key) & 0x7fffffff modulo the number of
// partitions; a nil key hashes like an empty one.
func Murmur2(key []byte) uint32 {
	const (
		seed  = 0x9747b28c
		mul   = 0x5bd1e995
		shift = 24
	)
	h := uint32(seed) ^ uint32(len(key))
	for len(key) >= 4 {
		k := binary.LittleEndian.Uint32(key) * mul
		k = (k ^ k>>shift) * mul
		h = h*mul ^ k
		key = key[4:]
	}
	if len(key) > 0 {
		var tail uint32
		for i, b := range key {
			tail |= uint32(b) << (8 * i)
		}
		h = (h ^ tail) * mul
	}
	h = (h ^ h>>13) * mul
	return h ^ h>>15
}
