package main

import (
	"time"

	"github.com/bucketbrigade/relay/simulation"
)

// simulateDocument is the JSON of the command. Durations are in seconds; only
// what has wall in its name differs between two runs of the same seeds.
type simulateDocument struct {
	Seeds   []seedDocument  `json:"seeds"`
	Summary summaryDocument `json:"summary"`
}

type seedDocument struct {
	Seed           uint64              `json:"seed"`
	OK             bool                `json:"ok"`
	Digest         string              `json:"digest"`
	VirtualSeconds float64             `json:"virtualSeconds"`
	WallSeconds    float64             `json:"wallSeconds"`
	Settings       triedDocument       `json:"settings"`
	Messages       countedDocument     `json:"messages"`
	Handovers      int                 `json:"handovers"`
	RefusedWrites  refusedDocument     `json:"refusedWrites"`
	Requests       map[string]int      `json:"requests"`
	Faults         map[string]int      `json:"faults"`
	Coverage       map[string]int      `json:"coverage"`
	Violations     []violationDocument `json:"violations"`
	Replay         string              `json:"replay"`
	// Shrunk is the smallest run found, with --shrink.
	Shrunk *shrunkDocument `json:"shrunk,omitempty"`
}

// shrunkDocument is the smallest run found that breaks the promise.
type shrunkDocument struct {
	File      string            `json:"file"` // a scenario
	Replay    string            `json:"replay"`
	Seed      uint64            `json:"seed"`
	Digest    string            `json:"digest"`
	Violation violationDocument `json:"violation"`
	Runs      int               `json:"runs"` // that were made
	Before    sizeDocument      `json:"before"`
	After     sizeDocument      `json:"after"`
}

type sizeDocument struct {
	Relays     int     `json:"relays"`
	Buckets    int     `json:"buckets"`
	Duration   float64 `json:"duration"`
	Rate       float64 `json:"rate"`
	Kinds      int     `json:"kinds"`      // of faults
	Happenings int     `json:"happenings"` // of faults, until the promise was broken
}

func (s shrunk) document() *shrunkDocument {
	size := func(z simulation.Size) sizeDocument {
		return sizeDocument{z.Relays, z.Buckets, z.Duration.Seconds(), z.Rate, z.Kinds, z.Happenings}
	}
	return &shrunkDocument{
		File: s.file, Replay: s.replay(), Seed: s.Options.Seed, Digest: s.Report.Digest,
		Violation: violationOf(s.Broken()), Runs: s.Runs, Before: size(s.Before), After: size(s.After),
	}
}

func violationOf(v simulation.Violation) violationDocument {
	return violationDocument{v.Invariant, v.VirtualTime.Seconds(), v.Detail}
}

// triedDocument are the settings of one seed, drawn or given.
type triedDocument struct {
	Relays             int        `json:"relays"`
	Buckets            int        `json:"buckets"`
	Duration           float64    `json:"duration"`
	Rate               float64    `json:"rate"`
	Faults             faultLevel `json:"faults"`
	LeaseDuration      float64    `json:"leaseDuration"`
	LeaseRenewInterval float64    `json:"leaseRenewInterval"`
	MaxClockSkew       float64    `json:"maxClockSkew"`
	PollInterval       float64    `json:"pollInterval"`
	BatchSize          int        `json:"batchSize"`
	Poison             string     `json:"poison"`
	PoisonAfter        int        `json:"poisonAfter"`
}

type countedDocument struct {
	Enqueued   int `json:"enqueued"`
	Published  int `json:"published"` // records appended, duplicates included
	Duplicates int `json:"duplicates"`
	Parked     int `json:"parked"` // rows that were set aside, whatever became of them later
	Pending    int `json:"pending"`
}

type refusedDocument struct {
	Total     int            `json:"total"`
	Settled   int            `json:"settled"` // after the fleet had settled
	ByRequest map[string]int `json:"byRequest"`
}

type violationDocument struct {
	Invariant   string  `json:"invariant"`
	VirtualTime float64 `json:"virtualTime"`
	Detail      string  `json:"detail"`
}

