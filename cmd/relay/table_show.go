package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// tableShow shows the table as it is, beside what an outbox wants of it.
type tableShow struct {
	app    *app
	output format
}

func newTableShow(a *app) *cobra.Command {
	c := &tableShow{app: a}
	return a.command(spec{
		use:   "show",
		short: "Shows the table as it is, and what an outbox wants of it",
		long: "Shows the table as DynamoDB describes it, in one DescribeTable, beside what an outbox wants of it.\n" +
			"It only shows: relay doctor judges, and exits with 1. The number of items and their size are\n" +
			"DynamoDB's own, some hours old.",
		example:   "  relay table show --table orders",
		groups:    settings.Table,
		arguments: []settings.Argument{a.timeoutArgument(), outputArgument(&c.output)},
		run:       c.run,
	})
}

// tableShowDocument is the JSON of the command.
type tableShowDocument struct {
	Table     string           `json:"table"`
	ARN       string           `json:"arn"`
	CreatedAt *string          `json:"createdAt"` // null: DynamoDB does not say
	ItemCount int64            `json:"itemCount"` // some hours old
	SizeBytes int64            `json:"sizeBytes"` // some hours old
	AsWanted  bool             `json:"asWanted"`  // in all that is required
	Aspects   []aspectDocument `json:"aspects"`
}

// aspectDocument is one thing that an outbox has a wish about.
type aspectDocument struct {
	Aspect   string `json:"aspect"`
	Found    string `json:"found"`
	Wanted   string `json:"wanted"`
	Required bool   `json:"required"` // else it is advised
	AsWanted bool   `json:"asWanted"`
}

func (c *tableShow) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	dynamo, err := c.app.reach(ctx, s)
	if err != nil {
		return err
	}
	described, err := store.DescribeTable(ctx, dynamo.tables, s.Schema())
	if err != nil {
		return advised(err, s)
	}
	d := tableShowDocument{
		Table: s.Relay.Table, ARN: aws.ToString(described.TableArn), AsWanted: true,
		ItemCount: aws.ToInt64(described.ItemCount), SizeBytes: aws.ToInt64(described.TableSizeBytes),
		Aspects: aspectsOf(described, s),
	}
	if created := described.CreationDateTime; created != nil {
		text := rfc3339(*created)
		d.CreatedAt = &text
	}
	for _, a := range d.Aspects {
		d.AsWanted = d.AsWanted && (a.AsWanted || !a.Required)
	}
	if c.output == formatJSON {
		return printJSON(c.app.stdout, d)
	}
	c.print(d, described.CreationDateTime)
	return nil
}

// aspectsOf compares a table with what an outbox wants of it, most important first.
func aspectsOf(t *types.TableDescription, s *settings.Settings) []aspectDocument {
	var all []aspectDocument
	compare := func(aspect, found, wanted string) *aspectDocument {
		all = append(all, aspectDocument{Aspect: aspect, Found: found, Wanted: wanted, AsWanted: found == wanted})
		return &all[len(all)-1]
	}
	compare("status", strings.ToLower(string(t.TableStatus)), "active").Required = true
	found, wanted := store.KeysOf(t, s.Schema())
	compare("keys", found, wanted).Required = true
	// With a local index, all items of one partition key end at 10 GB together, and so
	// do the rows of a bucket.
	compare("local indexes", countOrNone(len(t.LocalSecondaryIndexes)), "none").Required = true
	// Conditions hold within one region: leases would have an owner in each.
	compare("replicas", countOrNone(len(t.Replicas)), "none").Required = true
	compare("billing", billingOf(t), "on demand")
	compare("global indexes", countOrNone(len(t.GlobalSecondaryIndexes)), "none")
	protection := "off"
	if aws.ToBool(t.DeletionProtectionEnabled) {
		protection = "on"
	}
	compare("deletion protection", protection, "on")
	return all
}

func billingOf(t *types.TableDescription) string {
	if b := t.BillingModeSummary; b != nil && b.BillingMode == types.BillingModePayPerRequest {
		return "on demand"
	}
	if p := t.ProvisionedThroughput; p != nil {
		return fmt.Sprintf("provisioned, %d read and %d write units", aws.ToInt64(p.ReadCapacityUnits), aws.ToInt64(p.WriteCapacityUnits))
	}
	return "provisioned"
}

func countOrNone(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

func (c *tableShow) print(d tableShowDocument, created *time.Time) {
	head := fmt.Sprintf("table %s: %s, %s", d.Table, counted(int(d.ItemCount), "item"), counted(int(d.SizeBytes), "byte"))
	if created != nil {
		head += fmt.Sprintf(", created %s ago", ageText(c.app.now().Sub(*created)))
	}
	c.app.printFolded(head)
	c.app.printFolded(d.ARN)
	var rows [][]string
	for _, a := range d.Aspects {
		verdict := "as wanted"
		switch {
		case a.AsWanted:
		case a.Required:
			verdict = "required: " + a.Wanted
		default:
			verdict = "advised: " + a.Wanted
		}
		rows = append(rows, []string{a.Aspect, a.Found, verdict})
	}
	c.app.printTable([]column{{title: "ASPECT"}, {title: "FOUND", elastic: true}, {title: "VERDICT", elastic: true}}, rows)
}
