package publisher

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Config is what one publisher needs. Zero values mean the defaults; Factory is
// required.
type Config struct {
	// Factory opens the producers. A publisher closes its own when it stops, also
	// after a panic.
	Factory Factory
	// Listener is told Connected, Disconnected and Unusable; nil: nobody is.
	Listener *actor.PID
	// DeadLetterTopic is looked for before the first Connected; empty: none is needed.
	DeadLetterTopic string
	// MessageIDHeader is the name of the header that carries the message id, in
	// lower case, as the last header of each record. A caller's header of that very
	// name is replaced. Default x-outbox-message-id. Protocol, section 6.
	MessageIDHeader string
	// PositionHeaders adds x-outbox-bucket and x-outbox-sequence, as decimal text,
	// before the message id, in place of a caller's headers of these names.
	PositionHeaders bool
	// Buckets is the table's bucket count, 1 to 10,000; default 8. The budget's
	// guaranteed shares are cut from it.
	Buckets int
	// Producers is the number of shared producers of one pool; default 2. Buckets
	// are spread over them by number. A fatal error of one stops only its buckets.
	Producers int
	// CarefulProducers bounds the producers that look for guilty rows; default 8. Up
	// to it each careful bucket has one of its own; beyond it they share, one record
	// at a time.
	CarefulProducers int
	// MaxBytes is the budget of what is outstanding over all buckets, in bytes;
	// default 32 MiB, at least 1 MiB. Half of it is cut into guaranteed shares, one
	// for each bucket, the other half is common. A bucket with nothing outstanding
	// may always submit one row, so the bound is MaxBytes and, for each bucket, what
	// one row takes above its share.
	MaxBytes int
	// AbandonGrace is how long an abandoned bucket's outstanding rows are waited for
	// before their producer is retired; default 1 s.
	AbandonGrace time.Duration
	// PurgeInterval is the pause between two purges of a producer that ends; default
	// 200 ms.
	PurgeInterval time.Duration
	// PurgeDeadline is how long reports are waited for before a producer that ends
	// is closed without them; default 1.8 s, so that its buckets publish again within
	// 3 s: their own pause after a failure, up to a second, is on top of it.
	PurgeDeadline time.Duration
	// PrimeAfter is the pause after which a producer is primed again for a
	// partition; default 9 minutes, at most that: brokers forget idle producers.
	PrimeAfter time.Duration
	// DescribeTimeout is how long a topic's metadata is waited for; default 10 s.
	DescribeTimeout time.Duration
	// RefreshInterval is the age at which a topic's metadata is read again; default
	// one minute.
	RefreshInterval time.Duration
	// Fencing turns fenced mode on, with its settings; nil: ordered mode.
	Fencing *Fencing
}

// Fencing are the settings of fenced mode (kafka.md). All but CallTimeout are
// required.
type Fencing struct {
	// TransactionalIDPrefix begins the transactional id of each bucket's producer; a
	// hyphen and the bucket's number follow. Whoever uses the same ids on the same
	// cluster fences these producers: two tables must not share it, and all relays of
	// one table must.
	TransactionalIDPrefix string
	// LeaseValidity is how long a lease is valid locally after the round that
	// renewed it: the lease's duration less the allowed skew of clocks.
	LeaseValidity time.Duration
	// LeaseRenewInterval is the age of a lease's renewal from which no fence is taken
	// under it; less than LeaseValidity.
	LeaseRenewInterval time.Duration
	// CallTimeout bounds each call that initializes, commits or aborts; default 10 s.
	// A commit or an abort without success is called three times.
	CallTimeout time.Duration
}

