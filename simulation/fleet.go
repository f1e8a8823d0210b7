package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
)

// topics are those of a run, with their partitions.
var topics = []struct {
	name       string
	partitions int
}{{"orders", 3}, {"audit", 2}}

// fleet is a run: the world, the table, the broker, the processes, the writers,
// and the observer that checks.
type fleet struct {
	*world
	o       Options
	db      *memtable.DB
	schema  outbox.Schema
	broker  *Broker
	net     *network
	writers *writers
	checker *checker

	processes []*process // the living ones first made first
	made      int
	named     int // relay ids that were given out
	starting  int // processes that are still to start
	healed    bool
}

func newFleet(o Options) *fleet {
	f := &fleet{world: newWorld(o.Seed, o.Trace), o: o}
	f.schema = outbox.Schema{Table: "outbox", BucketCount: o.Buckets}.WithDefaults()
	f.db = memtable.New(memtable.Options{
		Now:         func() time.Duration { return f.now },
		Unprocessed: func(string, types.WriteRequest) bool { return f.chance(f.net.rates.Unprocessed) },
	})
	if err := store.CreateTable(context.Background(), f.db, f.schema); err != nil {
		panic(err)
	}
	f.checker = newChecker(f)
	f.net = &network{
		world: f.world, client: store.NewClient(f.schema, f.db, f.db), rates: o.Faults,
		faults: map[string]int{}, applied: f.checker.applied,
		timeouts: [2]time.Duration{store.Messages: requestTimeout, store.Coordination: o.LeaseRenewInterval / 2},
	}
	f.broker = NewBroker(BrokerConfig{Clock: f, Rand: f.rand, Faults: f.brokerFaults()})
	for _, t := range topics {
		f.broker.CreateTopic(t.name, t.partitions, 0)
	}
	f.writers = newWriters(f)
	return f
}

// Now is the virtual time, for the broker.
func (f *fleet) Now() time.Duration { return f.now }

// boot starts a process with a relay under an id.
func (f *fleet) boot(relay string) *process {
	f.made++
	p := &process{
		world: f.world, net: f.net, name: fmt.Sprintf("p%d", f.made), relay: relay, seed: f.o.Seed,
		system: newSystem(), born: f.now, observe: f.checker.observe,
	}
	p.lanes[store.Messages].limit, p.lanes[store.Coordination].limit = messageLimit, maxConcurrency
	if half := float64(f.o.MaxClockSkew) / 2 * f.net.rates.Skews; half >= 1 {
		p.skew = f.between(-time.Duration(half), time.Duration(half))
	}
	f.record(p.name, "process.started %s skew %v", relay, p.skew)
	f.processes = append(f.processes, p)
	props := p.Props(coordinator.New(f.config(p), p),
		actor.WithSupervisor(actors.StopOnPanic()), actor.WithGuardian(actors.StopOnPanic()))
	pid, err := p.system.Root.SpawnNamed(props, "coordinator")
	if err != nil {
		panic(err)
	}
	p.coordinator = pid
	return p
}

