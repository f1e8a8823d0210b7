package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
)

var schema = outbox.Schema{Table: "orders"}.WithDefaults()

// waitingRow reads the one row of the table's messages.
func (c *console) waitingRow(t *testing.T) outbox.Row {
	t.Helper()
	var rows []outbox.Row
	for _, item := range c.table.Items("orders") {
		if row, err := schema.DecodeMessage(item); err == nil {
			rows = append(rows, row)
		}
	}
	if len(rows) != 1 {
		t.Fatalf("%d messages in the table, want 1", len(rows))
	}
	return rows[0]
}

func TestEnqueueStoresExactlyWhatWasGiven(t *testing.T) {
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte{0, 1, 0xff}, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	three := int32(3)
	for _, c := range []struct {
		args  []string
		stdin string
		want  outbox.Message
	}{
		{nil, "", outbox.Message{}},
		{[]string{"--key", "", "--value="}, "", outbox.Message{Key: []byte{}, Value: []byte{}}},
		{[]string{"--key", "k", "--value", "-v"}, "", outbox.Message{Key: []byte("k"), Value: []byte("-v")}},
		{[]string{"--value-file", file, "--partition", "3"}, "", outbox.Message{Value: []byte{0, 1, 0xff}, Partition: &three}},
		{[]string{"--value-file", empty}, "", outbox.Message{Value: []byte{}}},
		{[]string{"-"}, "from stdin\n", outbox.Message{Value: []byte("from stdin\n")}},
		{[]string{"--header", "a=1", "--header", "b", "--header", "a=", "--header", "c=x=y"}, "", outbox.Message{Headers: []outbox.Header{
			{Key: "a", Value: []byte("1")}, {Key: "b"}, {Key: "a", Value: []byte{}}, {Key: "c", Value: []byte("x=y")}}}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			console := newConsole(t)
			got := console.runWith(c.stdin, []string{"RELAY_TABLE=orders"},
				append([]string{"message", "enqueue", "--topic", "placed", "--output", "json"}, c.args...)...)
			var document enqueuedDocument
			if err := json.Unmarshal([]byte(got.stdout), &document); got.code != exitDone || err != nil {
				t.Fatalf("%+v, %v", got, err)
			}
			m := console.waitingRow(t).Message
			c.want.ID, c.want.Topic, c.want.CreatedAt = uuid.MustParse(document.ID), "placed", noon
			if fmt.Sprintf("%#v", printable(m)) != fmt.Sprintf("%#v", printable(c.want)) {
				t.Errorf("stored %#v\nwant   %#v", printable(m), printable(c.want))
			}
			if document.Bucket != m.Bucket(8) {
				t.Errorf("says bucket %d, is in %d", document.Bucket, m.Bucket(8))
			}
		})
	}
}

// printable makes null and empty, and what a pointer points to, visible.
func printable(m outbox.Message) []string {
	show := func(b []byte) string { return fmt.Sprintf("%#v", b) }
	parts := []string{m.ID.String(), m.Topic, show(m.Key), show(m.Value), m.CreatedAt.UTC().String(), "no partition"}
	if m.Partition != nil {
		parts[5] = fmt.Sprint(*m.Partition)
	}
	for _, h := range m.Headers {
		parts = append(parts, h.Key, show(h.Value))
	}
	return parts
}

// Of a file that is far too large no more is read than shows it.
func TestTooLargeAMessageIsRefusedWithItsLimit(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "huge")
	if err := errors.Join(os.WriteFile(huge, nil, 0o600), os.Truncate(huge, 1<<40)); err != nil {
		t.Fatal(err)
	}
	c := newConsole(t)
	for _, value := range [][]string{{"-"}, {"--value-file", huge}} {
		got := c.runWith(strings.Repeat("x", 500_000), nil, append([]string{"message", "enqueue", "--table", "orders", "--topic", "t"}, value...)...)
		if got.code != exitFailed || !strings.Contains(got.stderr, "the limit is 408576") || !strings.Contains(got.stderr, "nothing was sent") {
			t.Errorf("%v: %+v", value, got)
		}
	}
}

