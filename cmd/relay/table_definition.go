package main

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// tableDefinition is what a template for CloudFormation or Terraform is filled with: the
// table exactly as relay table create makes it, and what each role is permitted.
type tableDefinition struct {
	Table       string
	BillingMode string
	Attributes  []keyAttribute
	Roles       []roleDefinition
}

// keyAttribute is an attribute of the table's key.
type keyAttribute struct{ Name, Type, KeyType string }

type roleDefinition struct {
	Name    string // as --role takes it
	Title   string // for ids that want a capital
	Actions []string
}

// newTableDefinition needs a name: a definition makes a table, and an ARN names one that
// is there. What cannot be printed, DynamoDB takes in the name of an attribute, but the
// two languages do not agree on how it is written.
func newTableDefinition(s *settings.Settings) (tableDefinition, error) {
	if strings.HasPrefix(s.Relay.Table, "arn:") {
		return tableDefinition{}, usageErrorf("table %q: give the name that the table is to have, not an ARN", s.Relay.Table)
	}
	for setting, name := range map[string]string{"partition-key": s.Relay.PartitionKey, "sort-key": s.Relay.SortKey} {
		if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return tableDefinition{}, usageErrorf("%s %q: only printable characters can be written into a definition", setting, name)
		}
	}
	input := store.CreateTableInput(s.Schema())
	d := tableDefinition{Table: aws.ToString(input.TableName), BillingMode: string(input.BillingMode)}
	for i, a := range input.AttributeDefinitions {
		d.Attributes = append(d.Attributes, keyAttribute{
			Name: aws.ToString(a.AttributeName), Type: string(a.AttributeType), KeyType: string(input.KeySchema[i].KeyType),
		})
	}
	for _, r := range roles() {
		d.Roles = append(d.Roles, roleDefinition{Name: string(r), Title: strings.ToUpper(string(r[:1])) + string(r[1:]), Actions: actions(r)})
	}
	return d, nil
}

// fill puts values in the places of a text that their names mark: name, value, name…
// Text templates of Go's library look methods up by name, for which the linker would
// keep each method of every type in the binary.
func fill(text string, values ...string) string {
	for i := 0; i < len(values); i += 2 {
		values[i] = "{{" + values[i] + "}}"
	}
	return strings.NewReplacer(values...).Replace(text)
}

// each has the text of each item, with something between them.
func each[T any](items []T, between string, text func(T) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = text(item)
	}
	return strings.Join(texts, between)
}

// quoteHCL is a text as a string of HCL, in which ${ and %{ begin what is evaluated.
func quoteHCL(text string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(text))
}
