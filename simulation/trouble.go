package simulation

import (
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/store"
)

// lowLimit is a topic's max.message.bytes while it is lowered; some records are
// larger.
const lowLimit = 600

// strikes tells whether a fault of a kind happens, and counts it.
func (f *fleet) strikes(kind Fault) bool { return f.dice.strikes(kind, "world", "") }

// trouble schedules what happens to processes, clocks and the broker, again and
// again until the run is healed.
func (f *fleet) trouble() {
	f.every(Crash, func(s source) {
		p := f.anyone(s)
		f.bury(p)
		f.succeed(p, s)
	})
	f.every(Stop, func(s source) {
		p := f.anyone(s)
		f.stopGracefully(p)
		f.succeed(p, s)
	})
	f.every(StopMissed, func(s source) {
		p := f.anyone(s)
		f.heldUp[p.name] = true
		f.stopGracefully(p)
		f.succeed(p, s)
	})
	f.every(Stall, func(s source) {
		p := f.anyone(s)
		after := time.Duration(0)
		if s.chance(0.3) { // cut off from the broker some time before and after
			f.heldUp[p.name] = true
			after = s.between(0, 2*time.Second)
			f.At(after+f.o.LeaseDuration+s.between(0, 30*time.Second), func() { delete(f.heldUp, p.name) })
		}
		f.At(after, func() {
			p.stall(f.pause(s))
			if !p.dead && s.chance(0.3) {
				p.setClock(-s.between(0, f.o.MaxClockSkew))
			}
		})
	})
	f.every(TableCut, func(s source) {
		p := f.anyone(s)
		p.cutOffUntil = f.now + s.between(0, 2*f.o.LeaseDuration)
		if s.chance(0.5) { // nor of the broker
			f.heldUp[p.name] = true
			f.At(p.cutOffUntil-f.now+s.between(0, 30*time.Second), func() { delete(f.heldUp, p.name) })
		}
	})
	f.every(Suspend, func(s source) { f.anyone(s).suspend(f.pause(s)) })
	f.every(ClockForward, func(s source) { f.anyone(s).setClock(s.between(0, f.o.MaxClockSkew)) })
	f.every(ClockBack, func(s source) { f.anyone(s).setClock(-s.between(0, f.o.MaxClockSkew)) })
	f.every(ClockLeap, f.leap)
	f.every(SameID, func(s source) {
		older := f.anyone(s)
		younger := f.boot(older.relay)
		leaves := older // as in a rolling update of named instances
		if s.chance(0.4) {
			leaves = younger // it was a mistake; and its clock may be behind the other's
			younger.setClock(-s.between(0, f.o.MaxClockSkew))
		}
		if s.chance(0.6) {
			f.At(s.between(0, 2*f.o.LeaseRenewInterval), func() { f.stopIfAlive(leaves) })
		}
	})
	f.every(ScaleOut, func(source) { f.boot(f.newID()) })
	f.every(ScaleIn, func(s source) {
		if len(f.processes) > 1 {
			f.stopGracefully(f.anyone(s))
		}
	})
	f.every(Replacement, func(source) { f.replaceAll() })
	f.every(RollingUpdate, func(s source) { f.rollOver(f.processes, s) })
	f.every(ModeChanged, f.changeMode)
	f.every(Crowd, f.crowd)
	f.every(Burst, func(s source) {
		for range 200 + s.IntN(600) {
			f.writers.after(s.between(0, time.Second), f.writers.write)
		}
	})
	f.every(CounterReset, f.writers.setCounterBack)
	f.operators()
	f.every(BrokerAway, func(s source) {
		f.record("broker", brokerLeft, nil)
		f.broker.Leave()
		f.At(s.between(time.Second, 2*time.Minute), f.returnBroker)
	})
	f.every(BrokerCut, func(s source) {
		p := f.anyone(s)
		f.cutOff(p.name)
		f.At(s.between(0, 5*f.o.LeaseDuration+shutdownTimeout), func() { f.reconnect(p.name) })
	})
	f.every(TopicLimitChanges, func(s source) {
		topic := topics[s.IntN(2)].name
		f.broker.LimitTopic(topic, lowLimit)
		f.At(s.between(time.Second, 30*time.Second), func() { f.broker.LimitTopic(topic, 0) })
	})
}

