package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Key ids that no message has, so that tests can name them.
var (
	keyA = strings.Repeat("a", 32)
	keyB = strings.Repeat("b", 32)
	keyC = strings.Repeat("c", 32)
)

func ago(d time.Duration) store.Ticks { return store.Ticks(outbox.Ticks(noon.Add(-d))) }

// do carries out a request on the table as a relay, or another operator, would.
func (c *console) do(t *testing.T, r store.Request) store.Reply {
	t.Helper()
	reply := store.NewClient(schema, c.table, c.table).Do(context.Background(), r)
	if reply.Class != store.Done {
		t.Fatalf("%+v: %v", r, reply.Err)
	}
	return reply
}

func (c *console) setAside(t *testing.T, bucket int, markers ...store.Marker) {
	t.Helper()
	for _, m := range markers {
		c.do(t, store.SetAside{Bucket: bucket, Marker: m})
	}
}

// putAside puts a message into the parked partition of a bucket, as a relay's move does.
func (c *console) putAside(t *testing.T, bucket int, keyID string, sequence int64, m outbox.Message) {
	t.Helper()
	m.ID, m.CreatedAt = uuid.UUID{15: byte(sequence)}, noon.Add(-time.Duration(sequence)*time.Minute)
	item := schema.EncodeMessage(m, bucket, sequence)
	maps.Copy(item, schema.Key(schema.ParkedKey(bucket), outbox.ParkedRowSortKey(keyID, sequence)))
	c.put(t, item)
}

// markers are all markers of a bucket, by their sort keys.
func (c *console) markers(t *testing.T, bucket int) map[string]store.Marker {
	t.Helper()
	found := map[string]store.Marker{}
	for _, m := range c.do(t, store.ReadMarkers{Bucket: bucket}).Result.(store.MarkersPage).Markers {
		found[markerSortKey(m.KeyID, m.Topic)] = m
	}
	return found
}

// rung are the buckets whose owners were told, and when.
func (c *console) rung(t *testing.T) map[int]store.Ticks {
	t.Helper()
	rung := map[int]store.Ticks{}
	for _, l := range c.do(t, store.ReadCoordination{}).Result.(store.CoordinationPage).Leases {
		if l.Attention != 0 {
			rung[l.Bucket] = l.Attention
		}
	}
	return rung
}

// asideExample is an outbox of which two keys and a topic are set aside.
func asideExample(t *testing.T) *console {
	c := newConsole(t)
	c.setAside(t, 3,
		store.Marker{KeyID: keyA, Topic: "placed", Reason: "MSG_SIZE_TOO_LARGE: 5,000 bytes, the topic takes 2,000", Attempts: 3, ParkedAt: ago(3 * time.Hour), RetryAt: ago(time.Minute)},
		store.Marker{KeyID: keyC, Topic: "plcaed", Reason: "topic set aside", ParkedAt: ago(time.Hour)})
	c.setAside(t, 5, store.Marker{KeyID: keyB, Topic: "cancelled", Reason: "INVALID_RECORD", Attempts: 3, ParkedAt: ago(50 * time.Hour)})
	for bucket := range 8 {
		c.setAside(t, bucket, store.Marker{Topic: "plcaed", Reason: "mistyped", ParkedAt: ago(90 * time.Minute)})
	}
	for i, m := range samples() {
		c.putAside(t, 3, keyA, int64(i+1), m)
	}
	return c
}

func TestParkedListShowsKeysAndTopicsOfAllBuckets(t *testing.T) {
	c := asideExample(t)
	before := c.table.Items("orders")
	for name, args := range map[string][]string{"parked_list.txt": nil, "parked_list.json": {"--output=json"}} {
		got := c.run(append([]string{"parked", "list", "--table", "orders"}, args...)...)
		if got.code != exitDone || got.stderr != "" {
			t.Errorf("%s: %+v", name, got)
		}
		fitsWidth(t, name, got.stdout)
		golden(t, name, got.stdout)
	}
	if fmt.Sprint(len(before)) != fmt.Sprint(len(c.table.Items("orders"))) {
		t.Error("a list changed the table")
	}
}

func fitsWidth(t *testing.T, name, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasSuffix(name, ".txt") && len([]rune(line)) > textColumns+1 {
			t.Errorf("%s: too wide: %s", name, line)
		}
	}
}

func TestParkedListOfNothing(t *testing.T) {
	c := newConsole(t)
	if got := c.run("parked", "list", "--table", "orders"); got.code != exitDone || got.stdout != "table orders: nothing is set aside\n" {
		t.Errorf("%+v", got)
	}
	got := c.run("parked", "list", "--table", "orders", "--output=json")
	if got.code != exitDone || !strings.Contains(got.stdout, `"keys": []`) || !strings.Contains(got.stdout, `"topics": []`) {
		t.Errorf("%+v", got)
	}
}

