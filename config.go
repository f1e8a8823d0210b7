package relay

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Mode is how records are kept in order.
type Mode string

// The modes; docs/modes.md compares them.
const (
	// ModeOrdered keeps the order of each topic and key with idempotent producers,
	// also across a rejected record. It is the default.
	ModeOrdered Mode = "ordered"
	// ModeFenced publishes each bucket in transactions of a producer of its own: a
	// relay that lost its lease cannot publish any more once its successor has taken
	// the fence. Consumers must read committed records. A fleet is fenced when all
	// its relays are.
	ModeFenced Mode = "fenced"
)

// PoisonPolicy is what happens to a record that the broker rejects for its own
// sake, PoisonAfter times, each time alone in its request (protocol.md section 7).
type PoisonPolicy string

const (
	// PoisonPark sets the record's topic and key aside: the row, and all later ones of
	// its key, are moved in order to the parked partition of their bucket, and wait
	// there for an operator. All other keys go on. It is the default. In a fleet with
	// relays of the .NET peer, which do not know of it, choose PoisonBlock.
	PoisonPark PoisonPolicy = "park"
	// PoisonBlock keeps the bucket at the rejected row, in order, and says so.
	PoisonBlock PoisonPolicy = "block"
	// PoisonDeadLetter publishes the record to the DeadLetterTopic, with what is known
	// of its rejection in headers, and deletes its row: the order of its key is given up.
	PoisonDeadLetter PoisonPolicy = "dead-letter"
)

// Defaults of Config.
const (
	DefaultBatchSize          = 500
	DefaultMaxBatchBytes      = 8 << 20
	DefaultPollInterval       = time.Second
	DefaultErrorBackoff       = time.Second
	DefaultLeaseDuration      = 30 * time.Second
	DefaultLeaseRenewInterval = 10 * time.Second
	DefaultMaxClockSkew       = 2 * time.Second
	DefaultMaxConcurrency     = 8
	DefaultPoisonAfter        = 3
	DefaultPendingCountLimit  = 10_000
	DefaultMessageIDHeader    = "x-outbox-message-id"
	DefaultShutdownTimeout    = 25 * time.Second
)

// Config is one relay's configuration. Zero values mean the defaults. All
// relays and writers sharing a table must agree on Table, PartitionKey,
// SortKey, KeyPrefix and BucketCount.
type Config struct {
	Table        string // required: the table's name
	PartitionKey string // the table's partition key attribute; default "PK"
	SortKey      string // the table's sort key attribute; default "SK"
	KeyPrefix    string // prefix of every partition key value; default "OUTBOX"
	BucketCount  int    // default 8, at most 10,000

	// RelayID names this relay among its peers: printable ASCII, 1 to 128
	// characters. Default: the host's name and a random part, another one after the
	// relay has withdrawn and come back. Only configure one when two live processes
	// can never share it.
	RelayID string
	Mode    Mode // default ModeOrdered
	// TransactionalIDPrefix begins the transactional ids of ModeFenced; a hyphen and
	// the bucket's number follow. Two tables on one Kafka cluster must not share it,
	// or they fence each other, and all relays of one table must. Default:
	// "outbox-{Region}-{Table}-{KeyPrefix}", without the region when that is empty.
	TransactionalIDPrefix string
	// Region is where the table is. It is used in the default of
	// TransactionalIDPrefix only; "": unknown.
	Region string
	Poison PoisonPolicy // default PoisonPark
	// PoisonAfter is how many rejections of one record, alone in its request, count as
	// for good; default 3. With PoisonBlock it has no effect.
	PoisonAfter int
	// DeadLetterTopic is required with PoisonDeadLetter, and has no effect else. It must
	// exist when the relay starts.
	DeadLetterTopic string

	BatchSize     int           // rows of one fetch; default 500
	MaxBatchBytes int           // bytes of one fetch, at least one row; default 8 MiB
	PollInterval  time.Duration // between looks at an idle bucket; default 1 s
	ErrorBackoff  time.Duration // first pause of a bucket after a failure; default 1 s

	LeaseDuration      time.Duration // default 30 s
	LeaseRenewInterval time.Duration // default 10 s, at most a third of LeaseDuration
	MaxClockSkew       time.Duration // between any two relays; default 2 s
	// MaxConcurrency is how many coordination requests are under way at once;
	// default 8.
	MaxConcurrency int

	// MetricsInterval is between two samples of what waits in all buckets
	// (event.BacklogSampled), taken by the relay that owns bucket 0. Zero: none is
	// taken, and nothing is sent for it. The command has 30 s.
	MetricsInterval time.Duration
	// PendingCountLimit is how many messages of one bucket a sample counts at most;
	// default 10,000. DynamoDB bills a count as a read of all that is counted.
	PendingCountLimit int

	// TraceLinks turns tracing on: for each batch event.BatchTraced is emitted, with at most
	// so many of the traces that its messages were written in (outbox.Options.Propagator), of
	// which telemetry.Spans makes a span with links. Zero: tracing is off, and costs nothing.
	TraceLinks int

	// MessageIDHeader is the header that carries the message id; default
	// "x-outbox-message-id". A caller's header of that very name is replaced.
	MessageIDHeader string
	// PositionHeaders adds x-outbox-bucket and x-outbox-sequence, as decimal
	// text, in place of a caller's.
	PositionHeaders bool

	// ShutdownTimeout is how long Run drains after its context is cancelled;
	// default 25 s.
	ShutdownTimeout time.Duration

	// DynamoDB sends the requests for messages; required. Coordination sends
	// heartbeats and leases; required, and a client of its own, so that a
	// throttled message path never starves renewals.
	DynamoDB     store.API
	Coordination store.API
	// Producers opens the Kafka producers; required. See package kafka, whose
	// factory is to be closed after Run has returned.
	Producers publisher.Factory
	// Observers are told what happens. See package telemetry.
	Observers []event.Observer
}

