package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// doctor checks an outbox and says what to do. It repairs one thing, a counter
// that is behind its rows, and only when it is told to.
type doctor struct {
	app    *app
	bucket int
	repair repairSequence
	role   role // whose permissions are tried
	output format

	hasBucket bool // found among the flags, before the command runs
}

func newDoctor(a *app) *cobra.Command {
	c := &doctor{app: a, role: roleRelay}
	timeout := a.timeoutArgument()
	timeout.Doc = "how long the table, and the brokers, may take to answer all"
	return a.command(spec{
		use:   "doctor",
		short: "Checks table, settings, relays, brokers and topics, and says what to do",
		long: "Checks the table, the relays and their clocks, what waits, the brokers, the topics of what waits,\n" +
			"and permissions, against the settings that relay run would have: give it the same. Each check says\n" +
			"what it looked at, what it found, and what to do. Exit code 1: at least one has failed; warnings do\n" +
			"not count. Without brokers those of Kafka are skipped. Nothing is changed: permissions are tried by\n" +
			"writes whose condition never holds.\n\n" +
			"With --bucket, only that bucket's counter is checked: that it is at or beyond the number of the\n" +
			"highest row, waiting or set aside. One that was deleted or set back hands out numbers that rows have\n" +
			"already: writers then fail, one by one (ErrSequenceBehind). --repair-sequence raises it, by an\n" +
			"update with the condition that it is lower: it never lowers one. Writers and relays go on meanwhile.",
		example: "  relay doctor --table orders --brokers kafka-1:9092\n" +
			"  relay doctor --config relay.yaml --output json\n" +
			"  relay doctor --table orders --repair-sequence --bucket 3",
		groups: settings.Table | settings.BrokersIfAny | settings.Relay,
		arguments: append([]settings.Argument{
			timeout,
			{Name: "role", Value: settings.Choice(&c.role, roles()), Doc: "whose permissions are tried: relay, writer or operator"},
			{Name: "bucket", Value: settings.Index(&c.bucket), Doc: "check only this bucket's counter; buckets count from 0"},
			{Name: "repair-sequence", Value: settings.Switch(&c.repair.wanted), Doc: "raise the bucket's counter to its highest row, if it is lower"},
			{Name: "at-least", Value: settings.Count(&c.repair.atLeast), Doc: "a number known to have been handed out: raise the counter to it, too"},
			outputArgument(&c.output),
		}, consentArguments(&c.repair.consent)...),
		check: c.check,
		run:   c.run,
	})
}

// check finds flags that say nothing without another one.
func (c *doctor) check(positional []string, given func(string) bool) []settings.Fault {
	c.hasBucket = given("bucket")
	faults := noPositional(positional, given)
	fault := func(setting, detail string) {
		faults = append(faults, settings.Fault{Setting: "--" + setting, Detail: ": " + detail})
	}
	if given("repair-sequence") && !c.hasBucket {
		fault("bucket", "--repair-sequence needs the bucket")
	}
	for _, flag := range []string{"at-least", "yes", "dry-run"} {
		if given(flag) && !given("repair-sequence") {
			fault(flag, "goes with --repair-sequence only")
		}
	}
	if given("yes") && given("dry-run") {
		fault("dry-run", "give one of --yes and --dry-run")
	}
	return faults
}

// doctorDocument is the JSON of the command.
type doctorDocument struct {
	OK     bool            `json:"ok"`
	Checks []checkDocument `json:"checks"`
	// Requests are what a dry run would have sent.
	Requests []string `json:"requests,omitempty"`
}

func (c *doctor) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	if err := checkBucket(s, c.bucket); err != nil {
		return err
	}
	dynamo, err := c.app.reach(ctx, s)
	if err != nil {
		return err
	}
	table := sequences{client: store.NewClient(s.Schema(), dynamo.messages, dynamo.coordination), settings: s}
	var d doctorDocument
	switch {
	case c.repair.wanted:
		d, err = c.repair.run(ctx, c.app, table, c.bucket)
	case c.hasBucket:
		d.Checks, err = c.checkCounter(ctx, table)
	default:
		d.Checks = c.examine(ctx, s, dynamo, table)
		err = ctx.Err() // the checks of an interrupted examination would only say so
	}
	if err != nil {
		return advised(err, s)
	}
	return c.report(d)
}

// checkCounter checks the counter of one bucket, within the time that is given.
func (c *doctor) checkCounter(ctx context.Context, table sequences) ([]checkDocument, error) {
	limited, cancel := patiently(ctx, c.app.timeout)
	defer cancel()
	return table.check(limited, c.bucket)
}

// report prints the document. A check that failed is an error, so that the exit
// code tells it.
func (c *doctor) report(d doctorDocument) error {
	failures := 0
	for _, check := range d.Checks {
		if check.Status == statusFailure {
			failures++
		}
	}
	d.OK = failures == 0
	if c.output == formatJSON {
		if err := printJSON(c.app.stdout, d); err != nil {
			return err
		}
	} else {
		c.app.printChecks(d)
	}
	if failures > 0 {
		return fmt.Errorf("%d of %s failed", failures, counted(len(d.Checks), "check"))
	}
	return nil
}
