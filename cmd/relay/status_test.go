package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// putItem writes an item of a partition and sort key.
func (c *console) putItem(t *testing.T, partition, sortKey string, attributes map[string]types.AttributeValue) {
	t.Helper()
	item := schema.Key(partition, sortKey)
	for name, value := range attributes {
		item[name] = value
	}
	c.put(t, item)
}

func (c *console) lease(t *testing.T, bucket int, attributes map[string]types.AttributeValue) {
	t.Helper()
	c.putItem(t, schema.CoordinationKey(), outbox.LeaseSortKey(bucket), attributes)
}

// owned is a lease of a relay until some time from noon.
func owned(relay string, until time.Duration) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"Owner": text(relay), "ExpiresAtUtc": ticksValue(ago(-until))}
}

func ticksValue(n store.Ticks) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(int64(n))}
}

func (c *console) relay(t *testing.T, id string, attributes map[string]types.AttributeValue) {
	t.Helper()
	c.putItem(t, schema.CoordinationKey(), outbox.RelaySortKey(id), attributes)
}

// backlog puts messages into a bucket, the first of which has waited for some time,
// each further one a minute less.
func (c *console) backlog(t *testing.T, bucket, messages int, oldest time.Duration, stamp int) {
	t.Helper()
	of := schema
	of.BucketCount = stamp
	for i := range messages {
		m := outbox.Message{ID: uuid.UUID{14: byte(bucket), 15: byte(i)}, Topic: "orders.placed", Key: []byte("secret-key"), Value: []byte("secret-value"),
			CreatedAt: noon.Add(-oldest + time.Duration(i)*time.Minute)}
		c.put(t, of.EncodeMessage(m, bucket, int64(100+i)))
	}
}

// troubled is an outbox of eight buckets in which everything is wrong that can be.
func troubled(t *testing.T) *console {
	c := newConsole(t)
	c.relay(t, "relay-a", map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(4 * time.Second)), "Mode": text("ordered"),
		"Incarnation": text(fmt.Sprintf("%019d-0a1b2c3d", int64(ago(50*time.Hour))))})
	c.relay(t, "relay-b.with-a-name-that-is-longer-than-most-of-them-and-does-not-fit", map[string]types.AttributeValue{
		"LastSeenUtc": ticksValue(ago(3 * time.Minute)), "Mode": text("fenced")})
	c.relay(t, "peer.net", map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(time.Minute)), "StoppedAtUtc": ticksValue(ago(time.Minute))})
	c.lease(t, 0, owned("relay-a", 26*time.Second))
	c.lease(t, 1, owned("relay-a", 26*time.Second))
	paused := owned("relay-a", 26*time.Second)
	paused["PausedUntilUtc"], paused["PausedBy"], paused["PauseReason"] = ticksValue(ago(-time.Hour)), text("ann@desk"), text("consumer migrates")
	c.lease(t, 2, paused)
	c.lease(t, 3, owned("relay-b.with-a-name-that-is-longer-than-most-of-them-and-does-not-fit", -2*time.Minute))
	c.lease(t, 4, owned("relay-a", 26*time.Second))
	c.lease(t, 5, owned("peer.net", 9*time.Second))
	c.lease(t, 6, owned("relay-a", 26*time.Second))
	c.backlog(t, 0, 12, 3*time.Hour, 8)
	c.backlog(t, 1, 1, 5*time.Second, 8)
	c.backlog(t, 2, 3, 20*time.Minute, 8)
	c.backlog(t, 3, 2, 2*time.Minute, 8)
	c.backlog(t, 4, 4, 8*time.Minute, 16)
	c.backlog(t, 7, 1, time.Minute, 8)
	broken := schema.EncodeMessage(outbox.Message{ID: uuid.UUID{1}, Topic: "orders.placed", Value: []byte("v"), CreatedAt: noon.Add(-11 * time.Minute)}, 6, 42)
	broken["Headers"] = &types.AttributeValueMemberB{Value: []byte("secret-header")}
	c.put(t, broken)
	c.setAside(t, 0, store.Marker{KeyID: keyA, Topic: "orders.placed", Reason: "MSG_SIZE_TOO_LARGE: 5000 bytes, the topic takes 2000", Attempts: 3, ParkedAt: ago(3 * time.Hour)})
	c.putAside(t, 0, keyA, 1, outbox.Message{Topic: "orders.placed", Value: []byte("secret-value")})
	c.setAside(t, 7, store.Marker{Topic: "orders.audit", Reason: "migration", ParkedAt: ago(time.Minute), PausedUntil: ago(-time.Hour), PausedBy: "bob@desk"})
	for bucket := range 8 {
		c.setAside(t, bucket, store.Marker{Topic: "plcaed", Reason: "mistyped", ParkedAt: ago(90 * time.Minute)})
	}
	return c
}

func TestStatusOfATableInTrouble(t *testing.T) {
	c := troubled(t)
	for name, args := range map[string][]string{"status.txt": {"--cost"}, "status.json": {"--output=json", "--cost"}} {
		got := c.run(append([]string{"status", "--table", "orders"}, args...)...)
		if got.code != exitDone || got.stderr != "" {
			t.Errorf("%s: %+v", name, got)
		}
		if strings.Contains(got.stdout, "secret") {
			t.Errorf("%s shows content", name)
		}
		fitsWidth(t, name, got.stdout)
		golden(t, name, got.stdout)
	}
}