// WithDefaults returns the configuration with defaults for its zero values,
// but for RelayID, which New makes.
func (c Config) WithDefaults() Config {
	schema := c.schema()
	c.PartitionKey, c.SortKey, c.KeyPrefix, c.BucketCount =
		schema.PartitionKey, schema.SortKey, schema.KeyPrefix, schema.BucketCount
	defaultTo(&c.Mode, ModeOrdered)
	if c.Mode == ModeFenced && c.Table != "" {
		defaultTo(&c.TransactionalIDPrefix, c.transactionalIDPrefix())
	}
	defaultTo(&c.Poison, PoisonPark)
	defaultTo(&c.PoisonAfter, DefaultPoisonAfter)
	defaultTo(&c.BatchSize, DefaultBatchSize)
	defaultTo(&c.MaxBatchBytes, DefaultMaxBatchBytes)
	defaultTo(&c.PollInterval, DefaultPollInterval)
	defaultTo(&c.ErrorBackoff, DefaultErrorBackoff)
	defaultTo(&c.LeaseDuration, DefaultLeaseDuration)
	defaultTo(&c.LeaseRenewInterval, DefaultLeaseRenewInterval)
	defaultTo(&c.MaxClockSkew, DefaultMaxClockSkew)
	defaultTo(&c.MaxConcurrency, DefaultMaxConcurrency)
	defaultTo(&c.PendingCountLimit, DefaultPendingCountLimit)
	defaultTo(&c.MessageIDHeader, DefaultMessageIDHeader)
	defaultTo(&c.ShutdownTimeout, DefaultShutdownTimeout)
	return c
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) transactionalIDPrefix() string {
	if c.Region == "" {
		return fmt.Sprintf("outbox-%s-%s", c.Table, c.KeyPrefix)
	}
	return fmt.Sprintf("outbox-%s-%s-%s", c.Region, c.Table, c.KeyPrefix)
}

// letterTopic is the dead-letter topic, if the policy needs one.
func (c Config) letterTopic() string {
	if c.Poison != PoisonDeadLetter {
		return ""
	}
	return c.DeadLetterTopic
}

func (c Config) schema() outbox.Schema {
	return outbox.Schema{
		Table:        c.Table,
		PartitionKey: c.PartitionKey,
		SortKey:      c.SortKey,
		KeyPrefix:    c.KeyPrefix,
		BucketCount:  c.BucketCount,
	}.WithDefaults()
}

