package cost

import (
	"fmt"
	"math"
	"time"
)

// Advice is one thing to know of a workload, or to do about it.
type Advice struct {
	ID   string // stable
	Text string
}

// What DynamoDB serves of one partition key a second, and the part of it that is
// planned for: the rest is for bursts, and for keys that are not spread evenly.
const (
	partitionRead  = 3000.0
	partitionWrite = 1000.0
	planned        = 0.5
)

// MinBuckets is the least number of buckets whose partitions take the messages, each
// planned to half of what the service takes. A key has one bucket whatever their
// number.
func (w Workload) MinBuckets() int {
	return max(1, int(math.Ceil(w.Rate*w.writesPerMessage()/(partitionWrite*planned))))
}

// writesPerMessage are the units that a message's own partition key takes: its put, in
// a transaction, and its delete.
func (w Workload) writesPerMessage() float64 {
	return 3 * units(w.withDefaults().rowBytes(), writeUnitBytes)
}

// MeanWait is how long a message waits on average until its bucket is looked at.
func (w Workload) MeanWait() time.Duration {
	return time.Duration((1 - w.Notified) * float64(w.PollInterval) / 2)
}

// Advice is what follows from the figures: about the number of buckets first, then about
// the intervals.
func (w Workload) Advice() []Advice {
	w = w.withDefaults()
	var all []Advice
	add := func(id, format string, args ...any) { all = append(all, Advice{id, fmt.Sprintf(format, args...)}) }
	w.adviseBuckets(add)
	w.adviseIntervals(add)
	return all
}

func (w Workload) adviseBuckets(add func(id, format string, args ...any)) {
	buckets, least := w.Schema.BucketCount, w.MinBuckets()
	busiest := 0.0
	for _, rate := range w.rates() {
		busiest = max(busiest, rate*w.writesPerMessage())
	}
	if busiest > partitionWrite*planned {
		add("bucketCount.capacity", "the busiest bucket takes %.0f write units a second, and a partition serves %.0f: "+
			"use %d buckets or more, and see that no key has much more than its share", busiest, partitionWrite, least)
	}
	if w.Relays > buckets {
		add("bucketCount.relays", "%d of %d relays own nothing, and wait for a place: with %d buckets or more all of them work",
			w.Relays-buckets, w.Relays, w.Relays)
	}
	if fewer := max(2*w.Relays, least); buckets >= 2*fewer {
		smaller := w
		smaller.Schema.BucketCount, smaller.Shares = fewer, nil
		saved := w.month() - smaller.month()
		if saved > 0.1*w.month() {
			add("bucketCount.fewer", "%d buckets are enough for these relays and messages, and would save %.0f million units a month, %.0f %%",
				fewer, saved/1e6, 100*saved/w.month())
		}
	}
}

// month are all units of a month, but for those of writers, whom no setting of relays
// concerns.
func (w Workload) month() float64 {
	idle, load := w.Idle().For(Month).Total(), w.Load().For(Month).Total()
	return idle.Read + idle.Write + load.Read + load.Write
}

func (w Workload) adviseIntervals(add func(id, format string, args ...any)) {
	slower := w
	slower.PollInterval *= 2
	saved := w.month() - slower.month()
	add("pollInterval", "a message waits %s on average for a look at its bucket; with poll-interval %v it would wait %s, "+
		"and %.1f million units a month, %.0f %%, be saved. Writers in a relay's process need not wait: they notify",
		shortly(w.MeanWait()), slower.PollInterval, shortly(slower.MeanWait()), saved/1e6, 100*saved/w.month())
	if extra := w.Load()[0].Read; extra > 0.1*(w.Load().Total().Read) {
		add("pollInterval.largeRows", "a look that finds a message reads all of it: %.0f %% of the units that messages are read with; "+
			"a longer poll-interval, or smaller messages, save that", 100*extra/w.Load().Total().Read)
	}
	idle := w.Idle()
	written, read := idle[0].Write+idle[2].Write, idle[1].Read
	if written > partitionWrite*planned || read > partitionRead*planned {
		longer := time.Duration(float64(w.LeaseRenewInterval) * max(written/(partitionWrite*planned), read/(partitionRead*planned)))
		add("leaseRenewInterval", "rounds write %.0f and read %.0f units a second of one partition, which serves %.0f and %.0f: "+
			"a lease-renew-interval of %v or more, and a lease-duration of three times that, keep clear of it",
			written, read, partitionWrite, partitionRead, longer.Round(time.Second))
	}
}

// shortly is a duration to a hundredth of a second.
func shortly(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
