package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/simulation"
)

// lastEvents is how many events are shown before a broken promise.
const lastEvents = 20

// simulate runs fleets in virtual time, one for each seed, and checks each.
type simulate struct {
	app      *app
	seeds    seedRange
	relays   int
	buckets  int
	duration time.Duration
	rate     float64
	faults   faultLevel
	timeline string
	trace    string
	script   string
	shrink   string
	parallel int
	output   format

	bucketsGiven bool
	seedsGiven   bool
	shrinker     shrinker
	loaded       *settings.Loader
	scenario     *simulation.Scenario // nil: what happens is drawn
}

// faultLevel is how much goes wrong.
type faultLevel string

const (
	faultsNone    faultLevel = "none"
	faultsDefault faultLevel = "default"
	faultsStorm   faultLevel = "storm"
	// faultsOfScenario is no level: the scenario says what goes wrong.
	faultsOfScenario faultLevel = "scenario"
)

func (l faultLevel) rates() simulation.Rates {
	switch l {
	case faultsStorm:
		return simulation.Storm()
	case faultsDefault:
		return simulation.Default()
	}
	return simulation.Rates{}
}

func newSimulate(a *app) *cobra.Command {
	c := &simulate{app: a, seeds: seedRange{1, 10}, relays: 3, buckets: outbox.DefaultBucketCount,
		duration: time.Hour, rate: 20, faults: faultsDefault, parallel: runtime.GOMAXPROCS(0),
		shrinker: simulation.Shrink}
	return a.command(spec{
		use:   "simulate",
		short: "Runs fleets in virtual time under faults, and checks each",
		long: "Runs a whole fleet in virtual time for each seed: relays, writers, table and broker in this\n" +
			"process, under faults, while an observer checks that nothing is lost, reordered or owned twice.\n" +
			"Then all faults end, and the outbox must become empty.\n\n" +
			"The same seed and settings give the same run. Settings come from --config, variables and flags;\n" +
			"without --config, each seed draws those that were not given. A broken promise exits with 1 and\n" +
			"prints the command that shows it again. --shrink looks for the smallest run that breaks it,\n" +
			"and writes that as a scenario.",
		example: "  relay simulate --config relay.yaml --seeds 1-100\n" +
			"  relay simulate --seed 17 --faults storm --duration 10m --timeline run.svg --trace run.jsonl\n" +
			"  relay simulate --seeds 1-200 --faults storm --duration 2m --shrink smallest.txt",
		groups: settings.Simulated,
		arguments: []settings.Argument{
			{Name: "seed", Value: oneSeed{&c.seeds}, Doc: "run this one seed"},
			{Name: "seeds", Value: manySeeds{&c.seeds}, Doc: "run these seeds"},
			{Name: "relays", Value: bounded{settings.Count(&c.relays), &c.relays, maxSimulated}, Doc: "relays to begin with"},
			{Name: "buckets", Value: bounded{settings.Count(&c.buckets), &c.buckets, outbox.MaxBucketCount},
				Doc: "buckets of the outbox; unset: bucket-count of the file"},
			{Name: "duration", Value: settings.Duration(&c.duration), Doc: "virtual time until all faults end"},
			{Name: "rate", Value: settings.Number(&c.rate, maxSimulatedRate), Doc: "messages written in a virtual second"},
			{Name: "faults", Value: settings.Choice(&c.faults, []faultLevel{faultsNone, faultsDefault, faultsStorm}),
				Doc: "none, default: a bad day, or storm: much of everything"},
			{Name: "scenario", Value: settings.File(&c.script), Doc: "play this file instead: what happens, and what must be seen"},
			{Name: "timeline", Value: settings.File(&c.timeline), Doc: "draw each run into this SVG file; of several seeds, with the seed in its name"},
			{Name: "trace", Value: settings.File(&c.trace), Doc: "write each run's events into this file of JSON lines; named alike"},
			{Name: "shrink", Value: settings.File(&c.shrink), Doc: "of each run that breaks a promise, write the smallest found that does into this scenario file; named alike"},
			{Name: "parallel", Value: settings.Count(&c.parallel), Doc: "runs at once"},
			outputArgument(&c.output),
		},
		check: c.check,
		run:   c.run,
	})
}

const gcPercent = 800

// Limits of what is simulated: beyond them a typing error is more likely than a
// wish.
const (
	maxSimulated     = 1000
	maxSimulatedRate = 100_000
)

func (c *simulate) check(positional []string, flagGiven func(string) bool) []settings.Fault {
	c.bucketsGiven, c.seedsGiven = flagGiven("buckets"), flagGiven("seed") || flagGiven("seeds")
	faults := noPositional(positional, flagGiven)
	if flagGiven("seed") && flagGiven("seeds") {
		faults = append(faults, settings.Fault{Setting: "--seeds", Detail: ": give --seed or --seeds, not both"})
	}
	if !flagGiven("scenario") {
		return faults
	}
	for _, name := range []string{"relays", "buckets", "duration", "rate", "faults", "config"} {
		if flagGiven(name) {
			faults = append(faults, settings.Fault{Setting: "--" + name, Detail: ": the scenario says that itself"})
		}
	}
	return faults
}

// readScenario reads the file of --scenario.
func (c *simulate) readScenario() error {
	if c.script == "" {
		return nil
	}
	file, err := os.Open(c.script)
	if err != nil {
		return fmt.Errorf("--scenario: %w", err)
	}
	defer file.Close()
	if c.scenario, err = simulation.ParseScenario(c.script, file); err != nil {
		return err
	}
	if c.shrink != "" && !c.scenario.IsRandomRun() {
		return fmt.Errorf("--shrink: %s is a script of steps; only a random run can be shrunk, one that ends with \"run for\"", c.script)
	}
	if !c.seedsGiven {
		c.seeds = seedRange{c.scenario.Options.Seed, c.scenario.Options.Seed}
	}
	return nil
}

