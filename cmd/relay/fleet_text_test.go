package main

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/store"
)

// unbroken is a text without line breaks and the blanks that align it.
func unbroken(text string) string { return strings.Join(strings.Fields(text), " ") }

// saysEverywhere demands the same words of commands that show the same fact.
func (c *console) saysEverywhere(t *testing.T, words string, commands ...[]string) {
	t.Helper()
	for _, args := range commands {
		got := c.runWith("no\n", nil, append(args, "--table", "orders")...)
		if !strings.Contains(unbroken(got.stdout+got.stderr), words) {
			t.Errorf("%s: no %q in:\n%s%s", strings.Join(args, " "), words, got.stdout, got.stderr)
		}
	}
}

// A pause of buckets is told in the same words by whatever command shows it.
func TestAPauseOfBucketsHasOneWording(t *testing.T) {
	c := settled(t)
	for _, bucket := range []int{1, 2} {
		c.do(t, store.Pause{Bucket: bucket, Until: inFuture(time.Hour), By: "ann@desk", Reason: "migration"})
	}
	const pause = "until 2026-03-01T13:00:00Z, by ann@desk: migration"
	c.saysEverywhere(t, "buckets 1-2 are paused "+pause, []string{"status"}, []string{"top"}, []string{"lease", "list"},
		[]string{"resume", "--all"})
	c.saysEverywhere(t, "buckets 1-2: paused "+pause, []string{"doctor"})
	c.saysEverywhere(t, "buckets 1-2 are paused already "+pause, []string{"pause", "--all", "--reason=r"})
	c.saysEverywhere(t, "each by its number: relay resume --bucket 1", []string{"status"}, []string{"doctor"})
	lines := newScreen(t, 100, 40).shows(c.picture(t, 8)).press("/", "2", "enter", "enter")
	lines.wantText("paused " + pause)
}

// So is one of a topic.
func TestAPauseOfATopicHasOneWording(t *testing.T) {
	c := settled(t)
	for bucket := range 8 {
		c.setAside(t, bucket, store.Marker{Topic: "placed", Reason: "migration", ParkedAt: ago(time.Minute), PausedUntil: store.NoEnd, PausedBy: "ann@desk"})
	}
	const pause = "until resumed, by ann@desk: migration"
	c.saysEverywhere(t, "topic placed is paused "+pause, []string{"status"}, []string{"top"}, []string{"resume", "--topic=placed"})
	c.saysEverywhere(t, "topic placed is paused already "+pause, []string{"pause", "--topic=placed", "--reason=r"})
	c.saysEverywhere(t, "paused until resumed, by ann@desk: mig", []string{"parked", "list"})
	newScreen(t, 100, 40).shows(c.picture(t, 8)).press("enter").wantText("topic placed, for 1m, paused " + pause)
}

// And so are a lease that cannot be read, and an owner without a record.
func TestLeasesHaveTheSameStatesEverywhere(t *testing.T) {
	c := settled(t)
	c.ownLease(t, 2, "A", attributes{"ExpiresAtUtc": text("soon")})
	c.ownLease(t, 3, "ghost", nil)
	c.saysEverywhere(t, "2 unreadable", []string{"status"}, []string{"top"}, []string{"lease", "list"})
	for _, command := range [][]string{{"status"}, {"lease", "list"}} {
		c.saysEverywhere(t, `"state": "unreadable"`, append(command, "--output=json"))
	}
	c.saysEverywhere(t, "ghost, has no record", []string{"status"}, []string{"top"})
	c.saysEverywhere(t, "ghost, which has no record", []string{"doctor"})
	c.saysEverywhere(t, "ghost has no record", []string{"lease", "release", "--bucket=3"})
}

// A fleet of both modes is told with what docs/modes.md has of it.
func TestAFleetOfBothModesIsTold(t *testing.T) {
	c := settled(t)
	c.saysEverywhere(t, "relay-modes 2 active relays: mode ordered", []string{"doctor"})
	if got := c.run("status", "--table", "orders"); strings.Contains(got.stdout, "both modes") {
		t.Errorf("of a fleet of one mode:\n%s", got.stdout)
	}
	c.record(t, "B", attributes{"Mode": text("fenced")})
	c.saysEverywhere(t, "of both modes, 1 fenced, 1 ordered: a fleet is fenced only when all of it is", []string{"status"}, []string{"doctor"})
	c.saysEverywhere(t, "as long as one is, consumers must read committed records", []string{"status"}, []string{"doctor"})
	c.record(t, "B", attributes{"Mode": text("fenced"), "StoppedAtUtc": types.AttributeValue(before(time.Minute))})
	c.saysEverywhere(t, "relay-modes 1 active relay: mode ordered", []string{"doctor"})
}

// One bucket has the singular, several the plural, in whatever is said of them.
func TestOneBucketAndSeveralAreToldInTheirNumber(t *testing.T) {
	for buckets, says := range map[int]map[string][]string{
		1: {
			"status": {"bucket 0 is paused until resumed,", "to go on: relay resume --bucket 0", "bucket 3: messages wait and no relay has claimed it,",
				"to free the rest at once: relay lease release --bucket 6", "the table has a lease of bucket 9;"},
			"doctor":                           {"a lease of bucket 9", "after: relay lease release --bucket 6"},
			"resume --all --dry-run":           {"bucket 0 is paused until resumed,"},
			"parked list":                      {"the table has a lease of bucket 9, passed over:"},
			"lease list":                       {"bucket 0 is paused until resumed,", "and 1 lease beyond the bucket count"},
			"pause --all --reason=r --dry-run": {"bucket 0 is paused already until resumed,"},
		},
		2: {
			"status": {"buckets 0-1 are paused until resumed,", "to go on, each by its number: relay resume --bucket 0",
				"buckets 3-4: messages wait and no relay has claimed them,", "to free the rest at once, each by its number: relay lease release --bucket 6",
				"the table has leases of buckets 9-10;"},
			"doctor":                           {"leases of buckets 9-10", "after, each by its number: relay lease release --bucket 6"},
			"resume --all --dry-run":           {"buckets 0-1 are paused until resumed,"},
			"parked list":                      {"the table has leases of buckets 9-10, passed over:"},
			"lease list":                       {"buckets 0-1 are paused until resumed,", "and 2 leases beyond the bucket count"},
			"pause --all --reason=r --dry-run": {"buckets 0-1 are paused already until resumed,"},
		},
	} {
		c := newConsole(t)
		c.relay(t, "a", map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(time.Second))})
		for i := range buckets {
			c.do(t, store.Pause{Bucket: i, Until: store.NoEnd, By: "ann", Reason: "migration"})
			c.backlog(t, 3+i, 1, time.Hour, 8)
			c.lease(t, 6+i, owned("gone", time.Minute))
			c.lease(t, 9+i, owned("a", time.Minute))
		}
		for line, wants := range says {
			got := c.run(append(strings.Fields(line), "--table", "orders")...)
			text := strings.Join(strings.Fields(got.stdout+got.stderr), " ")
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("relay %s does not say %q: %+v", line, want, got)
				}
			}
		}
	}
}
