package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Names and reasons as long as people make them.
var (
	topicOf60  = strings.Repeat("orders.placed-by-customers.", 3)[:60]
	topicOf249 = strings.Repeat("x", 249) // as long as Kafka's may be
	ownerOf128 = strings.Repeat("relay-in-a-namespace-with-a-name.", 4)[:128]
	longWords  = strings.Repeat("the consumer is broken ", 9)[:maxNote]
	longWord   = strings.Repeat("w", maxNote)
	tableOf255 = strings.Repeat("the-outbox_of.orders-", 13)[:255] // as long as DynamoDB takes
)

// renamed is a table that is read under another name, too.
type renamed struct{ store.API }

func (r renamed) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...options) (*dynamodb.QueryOutput, error) {
	orders := *in
	orders.TableName = aws.String("orders")
	return r.API.Query(ctx, &orders, opts...)
}

// wide is an outbox in which every name and every reason is long.
func wide(t *testing.T) *console {
	c := newConsole(t)
	for _, id := range []string{ownerOf128, ownerOf128[1:] + "2"} {
		c.relay(t, id, map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(time.Second)), "Mode": text("ordered"),
			"Incarnation": text("0638000000000000000-0a1b2c3d")})
	}
	c.relay(t, ownerOf128[2:]+"34", map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(time.Hour))})
	for bucket, reason := range []string{longWords, longWord} {
		lease := owned(ownerOf128, time.Minute)
		lease["PausedUntilUtc"], lease["PausedBy"], lease["PauseReason"] = ticksValue(ago(-time.Hour)), text(reason), text(reason)
		c.lease(t, bucket, lease)
	}
	c.lease(t, 2, owned(ownerOf128, time.Minute))
	c.lease(t, 3, owned(ownerOf128[2:]+"34", -time.Hour))
	c.lease(t, 4, owned(strings.Repeat("g", 128), time.Minute))
	for i, topic := range []string{topicOf60, topicOf249} {
		reason := []string{longWords, longWord}[i]
		c.setAside(t, 2+i, store.Marker{Topic: topic, Reason: reason, ParkedAt: ago(time.Hour), PausedUntil: ago(-time.Hour), PausedBy: reason},
			store.Marker{KeyID: []string{keyA, keyB}[i], Topic: topic, Reason: reason, Attempts: 3, ParkedAt: ago(100 * time.Hour), RetryAt: ago(time.Hour)})
		c.setAside(t, 4+i, store.Marker{Topic: topic, Reason: reason, ParkedAt: ago(time.Hour)})
		c.putAside(t, 2+i, []string{keyA, keyB}[i], 1, outbox.Message{Topic: topic, Key: []byte("k"), Value: []byte("v")})
		for n := range 3 {
			m := outbox.Message{ID: uuid.UUID{15: byte(n)}, Topic: topic, Key: []byte("k"), CreatedAt: noon.Add(-30 * time.Hour)}
			c.put(t, schema.EncodeMessage(m, 2+i, int64(n+1)<<55))
		}
	}
	c.putAside(t, 6, keyC, 1, outbox.Message{Topic: topicOf60})
	return c
}

// What is printed for people fits a terminal of 100 columns, however long the names and
// the reasons are that it tells of.
func TestWhateverIsPrintedFits(t *testing.T) {
	for _, line := range []string{
		"status", "status --all --cost", "top", "lease list", "parked list", "parked show " + keyA, "parked show " + keyB + " --show-content",
		"message list --bucket 2", "message list --bucket 7", "message enqueue --value v --topic " + topicOf249, "table create", "message list --bucket 3 --show-content", "doctor", "table show", "table iam --role operator --output text",
		"message park --bucket 2 --sequence 36028797018963968 --dry-run", "message park --topic " + topicOf249 + " --reason " + longWord + " --dry-run",
		"parked retry --all --dry-run", "parked retry --topic " + topicOf60 + " --dry-run", "parked retry --call-off --all --dry-run",
		"parked discard " + keyA + " 1 --dry-run", "pause --all --reason " + longWord + " --dry-run",
		"pause --topic " + topicOf249 + " --reason " + longWord + " --by " + longWord + " --dry-run",
		"resume --all --dry-run", "resume --topic " + topicOf249 + " --dry-run", "lease release --bucket 3 --dry-run", "lease release --bucket 4 --dry-run",
	} {
		for _, table := range []string{"orders", tableOf255} {
			c := wide(t)
			c.through = func(api store.API) store.API { return renamed{api} }
			got := c.run(append(strings.Fields(line), "--table", table)...)
			if got.code == exitUsage {
				t.Errorf("relay %s: %+v", line, got)
			}
			for printed := range strings.Lines(got.stdout + got.stderr) {
				if n := len([]rune(strings.TrimSuffix(printed, "\n"))); n > textColumns && !(table == tableOf255 && strings.HasPrefix(printed, "relay: ")) { // what AWS says of it
					t.Errorf("relay %s prints a line of %d columns: %s", line, n, printed)
				}
			}
		}
	}
}

// A topic is cut only where a reason has given all that it can: resume and retry take it
// whole. JSON cuts nothing.
func TestParkedListKeepsTopicsAsLongAsItCan(t *testing.T) {
	c := wide(t)
	got := c.run("parked", "list", "--table", "orders")
	if !strings.Contains(got.stdout, "xxx…   1 of 8     1h      -  paused …") || !strings.Contains(got.stdout, "  orders.placed-by-…  the con…\n") {
		t.Errorf("%s", got.stdout)
	}
	got = c.run("parked", "list", "--table", "orders", "--output=json")
	for _, whole := range []string{topicOf60, topicOf249, longWord, longWords} {
		if !strings.Contains(got.stdout, `"`+whole+`"`) {
			t.Errorf("no %q in\n%s", whole, got.stdout)
		}
	}
	c = newConsole(t)
	c.setAside(t, 1, store.Marker{Topic: topicOf60, Reason: longWords, ParkedAt: ago(time.Hour)})
	if got = c.run("parked", "list", "--table", "orders"); !strings.Contains(got.stdout, "\n"+topicOf60+"   1 of 8     1h      -  the consumer i…\n") {
		t.Errorf("%s", got.stdout)
	}
}