// The names of the JSON are a contract with scripts (docs/status.md).
func TestStatusNamesItsJSON(t *testing.T) {
	c := troubled(t)
	var d map[string]any
	got := c.run("status", "--table", "orders", "--output=json")
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil {
		t.Fatal(err)
	}
	wantNames := func(what string, object any, want string) {
		t.Helper()
		if names := strings.Join(slices.Sorted(maps.Keys(object.(map[string]any))), " "); names != want {
			t.Errorf("%s has %s, want %s", what, names, want)
		}
	}
	first := func(list string) any { return d[list].([]any)[0] }
	wantNames("the document", d, "bucketCount buckets keyPrefix relays table time totals troubles")
	wantNames("a relay", first("relays"), "id incarnation lastSeen mode owned state stoppedAt")
	wantNames("a bucket", first("buckets"), "bucket expires oldestAgeSeconds owner parkedKeys parkedTopics paused pending pendingIsLimit state")
	wantNames("the pause", d["buckets"].([]any)[2].(map[string]any)["paused"], "by reason until")
	wantNames("the totals", d["totals"], "oldestAgeSeconds parkedIsLimit parkedKeys parkedRows pending pendingIsLimit")
	wantNames("a trouble", first("troubles"), "advice buckets kind relay text")
}

func TestStatusOfAQuietTable(t *testing.T) {
	c := newConsole(t)
	c.relay(t, "a", map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(time.Second)), "Mode": text("ordered")})
	for bucket := range 8 {
		c.lease(t, bucket, owned("a", 20*time.Second))
	}
	got := c.run("status", "--table", "orders")
	if got.code != exitDone || strings.Contains(got.stdout, "WRONG") || !strings.Contains(got.stdout, "nothing waits\n1 relay: 1 active; 8 buckets: 8 owned\n") {
		t.Errorf("%+v", got)
	}
	var d statusDocument
	got = c.run("status", "--table", "orders", "--output=json")
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || len(d.Troubles) != 0 || !strings.Contains(got.stdout, `"troubles": []`) {
		t.Errorf("%v, %+v", err, d.Troubles)
	}
}

func TestStatusOfATableWithoutRelays(t *testing.T) {
	c := newConsole(t)
	got := c.run("status", "--table", "orders")
	if got.code != exitDone || !strings.Contains(got.stdout, "no relay is active: none has a record here\n  > start one: relay run") {
		t.Errorf("%+v", got)
	}
	got = c.run("status", "--table", "orders", "--output=json")
	if !strings.Contains(got.stdout, `"relays": []`) || !strings.Contains(got.stdout, `"owner": null`) {
		t.Errorf("%+v", got)
	}
}

// Ten thousand buckets are no ten thousand lines: those that matter come first.
func TestStatusOfManyBuckets(t *testing.T) {
	c := newConsole(t)
	c.relay(t, "a", map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(time.Second))})
	for bucket := range 300 {
		c.lease(t, bucket, owned("a", 20*time.Second))
	}
	c.backlog(t, 250, 2, 20*time.Second, 300)
	c.backlog(t, 150, 1, 10*time.Second, 300)
	paused := owned("a", 20*time.Second)
	paused["PausedUntilUtc"] = ticksValue(store.Ticks(outbox.MaxTicks))
	c.lease(t, 200, paused)
	c.lease(t, 299, map[string]types.AttributeValue{})
	got := c.run("status", "--table", "orders", "--bucket-count=300")
	golden(t, "status_many.txt", got.stdout)
	all := c.run("status", "--table", "orders", "--bucket-count=300", "--all")
	if n := strings.Count(all.stdout, "\n"); n < 305 || strings.Contains(all.stdout, "--all") {
		t.Errorf("--all prints %d lines", n)
	}
	for _, text := range []string{got.stdout, all.stdout} {
		fitsWidth(t, ".txt", text)
	}
}

// A heartbeat from the future is trouble, and is not shown as one of just now.
func TestStatusOfAHeartbeatFromTheFuture(t *testing.T) {
	c := newConsole(t)
	c.relay(t, "a", map[string]types.AttributeValue{"LastSeenUtc": ticksValue(inFuture(10 * time.Minute))})
	c.lease(t, 0, owned("a", 20*time.Second))
	got := c.run("status", "--table", "orders")
	for _, want := range []string{"! the heartbeat of relay a is 10m in the future", "a      active  in 10m"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in:\n%s", want, got.stdout)
		}
	}
	if list := c.run("lease", "list", "--table", "orders"); !strings.Contains(list.stdout, "in 10m") {
		t.Errorf("%+v", list)
	}
	c.relay(t, "a", map[string]types.AttributeValue{"LastSeenUtc": ticksValue(inFuture(time.Second))})
	if got := c.run("status", "--table", "orders"); strings.Contains(got.stdout, "heartbeat") || !strings.Contains(got.stdout, "0s ago") {
		t.Errorf("clocks may differ by that: %s", got.stdout)
	}
}

