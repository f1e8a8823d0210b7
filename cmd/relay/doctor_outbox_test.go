package main

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// waitsSince puts a row behind the others of bucket 3, created some time before noon,
// and what else it is.
func (c *console) waitsSince(t *testing.T, age time.Duration, m outbox.Message) {
	t.Helper()
	if m.ID == uuid.Nil {
		m.ID = uuid.New()
	}
	m.CreatedAt = noon.Add(-age)
	sequence := c.counter(t) + 1
	c.put(t, schema.EncodeMessage(m, 3, sequence))
	c.setCounter(t, sequence)
}

// marker sets a topic aside in a bucket.
func (c *console) marker(t *testing.T, bucket int, topic, reason string, age time.Duration) {
	t.Helper()
	item := schema.Key(schema.ParkedKey(bucket), outbox.ParkedTopicSortKey(topic))
	item[outbox.AttrReason], item[outbox.AttrParkedAtUtc] = text(reason), before(age)
	c.put(t, item)
}

func TestDoctorOnRowsThatAreStuck(t *testing.T) {
	for _, test := range []struct {
		name       string
		change     func(t *testing.T, c *console)
		id, status string
		texts      []string
	}{
		{"another bucket count", func(t *testing.T, c *console) {
			sixteen := outbox.Schema{Table: "orders", BucketCount: 16}
			c.put(t, sixteen.EncodeMessage(outbox.NewMessage("placed", nil, nil), 3, 7))
			c.setCounter(t, 7)
		}, checkBucketCount, statusFailure, []string{"bucket 3", "bucket count 16, the settings here say 8", "row 7 of bucket 3", "exit code 3"}},
		{"no stamp, as the peer may write", func(t *testing.T, c *console) {
			item := schema.EncodeMessage(outbox.NewMessage("placed", nil, nil), 3, 7)
			delete(item, outbox.AttrBucketCount)
			c.put(t, item)
			c.setCounter(t, 7)
		}, checkBucketCount, statusOK, []string{"1 waiting row"}},
		{"rows in buckets that the settings do not have", func(t *testing.T, c *console) {
			c.put(t, outbox.Schema{Table: "orders", BucketCount: 16}.EncodeMessage(outbox.NewMessage("placed", nil, nil), 12, 7))
		}, checkBucketCount, statusFailure, []string{"bucket 12", "messages wait there, and the settings here have 8 buckets"}},
		{"a row without a number, behind many", func(t *testing.T, c *console) {
			for range sampledRows + 1 {
				c.waitsSince(t, time.Second, outbox.Message{Topic: "placed"})
			}
			item := schema.EncodeMessage(outbox.NewMessage("placed", nil, nil), 3, 7)
			item["SK"] = text("1001")
			c.put(t, item)
		}, checkRows, statusFailure, []string{"bucket 3", `"1001"`, "relay message enqueue"}},
		{"a row that cannot be read", func(t *testing.T, c *console) {
			item := schema.EncodeMessage(outbox.NewMessage("placed", nil, nil), 3, 7)
			item[outbox.AttrTopic] = &types.AttributeValueMemberN{Value: "1"}
			c.put(t, item)
		}, checkRows, statusFailure, []string{"bucket 3", "attribute Topic", "relay message park --bucket 3 --sequence 7"}},
		{"rows that have waited", func(t *testing.T, c *console) {
			c.waitsSince(t, 2*time.Hour, outbox.Message{Topic: "placed"})
			c.waitsSince(t, time.Second, outbox.Message{Topic: "placed"})
		}, checkBacklog, statusWarning, []string{"bucket 3", "2 messages waiting, the oldest for 2h", "bucket.blocked"}},
		{"rows that have just come", func(t *testing.T, c *console) { c.waitsSince(t, time.Second, outbox.Message{Topic: "placed"}) },
			checkBacklog, statusOK, []string{"1 message waiting, the oldest for 1s"}},
		{"more rows than are looked at", func(t *testing.T, c *console) {
			for range sampledRows + 1 {
				c.waitsSince(t, time.Second, outbox.Message{Topic: "placed"})
			}
		}, checkBacklog, statusOK, []string{"100 or more messages"}},
		{"a topic set aside", func(t *testing.T, c *console) {
			c.marker(t, 3, "placed", "mistyped", 3*time.Hour)
			c.marker(t, 4, "placed", "mistyped", time.Hour)
		}, checkParked, statusWarning, []string{"1 topic\nset aside, the first for 3h: mistyped", "relay parked list"}},
		{"a topic paused", func(t *testing.T, c *console) {
			c.setAside(t, 3, store.Marker{Topic: "placed", Reason: "migration", ParkedAt: ago(time.Hour), PausedUntil: store.NoEnd, PausedBy: "ann"})
		}, checkParked, statusWarning, []string{"1 topic\nset aside, the first for 1h: migration\nnothing here: each is paused, see pauses"}},
		{"a topic whose pause is over", func(t *testing.T, c *console) {
			c.setAside(t, 3, store.Marker{Topic: "placed", Reason: "migration", ParkedAt: ago(time.Hour), PausedUntil: ago(time.Minute)},
				store.Marker{KeyID: keyA, Topic: "placed", Reason: store.ReasonTopic, ParkedAt: ago(time.Hour)})
		}, checkParked, statusWarning, []string{"1 key and 1 topic", "all are being delivered again", "nothing, unless"}},
		{"one of two keys retried", func(t *testing.T, c *console) {
			c.setAside(t, 3, store.Marker{KeyID: keyA, Topic: "placed", ParkedAt: ago(time.Hour), RetryAt: ago(time.Minute)},
				store.Marker{KeyID: keyB, Topic: "placed", ParkedAt: ago(time.Hour)})
		}, checkParked, statusWarning, []string{"2 keys", "; 1 being delivered again", "relay parked retry"}},
		{"a marker that cannot be read", func(t *testing.T, c *console) {
			c.put(t, schema.Key(schema.ParkedKey(3), outbox.ParkedTopicSortKey("placed")))
		}, checkParked, statusFailure, []string{"1 marker", "ParkedAtUtc", "repair"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := settled(t)
			test.change(t, c)
			c.examine(t).wants(t, test.id, test.status, test.texts...)
		})
	}
}

