package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.yaml.in/yaml/v3"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// What is required and what is only advised are told apart, and keys that are not
// those of the settings are shown, not refused: that is what one looks for.
func TestTableShowComparesWithWhatIsWanted(t *testing.T) {
	c := newConsole(t)
	c.tables = &setUp{DB: c.table, change: func(d *types.TableDescription) {
		d.ItemCount, d.TableSizeBytes = aws.Int64(1200), aws.Int64(340000)
	}}
	got := c.run("table", "show", "--table", "orders")
	if got.code != exitDone || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	golden(t, "table_show.txt", got.stdout)

	c.tables = &setUp{DB: c.table, change: func(d *types.TableDescription) {
		created := noon.AddDate(0, 0, -3)
		d.CreationDateTime = &created
		d.TableStatus = types.TableStatusUpdating
		d.BillingModeSummary = nil
		d.ProvisionedThroughput = &types.ProvisionedThroughputDescription{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(10)}
		d.LocalSecondaryIndexes = make([]types.LocalSecondaryIndexDescription, 2)
		d.GlobalSecondaryIndexes = make([]types.GlobalSecondaryIndexDescription, 1)
		d.DeletionProtectionEnabled = nil
		d.Replicas = make([]types.ReplicaDescription, 1)
	}}
	golden(t, "table_show_differs.txt", c.run("table", "show", "--table", "orders", "--partition-key", "Hash").stdout)
	got = c.run("table", "show", "--table", "orders", "--output", "json")
	golden(t, "table_show_differs.json", got.stdout)
	if got.code != exitDone {
		t.Errorf("it shows, it does not judge: exit %d", got.code)
	}
}

func TestTableShowNamesATableThatIsMissing(t *testing.T) {
	c := &console{table: memtable.New(memtable.Options{})}
	for _, command := range []string{"table show", "table iam --role relay"} {
		got := c.run(append(strings.Fields(command), "--table", "orders")...)
		if got.code != exitFailed || !strings.Contains(got.stderr, "create it with: relay table create --table orders") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// A policy is for one table alone, however its ARN is learned.
func TestTableIAMNamesOneTable(t *testing.T) {
	c := newConsole(t)
	c.region = "cn-north-1"
	for _, one := range []struct{ flags, want string }{
		{"--table orders", "arn:aws:dynamodb:us-east-1:000000000000:table/orders"}, // the table's own word
		{"--table later --account 001234567890", "arn:aws-cn:dynamodb:cn-north-1:001234567890:table/later"},
		{"--table arn:aws:dynamodb:eu-west-1:123456789012:table/other", "arn:aws:dynamodb:eu-west-1:123456789012:table/other"},
	} {
		got := c.run(append([]string{"table", "iam", "--role", "writer"}, strings.Fields(one.flags)...)...)
		var policy policyDocument
		if err := json.Unmarshal([]byte(got.stdout), &policy); got.code != exitDone || err != nil {
			t.Errorf("%s: %v, %+v", one.flags, err, got)
			continue
		}
		if len(policy.Statement) != 1 || policy.Statement[0].Resource != one.want {
			t.Errorf("%s: %+v, want the resource %s", one.flags, policy, one.want)
		}
	}
	golden(t, "table_iam.json", c.run("table", "iam", "--role", "relay", "--table", "orders").stdout)
	golden(t, "table_iam.txt", c.run("table", "iam", "--role", "relay", "--table", "orders", "--output", "text").stdout)
}

func TestEachRegionIsOfItsPartition(t *testing.T) {
	for region, want := range map[string]string{
		"eu-central-1": "aws", "us-east-1": "aws", "cn-northwest-1": "aws-cn", "us-gov-west-1": "aws-us-gov",
		"us-iso-east-1": "aws-iso", "us-isob-east-1": "aws-iso-b", "us-isof-south-1": "aws-iso-f", "eu-isoe-west-1": "aws-iso-e",
		"eusc-de-east-1": "aws-eusc",
	} {
		if got := partitionOf(region); got != want {
			t.Errorf("%s is of %s, want %s", region, got, want)
		}
	}
}

// The files of deploy are what the commands print, so that neither goes its own way.
// `go test ./cmd/relay -run Deploy -update` writes them.
func TestDeployHasWhatTheCommandsPrint(t *testing.T) {
	c := newConsole(t)
	for path, command := range map[string]string{
		"cloudformation/outbox.yaml": "cloudformation",
		"terraform/main.tf":          "terraform",
	} {
		got := c.run("table", command, "--table", "orders-outbox")
		if got.code != exitDone || got.stderr != "" {
			t.Errorf("%s: %+v", command, got)
		}
		golden(t, filepath.Join("..", "..", "..", "deploy", path), got.stdout)
	}
}

// Whatever an outbox's names are, the template makes the table that relay table create
// makes.
func TestTheTemplateMakesTheSameTable(t *testing.T) {
	const hash, sort = `it's "PK" \ ${x}`, "Größe: #1"
	got := newConsole(t).run("table", "cloudformation", "--table", "orders.v2", "--partition-key", hash, "--sort-key", sort)
	var template struct {
		Resources struct {
			Table struct {
				Properties struct {
					TableName            string              `yaml:"TableName"`
					BillingMode          types.BillingMode   `yaml:"BillingMode"`
					AttributeDefinitions []map[string]string `yaml:"AttributeDefinitions"`
					KeySchema            []map[string]string `yaml:"KeySchema"`
				} `yaml:"Properties"`
			} `yaml:"Table"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal([]byte(got.stdout), &template); err != nil {
		t.Fatal(err)
	}
	table := template.Resources.Table.Properties
	in := &dynamodb.CreateTableInput{TableName: &table.TableName, BillingMode: table.BillingMode}
	for i := range table.KeySchema {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{
			AttributeName: aws.String(table.KeySchema[i]["AttributeName"]), KeyType: types.KeyType(table.KeySchema[i]["KeyType"])})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(table.AttributeDefinitions[i]["AttributeName"]), AttributeType: types.ScalarAttributeType(table.AttributeDefinitions[i]["AttributeType"])})
	}
	db := memtable.New(memtable.Options{})
	if _, err := db.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	s := settings.Defaults()
	s.Relay.Table, s.Relay.PartitionKey, s.Relay.SortKey = "orders.v2", hash, sort
	if err := store.CreateTable(t.Context(), db, s.Schema()); err != nil {
		t.Errorf("the table differs: %v", err)
	}
	hcl := newConsole(t).run("table", "terraform", "--table", "orders.v2", "--partition-key", hash).stdout
	if want := `hash_key     = "it's \"PK\" \\ $${x}"`; !strings.Contains(hcl, want) {
		t.Errorf("no line %s in\n%s", want, hcl)
	}
}

func TestADefinitionNeedsANameThatCanBeWritten(t *testing.T) {
	c := newConsole(t)
	for _, command := range []string{"cloudformation", "terraform"} {
		for flag, value := range map[string]string{"--table": "arn:aws:dynamodb:eu-west-1:123456789012:table/orders", "--sort-key": "S\nK"} {
			got := c.run("table", command, "--table", "orders", flag, value)
			if got.code != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, strings.TrimPrefix(flag, "--")) {
				t.Errorf("%s %s: %+v", command, flag, got)
			}
		}
	}
}