// fill puts messages into bucket 3 as a writer would, with fixed ids and ages.
func (c *console) fill(t *testing.T, messages ...outbox.Message) {
	t.Helper()
	for i, m := range messages {
		m.ID = uuid.UUID{15: byte(i + 1)}
		m.CreatedAt = noon.Add(-time.Duration(i+1) * 37 * time.Minute)
		c.put(t, schema.EncodeMessage(m, 3, int64(i+1)))
	}
}

func (c *console) put(t *testing.T, item map[string]types.AttributeValue) {
	t.Helper()
	_, err := c.table.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item})
	if err != nil {
		t.Fatal(err)
	}
}

func samples() []outbox.Message {
	two := int32(2)
	return []outbox.Message{
		{Topic: "placed", Key: []byte("order-4711"), Value: []byte(`{"total":12}`), Headers: []outbox.Header{{Key: "trace"}, {Key: "v", Value: []byte("1")}}},
		{Topic: "a.topic.whose.name.is.so.long.that.it.cannot.be.shown.as.a.whole", Key: []byte{}, Value: []byte{}},
		{Topic: "cancelled", Partition: &two},
		{Topic: "placed", Key: []byte{0xff, 0x1b, '['}, Value: []byte(strings.Repeat("long ", 50))},
	}
}

func TestListShowsWhatWaitsButNoContent(t *testing.T) {
	c := newConsole(t)
	c.fill(t, samples()...)
	for name, args := range map[string][]string{
		"list.txt":          nil,
		"list_limit.txt":    {"--limit=2"},
		"list_content.txt":  {"--show-content"},
		"list.json":         {"--output", "json", "--limit", "3"},
		"list_content.json": {"--output", "json", "--show-content"},
	} {
		got := c.run(append([]string{"message", "list", "--table", "orders", "--bucket", "3"}, args...)...)
		if got.code != exitDone || got.stderr != "" {
			t.Errorf("%s: %+v", name, got)
		}
		if !strings.Contains(name, "content") && strings.Contains(got.stdout, "4711") {
			t.Errorf("%s shows content", name)
		}
		for line := range strings.Lines(got.stdout) {
			if strings.HasSuffix(name, ".txt") && len([]rune(line)) > textColumns+1 {
				t.Errorf("%s: too wide: %s", name, line)
			}
		}
		golden(t, name, got.stdout)
	}
}

func TestListOfAnEmptyBucket(t *testing.T) {
	c := newConsole(t)
	got := c.run("message", "list", "--table", "orders", "--bucket", "0")
	if want := "bucket 0 of table orders: no message waits\n"; got.code != exitDone || got.stdout != want {
		t.Errorf("%+v", got)
	}
	got = c.run("message", "list", "--table", "orders", "--bucket", "0", "--output", "json")
	if !strings.Contains(got.stdout, `"messages": []`) {
		t.Errorf("%+v", got)
	}
}

// "No message waits" would contradict the error.
func TestListOfABucketWhoseFirstRowCannotBeRead(t *testing.T) {
	c := newConsole(t)
	item := schema.EncodeMessage(outbox.NewMessage("placed", nil, nil), 3, 7)
	delete(item, outbox.AttrTopic)
	c.put(t, item)
	got := c.run("message", "list", "--table", "orders", "--bucket", "3")
	if got.code != exitFailed || got.stdout != "" || !strings.Contains(got.stderr, "the next row cannot be read") {
		t.Errorf("%+v", got)
	}
}

func TestEnqueueTakesOnlyNamesThatTopicsCanHave(t *testing.T) {
	c := newConsole(t)
	for _, topic := range []string{" ", ".", "..", "a b", "a\x1b[31m", "ä", strings.Repeat("t", 250)} {
		got := c.run("message", "enqueue", "--table", "orders", "--topic", topic)
		if got.code != exitUsage || !strings.Contains(got.stderr, "is no name that a topic can have") || got.stdout != "" || strings.Contains(got.stderr, "\x1b") {
			t.Errorf("%q: %+v", topic, got)
		}
	}
	if got := c.run("message", "enqueue", "--table", "orders", "--topic", "a.B_c-9"); got.code != exitDone {
		t.Errorf("%+v", got)
	}
}

