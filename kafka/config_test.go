package kafka_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/kafka"
)

// TestEveryFaultIsNamedAtOnce: an operator repairs a configuration in one go.
func TestEveryFaultIsNamedAtOnce(t *testing.T) {
	err := kafka.Config{
		Brokers:         []string{"good:9092", "bad:99999", "a,b:9092", ":9092", "good:9092", ""},
		DescribeTimeout: -time.Second,
		Properties:      map[string]string{"acks": "1", "retries": "5"},
	}.Validate()
	for _, want := range []string{`"bad:99999"`, `"a,b:9092"`, `":9092"`, `"good:9092": named twice`, `"": empty`, "-1s", "acks=1", "retries=5"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	if err := (kafka.Config{}).Validate(); err == nil || !strings.Contains(err.Error(), "brokers") {
		t.Errorf("no brokers: %v", err)
	}
}

func TestBrokers(t *testing.T) {
	for _, broker := range []string{"localhost", "localhost:9092", "[::1]:9092", "10.0.0.1:1", "SASL_SSL://kafka.example:9094"} {
		if err := (kafka.Config{Brokers: []string{broker}}).Validate(); err != nil {
			t.Errorf("%q: %v", broker, err)
		}
	}
	for _, broker := range []string{" a:1", "a:b", "a:0", "::1", "a:1,b:2", "a:1\n"} {
		if err := (kafka.Config{Brokers: []string{broker}}).Validate(); err == nil {
			t.Errorf("%q is taken", broker)
		}
	}
}

// TestThePromiseCannotBeConfiguredAway: under no name that librdkafka knows.
func TestThePromiseCannotBeConfiguredAway(t *testing.T) {
	for _, name := range []string{
		"acks", "request.required.acks", "enable.idempotence", "enable.gapless.guarantee", "message.timeout.ms",
		"delivery.timeout.ms", "retries", "message.send.max.retries", "max.in.flight",
		"max.in.flight.requests.per.connection", "partitioner", "transactional.id", "bootstrap.servers",
		"metadata.broker.list", "queue.buffering.max.messages", "queue.buffering.max.kbytes", "queue.buffering.max.ms",
		"queuing.strategy", "delivery.report.only.error", "go.batch.producer", "default.topic.config", "{topic}.acks",
	} {
		err := kafka.Config{Brokers: []string{"a:1"}, Properties: map[string]string{name: "1"}}.Validate()
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want a refusal that names it", name, err)
		}
	}
}

func TestPropertiesAreJudgedByLibrdkafka(t *testing.T) {
	good := map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u",
		"sasl.password": "p", "compression.type": "zstd", "linger.ms": "2", "client.id": "shop"}
	if err := (kafka.Config{Brokers: []string{"a:1"}, Properties: good}).Validate(); err != nil {
		t.Errorf("good properties: %v", err)
	}
	err := kafka.Config{Brokers: []string{"a:1"}, Properties: map[string]string{
		"linger.ms": "soon", "no.such.property": "hunter2", "compression.type": "zip", "client.id": "fine",
		"security.protocol": "sasl_ssl", "acks": "1"}}.Validate()
	for _, want := range []string{"linger.ms=soon", "no.such.property", "compression.type=zip", "acks=1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	for _, unwanted := range []string{"fine", "security.protocol", "hunter2"} {
		if err != nil && strings.Contains(err.Error(), unwanted) {
			t.Errorf("error %v blames a good property, or shows what may be a misspelled secret: %s", err, unwanted)
		}
	}
	err = kafka.Config{Brokers: []string{"a:1"}, Properties: map[string]string{"sasl.mechanisms": "OAUTHBEARER"}}.Validate()
	if err == nil || !strings.Contains(err.Error(), "oidc") {
		t.Errorf("tokens without a source: %v", err)
	}
	err = kafka.Config{Brokers: []string{"a:1"}, Properties: map[string]string{"security.protocol": "SASL_SSL",
		"sasl.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "me",
		"sasl.oauthbearer.client.secret": "x", "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token"}}.Validate()
	if err != nil {
		t.Errorf("OIDC: %v", err)
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	const secret = "hunter2-\x00-secret"
	for _, properties := range []map[string]string{
		{"sasl.password": secret, "no.such.property": "x"},
		{"ssl.key.pem": secret, "security.protocol": "ssl"},
		{"sasl.oauthbearer.client.secret": secret, "linger.ms": "soon"},
		{"sasl.passwrod.typo.password": secret},
		{"transactional.id": "https://user:" + secret + "@host/"},
	} {
		err := kafka.Config{Brokers: []string{"a:1"}, Properties: properties}.Validate()
		if err == nil {
			t.Errorf("%q is taken", properties)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
	for _, broker := range []string{"me:hunter2@a:1", "SASL_SSL://me:hunter2@a:1"} {
		if err := (kafka.Config{Brokers: []string{broker}}).Validate(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a broker with credentials: %v", err)
		}
	}
	for name, secret := range map[string]bool{
		"sasl.password": true, "ssl.key.password": true, "ssl.key.pem": true, "ssl.keystore.password": true,
		"sasl.oauthbearer.client.secret": true, "sasl.oauthbearer.config": true, "sasl.username": false,
		"security.protocol": false, "linger.ms": false, "sasl.oauthbearer.token.endpoint.url": false,
	} {
		if kafka.Secret(name, "value") != secret {
			t.Errorf("Secret(%s) = %t", name, !secret)
		}
	}
}
