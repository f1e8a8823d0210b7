package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// status shows one picture of the table. It reads only, and works while every relay
// is down.
//
// It is a view, so whatever it shows, a foreign bucket count too, it has done what it
// was asked for: it exits with 0, and with 1 only where it could not see. Whether an
// outbox is well is for doctor to judge, by its exit code.
type status struct {
	app    *app
	all    bool
	cost   bool
	output format
}

func newStatus(a *app) *cobra.Command {
	c := &status{app: a}
	return a.command(spec{
		use:   "status",
		short: "Shows who owns which bucket, what waits, how old it is, and what is stuck",
		long: "Shows who owns which bucket, what waits, how old it is, and what is stuck and why. It reads the\n" +
			"table only: relays need not run. What is wrong comes first, each with what to do; relay doctor\n" +
			"looks closer. An idle bucket takes two small reads; --cost prints what this picture took.\n" +
			"lease-duration must be that of the relays: it says from when on one is silent.",
		example: "  relay status --table orders\n" +
			"  relay status --table orders --output json --cost",
		groups: settings.Table | settings.Picture,
		arguments: []settings.Argument{
			{Name: "all", Value: settings.Switch(&c.all), Doc: "show each relay, bucket and trouble, however many there are"},
			{Name: "cost", Value: settings.Switch(&c.cost), Doc: "show the requests and read units that the picture took"},
			a.timeoutArgument(),
			outputArgument(&c.output),
		},
		run: c.run,
	})
}

func (c *status) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	client, err := c.app.client(ctx, s)
	if err != nil {
		return err
	}
	return c.show(ctx, s, client)
}

// show takes a picture and prints it.
func (c *status) show(ctx context.Context, s *settings.Settings, client *store.Client) error {
	p, err := picture.Take(ctx, client, c.app.pictureOptions(s))
	if err != nil {
		return advised(err, s)
	}
	if c.output == formatJSON {
		err = printJSON(c.app.stdout, c.document(s, p))
	} else {
		most := screenful()
		if c.all {
			most = everything()
		}
		c.app.printPicture(s, p, most)
		if c.cost {
			c.app.printCost(p.Cost)
		}
	}
	if fault := p.Fault(); err == nil && fault != nil {
		blank := bucketsWhere(p, func(b picture.Bucket) bool { return b.Fault != nil })
		err = advised(fmt.Errorf("the picture lacks %s: %w", bucketsText(blank), fault), s)
	}
	return err
}

// pictureOptions are those by which the settings want pictures taken.
func (a *app) pictureOptions(s *settings.Settings) picture.Options {
	return picture.Options{
		BucketCount: s.Relay.BucketCount, LeaseDuration: s.Relay.LeaseDuration, MaxClockSkew: s.Relay.MaxClockSkew,
		CountLimit: s.Relay.PendingCountLimit, Concurrency: s.Relay.MaxConcurrency, Now: a.now,
	}
}
