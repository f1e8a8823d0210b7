package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// strandedExample is an outbox of which somebody has deleted a marker.
func strandedExample(t *testing.T) *console {
	c := settled(t)
	c.setAside(t, 2, store.Marker{KeyID: keyB, Topic: "placed", Reason: "r", ParkedAt: ago(time.Hour)})
	c.putAside(t, 2, keyA, 1, outbox.Message{Topic: "placed"})
	c.putAside(t, 2, keyB, 2, outbox.Message{Topic: "placed"})
	// One whose marker is there, and cannot be read, is not among them.
	c.put(t, schema.Key(schema.ParkedKey(4), outbox.ParkedKeySortKey(keyC)))
	c.putAside(t, 4, keyC, 3, outbox.Message{Topic: "placed"})
	return c
}

// Rows whose marker was deleted are delivered by nobody, and pass unseen unless every
// command that looks at what is set aside shows them, and says what repairs it.
func TestRowsWithoutAMarkerAreShown(t *testing.T) {
	c := strandedExample(t)
	repair := "relay parked retry " + keyA
	got := c.run("parked", "list", "--table", "orders")
	if !strings.Contains(got.stdout, repair) || strings.Contains(got.stdout, keyC) {
		t.Errorf("%+v", got)
	}
	fitsWidth(t, "parked_list.txt", got.stdout)
	var d parkedDocument
	got = c.run("parked", "list", "--table", "orders", "--output=json")
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || len(d.Strays) != 1 || d.Strays[0] != (strayDocument{keyA, 2}) || len(d.Keys) != 1 {
		t.Errorf("%v: %+v", err, got)
	}
	if got = c.run("status", "--table", "orders"); !strings.Contains(got.stdout, repair) || !strings.Contains(got.stdout, "bucket 2: rows of 1 key are set aside without a marker") {
		t.Errorf("%+v", got)
	}
	c.examine(t).wants(t, checkParked, statusFailure, "bucket 2", keyA, "newer rows of the key pass", repair)
}

func TestParkedRetryOfAllHasStraysDelivered(t *testing.T) {
	c := strandedExample(t)
	got := c.run("parked", "retry", "--table", "orders", "--all", "--yes")
	m := c.markers(t, 2)
	if m["KEY#"+keyA].RetryAt != ago(0) || m["KEY#"+keyB].RetryAt != ago(0) || m["KEY#"+keyA].Reason != strayReason {
		t.Errorf("%+v\n%+v", got, m)
	}
	if got.code != exitFailed || !strings.Contains(got.stderr, "1 marker cannot be read") {
		t.Errorf("the marker that cannot be read: %+v", got)
	}
}

// Messages of one key stand in several buckets when they name their partitions. A marker
// in one of them is none for the rows in another.
func TestParkedRetryFindsAStrayOfAKeyThatHasAMarkerElsewhere(t *testing.T) {
	for _, which := range []string{"--all", keyA} {
		c := newConsole(t)
		c.setAside(t, 1, store.Marker{KeyID: keyA, Topic: "placed", Reason: "r", ParkedAt: ago(time.Hour)})
		c.putAside(t, 1, keyA, 1, outbox.Message{Topic: "placed"})
		c.putAside(t, 2, keyA, 1, outbox.Message{Topic: "placed"})
		got := c.run("parked", "retry", "--table", "orders", "--yes", which)
		for bucket, reason := range map[int]string{1: "r", 2: strayReason} {
			if m := c.markers(t, bucket)["KEY#"+keyA]; got.code != exitDone || m.RetryAt != ago(0) || m.Reason != reason {
				t.Errorf("%s: bucket %d: %+v\n%+v", which, bucket, m, got)
			}
		}
	}
}

