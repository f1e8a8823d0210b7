package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// refusal is a property that an operator may not set. A name that ends with an
// asterisk stands for all that begin so.
type refusal struct{ name, reason string }

// refusals are the properties that carry the delivery promise, by every name
// that librdkafka knows them by (kafka.md, "Ordered mode").
func refusals() []refusal {
	const (
		acks     = "a row is deleted on acknowledgement, so all in-sync replicas must have the record"
		order    = "order depends on the idempotent, gap-less producer"
		timeout  = "a record that times out locally lets later ones pass; the relay has deadlines of its own"
		retries  = "giving a record up lets later ones pass"
		inFlight = "the idempotent producer allows five at most, and careful producers need one"
		brokers  = "use the setting brokers"
		queue    = "the relay bounds what is queued, in bytes, with a share for each bucket"
		reports  = "every record needs its report"
	)
	return []refusal{
		{"acks", acks},
		{"request.required.acks", acks},
		{"enable.idempotence", order},
		{"enable.gapless.guarantee", order},
		{"message.timeout.ms", timeout},
		{"delivery.timeout.ms", timeout},
		{"retries", retries},
		{"message.send.max.retries", retries},
		{"max.in.flight*", inFlight},
		{"partitioner*", "a key must go where Java's client sends it"},
		{"transactional.id", "it is derived from the table and the bucket; two fleets must not fence each other"},
		{"transaction.timeout.ms", "it is how long a relay that is gone holds up consumers; the relay's own deadlines fit it"},
		{"bootstrap.servers", brokers},
		{"metadata.broker.list", brokers},
		{"queue.*", queue},
		{"queuing.strategy", "lifo turns the order round"},
		{"delivery.report.only.error", reports},
		{"dr_cb", reports},
		{"dr_msg_cb", reports},
		{"go.*", "not a property of librdkafka"},
		{"default.topic.config", "set the topic property by its plain name"},
	}
}

// refusedProperties names each property that carries the promise, with its
// reason, sorted by name, and returns the others.
func refusedProperties(properties map[string]string) (faults []error, others map[string]string) {
	others = maps.Clone(properties)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		// The Go client would strip this prefix, and so let everything through.
		plain := strings.TrimPrefix(name, "{topic}.")
		if plain != name {
			faults = append(faults, fmt.Errorf("kafka property %q: write it without {topic}", name))
			delete(others, name)
			continue
		}
		for _, r := range refusals() {
			prefix, open := strings.CutSuffix(r.name, "*")
			if plain == r.name || open && strings.HasPrefix(plain, prefix) {
				faults = append(faults, fmt.Errorf("kafka property %s=%s: refused: %s", name, shown(name, properties[name]), r.reason))
				delete(others, name)
				break
			}
		}
	}
	return append(faults, oauthFault(properties)...), others
}

// oauthFault: a token of one's own making needs a callback, which the relay
// does not have; librdkafka's own OIDC does without.
func oauthFault(properties map[string]string) []error {
	if mechanism(properties) == "OAUTHBEARER" && !strings.EqualFold(properties["sasl.oauthbearer.method"], "oidc") {
		return []error{errors.New("kafka property sasl.mechanisms=OAUTHBEARER: only with sasl.oauthbearer.method=oidc, " +
			"since the relay makes no tokens itself")}
	}
	return nil
}

func mechanism(properties map[string]string) string {
	return strings.ToUpper(cmp.Or(properties["sasl.mechanisms"], properties["sasl.mechanism"]))
}

// Secret says whether a property's value must not be shown: passwords, keys,
// tokens, and addresses that carry credentials.
func Secret(name, value string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{
		"password", "passphrase", "secret", "token", "credential", "jaas", ".pem", "assertion.private", "oauthbearer.config",
	} {
		if strings.Contains(name, part) && !strings.HasSuffix(name, ".url") {
			return true
		}
	}
	_, address, isURL := strings.Cut(value, "://")
	return isURL && strings.Contains(address, "@")
}

// Redacted stands for a value that must not be shown.
const Redacted = "(redacted)"

func shown(name, value string) string {
	if Secret(name, value) {
		return Redacted
	}
	return value
}

// scrub takes the values of secret properties out of a text of librdkafka's.
func scrub(text string, properties map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if value := properties[name]; value != "" && Secret(name, value) {
			text = strings.ReplaceAll(text, value, Redacted)
		}
	}
	return text
}

// tryProperties lets librdkafka judge the properties, on clients that know no
// broker. First all together; when that fails, each alone, to name every fault.
func tryProperties(properties map[string]string) []error {
	if len(properties) == 0 {
		return nil
	}
	together := maps.Clone(properties)
	if mechanism(properties) == "OAUTHBEARER" {
		// With a security protocol, the client would ask for a token at once.
		delete(together, "security.protocol")
	}
	all := tryOpen(together)
	if all == nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(properties))
	alone := make([]error, len(names))
	var tries sync.WaitGroup
	for i, name := range names {
		tries.Go(func() { alone[i] = tryOne(name, properties[name]) })
	}
	tries.Wait()
	alone = slices.DeleteFunc(alone, func(err error) bool { return err == nil })
	if len(alone) == 0 {
		return []error{fmt.Errorf("kafka properties: %s", scrub(all.Error(), properties))}
	}
	return alone
}

// tryOne names a property that librdkafka does not accept, with its value, and
// what it says. A name that it does not know may be that of a secret, misspelled:
// its value is not shown.
func tryOne(name, value string) error {
	properties := map[string]string{name: value}
	if name == "security.protocol" {
		// Alone, one with SASL would want a mechanism that needs a ticket.
		maps.Copy(properties, map[string]string{"sasl.mechanisms": "PLAIN", "sasl.username": "-", "sasl.password": "-"})
	}
	err := tryOpen(properties)
	switch {
	case err == nil:
		return nil
	case unknown(name, err):
		return fmt.Errorf("kafka property %q: %w", name, err)
	case Secret(name, value):
		return fmt.Errorf("kafka property %s=%s: not accepted", name, Redacted)
	default:
		return fmt.Errorf("kafka property %s=%s: %s", name, value, strings.TrimSpace(err.Error()))
	}
}

// unknown tells whether librdkafka says of a name what it says of one that
// nobody knows.
func unknown(name string, err error) bool {
	const nobodys = "relay.unknown"
	other := tryOpen(map[string]string{nobodys: ""})
	return other != nil && strings.ReplaceAll(other.Error(), nobodys, name) == err.Error()
}

func tryOpen(properties map[string]string) error {
	settings := ck.ConfigMap{"go.logs.channel.enable": true, "log_level": 0, "go.events.channel.size": 1, "go.produce.channel.size": 0}
	for name, value := range properties {
		settings[name] = value
	}
	client, err := ck.NewProducer(&settings)
	if err != nil {
		return errors.New(err.Error())
	}
	client.Close()
	return nil
}
