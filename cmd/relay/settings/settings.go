package settings

import (
	"maps"
	"slices"
	"time"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/telemetry"
)

// Settings is everything that can be set by name.
type Settings struct {
	Relay relay.Config // without clients, producers and observers
	Kafka kafka.Config
	// KafkaFiles are the files that values of Kafka.Properties were read from, by the
	// property.
	KafkaFiles map[string]string

	Region   string // empty: the SDK's chain decides
	Endpoint string // DynamoDB's address, for emulators; empty: the region's

	AdminAddr      string // host:port, or AdminOff
	AdminTokenFile string // empty: no token is asked for
	Pprof          bool
	MetricsName    string
	// MetricsInterval is Relay.MetricsInterval when there are metrics to be read.
	MetricsInterval time.Duration

	LogLevel  string // trace, debug, info, warn, error
	LogFormat string // auto, console, json
}

// AdminOff as AdminAddr: there is no admin address.
const AdminOff = "off"

// Group is a set of settings that belong together; groups combine with |.
type Group uint16

// The groups.
const (
	Table        Group = 1 << iota // where the outbox is and how it is reached
	Brokers                        // where Kafka is and how it is reached
	BrokersIfAny                   // Brokers, of a command that can do without them
	Relay                          // how a relay works
	Admin                          // how a relay shows itself
	Log                            // what a long-running command logs

	// Settings of these are of another group too.
	Simulated // what a simulation tries
	Costs     // what decides about costs
	Leases    // by what leases, and who holds them, are judged
	Picture   // how a picture of the table is taken
)

// setting is one row of the table of settings.
type setting struct {
	name     string
	group    Group
	value    Value // bound to a field of Settings, which holds the default
	doc      string
	required string // why it must be set, where requiredBy is read; empty when it need not be
	// requiredBy are the groups that cannot do without it.
	requiredBy Group
}

// kafkaSetting is the one setting that is a map: it is set one property at a
// time, and so is not a row of the table.
const kafkaSetting = "kafka"

const kafkaDoc = "a librdkafka property, such as security.protocol=SASL_SSL; sasl.password.file=FILE reads one from a file; repeatable"

// Defaults are the settings when nothing is set.
func Defaults() Settings {
	return Settings{
		Relay:     relay.Config{}.WithDefaults(),
		AdminAddr: "127.0.0.1:9464", MetricsName: telemetry.DefaultMetricsName, MetricsInterval: 30 * time.Second,
		LogLevel: "info", LogFormat: "auto",
	}
}

