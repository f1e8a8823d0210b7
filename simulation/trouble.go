package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors/coordinator"
	"github.com/bucketbrigade/relay/actors/publisher"
)

// lowLimit is a topic's max.message.bytes while it is lowered; some records are
// larger.
const lowLimit = 600

// strikes tells whether a fault of a kind happens, and counts it.
func (f *fleet) strikes(kind Fault) bool {
	if !f.chance(f.net.rates[kind]) {
		return false
	}
	f.note(kind, "world", "")
	return true
}

// note counts and records a fault.
func (f *fleet) note(kind Fault, who, of string) { f.net.note(kind, who, of) }

// trouble schedules what happens to processes, clocks and the broker, again and
// again until the run is healed.
func (f *fleet) trouble() {
	f.every(Crash, func() {
		p := f.anyone()
		f.bury(p)
		f.succeed(p)
	})
	f.every(Stop, func() {
		p := f.anyone()
		f.stopGracefully(p)
		f.succeed(p)
	})
	f.every(StopMissed, func() {
		p := f.anyone()
		f.heldUp[p.name] = true
		f.stopGracefully(p)
		f.succeed(p)
	})
	f.every(Stall, func() {
		p := f.anyone()
		after := time.Duration(0)
		if f.chance(0.3) { // cut off from the broker some time before and after
			f.heldUp[p.name] = true
			after = f.between(0, 2*time.Second)
			f.At(after+f.o.LeaseDuration+f.between(0, 30*time.Second), func() { delete(f.heldUp, p.name) })
		}
		f.At(after, func() {
			p.stall(f.pause())
			if !p.dead && f.chance(0.3) {
				p.setClock(-f.between(0, f.o.MaxClockSkew))
			}
		})
	})
	f.every(TableCut, func() {
		p := f.anyone()
		p.cutOffUntil = f.now + f.between(0, 2*f.o.LeaseDuration)
		if f.chance(0.5) { // nor of the broker
			f.heldUp[p.name] = true
			f.At(p.cutOffUntil-f.now+f.between(0, 30*time.Second), func() { delete(f.heldUp, p.name) })
		}
	})
	f.every(Suspend, func() { f.anyone().suspend(f.pause()) })
	f.every(ClockForward, func() { f.anyone().setClock(f.between(0, f.o.MaxClockSkew)) })
	f.every(ClockBack, func() { f.anyone().setClock(-f.between(0, f.o.MaxClockSkew)) })
	f.every(SameID, func() {
		p := f.anyone()
		f.boot(p.relay)
		if f.chance(0.5) { // its predecessor is to go, as in a rolling update of named instances
			f.At(f.between(0, 2*f.o.LeaseRenewInterval), func() {
				if !p.dead && !p.ended && !p.leaving {
					f.stopGracefully(p)
				}
			})
		}
	})
	f.every(ScaleOut, func() { f.boot(f.newID()) })
	f.every(ScaleIn, func() {
		if len(f.processes) > 1 {
			f.stopGracefully(f.anyone())
		}
	})
	f.every(Replacement, f.replaceAll)
	f.every(BrokerAway, func() {
		f.record("broker", brokerLeft, nil)
		f.broker.Leave()
		f.At(f.between(time.Second, 2*time.Minute), f.returnBroker)
	})
	f.every(TopicLimitChanges, func() {
		topic := topics[f.rand.IntN(2)].name
		f.broker.LimitTopic(topic, lowLimit)
		f.At(f.between(time.Second, 30*time.Second), func() { f.broker.LimitTopic(topic, 0) })
	})
}

// pause is for how long nothing of a process runs: often for about as long as a
// lease is valid.
func (f *fleet) pause() time.Duration {
	if f.chance(0.5) {
		return f.between(f.o.LeaseDuration-2*f.o.MaxClockSkew, f.o.LeaseDuration+f.o.MaxClockSkew)
	}
	return f.between(time.Second, 2*f.o.LeaseDuration)
}

// returnBroker ends the absence of all brokers.
func (f *fleet) returnBroker() {
	if !f.broker.away {
		return
	}
	f.record("broker", brokerReturned, nil)
	f.broker.Return()
}

// createTopics makes the topics; one may come late.
func (f *fleet) createTopics() {
	for _, t := range topics {
		after := time.Duration(0)
		if t.name == "late" && f.strikes(TopicMissing) {
			after = f.between(time.Second, f.o.Duration)
		}
		f.At(after, func() { f.broker.CreateTopic(t.name, t.partitions, 0) })
	}
}

func (f *fleet) anyone() *process { return f.processes[f.rand.IntN(len(f.processes))] }

