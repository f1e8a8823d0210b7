//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/outbox"
)

// diagnosis is the JSON of relay doctor.
type diagnosis struct {
	OK     bool `json:"ok"`
	Checks []struct {
		ID, Status, Subject, Found, Advice string
	} `json:"checks"`
}

// diagnose runs the binary's doctor on a table and returns its exit code, and what it
// says.
func diagnose(t *testing.T, table string, more ...string) (int, diagnosis) {
	t.Helper()
	p := start(t, "doctor", append([]string{"doctor", "--table", table, "--dynamodb-endpoint", endpoint(t),
		"--brokers", brokers(t).String(), "--output", "json"}, more...)...)
	code := p.exit()
	output, complaint := p.output(), ""
	if end := strings.LastIndex(output, "\n}"); end >= 0 {
		output, complaint = output[:end+2], output[end+2:]
	}
	var d diagnosis
	if err := json.Unmarshal([]byte(output), &d); err != nil {
		t.Fatalf("exit %d, %v:\n%s", code, err, p.output())
	}
	t.Logf("exit %d%s", code, strings.ReplaceAll(strings.TrimRight(complaint, "\n"), "\n", ": "))
	return code, d
}

// wants demands a check of this id and status with all the texts in it, and shows it.
func (d diagnosis) wants(t *testing.T, id, status string, texts ...string) {
	t.Helper()
	for _, check := range d.Checks {
		whole := fmt.Sprintf("%s %s: %s: %s → %s", check.Status, check.ID, check.Subject, check.Found, check.Advice)
		has := check.ID == id && check.Status == status
		for _, text := range texts {
			has = has && strings.Contains(whole, text)
		}
		if has {
			t.Log(whole)
			return
		}
	}
	t.Errorf("no check %s is a %s with %q among %+v", id, status, texts, d.Checks)
}

// Beside a relay at work on a sound outbox nothing fails. What the emulator or a single
// broker cannot be is a warning, or skipped. And the relay does not notice: no fence of
// its is taken, and it publishes afterwards as before.
func TestDoctorBesideARelayAtWork(t *testing.T) {
	client := dynamo(t)
	schema := freshTable(t, client, outbox.Schema{})
	topic := schema.Table
	createTopic(t, topic, 2, 0)
	relay := start(t, "relay", relayArgs(t, schema.Table, "relay-1", "--mode", "fenced")...)
	relay.await("relay.ready", nil)
	for bucket := range schema.BucketCount {
		relay.await("bucket.claimed", func(l line) bool { return l.Bucket != nil && *l.Bucket == bucket })
	}
	writer, messages := newWriter(t, client, schema), make([]sent, 2)
	for i := range messages {
		messages[i] = sent{message: outbox.NewMessage(topic, []byte("k"), nil)}
	}
	write(t, writer, messages[:1])
	awaitDelivery(t, messages[:1], map[string]int{topic: 2})

	alike := []string{"--mode", "fenced", "--lease-duration", "3s", "--lease-renew-interval", "1s", "--max-clock-skew", "200ms"}
	code, d := diagnose(t, schema.Table, alike...)
	if code != 0 || !d.OK {
		t.Errorf("exit code %d, ok %v", code, d.OK)
	}
	for _, check := range d.Checks {
		if check.Status != "ok" {
			t.Logf("%s %s: %s: %s", check.Status, check.ID, check.Subject, check.Found)
		}
	}
	d.wants(t, "table", "ok", schema.Table)
	d.wants(t, "table-ttl", "ok")
	d.wants(t, "relays", "ok", "relay-1 (fenced)")
	d.wants(t, "leases", "ok", "8 buckets")
	d.wants(t, "permission", "ok", "6 actions")
	d.wants(t, "brokers", "ok", "1 broker")
	d.wants(t, "broker-versions", "ok", "Produce")
	d.wants(t, "kafka-producer", "ok")
	d.wants(t, "kafka-transactions", "ok", "-doctor")
	_, d = diagnose(t, schema.Table, "--lease-duration", "9s", "--lease-renew-interval", "1s")
	d.wants(t, "relay-modes", "warning", "mode fenced, the settings here say ordered")
	d.wants(t, "lease-duration", "warning", "relay-1")

	write(t, writer, messages[1:])
	awaitDelivery(t, messages[1:], map[string]int{topic: 2})
	if failures := relay.said(func(l line) bool { return l.Event == "publish.failed" || l.Level == "error" }); len(failures) > 0 {
		t.Errorf("the relay has noticed: %v", failures)
	}
	relay.stop()
}

// A table with trouble in it, and topics that do not fit what waits for them.
func TestDoctorOnAnOutboxInTrouble(t *testing.T) {
	client := dynamo(t)
	schema := freshTable(t, client, outbox.Schema{})
	name := func(kind string) string { return schema.Table + "-" + kind }
	createTopic(t, name("small"), 1, 2_000)
	for kind, settings := range map[string]map[string]string{
		"strict":    {"min.insync.replicas": "2"},
		"unclean":   {"unclean.leader.election.enable": "true"},
		"compacted": {"cleanup.policy": "compact"},
		"forgetful": {"retention.ms": "60000"},
	} {
		brokers(t).create(t, ck.TopicSpecification{Topic: name(kind), NumPartitions: 1, ReplicationFactor: 1, Config: settings})
	}
	old := outbox.NewMessage(name("forgetful"), []byte("k"), nil)
	old.CreatedAt = time.Now().Add(-time.Hour)
	seven := int32(7)
	far := outbox.NewMessage(name("small"), []byte("k"), nil)
	far.Partition = &seven
	enqueue(t, client, schema,
		outbox.NewMessage(name("missing"), []byte("k"), nil),
		outbox.NewMessage(name("small"), []byte("k"), make([]byte, 5_000)),
		outbox.NewMessage(name("strict"), []byte("k"), nil),
		outbox.NewMessage(name("unclean"), []byte("k"), nil),
		outbox.NewMessage(name("compacted"), nil, nil),
		old, far)
	foreign := schema
	foreign.BucketCount = 16
	stamped := outbox.NewMessage(name("strict"), []byte("k"), nil)
	stamped.Partition = new(int32)
	enqueue(t, client, foreign, stamped)

	code, d := diagnose(t, schema.Table, "--poison", "dead-letter", "--dead-letter-topic", name("letters"))
	if code != 1 || d.OK {
		t.Errorf("exit code %d, ok %v", code, d.OK)
	}
	d.wants(t, "topics", "failure", name("missing"), "does not exist", "create it")
	d.wants(t, "topic-size", "failure", name("small"), "max.message.bytes is 2000", "raise max.message.bytes")
	d.wants(t, "topic-partitions", "failure", name("small"), "asks for number 7")
	d.wants(t, "topic-replicas", "failure", name("strict"), "is 2, and a partition has 1 replica")
	d.wants(t, "topic-replicas", "warning", name("unclean"), "one replica")
	d.wants(t, "topic-elections", "warning", name("unclean"))
	d.wants(t, "topic-compaction", "failure", name("compacted"), "1 row has no key")
	d.wants(t, "topic-retention", "warning", name("forgetful"), "1m")
	d.wants(t, "dead-letter-topic", "failure", name("letters"))
	d.wants(t, "bucket-count", "failure", "bucket count 16")
	d.wants(t, "backlog", "warning", "for 1h")
	d.wants(t, "relays", "failure", "relay run")
	d.wants(t, "clock", "ok", "this host")
}
