package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/simulation"
)

// seedRange are the seeds from first to last.
type seedRange struct{ first, last uint64 }

// maxSeeds bounds a range.
const maxSeeds = 10_000_000

func (r seedRange) count() uint64 { return r.last - r.first + 1 }

// oneSeed is the value of --seed.
type oneSeed struct{ seeds *seedRange }

// Set reads a seed.
func (v oneSeed) Set(text string) error {
	seed, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return errors.New("must be a whole number, 0 or more")
	}
	*v.seeds = seedRange{seed, seed}
	return nil
}

func (v oneSeed) String() string { return "" }

// Type is shown by --help.
func (v oneSeed) Type() string { return "number" }

// manySeeds is the value of --seeds.
type manySeeds struct{ seeds *seedRange }

// Set reads a range such as 1-500.
func (v manySeeds) Set(text string) error {
	from, to, found := strings.Cut(text, "-")
	first, err := strconv.ParseUint(from, 10, 63)
	last, err2 := strconv.ParseUint(to, 10, 63)
	if !found || err != nil || err2 != nil || last < first || last-first >= maxSeeds {
		return fmt.Errorf("must be a range of at most %d seeds, such as 1-500", maxSeeds)
	}
	*v.seeds = seedRange{first, last}
	return nil
}

func (v manySeeds) String() string { return fmt.Sprintf("%d-%d", v.seeds.first, v.seeds.last) }

// Type is shown by --help.
func (v manySeeds) Type() string { return "range" }

// bounded is a number with an upper limit.
type bounded struct {
	settings.Value
	field *int
	most  int
}

// Set reads the number.
func (v bounded) Set(text string) error {
	if err := v.Value.Set(text); err != nil {
		return err
	}
	if *v.field > v.most {
		return fmt.Errorf("must be at most %d", v.most)
	}
	return nil
}

// replay is the command that shows a run again, with every setting.
func (c *simulate) replay(o simulation.Options) string {
	if c.scenario != nil && c.scenario.Options.Seed == o.Seed {
		return "relay simulate --scenario " + shellWord(c.script)
	}
	if c.scenario != nil {
		return fmt.Sprintf("relay simulate --scenario %s --seed %d", shellWord(c.script), o.Seed)
	}
	return strings.Join([]string{"relay simulate",
		fmt.Sprintf("--seed %d", o.Seed),
		fmt.Sprintf("--relays %d", o.Relays),
		fmt.Sprintf("--buckets %d", o.Buckets),
		"--duration " + settings.Duration(&o.Duration).String(),
		"--rate " + strconv.FormatFloat(o.Rate, 'f', -1, 64),
		"--faults " + string(c.faults),
		"--lease-duration " + settings.Duration(&o.LeaseDuration).String(),
		"--lease-renew-interval " + settings.Duration(&o.LeaseRenewInterval).String(),
		"--max-clock-skew " + settings.Duration(&o.MaxClockSkew).String(),
		"--poll-interval " + settings.Duration(&o.PollInterval).String(),
		fmt.Sprintf("--batch-size %d", o.BatchSize),
		fmt.Sprintf("--poison %s --poison-after %d", o.Poison, o.PoisonAfter),
		"--mode " + string(cmp.Or(o.Mode, relay.ModeOrdered)),
	}, " ")
}