// Rows of a paused bucket wait for whoever has paused it: no relay is too slow, and none
// need be started for their sake. Those of other buckets are judged as ever.
func TestDoctorOnRowsOfPausedBuckets(t *testing.T) {
	pause := attributes{"PausedUntilUtc": before(-time.Hour), "PausedBy": text("ann"), "PauseReason": text("migration")}
	c := settled(t)
	c.ownLease(t, 3, "A", pause)
	c.waitsSince(t, 2*time.Hour, outbox.Message{Topic: "placed"})
	e := c.examine(t)
	e.wants(t, checkBacklog, statusWarning, "bucket 3", "1 message waiting, the oldest for 2h: paused until 2026-03-01T13:00:00Z, by ann: migration", "relay resume --bucket 3")
	e.only(t, checkBacklog, statusWarning)
	if strings.Contains(e.stdout, "bucket.blocked") {
		t.Errorf("relays are blamed: %s", e.stdout)
	}
	c.backlog(t, 5, 1, 3*time.Hour, 8)
	e = c.examine(t)
	e.wants(t, checkBacklog, statusWarning, "bucket 3", "relay resume --bucket 3")
	e.wants(t, checkBacklog, statusWarning, "bucket 5", "1 message waiting, the oldest for 3h", "bucket.blocked")

	c = newConsole(t)
	c.ownLease(t, 3, "A", pause)
	c.waitsSince(t, 2*time.Hour, outbox.Message{Topic: "placed"})
	c.examine(t).wants(t, checkRelays, statusWarning, "no relay is active")
	c.backlog(t, 5, 1, 3*time.Hour, 8)
	c.examine(t).wants(t, checkRelays, statusFailure, "no relay is active, and messages have waited for long")
}

// What is printed for people says all that is wrong and what to do, in 100 columns.
func TestDoctorPrintsForPeople(t *testing.T) {
	c := settled(t)
	c.ownLease(t, 5, "ghost", nil)
	c.waitsSince(t, 2*time.Hour, outbox.Message{Topic: "placed"})
	c.setCounter(t, 0)
	got := c.run("doctor", "--table", "orders")
	if got.code != exitFailed {
		t.Errorf("%+v", got)
	}
	golden(t, "doctor.txt", got.stdout)
}

// What several rows need of a topic is the most that one of them does.
func TestUsesOfATopicAreTakenTogether(t *testing.T) {
	one := topicUse{topic: "placed", rows: 1, oldest: 20, largest: 100, partition: -1, keyless: 1, bucket: 3, sequence: 7}
	two := topicUse{topic: "placed", rows: 2, oldest: 10, largest: 900, partition: 4, bucket: 5, sequence: 8}
	want := topicUse{topic: "placed", rows: 3, oldest: 10, largest: 900, partition: 4, keyless: 1, bucket: 5, sequence: 8}
	for _, got := range []topicUse{one.with(two), two.with(one), topicUse{}.with(two).with(one)} {
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
