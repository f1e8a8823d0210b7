package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

var (
	//go:embed templates/terraform.tf
	terraformTemplate string
	//go:embed templates/terraform-policy.tf
	terraformPolicy string
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
		example: "  relay table terraform --table orders > outbox.tf",
		groups:  settings.Table,
		run:     c.run,
	})
}

func (c *tableTerraform) run(_ context.Context, loaded *settings.Loader) error {
	d, err := newTableDefinition(&loaded.Settings)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c.app.stdout, d.terraform()); err != nil {
		return fmt.Errorf("print the definition: %w", err)
	}
	return nil
}

// terraform is the table and the policies as a module of Terraform.
func (d tableDefinition) terraform() string {
	return fill(terraformTemplate,
		"table", d.Table, "quoted table", quoteHCL(d.Table), "billing", quoteHCL(d.BillingMode),
		"keys", each(d.Attributes, "\n", func(a keyAttribute) string {
			key := "range_key   "
			if a.KeyType == string(types.KeyTypeHash) {
				key = "hash_key    "
			}
			return fill("  {{key}} = {{name}}", "key", key, "name", quoteHCL(a.Name))
		}),
		"attributes", each(d.Attributes, "\n\n", func(a keyAttribute) string {
			return fill("  attribute {\n    name = {{name}}\n    type = {{type}}\n  }", "name", quoteHCL(a.Name), "type", quoteHCL(a.Type))
		}),
		"policies", each(d.Roles, "\n", func(r roleDefinition) string {
			actions := each(r.Actions, "\n", func(action string) string { return "        " + quoteHCL(action) + "," })
			return fill(terraformPolicy, "name", r.Name, "title", r.Title, "actions", actions)
		}),
		"outputs", each(d.Roles, "\n\n", func(r roleDefinition) string {
			return fill("output \"{{name}}_policy_arn\" {\n  value = aws_iam_policy.{{name}}.arn\n}", "name", r.Name)
		}))
}
