package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// tableCloudFormation prints a CloudFormation template.
type tableCloudFormation struct{ app *app }

func newTableCloudFormation(a *app) *cobra.Command {
	c := &tableCloudFormation{app: a}
	return a.command(spec{
		use:   "cloudformation",
		short: "Prints a CloudFormation template of the table and its policies",
		long: "Prints a CloudFormation template in YAML: the table as relay table create makes it, protected from\n" +
			"being deleted, with recovery to a point in time; a managed policy for each of relay, writer and\n" +
			"operator; and, when its parameter RelayService is given, a role for relays. Nothing is sent.",
		example: "  relay table cloudformation --table orders > outbox.yaml\n" +
			"  aws cloudformation deploy --template-file outbox.yaml --stack-name outbox \\\n" +
			"    --capabilities CAPABILITY_IAM",
		groups: settings.Table,
		run:    c.run,
	})
}

func (c *tableCloudFormation) run(_ context.Context, loaded *settings.Loader) error {
	d, err := newTableDefinition(&loaded.Settings)
	if err != nil {
		return err
	}
	return d.write(c.app.stdout, "cloudformation.yaml")
}