// play runs one fleet: as a scenario has it, or at random.
func (c *simulate) play(o simulation.Options) simulation.Report {
	if c.scenario == nil {
		return c.app.simulate(o)
	}
	return c.played(o).Run()
}

func (c *simulate) lastEvents(o simulation.Options, v simulation.Violation) []simulation.Event {
	if c.scenario == nil {
		return simulation.LastEvents(o, v, lastEvents)
	}
	return c.played(o).LastEvents(v, lastEvents)
}

// played is the scenario with a run's seed and observer.
func (c *simulate) played(o simulation.Options) *simulation.Scenario {
	played := *c.scenario
	played.Options.Seed, played.Options.Observe = o.Seed, o.Observe
	return &played
}

func (c *simulate) run(ctx context.Context, loaded *settings.Loader) error {
	// Runs make much that is soon gone, and keep little: a third less time.
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	c.loaded = loaded
	if err := c.readScenario(); err != nil {
		return usageError{err}
	}
	if err := c.options(c.seeds.first).Validate(); err != nil {
		return usageError{err}
	}
	if err := c.makeFiles(c.seeds.first); err != nil {
		return usageError{err}
	}
	defer c.tellInterrupted(ctx)()
	began := c.app.now()
	s := summary{}
	report := c.printer()
	err := c.each(ctx, func(r simulated) error {
		s.add(r)
		report.seed(r)
		if c.shrink == "" || len(r.report.Violations) == 0 || ctx.Err() != nil {
			return nil
		}
		small, err := c.smaller(ctx, r)
		if err == nil {
			report.shrunk(small)
		}
		return err
	})
	if err != nil {
		return err
	}
	s.wall = c.app.now().Sub(began)
	if err := report.summary(&s); err != nil {
		return err
	}
	if n := len(s.failed); n > 0 {
		return fmt.Errorf("%d of %d seeds broke a promise", n, s.seeds)
	}
	return ctx.Err()
}

// tellInterrupted says, once ctx has ended, what is waited for. The result ends that.
func (c *simulate) tellInterrupted(ctx context.Context) func() {
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		fmt.Fprintln(c.app.stderr, "interrupted: seeds that have begun are run to their end; a second signal ends them, too")
	})
	return func() {
		if !stop() {
			<-told
		}
	}
}

// options are those of one seed: what was given, and the rest of the defaults
// when there is a file, drawn by the seed when there is none.
func (c *simulate) options(seed uint64) simulation.Options {
	if c.scenario != nil {
		o := c.scenario.Options.WithDefaults()
		o.Seed = seed
		return o
	}
	o := simulation.Options{
		Seed: seed, Relays: c.relays, Buckets: c.buckets, Duration: c.duration, Rate: c.rate, Faults: c.faults.rates(),
	}
	s := c.loaded.Settings.Relay
	if !c.bucketsGiven {
		o.Buckets = s.BucketCount
	}
	isSet := func(name string) bool { return c.loaded.HasFile() || c.loaded.Origin(name) != "" }
	if isSet("lease-duration") {
		o.LeaseDuration = s.LeaseDuration
	}
	if isSet("lease-renew-interval") {
		o.LeaseRenewInterval = s.LeaseRenewInterval
	}
	if isSet("max-clock-skew") {
		o.MaxClockSkew = s.MaxClockSkew
	}
	if isSet("poll-interval") {
		o.PollInterval = s.PollInterval
	}
	if isSet("batch-size") {
		o.BatchSize = s.BatchSize
	}
	if isSet("poison") {
		o.Poison = s.Poison
	}
	if isSet("poison-after") {
		o.PoisonAfter = s.PoisonAfter
	}
	if isSet("mode") {
		o.Mode = s.Mode
	}
	return o.Draw()
}

// simulated is what became of one seed.
type simulated struct {
	options simulation.Options
	report  simulation.Report
	wall    time.Duration
	// last are the events before the first broken promise.
	last []simulation.Event
	err  error
}

// each runs all seeds, several at once, and gives their results to done in the
// order of the seeds. It stops early when ctx ends, or a file cannot be written,
// or done fails.
func (c *simulate) each(ctx context.Context, done func(simulated) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running := make(chan struct{}, c.parallel)
	// Seeds that have begun wait here for those before them.
	begun := make(chan chan simulated, 4*c.parallel)
	go func() {
		defer close(begun)
		for n := range c.seeds.count() {
			select {
			case running <- struct{}{}:
			case <-ctx.Done():
				return
			}
			result := make(chan simulated, 1)
			go func() {
				result <- c.one(c.seeds.first + n)
				<-running
			}()
			begun <- result
		}
	}()
	var failure error
	for result := range begun {
		r := <-result
		if failure == nil && r.err == nil {
			r.err = done(r)
		}
		if failure == nil && r.err != nil {
			failure = r.err
			stop()
		}
	}
	return failure
}

// one runs one seed.
func (c *simulate) one(seed uint64) simulated {
	r := simulated{options: c.options(seed)}
	began := c.app.now()
	observers, err := c.observers(seed, r.options)
	if err != nil {
		return simulated{err: err}
	}
	observed := r.options
	observed.Observe = observers.observe()
	r.report = c.play(observed)
	r.err = observers.finish(r.report)
	r.wall = c.app.now().Sub(began)
	if len(r.report.Violations) > 0 {
		r.last = c.lastEvents(r.options, r.report.Violations[0])
	}
	return r
}