// Validate returns all faults of the configuration, joined, each with the
// field and its value; nil when there is none. Defaults are applied first.
func (c Config) Validate() error {
	c = c.WithDefaults()
	faults := []error{c.schema().Validate()}
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.RelayID != "" && !validRelayID(c.RelayID),
		"RelayID %q: must be printable ASCII, 1 to 128 characters", c.RelayID)
	fault(c.Mode != ModeOrdered && c.Mode != ModeFenced, "Mode %q: must be %q or %q", c.Mode, ModeOrdered, ModeFenced)
	fault(c.TransactionalIDPrefix != "" && !printable(c.TransactionalIDPrefix),
		"TransactionalIDPrefix %q: must have printable characters only, and not be blank", c.TransactionalIDPrefix)
	switch c.Poison {
	case PoisonPark, PoisonBlock:
	case PoisonDeadLetter:
		fault(strings.TrimSpace(c.DeadLetterTopic) == "", "DeadLetterTopic %q: is required with Poison %q", c.DeadLetterTopic, c.Poison)
	default:
		fault(true, "Poison %q: must be %q, %q or %q", c.Poison, PoisonPark, PoisonBlock, PoisonDeadLetter)
	}
	fault(c.PoisonAfter < 1, "PoisonAfter %d: must be positive", c.PoisonAfter)
	fault(c.BatchSize < 1, "BatchSize %d: must be positive", c.BatchSize)
	fault(c.MaxBatchBytes < 1, "MaxBatchBytes %d: must be positive", c.MaxBatchBytes)
	fault(c.MaxConcurrency < 1, "MaxConcurrency %d: must be positive", c.MaxConcurrency)
	fault(c.MetricsInterval < 0, "MetricsInterval %v: must not be negative", c.MetricsInterval)
	fault(c.TraceLinks < 0, "TraceLinks %d: must not be negative", c.TraceLinks)
	fault(c.PendingCountLimit < 1, "PendingCountLimit %d: must be positive", c.PendingCountLimit)
	fault(strings.TrimSpace(c.MessageIDHeader) == "", "MessageIDHeader %q: must not be blank", c.MessageIDHeader)
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"PollInterval", c.PollInterval},
		{"ErrorBackoff", c.ErrorBackoff},
		{"LeaseDuration", c.LeaseDuration},
		{"LeaseRenewInterval", c.LeaseRenewInterval},
		{"MaxClockSkew", c.MaxClockSkew},
		{"ShutdownTimeout", c.ShutdownTimeout},
	} {
		fault(d.value <= 0, "%s %v: must be positive", d.field, d.value)
	}
	faults = append(faults, c.validateTiming())
	fault(c.DynamoDB == nil, "DynamoDB nil: a client for messages is required")
	fault(c.Coordination == nil, "Coordination nil: a client for leases and heartbeats is required")
	fault(c.Producers == nil, "Producers nil: a factory of producers is required")
	return errors.Join(faults...)
}

// validateTiming checks that a late round does not cost a lease (case X-11).
func (c Config) validateTiming() error {
	var faults []error
	if c.LeaseRenewInterval > c.LeaseDuration/3 {
		faults = append(faults, fmt.Errorf(
			"LeaseRenewInterval %v: must be at most a third of LeaseDuration %v", c.LeaseRenewInterval, c.LeaseDuration))
	}
	sum := c.LeaseRenewInterval + c.LeaseRenewInterval/2 + c.MaxClockSkew
	if sum >= c.LeaseDuration {
		faults = append(faults, fmt.Errorf(
			"MaxClockSkew %v: LeaseRenewInterval %v + a request's timeout %v + MaxClockSkew = %v, must be less than LeaseDuration %v",
			c.MaxClockSkew, c.LeaseRenewInterval, c.LeaseRenewInterval/2, sum, c.LeaseDuration))
	}
	return errors.Join(faults...)
}

func printable(s string) bool {
	return strings.TrimSpace(s) != "" && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func validRelayID(id string) bool {
	if len(id) < 1 || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		if id[i] < 0x20 || id[i] > 0x7e {
			return false
		}
	}
	return true
}