// pause is for how long nothing of a process runs: often for about as long as a
// lease is valid.
func (f *fleet) pause(s source) time.Duration {
	if s.chance(0.5) {
		return s.between(f.o.LeaseDuration-2*f.o.MaxClockSkew, f.o.LeaseDuration+f.o.MaxClockSkew)
	}
	return s.between(time.Second, 2*f.o.LeaseDuration)
}

// leap sets a clock so far away that any answer shows it, and right again after some
// rounds. A machine of which the other clock has stood still is spared: with both
// clocks wrong nobody can know.
func (f *fleet) leap(s source) { f.leapOf(f.anyone(s), s) }

// leapAtStart lets a process begin with a clock that is far off, at times.
func (f *fleet) leapAtStart(p *process) {
	if f.dice.rollAt(ClockLeap, 0.03) {
		f.dice.note(ClockLeap, p.name, "")
		f.leapOf(p, f.dice.of(ClockLeap))
	}
}

func (f *fleet) leapOf(p *process, s source) {
	least := f.o.LeaseRenewInterval/2 + f.o.MaxClockSkew + 2*time.Second
	by := s.between(least, 10*least)
	if s.chance(0.2) {
		by = s.between(least, 2*time.Hour)
	}
	if s.chance(0.5) {
		by = -by
	}
	if p.clock.stood > 0 {
		return
	}
	p.leap(by)
	right := f.setRight
	if s.chance(0.4) {
		right = f.setRightInRound
	}
	f.At(s.between(0, 8*f.o.LeaseRenewInterval), func() { right(p) })
}

// setRightInRound ends a leap while a request of a round is under way.
func (f *fleet) setRightInRound(p *process) {
	if p.lanes[store.Coordination].busy == 0 && !p.dead && !f.healed {
		f.At(fastest, func() { f.setRightInRound(p) })
		return
	}
	f.setRight(p)
}

// setRight ends a leap. What follows from it is still to be seen.
func (f *fleet) setRight(p *process) {
	if p.clock.leap != 0 {
		p.leap(0)
		f.checker.lastMove = f.now
	}
}

// returnBroker ends the absence of all brokers.
func (f *fleet) returnBroker() {
	if !f.broker.away {
		return
	}
	f.record("broker", brokerReturned, nil)
	f.broker.Return()
}

// cutOff takes all brokers away from a process, which may be still to start.
func (f *fleet) cutOff(name string) {
	if f.broker.cutOff[name] {
		return
	}
	f.broker.CutOff(name)
	if f.lives(name) {
		f.record(name, processCut, nil)
	}
}

// reconnect ends that.
func (f *fleet) reconnect(name string) {
	if !f.broker.cutOff[name] {
		return
	}
	if f.lives(name) {
		f.record(name, processConnected, nil)
	}
	f.broker.Reconnect(name)
}

func (f *fleet) lives(name string) bool {
	return slices.ContainsFunc(f.processes, func(p *process) bool { return p.name == name })
}

// createTopics makes the topics; one may come late.
func (f *fleet) createTopics() {
	for _, t := range allTopics() {
		after := time.Duration(0)
		if t.name == "late" && f.strikes(TopicMissing) {
			after = f.dice.of(TopicMissing).between(time.Second, max(time.Second, f.o.Duration))
		}
		f.At(after, func() { f.broker.CreateTopic(t.name, t.partitions, 0) })
	}
}

func (f *fleet) anyone(s source) *process { return f.processes[s.IntN(len(f.processes))] }

func (f *fleet) newClock(p *process) clock {
	c := clock{half: f.o.MaxClockSkew / 2, since: f.now}
	if f.dice.calm() {
		return c
	}
	c.skew = source{p.Rand("clock")}.between(-c.half, c.half)
	if f.strikes(ClockDrift) {
		c.drift = 0.2 * (f.dice.of(ClockDrift).Float64() - 0.5)
	}
	return c
}

