package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/actors/coordinator"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

const (
	shutdownTimeout = 25 * time.Second
	maxConcurrency  = 8
	messageLimit    = 64

	transactionalIDPrefix = "outbox-simulated"
)

// topic is one of a run, with its partitions.
type topic struct {
	name       string
	partitions int
}

// topics are those that writers write to.
var topics = []topic{{"orders", 3}, {"audit", 2}, {"late", 1}}

// allTopics has the one for rejected records too.
func allTopics() []topic { return append(slices.Clone(topics), topic{letterTopic, 2}) }

// fleet is a run: the world, the table, the broker, the processes, the writers,
// and the observer that checks.
type fleet struct {
	*world
	o       Options
	db      *memtable.DB
	schema  outbox.Schema
	broker  *Broker
	net     *network
	dice    *dice
	writers *writers
	checker *checker

	processes      []*process // the living ones first made first
	made           int
	named          int                      // relay ids that were given out
	starting       int                      // processes that are still to start
	stopping       int                      // stops that are still to be asked for
	mode           relay.Mode               // of the processes that start now
	modes          map[string]relay.Mode    // of processes that have their own, by name
	policies       map[string]bucket.Poison // the same
	heldUp         map[string]bool          // processes whose produce requests are held up
	fullUntil      map[string]time.Duration // until when the queues of a process's producers have no room
	healed         bool
	primeAfter     time.Duration // the publishers' PrimeAfter
	refusedSettled int           // writes that were refused once all had settled
}

func newFleet(o Options) *fleet {
	f := &fleet{
		world: newWorld(o.Seed, o.Observe), o: o, mode: o.Mode, modes: map[string]relay.Mode{}, policies: map[string]bucket.Poison{},
		heldUp: map[string]bool{}, fullUntil: map[string]time.Duration{}, primeAfter: forgottenAfter,
	}
	f.circles = func(steps int) {
		f.checker.violated("I-36", "%d steps within one virtual second", steps)
	}
	f.schema = outbox.Schema{Table: "outbox", BucketCount: o.Buckets}.WithDefaults()
	f.db = memtable.New(memtable.Options{
		Now:         func() time.Duration { return f.now },
		Unprocessed: func(string, types.WriteRequest) bool { return f.strikes(PartlyProcessed) },
		SharedReads: true, // nobody changes what was read
	})
	if err := store.CreateTable(context.Background(), f.db, f.schema); err != nil {
		panic(err)
	}
	f.dice = newDice(o, f.record)
	f.checker = newChecker(f)
	f.net = &network{
		world: f.world, meter: newMeter(o.Capacity), client: store.NewClient(f.schema, audit{f.db, f}, audit{f.db, f}), dice: f.dice,
		sent:     f.checker.sent,
		applied:  f.checker.applied,
		timeouts: [2]time.Duration{store.Messages: requestTimeout, store.Coordination: o.LeaseRenewInterval / 2},
	}
	f.broker = NewBroker(BrokerConfig{
		Clock: f, Rand: f.rand.Rand, Faults: f.brokerFaults(), Appended: f.appended,
		RequestRecords: []int{1, 3, 10_000}[derived(o.Seed, "requests").IntN(3)],
	}) // how a client cuts requests depends on the moment
	f.writers = newWriters(f)
	f.At(time.Second, f.sweep)
	return f
}

// appended notes a record of the broker.
func (f *fleet) appended(r BrokerRecord) {
	f.record("broker", recordAppended, appended{r.Topic, r.Partition, r.Offset, r.Token.Bucket, r.Token.Sequence, r.Owner, r.Producer})
}

// Now is the virtual time, for the broker.
func (f *fleet) Now() time.Duration { return f.now }

// boot starts a process with a relay under an id.
func (f *fleet) boot(relay string) *process {
	f.made++
	return f.bootNamed(fmt.Sprintf("p%d", f.made), relay)
}

