package kafka

import (
	"cmp"
	"strconv"
	"strings"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

const (
	// clientMaxMessageBytes is librdkafka's own default of message.max.bytes and
	// batch.size.
	clientMaxMessageBytes = 1_000_000
	// minMessageMaxBytes is the least that librdkafka takes for message.max.bytes.
	minMessageMaxBytes = 1_000
	maxMessageMaxBytes = 1_000_000_000 // and the most
	// recordOverhead is what librdkafka adds to key, value and headers before it
	// compares a record with message.max.bytes.
	recordOverhead = 36

	eventsBuffered = 10_000

	// transactionTimeoutMillis is how long the coordinator lets a transaction of a
	// relay that is gone hold up consumers that read committed records.
	transactionTimeoutMillis = 30_000
)

// limits are the sizes of one producer, in bytes.
type limits struct {
	record int // message.max.bytes: one record, before compression
	batch  int // batch.size: one request to one partition, unless it is one record
}

// settings are what one producer is opened with.
type settings struct {
	properties ck.ConfigMap
	limits     limits
	compressed bool
}

// settingsFor puts together what a producer needs to keep the order (kafka.md,
// "Ordered mode"). The operator's properties come first, so that nothing of
// theirs can replace what follows; Validate has refused those that would try.
//
// All producers are idempotent and wait for all in-sync replicas; none but the
// transactional ones times a record out: with a finite message.timeout.ms even the gap-less producer
// appends what follows a record that timed out in its own queue.
//
// A careful producer is there to find out which record is guilty, so a request
// of its has one record and only one is in flight: then no rejection is shared,
// and none forces records behind it into a new producer epoch, where one that
// was appended without an answer would be appended again.
func settingsFor(c Config, o publisher.Options) settings {
	p := ck.ConfigMap{
		"client.id":                "bucket-brigade",
		"linger.ms":                "5",
		"batch.num.messages":       "10000",
		"socket.timeout.ms":        "30000",
		"allow.auto.create.topics": "false", // asking about a topic must not create it
		"enable.metrics.push":      "false",
	}
	for name, value := range c.Properties {
		p[name] = value
	}
	compressed := Compresses(c.Properties)
	l := limitsFor(c.Properties, o.MaxMessageBytes, compressed)
	for name, value := range map[string]string{
		"bootstrap.servers":                     strings.Join(c.Brokers, ","),
		"acks":                                  "all",
		"enable.idempotence":                    "true",
		"enable.gapless.guarantee":              "true",
		"message.timeout.ms":                    "0",
		"max.in.flight.requests.per.connection": "5",
		"partitioner":                           "murmur2_random",
		"message.max.bytes":                     strconv.Itoa(l.record),
		"batch.size":                            strconv.Itoa(l.batch),
	} {
		p[name] = value
	}
	if o.TransactionalID != "" {
		// A rejected record fails its transaction, so no order depends on the gap-less
		// guarantee; and a record that times out fails it too, before the coordinator
		// does: without a setting the client takes the transaction's own timeout.
		delete(p, "message.timeout.ms")
		p["enable.gapless.guarantee"] = "false"
		p["transactional.id"] = o.TransactionalID
		p["transaction.timeout.ms"] = strconv.Itoa(transactionTimeoutMillis)
	}
	if o.Careful {
		p["enable.gapless.guarantee"] = "false"
		p["max.in.flight.requests.per.connection"] = "1"
		p["batch.num.messages"] = "1"
		p["linger.ms"] = "0"
	}
	p["go.delivery.report.fields"] = "none"
	p["go.events.channel.size"] = eventsBuffered
	p["go.produce.channel.size"] = 0
	return settings{properties: p, limits: l, compressed: compressed}
}

// limitsFor bounds records and requests by maxMessageBytes, a topic's limit, and
// by the operator's properties, whichever is less. With compression the topic's
// limit is on what was compressed, so a record alone may well be larger: only
// the broker can tell.
func limitsFor(properties map[string]string, maxMessageBytes int, compressed bool) limits {
	asked := size(properties, "message.max.bytes")
	limit := leastOf(maxMessageBytes, asked)
	if limit == 0 {
		limit = clientMaxMessageBytes
	}
	l := limits{record: limit, batch: leastOf(limit, size(properties, "batch.size"))}
	if compressed {
		l.record = cmp.Or(asked, max(limit, clientMaxMessageBytes))
	}
	l.record = min(max(l.record, minMessageMaxBytes), maxMessageMaxBytes)
	return l
}

// size is a property's value in bytes; 0: not set.
func size(properties map[string]string, name string) int {
	n, err := strconv.Atoi(properties[name])
	if err != nil {
		return 0
	}
	return n
}

// leastOf takes 0 for no bound.
func leastOf(a, b int) int {
	if a > 0 && b > 0 {
		return min(a, b)
	}
	return max(a, b)
}

// Compresses tells whether librdkafka's properties have records compressed. A topic's
// limit of size is on what is compressed then.
func Compresses(properties map[string]string) bool {
	for _, name := range []string{"compression.codec", "compression.type"} {
		if value, set := properties[name]; set && value != "none" {
			return true
		}
	}
	return false
}