// The defaults of Config.
const (
	DefaultMessageIDHeader  = "x-outbox-message-id"
	DefaultBuckets          = 8
	DefaultProducers        = 2
	DefaultCarefulProducers = 8
	DefaultMaxBytes         = 32 << 20
	DefaultAbandonGrace     = time.Second
	DefaultPurgeInterval    = 200 * time.Millisecond
	DefaultPurgeDeadline    = 1800 * time.Millisecond
	DefaultPrimeAfter       = 9 * time.Minute
	DefaultDescribeTimeout  = 10 * time.Second
	DefaultRefreshInterval  = time.Minute
	DefaultCallTimeout      = 10 * time.Second
)

const minMaxBytes = 1 << 20

// WithDefaults returns the configuration with its defaults filled in.
func (c Config) WithDefaults() Config {
	if c.MessageIDHeader == "" {
		c.MessageIDHeader = DefaultMessageIDHeader
	}
	orDefault(&c.Buckets, DefaultBuckets)
	orDefault(&c.Producers, DefaultProducers)
	orDefault(&c.CarefulProducers, DefaultCarefulProducers)
	orDefault(&c.MaxBytes, DefaultMaxBytes)
	orDefault(&c.AbandonGrace, DefaultAbandonGrace)
	orDefault(&c.PurgeInterval, DefaultPurgeInterval)
	orDefault(&c.PurgeDeadline, DefaultPurgeDeadline)
	orDefault(&c.PrimeAfter, DefaultPrimeAfter)
	orDefault(&c.DescribeTimeout, DefaultDescribeTimeout)
	orDefault(&c.RefreshInterval, DefaultRefreshInterval)
	if c.Fencing != nil {
		fencing := *c.Fencing
		orDefault(&fencing.CallTimeout, DefaultCallTimeout)
		c.Fencing = &fencing
	}
	return c
}

func orDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Validate joins every fault of the configuration, each with its field and
// value. Zero values are no faults.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var faults []error
	require := func(holds bool, field string, value any, rule string) {
		if !holds {
			faults = append(faults, fmt.Errorf("%s = %v: %s", field, value, rule))
		}
	}
	require(c.Factory != nil, "Factory", nil, "is required")
	require(c.Buckets >= 1 && c.Buckets <= 10_000, "Buckets", c.Buckets, "must be 1 to 10,000")
	require(c.Producers > 0, "Producers", c.Producers, "must be positive")
	require(c.CarefulProducers > 0, "CarefulProducers", c.CarefulProducers, "must be positive")
	require(c.MaxBytes >= minMaxBytes, "MaxBytes", c.MaxBytes, fmt.Sprintf("must be at least %d", minMaxBytes))
	require(c.AbandonGrace > 0, "AbandonGrace", c.AbandonGrace, "must be positive")
	require(c.PurgeInterval > 0, "PurgeInterval", c.PurgeInterval, "must be positive")
	require(c.PurgeDeadline >= c.PurgeInterval, "PurgeDeadline", c.PurgeDeadline, "must be at least PurgeInterval")
	require(c.PrimeAfter > 0 && c.PrimeAfter <= DefaultPrimeAfter, "PrimeAfter", c.PrimeAfter,
		fmt.Sprintf("must be positive and at most %v: brokers forget idle producers", DefaultPrimeAfter))
	require(c.DescribeTimeout > 0, "DescribeTimeout", c.DescribeTimeout, "must be positive")
	require(c.RefreshInterval > 0, "RefreshInterval", c.RefreshInterval, "must be positive")
	if f := c.Fencing; f != nil {
		require(f.TransactionalIDPrefix != "", "Fencing.TransactionalIDPrefix", f.TransactionalIDPrefix, "is required")
		require(f.LeaseRenewInterval > 0, "Fencing.LeaseRenewInterval", f.LeaseRenewInterval, "must be positive")
		require(f.LeaseValidity > f.LeaseRenewInterval, "Fencing.LeaseValidity", f.LeaseValidity, "must be more than Fencing.LeaseRenewInterval")
		require(f.CallTimeout > 0, "Fencing.CallTimeout", f.CallTimeout, "must be positive")
	}
	return errors.Join(faults...)
}
