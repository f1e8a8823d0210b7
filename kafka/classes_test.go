package kafka

import (
	"errors"
	"strings"
	"testing"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// TestEveryCodeHasAClass walks all codes that the linked librdkafka knows. A new
// version's codes fail here until somebody has thought about them.
func TestEveryCodeHasAClass(t *testing.T) {
	book := newCodebook()
	known := 0
	for code := ck.ErrorCode(-1000); code < 1000; code++ {
		if code == ck.ErrNoError || strings.HasPrefix(code.String(), "Err-") {
			continue // what librdkafka calls a code that it does not know
		}
		known++
		if _, is := book[code]; !is {
			t.Errorf("code %d (%s) has no class", int(code), code)
		}
	}
	if want := len(classes()) + len(foreign()); known != want {
		t.Errorf("librdkafka knows %d codes, the tables have %d", known, want)
	}
}

func TestEveryClassHasItsReason(t *testing.T) {
	codes, names := map[ck.ErrorCode]bool{}, map[string]bool{}
	for _, c := range append(classes(), foreign()...) {
		if c.name == "" || c.reason == "" || c.class < publisher.Rejected || c.class > publisher.Fenced {
			t.Errorf("row %+v is incomplete", c)
		}
		if local := strings.HasPrefix(c.name, "_"); local != (c.code < ck.ErrUnknown) {
			t.Errorf("%s (%d): a leading underscore marks the client's own codes", c.name, int(c.code))
		}
		if codes[c.code] || names[c.name] {
			t.Errorf("%s (%d) is there twice", c.name, int(c.code))
		}
		codes[c.code], names[c.name] = true, true
	}
}

// TestClassesThatTheRelayDependsOn: outages, missing topics and permissions,
// timeouts and purges never count against a record.
func TestClassesThatTheRelayDependsOn(t *testing.T) {
	for class, codes := range map[publisher.Class][]ck.ErrorCode{
		publisher.Rejected: {ck.ErrMsgSizeTooLarge, ck.ErrInvalidMsg, ck.ErrInvalidRecord, ck.ErrRecordListTooLarge},
		publisher.Retriable: {ck.ErrQueueFull, ck.ErrUnknownTopicOrPart, ck.ErrUnknownTopic, ck.ErrUnknownPartition,
			ck.ErrNotLeaderForPartition, ck.ErrLeaderNotAvailable, ck.ErrNotEnoughReplicas, ck.ErrTopicAuthorizationFailed,
			ck.ErrClusterAuthorizationFailed, ck.ErrAllBrokersDown, ck.ErrInvalidDifferentRecord, ck.ErrState},
		publisher.Ambiguous: {ck.ErrMsgTimedOut, ck.ErrPurgeInflight, ck.ErrPurgeQueue, ck.ErrRequestTimedOut,
			ck.ErrNotEnoughReplicasAfterAppend, ck.ErrTransport, ck.ErrUnknown},
		publisher.Fatal:  {ck.ErrFatal, ck.ErrGaplessGuarantee, ck.ErrOutOfOrderSequenceNumber},
		publisher.Fenced: {ck.ErrFenced, ck.ErrProducerFenced, ck.ErrInvalidProducerEpoch},
	} {
		for _, code := range codes {
			if fault := newCodebook().fault(code); fault.Class != class {
				t.Errorf("%d (%s): %v, want %v", int(code), code, fault.Class, class)
			}
		}
	}
}

func TestCodesFromTheFutureMayHaveBeenAppended(t *testing.T) {
	fault := newCodebook().fault(777)
	if fault.Class != publisher.Ambiguous || fault.Code != "CODE_777" {
		t.Errorf("%+v, want CODE_777, ambiguous", fault)
	}
	if fault := newCodebook().faultOf(errors.New("odd")); fault.Class != publisher.Ambiguous {
		t.Errorf("%+v, want ambiguous", fault)
	}
}

// TestFatalErrorsEndTheProducer: whatever the same code means for one record.
func TestFatalErrorsEndTheProducer(t *testing.T) {
	for code, class := range map[ck.ErrorCode]publisher.Class{
		ck.ErrGaplessGuarantee:           publisher.Fatal,
		ck.ErrClusterAuthorizationFailed: publisher.Fatal,
		ck.ErrMsgSizeTooLarge:            publisher.Fatal,
		ck.ErrFenced:                     publisher.Fenced,
		ck.ErrInvalidProducerEpoch:       publisher.Fenced,
	} {
		if fault := newCodebook().fatal(ck.NewError(code, "why", true)); fault.Class != class {
			t.Errorf("%s: %v, want %v", code, fault.Class, class)
		}
	}
}

func TestSettings(t *testing.T) {
	ordered := settingsFor(Config{Brokers: []string{"a:1", "b:2"}, Properties: map[string]string{"linger.ms": "1", "client.id": "mine"}},
		publisher.Options{})
	for name, want := range map[string]string{
		"bootstrap.servers": "a:1,b:2", "acks": "all", "enable.idempotence": "true", "enable.gapless.guarantee": "true",
		"message.timeout.ms": "0", "max.in.flight.requests.per.connection": "5", "linger.ms": "1", "client.id": "mine",
		"partitioner": "murmur2_random", "allow.auto.create.topics": "false", "message.max.bytes": "1000000", "batch.size": "1000000",
	} {
		if got := ordered.properties[name]; got != want {
			t.Errorf("ordered: %s=%v, want %s", name, got, want)
		}
	}
	careful := settingsFor(Config{Properties: map[string]string{"linger.ms": "50", "batch.num.messages": "7"}}, publisher.Options{Careful: true})
	for name, want := range map[string]string{
		"acks": "all", "enable.idempotence": "true", "enable.gapless.guarantee": "false", "message.timeout.ms": "0",
		"max.in.flight.requests.per.connection": "1", "batch.num.messages": "1", "linger.ms": "0",
	} {
		if got := careful.properties[name]; got != want {
			t.Errorf("careful: %s=%v, want %s", name, got, want)
		}
	}
}

// A transactional producer is not gap-less, and a record of its times out before the
// coordinator gives its transaction up.
func TestSettingsOfTransactions(t *testing.T) {
	fenced := settingsFor(Config{Properties: map[string]string{"linger.ms": "1"}}, publisher.Options{TransactionalID: "outbox-eu-shop-OUTBOX-3"})
	for name, want := range map[string]string{
		"transactional.id": "outbox-eu-shop-OUTBOX-3", "transaction.timeout.ms": "30000", "enable.gapless.guarantee": "false",
		"enable.idempotence": "true", "acks": "all", "linger.ms": "1", "max.in.flight.requests.per.connection": "5",
	} {
		if got := fenced.properties[name]; got != want {
			t.Errorf("%s=%v, want %s", name, got, want)
		}
	}
	if got, set := fenced.properties["message.timeout.ms"]; set {
		t.Errorf("message.timeout.ms=%v, want the client's own, which is the transaction's", got)
	}
}

// What the end of a transactional call means: who was fenced, and what may be
// called again. Of whatever says neither, the producer does not recover.
func TestVerdicts(t *testing.T) {
	codes := newCodebook()
	if m := codes.verdict(nil); m.Fault != nil || m.MustAbort {
		t.Errorf("done: %+v", m)
	}
	for name, c := range map[string]struct {
		err  error
		want publisher.Class
	}{
		"fenced":                    {ck.NewError(ck.ErrFenced, "", true), publisher.Fenced},
		"an older epoch":            {ck.NewError(ck.ErrInvalidProducerEpoch, "", true), publisher.Fenced},
		"timed out":                 {ck.NewError(ck.ErrTimedOut, "", false), publisher.Ambiguous},
		"fatal":                     {ck.NewError(ck.ErrOutOfOrderSequenceNumber, "", true), publisher.Fatal},
		"abort after a late commit": {ck.NewError(ck.ErrConflict, "", false), publisher.Fatal},
		"not the client's":          {errors.New("?"), publisher.Fatal},
	} {
		if m := codes.verdict(c.err); m.MustAbort || m.Fault == nil || m.Fault.Class != c.want {
			t.Errorf("%s: %+v, want %v", name, m.Fault, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		properties map[string]string
		topic      int
		want       limits
	}{
		"nothing known":               {nil, 0, limits{1_000_000, 1_000_000}},
		"a small topic":               {nil, 65_536, limits{65_536, 65_536}},
		"a large topic":               {nil, 5_000_000, limits{5_000_000, 5_000_000}},
		"the operator's limit":        {map[string]string{"message.max.bytes": "3000000"}, 0, limits{3_000_000, 3_000_000}},
		"the operator's is less":      {map[string]string{"message.max.bytes": "3000000"}, 5_000_000, limits{3_000_000, 3_000_000}},
		"the topic's is less":         {map[string]string{"message.max.bytes": "3000000"}, 65_536, limits{65_536, 65_536}},
		"requests may be smaller":     {map[string]string{"batch.size": "10000"}, 65_536, limits{65_536, 10_000}},
		"less than librdkafka allows": {nil, 500, limits{1_000, 500}},
		"more than librdkafka allows": {nil, 2_000_000_000, limits{1_000_000_000, 2_000_000_000}},
		"compressed":                  {map[string]string{"compression.type": "zstd"}, 65_536, limits{1_000_000, 65_536}},
		"compressed, with a limit":    {map[string]string{"compression.codec": "lz4", "message.max.bytes": "200000"}, 65_536, limits{200_000, 65_536}},
		"not compressed after all":    {map[string]string{"compression.type": "none"}, 65_536, limits{65_536, 65_536}},
	} {
		got := limitsFor(c.properties, c.topic, Compresses(c.properties))
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
