package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// tableTerraform prints a Terraform module.
type tableTerraform struct{ app *app }

func newTableTerraform(a *app) *cobra.Command {
	c := &tableTerraform{app: a}
	return a.command(spec{
		use:   "terraform",
		short: "Prints a Terraform module of the table and its policies",
		long: "Prints a Terraform module, for OpenTofu too: the table as relay table create makes it, protected\n" +
			"from being deleted, with recovery to a point in time; a managed policy for each of relay, writer\n" +
			"and operator; and, when its variable relay_trust_policy is given, a role for relays. Nothing\n" +
			"is sent.",
		example: "  relay table terraform --table orders > outbox/main.tf",
		groups:  settings.Table,
		run:     c.run,
	})
}

func (c *tableTerraform) run(_ context.Context, loaded *settings.Loader) error {
	d, err := newTableDefinition(&loaded.Settings)
	if err != nil {
		return err
	}
	return d.write(c.app.stdout, "terraform.tf")
}