func TestNumbersThatAreTooHighAreCalledSo(t *testing.T) {
	c := newConsole(t)
	for line, want := range map[string]string{
		"message list --table orders --bucket 99999999999":                       "must be at most 2147483647",
		"message list --table orders --bucket 1 --limit 99999999999999999999":    "must be at most 2147483647",
		"message list --table orders --bucket -99999999999999999999":             "must be a whole number, 0 or more",
		"message park --table orders --bucket 1 --sequence 99999999999999999999": "must be at most 9223372036854775807",
		"parked discard --table orders " + keyA + " 99999999999999999999":        "must be at most 9223372036854775807",
	} {
		if got := c.run(strings.Fields(line)...); got.code != exitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

func TestAFlagWithoutItsValueIsNotMissingToo(t *testing.T) {
	for _, line := range []string{"parked list --table", "message enqueue --table orders --topic"} {
		got := newConsole(t).run(strings.Fields(line)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, "one setting is wrong") || strings.Contains(got.stderr, "is required") {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// A page of DynamoDB ends at 1 MB, however many rows were asked for.
func TestListFollowsPages(t *testing.T) {
	c := newConsole(t)
	var messages []outbox.Message
	for range 9 {
		messages = append(messages, outbox.Message{Topic: "placed", Value: make([]byte, 300<<10)})
	}
	c.fill(t, messages...)
	var document waitingDocument
	got := c.run("message", "list", "--table", "orders", "--bucket", "3", "--limit", "8", "--output=json")
	if err := json.Unmarshal([]byte(got.stdout), &document); err != nil || len(document.Messages) != 8 || !document.More {
		t.Errorf("%d messages, more: %v, %v", len(document.Messages), document.More, err)
	}
}

func TestListStopsLoudlyAtARowThatCannotBeRead(t *testing.T) {
	c := newConsole(t)
	c.fill(t, samples()[:2]...)
	broken := schema.EncodeMessage(outbox.NewMessage("placed", nil, []byte("secret content")), 3, 3)
	delete(broken, "Topic")
	c.put(t, broken)
	got := c.run("message", "list", "--table", "orders", "--bucket", "3")
	if got.code != exitFailed || !strings.Contains(got.stderr, "attribute Topic is missing") || strings.Count(got.stdout, "00000000-") != 2 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(got.stderr, "\n  repair the row, or set it aside: relay message park --bucket 3 --sequence 3\n") {
		t.Errorf("it does not say what to do: %s", got.stderr)
	}
}

// A relay stops for good at a row that was written for another bucket count.
func TestListSaysWhereRelaysStop(t *testing.T) {
	c := newConsole(t)
	c.fill(t, samples()[0], samples()[1])
	c.backlog(t, 3, 2, time.Hour, 16) // the rows 100 and 101
	got := c.run("message", "list", "--table", "orders", "--bucket", "3")
	if got.code != exitDone || !strings.HasSuffix(got.stdout, "\nrow 100 was written for 16 buckets, these settings say 8: no relay with them passes it\n") {
		t.Errorf("%+v", got)
	}
	if got = c.run("message", "list", "--table", "orders", "--bucket", "3", "--bucket-count", "16"); !strings.Contains(got.stdout, "row 1 was written for 8 buckets") {
		t.Errorf("%+v", got)
	}
}

func TestAges(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m", 61 * time.Second: "1m1s",
		time.Hour: "1h", 3*time.Hour + 12*time.Minute + time.Second: "3h12m", 49 * time.Hour: "2d1h",
	} {
		if got := ageText(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestColourOnlyOnATerminal(t *testing.T) {
	a := &app{environ: []string{"TERM=xterm"}}
	if a.coloured(&strings.Builder{}) {
		t.Error("text that is no terminal's is coloured")
	}
}

func TestTheEnvironmentCallsOffColours(t *testing.T) {
	for entry, want := range map[string]bool{
		"NO_COLOR=1": true, "NO_COLOR=0": true, "TERM=dumb": true,
		"NO_COLOR=": false, "TERM=xterm": false, "TERM=": false, "MY_TERM=dumb": false,
	} {
		if got := (&app{environ: []string{entry}}).colourless(); got != want {
			t.Errorf("with %s, colours are called off: %v, want %v", entry, got, want)
		}
	}
}