// Counting costs by the size of the rows, so that it ends.
func TestParkedListCountsUpToALimit(t *testing.T) {
	c := newConsole(t)
	c.setAside(t, 0, store.Marker{KeyID: keyA, Topic: "t", ParkedAt: 1}, store.Marker{KeyID: keyB, Topic: "t", ParkedAt: 1})
	for i := range int64(1001) {
		c.putAside(t, 0, keyA, i+1, outbox.Message{Topic: "t"})
	}
	for i := range int64(16) {
		c.putAside(t, 0, keyB, i+1, outbox.Message{Topic: "t", Value: make([]byte, 300<<10)})
	}
	var d parkedDocument
	got := c.run("parked", "list", "--table", "orders", "--output=json")
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || len(d.Keys) != 2 {
		t.Fatalf("%v: %+v", err, got)
	}
	if a, b := d.Keys[0], d.Keys[1]; a.Rows != 1000 || !a.RowsIsLimit || b.Rows >= 16 || !b.RowsIsLimit {
		t.Errorf("got %d (%t) and %d (%t) rows", a.Rows, a.RowsIsLimit, b.Rows, b.RowsIsLimit)
	}
	if got := c.run("parked", "list", "--table", "orders"); !strings.Contains(got.stdout, "1000+") {
		t.Errorf("%+v", got)
	}
}

// A marker that cannot be read is no reason to show nothing, nor to be silent about it.
func TestParkedListSaysWhatItCannotRead(t *testing.T) {
	c := asideExample(t)
	broken := schema.Key(schema.ParkedKey(6), "KEY#nonsense")
	c.put(t, broken)
	got := c.run("parked", "list", "--table", "orders")
	if got.code != exitFailed || !strings.Contains(got.stdout, keyB) || !strings.Contains(got.stderr, `1 marker cannot be read, the first: item "OUTBOX#PARKED#6" "KEY#nonsense"`) {
		t.Errorf("%+v", got)
	}
}

func TestParkedShowTellsFactsButNoContent(t *testing.T) {
	c := asideExample(t)
	c.setAside(t, 4, store.Marker{KeyID: keyA, Topic: "placed", Reason: "INVALID_RECORD", Attempts: 3, ParkedAt: ago(time.Second)})
	broken := schema.EncodeMessage(outbox.NewMessage("placed", nil, []byte("4711")), 3, 3)
	maps.Copy(broken, schema.Key(schema.ParkedKey(3), outbox.ParkedRowSortKey(keyA, 3)))
	delete(broken, "Topic")
	c.put(t, broken)
	for name, args := range map[string][]string{
		"parked_show.txt":         nil,
		"parked_show_limit.txt":   {"--limit=2"},
		"parked_show_content.txt": {"--show-content"},
		"parked_show.json":        {"--output=json"},
	} {
		got := c.run(append([]string{"parked", "show", "--table", "orders", keyA}, args...)...)
		if got.code != exitDone || got.stderr != "" {
			t.Errorf("%s: %+v", name, got)
		}
		if !strings.Contains(name, "content") && strings.Contains(got.stdout, "4711") {
			t.Errorf("%s shows content", name)
		}
		fitsWidth(t, name, got.stdout)
		golden(t, name, got.stdout)
	}
	var d asideDocument
	got := c.run("parked", "show", "--table", "orders", keyA, "--output=json", "--show-content")
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || *d.Buckets[0].Rows[0].Content.Key.Text != "order-4711" {
		t.Errorf("%v: %+v", err, got)
	}
}

func TestParkedShowOfWhatIsNotSetAside(t *testing.T) {
	c := asideExample(t)
	got := c.run("parked", "show", "--table", "orders", strings.Repeat("d", 32))
	if got.code != exitFailed || !strings.Contains(got.stderr, "nothing is set aside under it in table orders") || got.stdout != "" {
		t.Errorf("%+v", got)
	}
}

func TestParkedRetryAsksAndThenTellsTheOwners(t *testing.T) {
	c := asideExample(t)
	c.setAside(t, 5, store.Marker{KeyID: keyA, Topic: "placed", Reason: "r", ParkedAt: 1})
	got := c.run("parked", "retry", "--table", "orders", keyA, keyB, keyA, "--yes")
	golden(t, "parked_retry.txt", got.stdout)
	if got.code != exitDone {
		t.Errorf("%+v", got)
	}
	now := ago(0)
	if a, b := c.markers(t, 3), c.markers(t, 5); a["KEY#"+keyA].RetryAt != now || b["KEY#"+keyA].RetryAt != now || b["KEY#"+keyB].RetryAt != now ||
		a["KEY#"+keyC].RetryAt != 0 || a["ALL#plcaed"].RetryAt != 0 {
		t.Errorf("got %+v and %+v", a, b)
	}
	if rung := c.rung(t); len(rung) != 2 || rung[3] != now || rung[5] != now {
		t.Errorf("rung %v", rung)
	}
}

