package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
)

// recipe are the command lines in the blocks of one section of a page, in their order.
func recipe(t *testing.T, page, heading string) []string {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(content), "\n### "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n### ")
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		text := strings.ReplaceAll(block[1], "\\\n", " ")
		lines = append(lines, strings.Split(strings.TrimSpace(text), "\n")...)
	}
	return lines
}

// words are those of a command line of a shell, as far as our pages quote.
func words(line string) (all []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|\S+`).FindAllStringSubmatch(line, -1) {
		if strings.HasPrefix(m[0], "'") {
			all = append(all, m[1])
		} else {
			all = append(all, m[0])
		}
	}
	return all
}

// cook carries out a recipe: our own commands as they are, those of others as far as our
// pages use them.
func (c *console) cook(t *testing.T, lines []string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, line := range lines {
		args := words(line)
		to := ""
		if n := len(args); n > 2 && args[n-2] == ">" {
			args, to = args[:n-2], args[n-1]
		}
		printed := ""
		switch args[0] {
		case "relay":
			got := c.run(args[1:]...)
			if got.code != exitDone {
				t.Fatalf("%s: %+v", line, got)
			}
			printed = got.stdout
		case "jq":
			printed = textOfValue(t, args)
		case "aws":
			c.aws(t, args[1:])
		default:
			t.Fatalf("the test does not know %s", line)
		}
		if to != "" {
			if err := os.WriteFile(filepath.Base(to), []byte(printed), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// textOfValue is what jq -j prints of a message's value.
func textOfValue(t *testing.T, args []string) string {
	t.Helper()
	m := regexp.MustCompile(`^\.messages\[\] \| select\(\.sequence == (\d+)\) \| \.content\.value\.text$`).FindStringSubmatch(args[2])
	if args[1] != "-j" || m == nil {
		t.Fatalf("the test does not know jq %q", args[1:])
	}
	content, err := os.ReadFile(args[3])
	if err != nil {
		t.Fatal(err)
	}
	var d waitingDocument
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	for _, message := range d.Messages {
		if strconv.FormatInt(message.Sequence, 10) == m[1] {
			return *message.Content.Value.Text
		}
	}
	t.Fatalf("no row %s in %s", m[1], content)
	return ""
}

// aws is the AWS command line.
func (c *console) aws(t *testing.T, args []string) {
	t.Helper()
	flags := map[string]string{}
	for i := 2; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	attributesOf := func(flag string) map[string]types.AttributeValue {
		var d map[string]map[string]string
		if err := json.Unmarshal([]byte(flags[flag]), &d); err != nil {
			t.Fatalf("%s %s: %v", flag, flags[flag], err)
		}
		all := map[string]types.AttributeValue{}
		for name, value := range d {
			if n, isNumber := value["N"]; isNumber {
				all[name] = &types.AttributeValueMemberN{Value: n}
			} else {
				all[name] = text(value["S"])
			}
		}
		return all
	}
	table, condition := aws.String(flags["--table-name"]), aws.String(flags["--condition-expression"])
	var err error
	switch args[0] + " " + args[1] {
	case "dynamodb update-item":
		_, err = c.table.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: table, Key: attributesOf("--key"), ConditionExpression: condition,
			UpdateExpression: aws.String(flags["--update-expression"]), ExpressionAttributeValues: attributesOf("--expression-attribute-values")})
	case "dynamodb delete-item":
		_, err = c.table.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: table, Key: attributesOf("--key"), ConditionExpression: condition,
			ExpressionAttributeValues: attributesOf("--expression-attribute-values")})
	default:
		t.Fatalf("the test does not know aws %q", args[:2])
	}
	if err != nil {
		t.Fatalf("aws %q: %v", args, err)
	}
}

func numberOf(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// What docs/operations.md says of rows that a writer has put with another bucket count
// gets relays past them, and loses nothing: one keeps its place and all of its
// attributes, the other comes to its bucket with all of its content.
func TestTheRecipeForRowsOfAnotherBucketCount(t *testing.T) {
	c := newConsole(t)
	wrong := outbox.Schema{Table: "orders", BucketCount: 16}
	inPlace := wrong.EncodeMessage(outbox.Message{ID: uuid.UUID{1}, Topic: "orders.placed", Key: []byte("k"), Value: []byte("v"), CreatedAt: noon}, 3, 7)
	c.put(t, inPlace)
	elsewhere := outbox.Message{ID: uuid.UUID{2}, Topic: "orders.placed", Key: []byte("4711"),
		Value: []byte("a <value>\nthat is \"long\": " + strings.Repeat("ü", textColumns) + "\n"), CreatedAt: noon,
		Headers: []outbox.Header{{Key: "trace", Value: []byte("abc")}}}
	c.put(t, wrong.EncodeMessage(elsewhere, 12, 9))
	for bucket, sequence := range map[int]int64{3: 7, 12: 9} {
		c.putItem(t, schema.SequenceKey(bucket), outbox.CounterSortKey, attributes{outbox.AttrSequence: numberOf(sequence)})
	}
	c.examine(t).wants(t, checkBucketCount, statusFailure, "row 7 of bucket 3")
	c.examine(t).wants(t, checkBucketCount, statusFailure, "bucket 12")

	page, err := filepath.Abs("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	c.cook(t, recipe(t, page, "Change the bucket count"))

	c.examine(t).only(t, checkBucketCount, statusOK)
	inPlace = maps.Clone(inPlace)
	inPlace[outbox.AttrBucketCount] = numberOf(8)
	if got := c.table.Peek("orders", "OUTBOX#MESSAGES#3", outbox.SequenceSortKey(7)); !reflect.DeepEqual(got, inPlace) {
		t.Errorf("the row in its place is\n%v, want\n%v", got, inPlace)
	}
	var moved []outbox.Row
	for _, item := range c.table.Items("orders") {
		if row, err := schema.DecodeMessage(item); err == nil && row.Message.ID != (uuid.UUID{1}) {
			moved = append(moved, row)
		}
	}
	if len(moved) != 1 {
		t.Fatalf("%d other rows wait, want 1", len(moved))
	}
	m := moved[0].Message
	if moved[0].BucketCount != 8 || c.table.Peek("orders", schema.MessagesKey(m.Bucket(8)), outbox.SequenceSortKey(moved[0].Sequence)) == nil {
		t.Errorf("it waits elsewhere: %+v", moved[0])
	}
	if m.Topic != elsewhere.Topic || !reflect.DeepEqual(m.Key, elsewhere.Key) || !reflect.DeepEqual(m.Value, elsewhere.Value) || !reflect.DeepEqual(m.Headers, elsewhere.Headers) {
		t.Errorf("%+v is not what it was: %+v", m, elsewhere)
	}
}