// A large table in trouble, and a long name, still fit.
func TestStatusHeadlineFits(t *testing.T) {
	c := troubled(t)
	got := c.run("status", "--table", "orders", "--bucket-count=300")
	fitsWidth(t, ".txt", got.stdout)
	p := c.picture(t, 8)
	p.Buckets[0].Pending = 123_456_789
	var out strings.Builder
	s := settings.Defaults()
	s.Relay.Table = "a-table-with-a-long-name.production"
	(&app{stdout: &out}).printPicture(&s, p, screenful())
	fitsWidth(t, ".txt", out.String())
}

// What is being delivered again needs no advice to have it delivered; and advice can be
// pasted into a shell, whatever the topic is called.
func TestStatusAdvisesOnTopics(t *testing.T) {
	c := newConsole(t)
	for bucket := range 8 {
		c.setAside(t, bucket, store.Marker{Topic: "a\nb", Reason: "r", ParkedAt: ago(time.Hour), PausedUntil: store.NoEnd},
			store.Marker{Topic: "asked", Reason: "r", ParkedAt: ago(time.Hour), PausedUntil: store.NoEnd, RetryAt: ago(time.Minute)})
	}
	got := c.run("status", "--table", "orders")
	if !strings.Contains(got.stdout, `relay resume --topic $'a\012b'`) || strings.Contains(got.stdout, "resume --topic asked") ||
		!strings.Contains(got.stdout, "relay parked retry --call-off --topic asked") {
		t.Errorf("%s", got.stdout)
	}
}

// A relay is silent after the lease duration of the relays, which the file of all
// commands has.
func TestStatusJudgesByTheLeaseDuration(t *testing.T) {
	c := newConsole(t)
	c.relay(t, "a", map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(4 * time.Second))})
	for _, with := range []struct {
		flag, variable string
		state          string
	}{{"", "", "active"}, {"--lease-duration=3s", "", "silent"}, {"", "RELAY_LEASE_DURATION=3s", "silent"}} {
		args := []string{"status", "--table", "orders", "--output=json"}
		if with.flag != "" {
			args = append(args, with.flag)
		}
		got := c.runWith("", []string{with.variable}, args...)
		if got.code != exitDone || !strings.Contains(got.stdout, fmt.Sprintf(`"state": %q`, with.state)) {
			t.Errorf("%+v: %+v", with, got)
		}
	}
}

// throttled answers no query of one partition.
type throttled struct {
	store.API
	partition string
}

func (s throttled) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if pk := in.ExpressionAttributeValues[":pk"].(*types.AttributeValueMemberS); pk.Value == s.partition {
		return nil, &types.ProvisionedThroughputExceededException{Message: aws.String("slow down")}
	}
	return s.API.Query(ctx, in, opts...)
}

// What could not be read is said, and nothing is made up for it; the rest is shown.
func TestStatusWithABlank(t *testing.T) {
	c := troubled(t)
	c.through = func(api store.API) store.API { return throttled{api, schema.MessagesKey(1)} }
	got := c.run("status", "--table", "orders")
	if got.code != exitFailed || !strings.Contains(got.stderr, "the picture lacks bucket 1: ") || !strings.Contains(got.stderr, "slow down") {
		t.Errorf("exit %d, %s", got.code, got.stderr)
	}
	for _, part := range []string{"23 or more messages wait, ", "bucket 1 could not be read", "     1  owned   relay-a    in 26s        ?       -  -               could not be read\n",
		"     0  owned   relay-a    in 26s       12      3h  1 key, 1 topic\n"} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("no %q in:\n%s", part, got.stdout)
		}
	}
	var d statusDocument
	got = c.run("status", "--table", "orders", "--output=json")
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != exitFailed || d.Buckets[1].Pending != nil || *d.Buckets[0].Pending != 12 {
		t.Errorf("exit %d, %v, %+v", got.code, err, d.Buckets)
	}
}

func TestStatusWithoutATable(t *testing.T) {
	got := newConsole(t).run("status", "--table", "missing")
	if got.code != exitFailed || got.stdout != "" || !strings.Contains(got.stderr, "relay table create --table missing") {
		t.Errorf("%+v", got)
	}
}

func TestStatusOnlyReads(t *testing.T) {
	c := troubled(t)
	c.through = func(api store.API) store.API { return readOnly{api} }
	if got := c.run("status", "--table", "orders", "--all"); got.code != exitDone {
		t.Errorf("%+v", got)
	}
}

// docs/status.md explains every kind of trouble, and no other.
func TestStatusKindsAreDocumented(t *testing.T) {
	names := func(path, pattern string) []string {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(content, -1) {
			found = append(found, string(m[1]))
		}
		return found
	}
	inCode := names("trouble.go", `troubleKind = "(\w+)"`)
	inDoc := names("../../docs/status.md", "(?m)^\\| `(\\w+)` \\|")
	if len(inCode) == 0 || !slices.Equal(inCode, inDoc) {
		t.Errorf("in the code, in this order: %v\nin docs/status.md: %v", inCode, inDoc)
	}
}