// Delivering what belongs to a topic that somebody set aside as a whole would undo it.
func TestParkedRetryOfAllLeavesTopicsAlone(t *testing.T) {
	c := asideExample(t)
	got := c.run("parked", "retry", "--table", "orders", "--all", "--yes")
	if got.code != exitDone || !strings.Contains(got.stderr, "not among them: 1 key of topics that are set aside as a whole, see --topic") {
		t.Errorf("%+v", got)
	}
	three := c.markers(t, 3)
	if three["KEY#"+keyA].RetryAt != ago(0) || c.markers(t, 5)["KEY#"+keyB].RetryAt != ago(0) {
		t.Error("a key is not to be retried")
	}
	if three["KEY#"+keyC].RetryAt != 0 || three["ALL#plcaed"].RetryAt != 0 {
		t.Error("a topic that is set aside is to be retried")
	}
}

func TestParkedRetryOfATopic(t *testing.T) {
	c := asideExample(t)
	if got := c.run("parked", "retry", "--table", "orders", "--topic", "plcaed", "--yes"); got.code != exitDone {
		t.Errorf("%+v", got)
	}
	for bucket := range 8 {
		m := c.markers(t, bucket)
		if m["ALL#plcaed"].RetryAt != ago(0) || m["KEY#"+keyC].RetryAt != 0 || m["KEY#"+keyB].RetryAt != 0 {
			t.Errorf("bucket %d: %+v", bucket, m)
		}
	}
	if rung := c.rung(t); len(rung) != 8 {
		t.Errorf("rung %v", rung)
	}
	got := c.run("parked", "retry", "--table", "orders", "--topic", "placed", "--yes")
	if got.code != exitFailed || !strings.Contains(got.stderr, "topic placed is not set aside as a whole") {
		t.Errorf("%+v", got)
	}
}

// A typing error in one id sends nothing, not even for the others.
func TestParkedRetryOfAnIdThatIsNotSetAside(t *testing.T) {
	c := asideExample(t)
	unknown := strings.Repeat("d", 32)
	got := c.run("parked", "retry", "--table", "orders", keyB, unknown, "--yes")
	if got.code != exitFailed || !strings.Contains(got.stderr, "not set aside, so that nothing was asked for: "+unknown) || len(c.rung(t)) != 0 {
		t.Errorf("%+v", got)
	}
	if c.markers(t, 5)["KEY#"+keyB].RetryAt != 0 {
		t.Error("a retry was asked for")
	}
}

// Rows whose marker is missing are known to no relay; a retry writes one.
func TestParkedRetryOfRowsWithoutAMarker(t *testing.T) {
	c := newConsole(t)
	c.putAside(t, 2, keyA, 7, outbox.Message{Topic: "placed"})
	if got := c.run("parked", "show", "--table", "orders", keyA); !strings.Contains(got.stdout, "without a marker") {
		t.Errorf("%+v", got)
	}
	got := c.run("parked", "retry", "--table", "orders", keyA, "--yes")
	want := store.Marker{KeyID: keyA, Topic: "placed", Reason: strayReason, ParkedAt: ago(0), RetryAt: ago(0)}
	if m := c.markers(t, 2)["KEY#"+keyA]; got.code != exitDone || m != want || len(c.rung(t)) != 1 {
		t.Errorf("%+v, %+v", got, m)
	}
}

func TestParkedRetryOfNothing(t *testing.T) {
	c := newConsole(t)
	if got := c.run("parked", "retry", "--table", "orders", "--all"); got.code != exitDone || got.stdout != "there is nothing to do\n" {
		t.Errorf("%+v", got)
	}
}