func (f *fleet) config(p *process) coordinator.Config {
	return coordinator.Config{
		Relay: p.relay, Mode: "ordered", BucketCount: f.o.Buckets,
		LeaseDuration: f.o.LeaseDuration, LeaseRenewInterval: f.o.LeaseRenewInterval,
		ShutdownTimeout: shutdownTimeout,
		Bucket: bucket.Config{
			BatchSize: f.o.BatchSize, MaxBatchBytes: 8 << 20,
			PollInterval: time.Second, ErrorBackoff: time.Second,
			LeaseDuration: f.o.LeaseDuration, LeaseRenewInterval: f.o.LeaseRenewInterval,
			MaxClockSkew: f.o.MaxClockSkew,
		},
		Publisher: publisher.Config{Factory: f.checker.watch(p, f.broker.Factory(p.name)), Buckets: f.o.Buckets},
		Ended: func(err error) {
			p.ended, p.endedWith = true, err
			f.record(p.name, "process.ended %v", err)
			f.At(time.Second, func() { f.bury(p) })
		},
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

// stopGracefully asks a process to stop, as SIGTERM does.
func (f *fleet) stopGracefully(p *process) {
	f.record(p.name, "process.asked to stop")
	p.system.Root.Send(p.coordinator, coordinator.Stop{})
}

func (f *fleet) brokerFaults() BrokerFaults {
	rates := f.o.Faults.Requests
	return BrokerFaults{
		Request: func(r BrokerRequest) BrokerFault {
			var fault BrokerFault
			switch {
			case f.chance(rates.Delayed):
				f.net.faults["brokerDelays"]++
				fault.Delay = f.between(time.Second, time.Minute)
			case f.chance(rates.Lost):
				f.net.faults["brokerTimesOut"]++
				fault.LoseRequest = true
			case f.chance(rates.Unsaid):
				f.net.faults["brokerAppendsLate"]++
				fault.LoseAnswer = true
			case f.chance(rates.Moved):
				f.net.faults["brokerFailsOver"]++
				fault.FailOver = true
			}
			return fault
		},
		Reject: func(r publisher.Record) string {
			if f.writers.poisonous(r) && !f.healed {
				f.net.faults["brokerRejects"]++
				return "INVALID_RECORD"
			}
			return ""
		},
	}
}

// trouble schedules what happens to processes, again and again.
func (f *fleet) trouble() {
	f.every(f.o.Faults.Crashes, func() {
		p := f.processes[f.rand.IntN(len(f.processes))]
		f.net.faults["crash"]++
		f.bury(p)
		f.succeed(p)
	})
	f.every(f.o.Faults.Stops, func() {
		p := f.processes[f.rand.IntN(len(f.processes))]
		f.net.faults["stop"]++
		f.stopGracefully(p)
		f.succeed(p)
	})
	f.every(f.o.Faults.Stalls, func() {
		p := f.processes[f.rand.IntN(len(f.processes))]
		f.net.faults["stall"]++
		p.stall(f.between(time.Second, 2*f.o.LeaseDuration))
	})
}

// succeed starts a successor of a process that ends: under the same id, or under
// a new one, soon or after a while.
func (f *fleet) succeed(p *process) {
	id := f.newID()
	if p.dead && f.chance(0.5) { // a stable id is never shared by two live processes
		id = p.relay
	}
	f.starting++
	f.At(f.between(0, f.o.LeaseDuration), func() {
		f.starting--
		f.boot(id)
	})
}

func (f *fleet) newID() string {
	f.named++
	return fmt.Sprintf("relay-%d", f.named)
}

// every lets something happen at random, so many times a minute on average,
// until the run is healed.
func (f *fleet) every(perMinute float64, do func()) {
	if perMinute <= 0 {
		return
	}
	mean := time.Duration(float64(time.Minute) / perMinute)
	var next func()
	next = func() {
		if f.healed {
			return
		}
		if len(f.processes) > 0 {
			do()
		}
		f.At(f.between(mean/10, 2*mean), next)
	}
	f.At(f.between(0, 2*mean), next)
}

// heal ends all faults: the network is fine, stalled processes go on, clocks
// stay as they are.
func (f *fleet) heal() {
	f.record("world", "healed")
	f.healed = true
	f.net.rates = Rates{Skews: f.o.Faults.Skews}
	f.broker.SetFaults(BrokerFaults{})
	f.writers.stop()
}

// notify wakes the owner in one process, as a writer in that process would.
func (f *fleet) notify(b int) {
	if len(f.processes) > 0 && f.rand.IntN(3) == 0 {
		p := f.processes[f.rand.IntN(len(f.processes))]
		p.system.Root.Send(p.coordinator, coordinator.Notify{Buckets: []int{b}})
	}
}
