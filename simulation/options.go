package simulation

import (
	"io"
	"time"
)

// Options are those of one run. Zero values mean the defaults.
type Options struct {
	Seed     uint64
	Relays   int           // default 3
	Buckets  int           // default 8
	Duration time.Duration // virtual, until everything is healed; default 2 minutes
	Rate     float64       // messages committed a virtual second; default 20
	Faults   Rates         // default: none

	LeaseDuration      time.Duration // default 30 s
	LeaseRenewInterval time.Duration // default a third of LeaseDuration
	MaxClockSkew       time.Duration // default a fifteenth of LeaseDuration
	PollInterval       time.Duration // default 1 s
	BatchSize          int           // rows of one fetch; default 500
	// HealWithin is the virtual time, after everything was healed, within which
	// the outbox must be empty and the split fair; default five lease durations
	// and two minutes.
	HealWithin time.Duration

	// Trace gets each observable event as one line; nil: none. It does not change
	// the run.
	Trace io.Writer
}

func (o Options) withDefaults() Options {
	orDefault(&o.Relays, 3)
	orDefault(&o.Buckets, 8)
	orDefault(&o.Duration, 2*time.Minute)
	orDefault(&o.Rate, 20)
	orDefault(&o.LeaseDuration, 30*time.Second)
	orDefault(&o.LeaseRenewInterval, o.LeaseDuration/3)
	orDefault(&o.MaxClockSkew, o.LeaseDuration/15)
	orDefault(&o.PollInterval, time.Second)
	orDefault(&o.BatchSize, 500)
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