func TestParkedDiscardShowsTheRowAndAsks(t *testing.T) {
	c := asideExample(t)
	before := len(c.table.Items("orders"))
	args := []string{"parked", "discard", "--table", "orders", keyA, "2"}
	got := c.runWith("no\n", nil, args...)
	if got.code != exitFailed || !strings.Contains(got.stderr, "not confirmed: nothing was changed") || got.stdout != "" || len(c.table.Items("orders")) != before {
		t.Errorf("%+v", got)
	}
	got = c.runWith("y\n", nil, args...)
	golden(t, "parked_discard.txt", got.stderr+"\n"+got.stdout)
	if rung := c.rung(t); got.code != exitDone || len(rung) != 1 || rung[3] != ago(0) {
		t.Errorf("%+v, rung %v", got, rung)
	}
	rows := c.do(t, store.FetchParked{Bucket: 3, KeyID: keyA, Limit: 9}).Result.(store.Fetched).Rows
	var left []int64
	for _, r := range rows {
		left = append(left, r.Sequence)
	}
	if !slices.Equal(left, []int64{1, 3, 4}) {
		t.Errorf("left are %v", left)
	}
	got = c.run(append(args, "--yes")...)
	if got.code != exitFailed || !strings.Contains(got.stderr, "has no row 2 that is set aside") {
		t.Errorf("%+v", got)
	}
}

func TestParkedDiscardOfARowThatCannotBeRead(t *testing.T) {
	c := newConsole(t)
	broken := schema.Key(schema.ParkedKey(3), outbox.ParkedRowSortKey(keyA, 3))
	c.put(t, broken)
	got := c.run("parked", "discard", "--table", "orders", keyA, "3", "--yes")
	if got.code != exitDone || !strings.Contains(got.stderr, "cannot be read: attribute MessageId is missing") {
		t.Errorf("%+v", got)
	}
	if rows := c.do(t, store.CountParked{Bucket: 3, KeyID: keyA, Limit: 9}).Result.(store.Counted).Rows; rows != 0 {
		t.Errorf("%d rows are left", rows)
	}
}

// Messages of one key are in several buckets when they name partitions.
func TestParkedDiscardOfARowInTwoBuckets(t *testing.T) {
	c := newConsole(t)
	c.putAside(t, 1, keyA, 7, outbox.Message{Topic: "placed"})
	c.putAside(t, 2, keyA, 7, outbox.Message{Topic: "placed"})
	got := c.run("parked", "discard", "--table", "orders", keyA, "7", "--yes")
	if got.code != exitFailed || !strings.Contains(got.stderr, "in bucket 1 and in bucket 2: say which with --bucket") {
		t.Errorf("%+v", got)
	}
	if got = c.run("parked", "discard", "--table", "orders", keyA, "7", "--bucket=2", "--yes"); got.code != exitDone {
		t.Errorf("%+v", got)
	}
	for bucket, want := range map[int]int{1: 1, 2: 0} {
		if rows := c.do(t, store.CountParked{Bucket: bucket, KeyID: keyA, Limit: 9}).Result.(store.Counted).Rows; rows != want {
			t.Errorf("bucket %d has %d rows", bucket, rows)
		}
	}
}

func TestBadUsageOfWhatIsSetAside(t *testing.T) {
	c := newConsole(t)
	id := keyA
	for line, want := range map[string]string{
		"parked":                         "which command? see relay parked --help",
		"parked show":                    "KEYID: which key?",
		"parked show x":                  `KEYID "x": a key id has 32 digits, of 0-9 and a-f`,
		"parked show " + id + " " + id:   "takes no such argument",
		"parked retry":                   "KEYID: give key ids, --all or --topic, one of the three",
		"parked retry --all " + id:       "KEYID: give key ids, --all or --topic, one of the three",
		"parked retry ABC":               `KEYID "ABC"`,
		"parked discard " + id:           "KEYID SEQUENCE: which row?",
		"parked discard " + id + " zero": `SEQUENCE "zero": must be the number of a row, 1 or more`,
		"parked discard --table orders --bucket 8 " + id + " 1": "--bucket 8: the outbox has the buckets 0 to 7",
		"message park":                                          "--bucket: give --bucket and --sequence of a row, or --topic",
		"message park --bucket 1":                               "--bucket: give --bucket and --sequence of a row, or --topic",
		"message park --bucket 1 --sequence 0":                  `--sequence "0": must be the number of a row, 1 or more`,
		"message park --bucket 1 --sequence 1 --topic t":        "--bucket: give --bucket and --sequence of a row, or --topic",
		"message park --bucket 1 --topic t":                     "--bucket: give --bucket and --sequence of a row, or --topic",
		"message park --table orders --bucket 8 --sequence 1":   "--bucket 8: the outbox has the buckets 0 to 7",
		"message park --table orders --topic " + longTopic:      "must not be blank, be UTF-8, and have 1020 bytes at most",
		"message park --bucket 1 --sequence 1 and --reason why": `"and": takes no such argument`,
	} {
		got := c.run(strings.Fields(line)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("relay %s: exit %d, stdout %q, stderr:\n%s", line, got.code, got.stdout, got.stderr)
		}
	}
}

var longTopic = strings.Repeat("t", 1021)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
