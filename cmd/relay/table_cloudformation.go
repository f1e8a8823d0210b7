package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

var (
	//go:embed templates/cloudformation.yaml
	cloudFormationTemplate string
	//go:embed templates/cloudformation-policy.yaml
	cloudFormationPolicy string
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
	if _, err := io.WriteString(c.app.stdout, d.cloudFormation()); err != nil {
		return fmt.Errorf("print the definition: %w", err)
	}
	return nil
}

// cloudFormation is the table and the policies as a template for CloudFormation.
func (d tableDefinition) cloudFormation() string {
	return fill(cloudFormationTemplate,
		"table", d.Table, "quoted table", strconv.Quote(d.Table), "billing", d.BillingMode,
		"attributes", each(d.Attributes, "\n", func(a keyAttribute) string {
			return fill("        - AttributeName: {{name}}\n          AttributeType: {{type}}", "name", strconv.Quote(a.Name), "type", a.Type)
		}),
		"keys", each(d.Attributes, "\n", func(a keyAttribute) string {
			return fill("        - AttributeName: {{name}}\n          KeyType: {{type}}", "name", strconv.Quote(a.Name), "type", a.KeyType)
		}),
		"policies", each(d.Roles, "\n", func(r roleDefinition) string {
			actions := each(r.Actions, "\n", func(action string) string { return "              - " + action })
			return fill(cloudFormationPolicy, "name", r.Name, "title", r.Title, "actions", actions)
		}),
		"outputs", each(d.Roles, "\n", func(r roleDefinition) string {
			return fill("  {{title}}PolicyArn:\n    Value: !Ref {{title}}Policy", "title", r.Title)
		}))
}