// table lists all settings but kafka, in the order in which people read them,
// each bound to its field of s.
func (s *Settings) table() []setting {
	c := &s.Relay
	return []setting{
		{name: "table", group: Table, value: Text(&c.Table), doc: "name of the DynamoDB table",
			required: "a table is required", requiredBy: Table},
		{name: "partition-key", group: Table, value: Text(&c.PartitionKey), doc: "the table's partition key attribute"},
		{name: "sort-key", group: Table, value: Text(&c.SortKey), doc: "the table's sort key attribute"},
		{name: "key-prefix", group: Table, value: Text(&c.KeyPrefix), doc: "begins every partition key value"},
		{name: "bucket-count", group: Table, value: Count(&c.BucketCount), doc: "buckets of the outbox, 1 to 10000; the same for all relays and writers"},
		{name: "region", group: Table, value: OptionalText(&s.Region), doc: "AWS region; unset: the SDK's chain"},
		{name: "dynamodb-endpoint", group: Table, value: URL(&s.Endpoint), doc: "address of an emulator; unset: the region's DynamoDB"},

		{name: "brokers", group: Brokers | BrokersIfAny, value: List(&s.Kafka.Brokers), doc: "Kafka brokers to begin with, comma separated",
			required: "at least one broker is required", requiredBy: Brokers},

		{name: "mode", group: Relay | Simulated, value: Choice(&c.Mode, []relay.Mode{relay.ModeOrdered, relay.ModeFenced}), doc: "how records are kept in order: ordered, or fenced by transactions"},
		{name: "transactional-id-prefix", group: Relay, value: Text(&c.TransactionalIDPrefix), doc: "begins the ids of fenced mode; unset: outbox-{region}-{table}-{key-prefix}"},
		{name: "poison", group: Relay | Simulated, value: Choice(&c.Poison, []relay.PoisonPolicy{relay.PoisonPark, relay.PoisonBlock, relay.PoisonDeadLetter}),
			doc: "what becomes of a record rejected for its own sake: park, block or dead-letter"},
		{name: "poison-after", group: Relay | Simulated, value: Count(&c.PoisonAfter), doc: "rejections of one record that are for good"},
		{name: "dead-letter-topic", group: Relay, value: OptionalText(&c.DeadLetterTopic), doc: "where dead-letter sends records; must exist"},
		{name: "relay-id", group: Relay, value: Text(&c.RelayID), doc: "name of this relay among its peers; unset: host name and a random part"},
		{name: "batch-size", group: Relay | Simulated | Costs, value: Count(&c.BatchSize), doc: "rows of one fetch"},
		{name: "max-batch-bytes", group: Relay | Costs, value: Size(&c.MaxBatchBytes), doc: "bytes of one fetch"},
		{name: "poll-interval", group: Relay | Simulated | Costs, value: Duration(&c.PollInterval), doc: "pause between looks at an idle bucket"},
		{name: "error-backoff", group: Relay, value: Duration(&c.ErrorBackoff), doc: "first pause of a bucket after a failure"},
		{name: "lease-duration", group: Relay | Simulated | Costs | Leases | Picture, value: Duration(&c.LeaseDuration), doc: "how long a lease lasts unless it is renewed"},
		{name: "lease-renew-interval", group: Relay | Simulated | Costs, value: Duration(&c.LeaseRenewInterval), doc: "between renewals, at most a third of lease-duration"},
		{name: "max-clock-skew", group: Relay | Simulated | Costs | Leases, value: Duration(&c.MaxClockSkew), doc: "between the clocks of any two relays"},
		{name: "max-concurrency", group: Relay | Picture, value: Count(&c.MaxConcurrency), doc: "requests under way at once: of coordination, or for a picture of the table"},
		{name: "pending-count-limit", group: Relay | Picture, value: Count(&c.PendingCountLimit), doc: "messages of one bucket that are counted at most, for metrics or a picture"},
		{name: "message-id-header", group: Relay, value: Text(&c.MessageIDHeader), doc: "header that carries the message id"},
		{name: "position-headers", group: Relay, value: Switch(&c.PositionHeaders), doc: "add x-outbox-bucket and x-outbox-sequence"},
		{name: "shutdown-timeout", group: Relay, value: Duration(&c.ShutdownTimeout), doc: "how long to drain after SIGTERM"},

		{name: "admin-addr", group: Admin, value: Address(&s.AdminAddr), doc: "where probes, metrics, status and page are served; port 0: a free one, which is logged; off: nowhere"},
		{name: "admin-token-file", group: Admin, value: File(&s.AdminTokenFile), doc: "file with the token that is asked for there, but not of probes; unset: none"},
		{name: "pprof", group: Admin, value: Switch(&s.Pprof), doc: "serve /debug/pprof there"},
		{name: "metrics-name", group: Admin, value: Text(&s.MetricsName), doc: "the outbox's name in metrics, as attribute outbox.name"},
		{name: "metrics-interval", group: Admin | Costs, value: Duration(&s.MetricsInterval), doc: "between samples of the backlog, by the owner of bucket 0"},

		{name: "log-level", group: Log, value: Choice(&s.LogLevel, []string{"trace", "debug", "info", "warn", "error"}), doc: "trace, debug, info, warn or error"},
		{name: "log-format", group: Log, value: Choice(&s.LogFormat, []string{"auto", "console", "json"}), doc: "console, json, or auto: console on a terminal"},
	}
}

// Shown is a setting as people may see it.
type Shown struct{ Name, Value string }

// Effective lists the settings of the groups with the values that are in
// effect, secrets replaced by a placeholder: the table's in its order, then the
// Kafka properties by name, as "kafka.security.protocol"; of one that was read from a
// file, the file.
func (s *Settings) Effective(groups Group) []Shown {
	var shown []Shown
	for _, row := range s.table() {
		if row.group&groups != 0 {
			shown = append(shown, Shown{row.name, row.value.String()})
		}
	}
	if groups&(Brokers|BrokersIfAny) == 0 {
		return shown
	}
	for _, property := range slices.Sorted(maps.Keys(s.Kafka.Properties)) {
		name, value := kafkaSetting+"."+property, s.Kafka.Properties[property]
		if path, isFile := s.KafkaFiles[property]; isFile {
			name, value = name+fileSuffix, path
		} else if secret(property, value) {
			value = hidden
		}
		shown = append(shown, Shown{name, value})
	}
	return shown
}