// bootNamed starts a process under a name that no other of the run has.
func (f *fleet) bootNamed(name, id string) *process {
	p := &process{
		world: f.world, net: f.net, name: name, relay: id, mode: f.mode, seed: f.o.Seed,
		system: newSystem(), born: f.now, joined: f.now, observe: f.checker.observe,
	}
	if own, has := f.modes[name]; has {
		p.mode = own
	}
	p.lanes[store.Messages].limit, p.lanes[store.Coordination].limit = messageLimit, maxConcurrency
	p.clock = f.newClock(p)
	f.record(p.name, processStarted, started{id, p.mode, p.clock.skew, p.clock.drift})
	if f.broker.cutOff[name] {
		f.record(name, processCut, nil)
	}
	f.processes = append(f.processes, p)
	f.leapAtStart(p)
	props := p.Props(coordinator.New(f.config(p), p),
		actor.WithSupervisor(actors.StopOnPanic()), actor.WithGuardian(actors.StopOnPanic()))
	pid, err := p.system.Root.SpawnNamed(props, "coordinator")
	if err != nil {
		panic(err)
	}
	p.coordinator = pid
	return p
}

// policy is what a process does with rejected records: that of the run, unless it was
// started with its own.
func (f *fleet) policy(p *process) bucket.Poison {
	if own, has := f.policies[p.name]; has {
		return own
	}
	return bucket.Poison(f.o.Poison)
}

func (f *fleet) config(p *process) coordinator.Config {
	letters := ""
	if f.o.Poison == relay.PoisonDeadLetter {
		letters = letterTopic
	}
	return coordinator.Config{
		Relay: p.relay, Mode: string(p.mode), BucketCount: f.o.Buckets,
		LeaseDuration: f.o.LeaseDuration, LeaseRenewInterval: f.o.LeaseRenewInterval,
		ShutdownTimeout: shutdownTimeout, MaxConcurrency: maxConcurrency,
		Bucket: bucket.Config{
			BatchSize: f.o.BatchSize, MaxBatchBytes: 8 << 20,
			PollInterval: f.o.PollInterval, ErrorBackoff: time.Second,
			Poison: f.policy(p), PoisonAfter: f.o.PoisonAfter, DeadLetterTopic: letterTopic,
			LeaseDuration: f.o.LeaseDuration, LeaseRenewInterval: f.o.LeaseRenewInterval,
			MaxClockSkew: f.o.MaxClockSkew, Fenced: p.fenced(),
		},
		Publisher: publisher.Config{
			Factory: f.checker.watch(p, f.broker.Factory(p.name)), Buckets: f.o.Buckets, PrimeAfter: f.primeAfter, DeadLetterTopic: letters,
			Fencing: f.fencing(p),
		},
		Ended: func(err error) {
			p.ended, p.endedWith = true, err
			f.checker.ended(p)
			f.record(p.name, processEnded, ended{err})
			f.At(time.Second, func() { f.bury(p) })
		},
	}
}

// fencing are a publisher's settings of fenced mode; nil: the process is in another.
func (f *fleet) fencing(p *process) *publisher.Fencing {
	if !p.fenced() {
		return nil
	}
	return &publisher.Fencing{
		TransactionalIDPrefix: transactionalIDPrefix,
		LeaseValidity:         f.o.LeaseDuration - f.o.MaxClockSkew, LeaseRenewInterval: f.o.LeaseRenewInterval,
	}
}

// bury takes away a process that has ended or is to die.
func (f *fleet) bury(p *process) {
	if p.dead {
		return
	}
	p.crash()
	f.broker.Crash(p.name)
	f.checker.died(p)
	for i, other := range f.processes {
		if other == p {
			f.processes = append(f.processes[:i:i], f.processes[i+1:]...)
			return
		}
	}
}

// notify wakes the owner in one process, as a writer in that process would.
func (f *fleet) notify(b int) {
	if s := f.writers.rand; len(f.processes) > 0 && s.IntN(3) == 0 {
		p := f.processes[s.IntN(len(f.processes))]
		p.system.Root.Send(p.coordinator, coordinator.Notify{Buckets: []int{b}})
	}
}