// every lets a fault of a kind happen at random, as many times a minute as its
// rate says, until the run is healed.
func (f *fleet) every(kind Fault, do func(source)) {
	perMinute := f.dice.rates[kind]
	if perMinute <= 0 {
		return
	}
	mean := time.Duration(float64(time.Minute) / perMinute)
	times := f.dice.kinds[kind]
	var next func()
	next = func() {
		if f.healed {
			return
		}
		if len(f.processes) > 0 && f.dice.counts(kind) {
			f.dice.note(kind, "world", "")
			do(f.dice.of(kind))
		}
		f.At(times.between(mean/10, 2*mean), next)
	}
	f.At(times.between(0, 2*mean), next)
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
				fault.Delay = f.dice.of(BrokerDelays).between(time.Second, time.Minute)
			case f.strikes(BrokerTimesOut):
				fault.LoseRequest = true
			case f.strikes(BrokerAppendsLate):
				fault.LoseAnswer = true
			case f.strikes(BrokerFailsOver):
				fault.FailOver = true
			case r.Idle > forgottenAfter && f.strikes(BrokerForgets):
				fault.Forget = true
				fault.FailOver = f.dice.of(BrokerForgets).chance(0.3) // and the next one does not know it
			}
			return fault
		},
		Conclude: func(owner string, _ publisher.Call) BrokerFault {
			var fault BrokerFault
			switch {
			case f.heldUp[owner]:
				fault.Delay = time.Minute
			case f.strikes(BrokerDelays):
				fault.Delay = f.dice.of(BrokerDelays).between(time.Second, time.Minute)
			case f.strikes(BrokerTimesOut):
				fault.LoseRequest = true
			case f.strikes(BrokerAppendsLate):
				fault.LoseAnswer = true
			case f.strikes(BrokerFailsOver):
				fault.FailOver = true
			}
			return fault
		},
		Full: f.queueFull,
		Mute: func(publisher.Token) bool { return f.strikes(BrokerMutes) },
		Reject: func(r publisher.Record) string {
			if f.writers.poisonous(r) {
				f.dice.note(BrokerRejects, "broker", r.Topic)
				return "INVALID_RECORD"
			}
			return ""
		},
	}
}

// queueFull tells whether the producers of a process have no room for a record:
// just then, or for some seconds, as when a broker takes nothing.
func (f *fleet) queueFull(owner string) bool {
	if f.now < f.fullUntil[owner] {
		return true
	}
	if !f.strikes(QueueFull) {
		return false
	}
	if s := f.dice.of(QueueFull); s.chance(0.1) {
		f.fullUntil[owner] = f.now + s.between(0, 2*forgottenAfter)
	}
	return true
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
	f.dice.rest()
	clear(f.heldUp)
	for _, p := range f.processes {
		p.cutOffUntil = 0
		f.setRight(p)
	}
	clear(f.writers.poison)
	f.broker.SetFaults(BrokerFaults{})
	f.returnBroker()
	for _, p := range f.processes {
		f.reconnect(p.name)
	}
	for _, t := range allTopics() {
		if _, exists := f.broker.topics[t.name]; exists {
			f.broker.LimitTopic(t.name, 0)
		}
	}
	f.writers.stop()
	f.writers.repairCounters()
	f.endDoubles()
	f.keepOne()
}

// keepOne starts a relay when none is left that stays: the last one was scaled in,
// or has lost its id to one that was.
func (f *fleet) keepOne() {
	if f.starting == 0 && !slices.ContainsFunc(f.processes, func(p *process) bool { return !p.leaving }) {
		f.boot(f.newID())
	}
}

// endDoubles ends the older of two processes under one id where they may never find
// out: a younger one whose clock is behind, and whose rounds come just after the
// older one's, has each heartbeat refused and can keep no lease, so that it writes
// nothing. Neither does harm, but one write is refused in each round, for ever.
func (f *fleet) endDoubles() {
	youngest := map[string]*process{}
	for _, p := range slices.Clone(f.processes) { // first made first
		if older := youngest[p.relay]; older != nil && p.Now().Wall < older.Now().Wall {
			f.bury(older)
		}
		youngest[p.relay] = p
	}
}