// What --all leaves out, since its topic is set aside as a whole, stays so whatever else
// is found of the key, and rows without a marker of such a topic are left out, too.
func TestParkedRetryOfAllLeavesWholeTopicsWithStraysAlone(t *testing.T) {
	c := newConsole(t)
	c.setAside(t, 1, store.Marker{Topic: "placed", Reason: "mistyped", ParkedAt: ago(time.Hour)},
		store.Marker{KeyID: keyA, Topic: "placed", Reason: store.ReasonTopic, ParkedAt: ago(time.Hour)})
	c.putAside(t, 1, keyA, 1, outbox.Message{Topic: "placed"})
	c.putAside(t, 1, keyB, 2, outbox.Message{Topic: "placed"})
	c.putAside(t, 2, keyA, 1, outbox.Message{Topic: "placed"})
	got := c.run("parked", "retry", "--table", "orders", "--yes", "--all")
	of1, of2 := c.markers(t, 1), c.markers(t, 2)
	if got.code != exitDone || of1["KEY#"+keyA].RetryAt != 0 || len(of1) != 2 || of2["KEY#"+keyA].RetryAt != ago(0) ||
		!strings.Contains(got.stderr, "not among them: 2 keys of topics that are set aside as a whole") {
		t.Errorf("%+v\n%+v %+v", got, of1, of2)
	}
}

// A marker that cannot be read may be that of the topic.
func TestParkedRetryOfATopicTellsOfMarkersThatCannotBeRead(t *testing.T) {
	c := newConsole(t)
	c.put(t, schema.Key(schema.ParkedKey(4), outbox.ParkedTopicSortKey("placed")))
	got := c.run("parked", "retry", "--table", "orders", "--topic", "placed", "--yes")
	if got.code != exitFailed || !strings.Contains(got.stderr, "not set aside as a whole") || !strings.Contains(got.stderr, "1 marker cannot be read") {
		t.Errorf("%+v", got)
	}
}

// In the other buckets the topic goes on, but nobody is told that all of it does.
func TestTopicsGoOnButForMarkersThatCannotBeRead(t *testing.T) {
	for _, command := range [][]string{{"resume"}, {"parked", "retry"}, {"parked", "retry", "--call-off"}} {
		c := newConsole(t)
		pause := store.Marker{Topic: "placed", ParkedAt: ago(time.Hour), PausedUntil: ago(-time.Hour), PausedBy: "ann", Reason: "why"}
		if command[len(command)-1] == "--call-off" {
			pause.RetryAt = ago(time.Minute)
		}
		c.setAside(t, 2, pause)
		c.put(t, schema.Key(schema.ParkedKey(4), outbox.ParkedTopicSortKey("placed")))
		got := c.run(append(command, "--table", "orders", "--topic", "placed", "--yes")...)
		if got.code != exitFailed || !strings.Contains(got.stdout, "done: tell the owner of bucket 2") || !strings.Contains(got.stderr, "1 marker cannot be read") {
			t.Errorf("%q: %+v", command, got)
		}
	}
}

// With a marker that nobody can read, nobody knows that nothing is set aside.
func TestParkedListOfAMarkerThatCannotBeReadAlone(t *testing.T) {
	c := newConsole(t)
	c.put(t, schema.Key(schema.ParkedKey(4), outbox.ParkedKeySortKey(keyC)))
	got := c.run("parked", "list", "--table", "orders")
	if got.code != exitFailed || strings.Contains(got.stdout, "nothing is set aside") || !strings.Contains(got.stderr, "1 marker cannot be read") {
		t.Errorf("%+v", got)
	}
}

// With too small a bucket count, what is set aside in the other buckets does not show.
func TestACommandAboutAllBucketsTellsOfMore(t *testing.T) {
	c := newConsole(t)
	c.do(t, store.Ring{Bucket: 6, At: 1})
	for _, line := range []string{"parked list", "parked retry --all --yes", "message park --topic t --yes"} {
		got := c.run(append(strings.Fields(line), "--table", "orders", "--bucket-count=4")...)
		if got.code != exitDone || !strings.Contains(got.stderr, "a lease of bucket 6, passed over: bucket-count is 4 here") {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
