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
	MaxClockSkew       time.Duration // default 2 s
	BatchSize          int           // default 500
	// HealWithin is the virtual time, after everything was healed, within which
	// the outbox must be empty and the split fair; default five lease durations
	// and a minute.
	HealWithin time.Duration

	// Trace gets each observable event as one line; nil: none.
	Trace io.Writer
}

func (o Options) withDefaults() Options {
	orDefault(&o.Relays, 3)
	orDefault(&o.Buckets, 8)
	orDefault(&o.Duration, 2*time.Minute)
	orDefault(&o.Rate, 20)
	orDefault(&o.LeaseDuration, 30*time.Second)
	orDefault(&o.LeaseRenewInterval, o.LeaseDuration/3)
	orDefault(&o.MaxClockSkew, 2*time.Second)
	orDefault(&o.BatchSize, 500)
	orDefault(&o.HealWithin, 5*o.LeaseDuration+time.Minute)
	return o
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Rates are how likely each kind of fault is. Those of requests are
// probabilities of one request; those of processes and of the broker's ways are
// means of events a virtual minute. The zero value is a world without faults.
type Rates struct {
	RequestLost float64 // lost before it is applied
	AnswerLost  float64 // applied, without an answer; half of the time the SDK repeats it
	AnswerLate  float64 // applied, answered late
	AppliedLate float64 // applied after its sender gave up, or died
	Throttled   float64
	// Unprocessed is how likely one item of a batch write is left undone.
	Unprocessed float64
	// SplitCommit is how likely a fetch sees a transaction that commits meanwhile
	// in parts: later rows of it, and not earlier ones.
	SplitCommit float64
	// LateCommit is how likely a reservation is abandoned, or its commit comes
	// up to 20 s late.
	LateCommit float64

	Crashes float64 // a process ends at once, and a successor starts
	Stops   float64 // a process stops gracefully, and a successor starts
	Stalls  float64 // nothing of a process runs, for up to two lease durations
	Skews   float64 // clocks differ by up to MaxClockSkew: this share of it

	Requests BrokerRates
}

// BrokerRates are those of the broker, of one produce request each.
type BrokerRates struct {
	Delayed  float64 // on its way for up to a minute
	Lost     float64
	Unsaid   float64 // appended, and the connection breaks before the answer
	Moved    float64 // the partition's leader is another one
	Rejected float64 // share of records that the broker refuses for a while
}

// requestTimeout is when a sender gives up a request for messages.
const requestTimeout = 10 * time.Second

// Storm is much of everything.
func Storm() Rates {
	return Rates{
		RequestLost: 0.01, AnswerLost: 0.02, AnswerLate: 0.02, AppliedLate: 0.01, Throttled: 0.02,
		Unprocessed: 0.05, SplitCommit: 0.1, LateCommit: 0.05,
		Crashes: 1, Stops: 1, Stalls: 1, Skews: 1,
		Requests: BrokerRates{Delayed: 0.005, Lost: 0.01, Unsaid: 0.01, Moved: 0.01, Rejected: 0.002},
	}
}
