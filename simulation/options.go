package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/store/memtable"
)

// Options are those of one run. Zero values mean the defaults.
type Options struct {
	Seed     uint64
	Relays   int           // default 3
	Buckets  int           // default 8
	Duration time.Duration // virtual, until everything is healed; default 2 minutes
	Rate     float64       // messages committed a virtual second; default 20
	Faults   Rates         // default: none
	// Only limits kinds to some of the times at which their rates let them happen;
	// default: all of them happen.
	Only Happenings

	LeaseDuration      time.Duration // default 30 s
	LeaseRenewInterval time.Duration // default a third of LeaseDuration
	MaxClockSkew       time.Duration // default a fifteenth of LeaseDuration
	PollInterval       time.Duration // default 1 s
	BatchSize          int           // rows of one fetch; default 500
	// Poison is the relays' policy for records that are rejected for good, after
	// PoisonAfter rejections; defaults: as in production. The dead-letter topic exists.
	Poison      relay.PoisonPolicy
	PoisonAfter int
	// Mode is that of the relays to begin with; ModeChanged changes it. Default
	// relay.ModeOrdered.
	Mode relay.Mode
	// Capacity is what the coordination partition serves; default: anything.
	Capacity Capacity
	// HealWithin is the virtual time, after everything was healed, within which
	// the outbox must be empty and the split fair; default five lease durations
	// and two minutes.
	HealWithin time.Duration

	// Observe is told of each observable event as it happens; nil: nobody is. It
	// does not change the run.
	Observe func(Event)
}

// Capacity is what one partition of the table serves in a second, in units. One
// second's worth may come at once; what is over is throttled, and the SDK repeats
// it twice.
type Capacity struct{ Read, Write float64 }

// ServiceCapacity is what DynamoDB serves of one partition.
func ServiceCapacity() Capacity { return Capacity{Read: 3000, Write: 1000} }

// Draw fills each of the relays' settings that is zero with one that the seed
// draws: leases of 3 to 30 s, so that a short run sees many lease lifetimes,
// batches of a few rows and of many, short and long intervals; a quarter of the
// fleets is fenced. What was given
// stays, and the rest is drawn to fit it.
func (o Options) Draw() Options {
	r := derived(o.Seed, "settings")
	lease := time.Duration(3+r.IntN(28)) * time.Second
	renewals := 3 + r.IntN(6)             // a lease's lifetime
	skew := time.Duration(4 + r.IntN(27)) // a lease has so many of them
	poll := time.Duration(200+100*r.IntN(19)) * time.Millisecond
	batch := []int{2, 5, 20, 100, 500}[r.IntN(5)]
	poison := []relay.PoisonPolicy{relay.PoisonPark, relay.PoisonPark, relay.PoisonBlock, relay.PoisonDeadLetter}[r.IntN(4)]
	poisonAfter := 1 + r.IntN(3)

	orDefault(&o.LeaseDuration, max(lease, 3*o.LeaseRenewInterval, 4*o.MaxClockSkew))
	orDefault(&o.MaxClockSkew, (o.LeaseDuration / skew).Truncate(time.Millisecond))
	orDefault(&o.LeaseRenewInterval,
		min(o.LeaseDuration/time.Duration(renewals), (o.LeaseDuration-o.MaxClockSkew)/2).Truncate(time.Millisecond))
	orDefault(&o.PollInterval, poll)
	orDefault(&o.BatchSize, batch)
	orDefault(&o.Poison, poison)
	orDefault(&o.PoisonAfter, poisonAfter)
	if o.Mode == "" && derived(o.Seed, "mode").IntN(4) == 0 {
		o.Mode = relay.ModeFenced
	}
	orDefault(&o.Mode, relay.ModeOrdered)
	return o
}

// Validate returns all that is wrong with the options, joined, each with its
// field and value. Zero values mean defaults, and are not wrong.
func (o Options) Validate() error {
	o = o.WithDefaults()
	var faults []error
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(o.Relays < 1, "Relays %d: must be positive", o.Relays)
	fault(o.Duration < 0, "Duration %v: must be positive", o.Duration)
	fault(!(o.Rate > 0 && o.Rate <= maxRate), "Rate %v: must be positive, and at most %d a second", o.Rate, maxRate)
	fault(o.HealWithin < 0, "HealWithin %v: must be positive", o.HealWithin)
	for k, rate := range o.Faults {
		fault(!(rate >= 0), "Faults[%v] %v: must not be negative", Fault(k), rate)
	}
	// The relays' settings are judged as in production.
	db := memtable.New(memtable.Options{})
	return errors.Join(append(faults, relay.Config{
		Table: "outbox", BucketCount: o.Buckets, DynamoDB: db, Coordination: db, Producers: NewBroker(BrokerConfig{}).Factory(""),
		LeaseDuration: o.LeaseDuration, LeaseRenewInterval: o.LeaseRenewInterval, MaxClockSkew: o.MaxClockSkew,
		PollInterval: o.PollInterval, BatchSize: o.BatchSize, Mode: o.Mode,
		Poison: o.Poison, PoisonAfter: o.PoisonAfter, DeadLetterTopic: letterTopic,
	}.Validate())...)
}

// maxRate keeps the pause between two messages above the resolution of time.
const maxRate = 1_000_000

// WithDefaults returns the options with defaults for their zero values.
func (o Options) WithDefaults() Options {
	orDefault(&o.Relays, 3)
	orDefault(&o.Buckets, 8)
	orDefault(&o.Duration, 2*time.Minute)
	orDefault(&o.Rate, 20)
	orDefault(&o.LeaseDuration, 30*time.Second)
	orDefault(&o.LeaseRenewInterval, o.LeaseDuration/3)
	orDefault(&o.MaxClockSkew, o.LeaseDuration/15)
	orDefault(&o.PollInterval, time.Second)
	orDefault(&o.BatchSize, 500)
	orDefault(&o.Poison, relay.PoisonPark)
	orDefault(&o.PoisonAfter, relay.DefaultPoisonAfter)
	orDefault(&o.Mode, relay.ModeOrdered)
	orDefault(&o.HealWithin, 5*o.LeaseDuration+2*time.Minute)
	return o
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// requestTimeout is when a sender gives up a request for messages.
const requestTimeout = 10 * time.Second
