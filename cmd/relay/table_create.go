package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// tableCreate creates the table, or finds that it is there already.
type tableCreate struct {
	app    *app
	output format
}

func newTableCreate(a *app) *cobra.Command {
	c := &tableCreate{app: a}
	return a.command(spec{
		use:   "create",
		short: "Creates the table unless it exists, and waits until it can be used",
		long: "Creates the table with on-demand capacity unless it exists, waits until it is active, and\n" +
			"checks its keys. It may run in several places at once and as often as you like. Only who\n" +
			"runs it needs the IAM actions dynamodb:CreateTable and dynamodb:DescribeTable. For a table that\n" +
			"is to stay, see relay table cloudformation and relay table terraform.",
		example:   "  relay table create --table orders",
		groups:    settings.Table,
		arguments: []settings.Argument{a.timeoutArgument(), outputArgument(&c.output)},
		run:       c.run,
	})
}

// tableDocument is the JSON of the command.
type tableDocument struct {
	Table        string `json:"table"`
	PartitionKey string `json:"partitionKey"`
	SortKey      string `json:"sortKey"`
	Status       string `json:"status"` // active
}

func (c *tableCreate) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	dynamo, err := c.app.reach(ctx, s)
	if err != nil {
		return err
	}
	if err := store.CreateTable(ctx, dynamo.tables, s.Schema()); err != nil {
		return advised(err, s)
	}
	d := tableDocument{Table: s.Relay.Table, PartitionKey: s.Relay.PartitionKey, SortKey: s.Relay.SortKey, Status: "active"}
	if c.output == formatJSON {
		return printJSON(c.app.stdout, d)
	}
	c.app.printFolded(fmt.Sprintf("table %s is active, with keys %s and %s", d.Table, d.PartitionKey, d.SortKey))
	return nil
}
