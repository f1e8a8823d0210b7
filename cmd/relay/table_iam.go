package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// tableIAM prints the IAM policy of one role.
type tableIAM struct {
	app     *app
	role    role
	account string // twelve digits; empty: the table is asked
	output  format
}

func newTableIAM(a *app) *cobra.Command {
	c := &tableIAM{app: a}
	output := outputArgument(&c.output)
	c.output, output.Doc = formatJSON, "json for the policy, or text for what each action is for"
	return a.command(spec{
		use:   "iam --role relay|writer|operator",
		short: "Prints the IAM policy that a relay, a writer or an operator needs",
		long: "Prints one IAM policy document: the actions that the role needs, on this one table, without a\n" +
			"wildcard. A relay runs with those of relay; a service that writes needs those of writer for the\n" +
			"outbox, beside its own; operator is for the other commands. The table's ARN is asked of the table\n" +
			"itself, unless --account says whose it is: then nothing is sent, and it need not exist yet.",
		example: "  relay table iam --role relay --table orders\n" +
			"  relay table iam --role writer --table orders --region eu-central-1 --account 123456789012",
		groups: settings.Table,
		arguments: []settings.Argument{
			{Name: "role", Value: settings.Choice(&c.role, roles()), Doc: "relay, writer or operator", Required: "a role is required: relay, writer or operator"},
			{Name: "account", Value: settings.Account(&c.account), Doc: "AWS account of the table, 12 digits; not given: the table is asked"},
			a.timeoutArgument(),
			output,
		},
		run: c.run,
	})
}

// policyDocument is an IAM policy, in IAM's own form.
type policyDocument struct {
	Version   string
	Statement []policyStatement
}

type policyStatement struct {
	Sid      string
	Effect   string
	Action   []string
	Resource string
}

// policyVersion is that of IAM's language, not of the policy.
const policyVersion = "2012-10-17"

func (c *tableIAM) run(ctx context.Context, loaded *settings.Loader) error {
	if c.output == formatText {
		c.print()
		return nil
	}
	s := &loaded.Settings
	arn, err := c.arn(ctx, s)
	if err != nil {
		return err
	}
	return printJSON(c.app.stdout, policyDocument{Version: policyVersion, Statement: []policyStatement{{
		Sid: sid(c.role), Effect: "Allow", Action: actions(c.role), Resource: arn,
	}}})
}

// print says what each action is for.
func (c *tableIAM) print() {
	var rows [][]string
	for _, p := range permissions(c.role) {
		rows = append(rows, []string{p.action, p.why})
	}
	c.app.printTable([]column{{title: "ACTION"}, {title: "FOR", elastic: true}}, rows)
}

// sid names the statement of a role, which IAM wants to be of letters and digits.
func sid(of role) string { return "Outbox" + strings.ToUpper(string(of[:1])) + string(of[1:]) }

// arn is the table's: as it was written when the table was given by its ARN, made of
// region and account, or the table's own word.
func (c *tableIAM) arn(ctx context.Context, s *settings.Settings) (string, error) {
	table := s.Relay.Table
	if strings.HasPrefix(table, "arn:") {
		return table, nil
	}
	dynamo, err := c.app.reach(ctx, s)
	if err != nil {
		return "", err
	}
	if c.account != "" {
		return fmt.Sprintf("arn:%s:dynamodb:%s:%s:table/%s", partitionOf(dynamo.region), dynamo.region, c.account, table), nil
	}
	described, err := store.DescribeTable(ctx, dynamo.tables, s.Schema())
	if err != nil {
		return "", fmt.Errorf("%w\n  or say whose table it is with --account", advised(err, s))
	}
	return aws.ToString(described.TableArn), nil
}

// partitionOf is the part of AWS that a region belongs to, by the beginning of its name:
// the SDK has the same table, and does not let others see it.
func partitionOf(region string) string {
	for _, p := range []struct{ prefix, partition string }{
		{"cn-", "aws-cn"}, {"us-gov-", "aws-us-gov"}, {"us-isob-", "aws-iso-b"}, {"us-isof-", "aws-iso-f"},
		{"us-iso-", "aws-iso"}, {"eu-isoe-", "aws-iso-e"}, {"eusc-", "aws-eusc"},
	} {
		if strings.HasPrefix(region, p.prefix) {
			return p.partition
		}
	}
	return "aws"
}
