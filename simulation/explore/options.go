package explore

import (
	"reflect"
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/store"
)

const (
	// tick is the grain of time.
	tick = time.Second
	// apart is between the wall clocks of two processes at the least, so that no two
	// of them ever write the same expiry by chance.
	apart = time.Microsecond
	// margin is by how much the relays are told to allow for more skew than there is:
	// clocks differ by less than MaxClockSkew, never by just that much.
	margin = time.Millisecond
	// epoch is the wall clock at tick 0 of a clock that is right, since the Unix epoch.
	epoch = 1767225600 * time.Second
)

// Fault is something that goes wrong. Each costs one of Options.Faults.
type Fault string

// The faults.
const (
	Held       Fault = "held"        // a request gets no answer in time; it lands at any time, or never
	Repeated   Fault = "repeated"    // a write is applied, and again, which is what is answered
	Throttled  Fault = "throttled"   // a request is not applied, and that is answered
	Slow       Fault = "slow"        // a request arrives a tick later
	SlowAnswer Fault = "slow answer" // an answer arrives a tick later
	Crashed    Fault = "crashed"     // a process ends at once
	Stalled    Fault = "stalled"     // nothing of a process runs for a while
	ClockSet   Fault = "clock set"   // a wall clock is set, within the allowed skew
	Split      Fault = "split"       // a fetch reads its first rows earlier than its last
	Partly     Fault = "partly"      // a delete leaves its last rows undone
	Unsent     Fault = "unsent"      // a batch is not appended, or only its first rows
	Torn       Fault = "torn"        // a transaction is applied, and seen in parts for less than a LeaseRenewInterval
	Failed     Fault = "failed"      // the actor of a bucket panics, and a fresh one follows in the same process
	Unheard    Fault = "unheard"     // a batch is given up, and its rows are appended at any time, or never
)

// Options bound a search. The zero value of a field that has no default leaves out
// what it bounds.
type Options struct {
	Relays  int // default 2
	Buckets int // default 1

	// The settings of the relays, in ticks of one second: 6, 2 and 2 by default. Skew
	// is even.
	Lease, Interval, Skew int

	Ticks      int // after which nothing is chosen any more
	FaultTicks int // after which nothing goes wrong any more; default: Ticks
	JoinWithin int // ticks, within which the second relay and further ones start, if ever
	Faults     int // of all kinds together
	Kinds      []Fault
	Stops      int  // relays that are asked to stop
	Restarts   int  // relays that start again under their ids after they have ended or died
	Overlap    bool // they may do so before that: two processes have one id for a round (case M-09)
	Clocks     bool
	// RoundsBefore is how many rounds a relay believes to have completed when it starts:
	// every tenth prunes.
	RoundsBefore uint64
	// Former tells that the second relay has left a record that was stopped long ago.
	Former bool

	Rows      []Row // that writers commit, in the order of their numbers
	BatchSize int   // default 500
	Acts      int   // that an operator may carry out, of all kinds together
	ActKinds  []Act
	// Prompt: requests for coordination are applied and answered at once.
	Prompt bool

	MaxStates int // after which the search gives up; 0: never
	MaxDepth  int // choices; 0: any number

	plant plant
	ties  ties
}

// ties are what is left out of a search, since it takes a coincidence of 100 ns.
type ties uint8

const (
	noTies     ties = iota
	equalSkew       // two clocks differ by just MaxClockSkew
	equalTimes      // two processes write the same expiry
)

func (o Options) withDefaults() Options {
	fill := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	fill(&o.Relays, 2)
	fill(&o.Buckets, 1)
	fill(&o.Lease, 6)
	fill(&o.Interval, 2)
	fill(&o.Skew, 2)
	fill(&o.Ticks, 3*o.Interval)
	fill(&o.FaultTicks, o.Ticks)
	fill(&o.BatchSize, 500)
	return o
}

func (o Options) leaseDuration() time.Duration   { return time.Duration(o.Lease) * tick }
func (o Options) interval() time.Duration        { return time.Duration(o.Interval) * tick }
func (o Options) halfSkew() time.Duration        { return time.Duration(o.Skew) * tick / 2 }
func (o Options) shutdownTimeout() time.Duration { return 4 * o.interval() }

// skew is what the relays are told to allow for.
func (o Options) skew() time.Duration {
	if o.ties == equalSkew {
		return time.Duration(o.Skew) * tick
	}
	return time.Duration(o.Skew)*tick + margin
}

// apart is by how much the clock of a process is ahead of the first one's, besides.
func (o Options) apart(process int) time.Duration {
	if o.ties == equalTimes {
		return 0
	}
	return time.Duration(process) * apart
}

// parking tells whether rows may be set aside.
func (o Options) parking() bool {
	return o.Acts > 0 || slices.ContainsFunc(o.Rows, func(row Row) bool { return row.Rejected || row.Unreadable })
}

// pollInterval is out of sight where there are no rows.
func (o Options) pollInterval() time.Duration {
	if len(o.Rows) == 0 {
		return 1000 * time.Hour
	}
	return o.interval()
}

// requestTicks is when the sender of a request gives up.
func (o Options) requestTicks() int { return max(1, o.Interval/2) }

// ticksIn is a duration in ticks, upwards.
func ticksIn(d time.Duration) int { return int((max(0, d) + tick - 1) / tick) }

// plant is a bug that a test puts between the relays and the world; the zero value is
// none.
type plant struct {
	condition func(update, condition string) string                // of a write
	reply     func(r store.Request, reply store.Reply) store.Reply // as it arrives
	request   func(r store.Request) store.Request                  // as it leaves
	clock     func(store.Instant) store.Instant                    // as it is read
	outcome   func([]publisher.Result)                             // of a batch
	// forgetful: no transaction is known again by its token.
	forgetful bool
	// early: the request is answered as done when it leaves, and goes on its way.
	early func(store.Request) bool
	// step surrounds each message to an actor of a bucket, whose core it may change.
	step    func(core reflect.Value, message any) (after func())
	maxSkew func(time.Duration) time.Duration // as the relay is told
}

func (p plant) clocks(now store.Instant) store.Instant {
	if p.clock == nil {
		return now
	}
	return p.clock(now)
}

func (p plant) skew(d time.Duration) time.Duration {
	if p.maxSkew == nil {
		return d
	}
	return p.maxSkew(d)
}