func (f *fleet) newClock() clock {
	c := clock{half: f.o.MaxClockSkew / 2, since: f.now}
	if f.net.rates == (Rates{}) {
		return c
	}
	c.skew = f.between(-c.half, c.half)
	if f.strikes(ClockDrift) {
		c.drift = 0.2 * (f.rand.Float64() - 0.5)
	}
	return c
}

// stopGracefully asks a process to stop, as SIGTERM does.
func (f *fleet) stopGracefully(p *process) {
	f.record(p.name, processStopping, nil)
	p.leaving = true
	p.system.Root.Send(p.coordinator, coordinator.Stop{})
}

// succeed starts a successor of a process that ends: under the same id, or under
// a new one, soon or after a while.
func (f *fleet) succeed(p *process) {
	id := f.newID()
	if p.dead && f.chance(0.5) {
		id = p.relay
	}
	after := f.between(0, f.o.LeaseDuration)
	if f.chance(0.3) { // at once, as a supervisor does
		after = f.between(0, 100*time.Millisecond)
	}
	f.starting++
	f.At(after, func() {
		f.starting--
		f.boot(id)
	})
}

func (f *fleet) replaceAll() {
	n := len(f.processes)
	for n > 0 && len(f.processes) > 0 {
		f.bury(f.processes[0])
	}
	for range n {
		f.boot(f.newID())
	}
}

func (f *fleet) newID() string {
	f.named++
	return fmt.Sprintf("relay-%d", f.named)
}

// every lets a fault of a kind happen at random, as many times a minute as its
// rate says, until the run is healed.
func (f *fleet) every(kind Fault, do func()) {
	perMinute := f.net.rates[kind]
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
			f.note(kind, "world", "")
			do()
		}
		f.At(f.between(mean/10, 2*mean), next)
	}
	f.At(f.between(0, 2*mean), next)
}

// brokerFaults decide on each produce request and record.
func (f *fleet) brokerFaults() BrokerFaults {
	return BrokerFaults{
		Request: func(r BrokerRequest) BrokerFault {
			var fault BrokerFault
			switch {
			case f.heldUp[r.Owner]:
				fault.Delay = time.Minute
			case f.strikes(BrokerDelays):
				fault.Delay = f.between(time.Second, time.Minute)
			case f.strikes(BrokerTimesOut):
				fault.LoseRequest = true
			case f.strikes(BrokerAppendsLate):
				fault.LoseAnswer = true
			case f.strikes(BrokerFailsOver):
				fault.FailOver = true
			case r.Idle > forgottenAfter && f.strikes(BrokerForgets):
				fault.Forget = true
			}
			return fault
		},
		Full: func() bool { return f.strikes(QueueFull) },
		Mute: func(publisher.Token) bool { return f.strikes(BrokerMutes) },
		Reject: func(r publisher.Record) string {
			if f.writers.poisonous(r) {
				f.note(BrokerRejects, "broker", r.Topic)
				return "INVALID_RECORD"
			}
			return ""
		},
	}
}

// forgottenAfter is the pause after which brokers may forget a producer; the
// publishers here prime again after it, much sooner than in production, so that a
// short run sees it.
const forgottenAfter = 5 * time.Second

// heal ends all faults: the network is fine, stalled processes go on when their
// time has come, clocks stay as they are.
func (f *fleet) heal() {
	f.record("world", worldHealed, nil)
	f.healed = true
	f.net.rates = Rates{}
	clear(f.heldUp)
	for _, p := range f.processes {
		p.cutOffUntil = 0
	}
	clear(f.writers.poison)
	f.broker.SetFaults(BrokerFaults{})
	f.returnBroker()
	for _, t := range topics {
		if _, exists := f.broker.topics[t.name]; exists {
			f.broker.LimitTopic(t.name, 0)
		}
	}
	f.writers.stop()
	f.endDoubles()
	if f.starting == 0 && !slices.ContainsFunc(f.processes, func(p *process) bool { return !p.leaving }) {
		f.boot(f.newID()) // the last one was scaled in, or lost its id to one that was
	}
}

// endDoubles ends the older of two processes under one id where they could not
// find out: with clocks that may differ by a whole interval, the younger one's
// heartbeats and keeps may all be behind the older one's, so that it can write
// nothing. Neither does harm, but one write is refused in each round, for ever.
func (f *fleet) endDoubles() {
	if f.o.MaxClockSkew < f.o.LeaseRenewInterval {
		return
	}
	youngest := map[string]*process{}
	for _, p := range slices.Clone(f.processes) { // first made first
		if older := youngest[p.relay]; older != nil {
			f.bury(older)
		}
		youngest[p.relay] = p
	}
}