// summaryDocument adds up all seeds.
type summaryDocument struct {
	Seeds          int             `json:"seeds"`
	OK             int             `json:"ok"`
	Failed         []uint64        `json:"failed"` // the seeds that broke a promise
	VirtualSeconds float64         `json:"virtualSeconds"`
	WallSeconds    float64         `json:"wallSeconds"`
	Messages       countedDocument `json:"messages"`
	Handovers      int             `json:"handovers"`
	RefusedWrites  refusedDocument `json:"refusedWrites"`
	Requests       map[string]int  `json:"requests"`
	Faults         map[string]int  `json:"faults"`
	Coverage       map[string]int  `json:"coverage"`
}

func (c *simulate) document(r simulated) seedDocument {
	o, report := r.options, r.report
	d := seedDocument{
		Seed: report.Seed, OK: report.OK, Digest: report.Digest,
		VirtualSeconds: report.Virtual.Seconds(), WallSeconds: r.wall.Seconds(),
		Settings: triedDocument{
			Relays: o.Relays, Buckets: o.Buckets, Duration: o.Duration.Seconds(), Rate: o.Rate, Faults: c.faults,
			LeaseDuration: o.LeaseDuration.Seconds(), LeaseRenewInterval: o.LeaseRenewInterval.Seconds(),
			MaxClockSkew: o.MaxClockSkew.Seconds(), PollInterval: o.PollInterval.Seconds(), BatchSize: o.BatchSize,
			Poison: string(o.Poison), PoisonAfter: o.PoisonAfter,
		},
		Messages: countedDocument{Enqueued: report.Messages.Enqueued, Published: report.Messages.Published,
			Duplicates: report.Messages.Duplicates, Parked: report.Messages.Parked, Pending: report.Messages.Pending},
		Handovers:     report.Handovers,
		RefusedWrites: refusedDocument{Total: total(report.Refused), Settled: report.RefusedSettled, ByRequest: report.Refused},
		Requests:      report.Requests, Faults: report.Faults, Coverage: report.Coverage,
		Violations: []violationDocument{},
		Replay:     c.replay(o),
	}
	if c.scenario != nil {
		d.Settings.Faults = faultsOfScenario
	}
	for _, v := range report.Violations {
		d.Violations = append(d.Violations, violationOf(v))
	}
	return d
}

// summary adds up seeds.
type summary struct {
	seeds      int
	failed     []uint64
	virtual    time.Duration
	wall       time.Duration
	messages   simulation.Messages
	handovers  int
	settled    int // refused writes in settled fleets
	refused    map[string]int
	requests   map[string]int
	faults     map[string]int
	transition map[string]int
}

func (s *summary) add(r simulated) {
	report := r.report
	s.seeds++
	if !report.OK {
		s.failed = append(s.failed, report.Seed)
	}
	s.virtual += report.Virtual
	s.messages.Enqueued += report.Messages.Enqueued
	s.messages.Published += report.Messages.Published
	s.messages.Duplicates += report.Messages.Duplicates
	s.messages.Parked += report.Messages.Parked
	s.messages.Pending += report.Messages.Pending
	s.handovers += report.Handovers
	s.settled += report.RefusedSettled
	for _, pair := range []struct {
		sum  *map[string]int
		more map[string]int
	}{{&s.refused, report.Refused}, {&s.requests, report.Requests}, {&s.faults, report.Faults}, {&s.transition, report.Coverage}} {
		if *pair.sum == nil {
			*pair.sum = map[string]int{}
		}
		for name, n := range pair.more {
			(*pair.sum)[name] += n
		}
	}
}

func (s *summary) document() summaryDocument {
	return summaryDocument{
		Seeds: s.seeds, OK: s.seeds - len(s.failed), Failed: append([]uint64{}, s.failed...),
		VirtualSeconds: s.virtual.Seconds(), WallSeconds: s.wall.Seconds(),
		Messages: countedDocument{Enqueued: s.messages.Enqueued, Published: s.messages.Published,
			Duplicates: s.messages.Duplicates, Pending: s.messages.Pending},
		Handovers:     s.handovers,
		RefusedWrites: refusedDocument{Total: total(s.refused), Settled: s.settled, ByRequest: s.refused},
		Requests:      s.requests, Faults: s.faults, Coverage: s.transition,
	}
}

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}
