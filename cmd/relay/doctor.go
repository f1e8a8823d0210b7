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
	output format

	hasBucket bool // found among the flags, before the command runs
}

func newDoctor(a *app) *cobra.Command {
	c := &doctor{app: a}
	return a.command(spec{
		use:   "doctor",
		short: "Checks the outbox, says what to do, and repairs a counter when asked to",
		long: "Checks that each bucket's counter is at or beyond the number of the bucket's highest row, waiting or\n" +
			"set aside. A counter that was deleted or set back hands out numbers that rows have already: writers\n" +
			"then fail, one by one (ErrSequenceBehind). --repair-sequence raises the counter of one bucket, by an\n" +
			"update with the condition that it is lower: it never lowers one. Writers and relays go on meanwhile.",
		example: "  relay doctor --table orders\n" +
			"  relay doctor --table orders --repair-sequence --bucket 3",
		groups: settings.Table,
		arguments: append([]settings.Argument{
			{Name: "bucket", Value: settings.Index(&c.bucket), Doc: "bucket, from 0; not given: all are checked"},
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

// The statuses of a check, a contract with scripts.
const (
	statusOK      = "ok"
	statusFailure = "failure"
)

// checkDocument is what one check has found.
type checkDocument struct {
	ID      string `json:"id"` // of the kind of check
	Status  string `json:"status"`
	Subject string `json:"subject"`
	Found   string `json:"found"`
	Advice  string `json:"advice"` // empty when there is nothing to do
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
	if c.bucket >= s.Relay.BucketCount {
		return usageErrorf("--bucket %d: the outbox has the buckets 0 to %d (bucket-count %d)",
			c.bucket, s.Relay.BucketCount-1, s.Relay.BucketCount)
	}
	dynamo, err := c.app.dial(ctx, s)
	if err != nil {
		return err
	}
	table := sequences{client: store.NewClient(s.Schema(), dynamo.messages, dynamo.coordination), settings: s}
	var d doctorDocument
	if c.repair.wanted {
		d, err = c.repair.run(ctx, c.app, table, c.bucket)
	} else {
		d.Checks, err = table.checkAll(ctx, c.buckets(s.Relay.BucketCount))
	}
	if err != nil {
		return advised(err, s)
	}
	return c.report(d)
}

// buckets are those to be checked, ascending.
func (c *doctor) buckets(count int) []int {
	if c.hasBucket {
		return []int{c.bucket}
	}
	all := make([]int, count)
	for b := range all {
		all[b] = b
	}
	return all
}

// report prints the document. A check that failed is an error, so that the exit
// code tells it.
func (c *doctor) report(d doctorDocument) error {
	failed := 0
	for _, check := range d.Checks {
		if check.Status == statusFailure {
			failed++
		}
	}
	d.OK = failed == 0
	if c.output == formatJSON {
		if err := printJSON(c.app.stdout, d); err != nil {
			return err
		}
	} else {
		c.print(d, failed)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(d.Checks))
	}
	return nil
}

var checkColumns = []column{{title: "STATUS"}, {title: "CHECK"}, {title: "SUBJECT"}, {title: "FOUND", elastic: true}}

// print shows a single check, and of many those that are not ok.
func (c *doctor) print(d doctorDocument, failed int) {
	out := c.app.stdout
	var rows [][]string
	for _, check := range d.Checks {
		if len(d.Checks) == 1 || check.Status != statusOK {
			rows = append(rows, []string{check.Status, check.ID, check.Subject, check.Found})
		}
	}
	if len(rows) > 0 {
		c.app.printTable(checkColumns, rows)
	}
	for _, check := range d.Checks {
		if check.Advice != "" {
			fmt.Fprintf(out, "%s: %s\n", check.Subject, check.Advice)
		}
	}
	for _, request := range d.Requests {
		fmt.Fprintf(out, "would send: %s\n", request)
	}
	if len(d.Checks) > 1 {
		fmt.Fprintf(out, "%d of %d checks are ok\n", len(d.Checks)-failed, len(d.Checks))
	}
}
