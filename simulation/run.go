package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/bucketbrigade/relay/outbox"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Report is what one run did and found.
type Report struct {
	Seed     uint64
	OK       bool   // no violation
	Digest   string // of all events: the same seed and options give the same
	Virtual  time.Duration
	Steps    uint64 // messages that actors took
	Messages Messages
	// Handovers is how many claims were applied.
	Handovers int
	// Refused and Requests are refused writes and all requests that the table
	// saw, by request.
	Refused, Requests map[string]int
	// Units are the capacity units that the requests have consumed, by request: of
	// reading or of writing, as the request does. Those of writers and operators are not
	// in it.
	Units map[string]float64
	// RefusedSettled is how many of the refused writes came after the fleet had
	// settled: none in a run that is OK.
	RefusedSettled int
	Faults         map[string]int // by kind
	// Coverage counts transitions: "bucket.state/event", "batch.state/event".
	Coverage   map[string]int
	Violations []Violation

	// rolled is how many happenings of each kind its rate brought about, those that
	// Options.Only leaves out included: the numbers that Only may name.
	rolled [faultKinds]int
}

// Messages counts them.
type Messages struct {
	Enqueued   int // committed
	Published  int // records appended, duplicates included
	Duplicates int
	Parked     int // rows that were set aside, whatever became of them later
	Pending    int // rows left
}

// Violation is one broken promise.
type Violation struct {
	Invariant   string // its number in docs/invariants.md
	VirtualTime time.Duration
	Detail      string
	// Process and Bucket are what it is about; empty and -1 for none.
	Process string
	Bucket  int
}

func (v Violation) String() string {
	return fmt.Sprintf("%s at %v: %s", v.Invariant, v.VirtualTime, v.Detail)
}

// Run simulates one fleet and checks it: first with the faults, then, healed,
// until the outbox is empty, the split is fair and the fleet is silent. It panics
// for options that Validate finds wrong, and for a fault of the simulation itself.
func Run(o Options) Report {
	if err := o.Validate(); err != nil {
		panic(fmt.Sprintf("simulation: options are wrong: %v", err))
	}
	o = o.WithDefaults()
	f := newFleet(o)
	for range o.Relays {
		id := f.newID()
		f.At(f.between(0, time.Second), func() { f.boot(id) })
	}
	f.createTopics()
	f.writers.start()
	f.trouble()
	f.runUntil(o.Duration, f.failed)
	f.heal()
	f.settle()
	f.eventTable()
	return f.report()
}

// settle demands progress: an empty outbox, a fair split and silence, in bounded
// time.
func (f *fleet) settle() {
	end := f.now + f.o.HealWithin
	for n := 0; f.now < end && !f.failed() && f.unsettled() != ""; n++ {
		f.keepOne()
		if n%5 == 0 {
			f.retryAll()
		}
		f.runUntil(min(end, f.now+time.Second), f.failed)
	}
	f.checker.catchUp()
	if f.failed() {
		return
	}
	f.demandAll()
	if why := f.unsettled(); why != "" {
		f.checker.violated("I-10", "%v after everything was healed: %s", f.o.HealWithin, why)
		return
	}
	moves, refused := f.checker.moves, total(f.checker.refused)
	f.runUntil(f.now+3*f.o.LeaseRenewInterval, func() bool { return false })
	if moved := f.checker.moves - moves; moved > 0 {
		f.checker.violated("I-11", "%d buckets moved in a settled fleet", moved)
	}
	f.refusedSettled = total(f.checker.refused) - refused
	if more := f.refusedSettled; more > 0 {
		f.checker.violated("I-12", "%d writes were refused in a settled fleet", more)
	}
}

// demandAll: nothing is lost. Behind a transaction that is open nothing can be seen yet
// of what was committed since, so that it is not asked then; I-10 says that it is open.
func (f *fleet) demandAll() {
	if lost := f.checker.lost(); len(lost) > 0 && !f.failed() && !f.broker.Open() {
		f.checker.violated("I-1", "%d committed messages are neither delivered nor in the table, first %s", len(lost), lost[0])
	}
}

// failed tells whether a promise was broken: the run ends there.
func (f *fleet) failed() bool { return len(f.checker.violations) > 0 }

// unsettled says what is still missing; empty when nothing is.
func (f *fleet) unsettled() string {
	quiet := 2*f.o.LeaseRenewInterval + time.Second
	if f.now-max(f.checker.lastMove, f.checker.lastFuss) < quiet {
		return "buckets still move"
	}
	if f.writers.open+f.net.late+len(f.net.lateness.lurking) > 0 {
		return "requests of before are still to land"
	}
	if f.starting+f.stopping > 0 {
		return "processes are still to start, or to be stopped"
	}
	if f.broker.Open() {
		return "a transaction is still open"
	}
	held := map[string]int{}
	for _, p := range f.processes {
		if p.leaving || p.stalledUntil > f.now {
			return p.name + " is still to end, or to go on"
		}
		if p.withdrawn {
			return p.name + " has withdrawn"
		}
		held[p.relay] = 0
	}
	pending, aside, owned := 0, 0, 0
	for _, item := range f.db.Items(f.schema.Table) {
		partition := item[f.schema.PartitionKey].(*types.AttributeValueMemberS).Value
		sort := item[f.schema.SortKey].(*types.AttributeValueMemberS).Value
		switch {
		case strings.HasPrefix(partition, f.schema.KeyPrefix+"#MESSAGES#"):
			pending++
		case strings.HasPrefix(partition, f.schema.KeyPrefix+"#PARKED#"):
			aside++
		case strings.HasPrefix(sort, outbox.LeaseSortKeyPrefix):
			if owner, ok := item[outbox.AttrOwner].(*types.AttributeValueMemberS); ok {
				if _, lives := held[owner.Value]; !lives {
					return "a lease names the dead relay " + owner.Value
				}
				held[owner.Value]++
				owned++
			}
		}
	}
	least, most := f.o.Buckets, 0
	for _, n := range held {
		least, most = min(least, n), max(most, n)
	}
	switch {
	case pending > 0:
		return fmt.Sprintf("%d rows are left", pending)
	case aside > 0:
		return fmt.Sprintf("%d rows and markers are set aside", aside)
	case owned < f.o.Buckets:
		return fmt.Sprintf("%d buckets have no owner", f.o.Buckets-owned)
	case most-least > 1:
		return fmt.Sprintf("one relay has %d buckets, another %d", most, least)
	}
	return ""
}

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

func (f *fleet) report() Report {
	r := Report{
		Seed: f.o.Seed, OK: len(f.checker.violations) == 0, Digest: fmt.Sprintf("%016x", f.digest),
		Virtual: f.now, Steps: f.steps, Handovers: f.checker.moves,
		Refused: f.checker.refused, Requests: f.checker.requests, Units: f.checker.units, RefusedSettled: f.refusedSettled, Faults: map[string]int{},
		Coverage: f.checker.coverage, Violations: f.checker.violations, rolled: f.dice.rolled,
	}
	for k, n := range f.dice.happened {
		r.Faults[Fault(k).String()] = n
	}
	r.Messages.Enqueued = len(f.writers.committed)
	r.Messages.Published = len(f.broker.Log())
	r.Messages.Parked = f.checker.moved
	for _, n := range f.checker.delivered {
		r.Messages.Duplicates += max(0, n-1)
	}
	for _, item := range f.db.Items(f.schema.Table) {
		partition := item[f.schema.PartitionKey].(*types.AttributeValueMemberS).Value
		if strings.HasPrefix(partition, f.schema.KeyPrefix+"#MESSAGES#") {
			r.Messages.Pending++
		}
	}
	return r
}
