package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/store"
)

func inFuture(d time.Duration) store.Ticks { return ago(-d) }

// leaseOf is the lease of a bucket as it stands.
func (c *console) leaseOf(t *testing.T, bucket int) store.Lease {
	t.Helper()
	for _, l := range c.do(t, store.ReadCoordination{}).Result.(store.CoordinationPage).Leases {
		if l.Bucket == bucket {
			return l
		}
	}
	return store.Lease{Bucket: bucket}
}

// A pause stands on the lease, with who, why and until when, and rings for nobody.
func TestPauseOfABucket(t *testing.T) {
	c := newConsole(t)
	c.do(t, store.Claim{Bucket: 3, Relay: "a", Incarnation: "a1", Claim: 1, Now: 1, Expires: inFuture(time.Minute)})
	got := c.run("pause", "--table", "orders", "--bucket=3", "--reason", "migration", "--for=90m", "--by", "ann", "--yes")
	if got.code != exitDone || got.stdout != "done: pause bucket 3, until 2026-03-01T13:30:00Z\n" || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	want := store.Lease{Bucket: 3, Owner: "a", Incarnation: "a1", Claim: 1, Expires: inFuture(time.Minute),
		PausedUntil: inFuture(90 * time.Minute), PausedBy: "ann", PauseReason: "migration"}
	if is := c.leaseOf(t, 3); is != want {
		t.Errorf("got %+v", is)
	}
	if len(c.rung(t)) != 0 {
		t.Error("somebody was rung for")
	}

	got = c.run("resume", "--table", "orders", "--bucket=3", "--yes")
	if got.code != exitDone || got.stdout != "done: let bucket 3 go on\n" || !strings.Contains(got.stderr, "paused until 2026-03-01T13:30:00Z, by ann: migration") {
		t.Errorf("%+v", got)
	}
	want.PausedUntil, want.PausedBy, want.PauseReason = 0, "", ""
	if is := c.leaseOf(t, 3); is != want {
		t.Errorf("got %+v", is)
	}
	if got = c.run("resume", "--table", "orders", "--bucket=3", "--yes"); got.code != exitDone || got.stdout != "there is nothing to do\n" {
		t.Errorf("%+v", got)
	}
}

// Without an end it holds until resumed. Who asks is who is logged in.
func TestPauseOfAllBuckets(t *testing.T) {
	c := newConsole(t)
	got := c.runWith("yes\n", []string{"USER=ann"}, "pause", "--table", "orders", "--bucket-count=3", "--all", "--reason", "upgrade", "--output=json")
	if got.code != exitDone || !strings.Contains(got.stderr, "pause all 3 buckets, until resumed? [y/N]") {
		t.Fatalf("%+v", got)
	}
	for b := range 3 {
		if is := c.leaseOf(t, b); is.PausedUntil != store.NoEnd || !strings.HasPrefix(is.PausedBy, "ann@") || is.PauseReason != "upgrade" || is.Owner != "" {
			t.Errorf("got %+v", is)
		}
	}
	if c.leaseOf(t, 3).PausedUntil != 0 {
		t.Error("a bucket beyond the count is paused")
	}
	got = c.run("resume", "--table", "orders", "--bucket-count=3", "--all", "--yes", "--output=json")
	var d changeDocument
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != exitDone || len(d.Requests) != 3 || d.Requests[2].Request != "resume" || d.Requests[2].Outcome != outcomeDone {
		t.Errorf("%v: %+v", err, got)
	}
}

// Whoever pauses what is paused sees by whom and why before the answer, and a dry run
// shows what would be sent.
func TestPauseOfWhatIsPaused(t *testing.T) {
	c := newConsole(t)
	c.do(t, store.Pause{Bucket: 1, Until: inFuture(time.Hour), By: "bob", Reason: "incident \x1b[31m"})
	got := c.runWith("no\n", nil, "pause", "--table", "orders", "--all", "--reason", "upgrade")
	if got.code != exitFailed || !strings.Contains(got.stderr, `bucket 1 is paused already until 2026-03-01T13:00:00Z, by bob: "incident \x1b[31m"`) {
		t.Errorf("%+v", got)
	}
	got = c.run("pause", "--table", "orders", "--bucket=1", "--reason", "upgrade", "--by", "ann", "--for=2h", "--dry-run")
	golden(t, "pause_dry_run.txt", got.stdout)
	if is := c.leaseOf(t, 1); got.code != exitDone || is.PausedBy != "bob" {
		t.Errorf("%+v, %+v", got, is)
	}
	if got = c.run("pause", "--table", "orders", "--bucket=1", "--reason", "upgrade", "--by", "ann", "--yes"); got.code != exitDone {
		t.Errorf("%+v", got)
	}
	if is := c.leaseOf(t, 1); is.PausedUntil != store.NoEnd || is.PausedBy != "ann" {
		t.Errorf("got %+v", is)
	}
}

// overtaken is a table on which another operator is faster.
type overtaken struct {
	store.API
	first func()
}

func (o *overtaken) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	o.first()
	o.first = func() {}
	return o.API.UpdateItem(ctx, in, opts...)
}

func TestPauseDoesNotWriteOverOneThatWasNotSeen(t *testing.T) {
	c := newConsole(t)
	c.through = func(api store.API) store.API {
		return &overtaken{api, func() { c.do(t, store.Pause{Bucket: 1, Until: store.NoEnd, By: "bob", Reason: "incident"}) }}
	}
	got := c.run("pause", "--table", "orders", "--bucket=1", "--reason", "upgrade", "--for=1m", "--yes")
	if got.code != exitFailed || !strings.Contains(got.stderr, "meanwhile: look at it again") || c.leaseOf(t, 1).PausedBy != "bob" {
		t.Errorf("%+v", got)
	}
}

// Topics that are paused by themselves stay so, and whoever resumes all is told how to
// resume them, once and not for each bucket.
func TestResumeOfAllNamesPausedTopics(t *testing.T) {
	c := newConsole(t)
	long := strings.Repeat("the consumer is broken ", 7)
	if got := c.run("pause", "--table", "orders", "--topic", "two words", "--reason", long, "--by", "ann", "--yes"); got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	got := c.run("resume", "--table", "orders", "--all", "--yes")
	if got.code != exitDone || got.stdout != "there is nothing to do\n" || strings.Count(got.stderr, "two words stays paused until resumed, by ann:") != 1 ||
		!strings.Contains(got.stderr, "relay resume --topic 'two words'\n") || strings.Contains(got.stderr, "…") {
		t.Errorf("%+v", got)
	}
	fitsWidth(t, ".txt", got.stderr)
	if got := c.run("resume", "--table", "orders", "--bucket=1", "--yes"); got.stderr != "" {
		t.Errorf("one bucket is asked for: %+v", got)
	}
}

// What is left of a pause that is over is no pause, and goes with a resume.
func TestResumeOfAPauseThatIsOver(t *testing.T) {
	c := newConsole(t)
	c.do(t, store.Pause{Bucket: 1, Until: ago(time.Hour), By: "bob", Reason: "incident"})
	got := c.run("resume", "--table", "orders", "--all", "--yes")
	if got.code != exitDone || !strings.Contains(got.stderr, "the pause of bucket 1 has been over for 1h") || c.leaseOf(t, 1).PausedUntil != 0 {
		t.Errorf("%+v", got)
	}
}

func TestPauseOfATopic(t *testing.T) {
	c := newConsole(t)
	got := c.run("pause", "--table", "orders", "--bucket-count=2", "--topic", "placed", "--reason", "consumer is broken", "--by", "ann", "--for=1h", "--yes")
	if got.code != exitDone || !strings.HasPrefix(got.stdout, "done: pause all of topic placed in bucket 0, until 2026-03-01T13:00:00Z\ndone: tell the owner of bucket 0\n") {
		t.Errorf("%+v", got)
	}
	want := map[string]store.Marker{"ALL#placed": {Topic: "placed", Reason: "consumer is broken", ParkedAt: ago(0), PausedUntil: inFuture(time.Hour), PausedBy: "ann"}}
	if is := c.markers(t, 1); !maps.Equal(is, want) || len(c.rung(t)) != 2 {
		t.Errorf("got %+v, rung for %v", is, c.rung(t))
	}
	got = c.run("parked", "list", "--table", "orders", "--bucket-count=2")
	if !strings.Contains(got.stdout, "paused until 2026-03-01T13:00:00Z, by ann: consume") {
		t.Errorf("%+v", got)
	}

	// Another end, and then none.
	got = c.run("pause", "--table", "orders", "--bucket-count=2", "--topic", "placed", "--reason", "still", "--by", "bob", "--yes")
	if is := c.markers(t, 1)["ALL#placed"]; got.code != exitDone || is.PausedUntil != store.NoEnd || is.Reason != "still" || is.ParkedAt <= ago(0) ||
		!strings.Contains(got.stderr, "topic placed is paused already until 2026-03-01T13:00:00Z, by ann: consumer is broken") {
		t.Errorf("%+v, %+v", got, is)
	}

	got = c.run("resume", "--table", "orders", "--bucket-count=2", "--topic", "placed", "--yes")
	if is := c.markers(t, 1)["ALL#placed"]; got.code != exitDone || is.RetryAt != ago(0) || !strings.Contains(got.stderr, "is paused until resumed, by bob: still") {
		t.Errorf("%+v, %+v", got, is)
	}
	got = c.run("pause", "--table", "orders", "--bucket-count=2", "--topic", "placed", "--reason", "again", "--yes")
	if got.code != exitFailed || !strings.Contains(got.stderr, "topic placed is being delivered again in bucket 0") {
		t.Errorf("%+v", got)
	}
	got = c.run("resume", "--table", "orders", "--topic", "other", "--yes")
	if got.code != exitFailed || !strings.Contains(got.stderr, "topic other is neither paused nor set aside") {
		t.Errorf("%+v", got)
	}
}

// The end of a pause, and whether an owner lives, do not depend on a clock that is wrong.
func TestAWrongClockIsSaid(t *testing.T) {
	for ahead, want := range map[time.Duration]string{
		900 * time.Millisecond: "",
		time.Hour:              "this host's clock is 1h ahead of the table's: the table's is meant here",
		-90 * time.Minute:      "this host's clock is 1h30m behind the table's: the table's is meant here",
	} {
		if got := clockText(picture.Clock{Dated: true, AheadLeast: ahead, AheadMost: ahead, Tolerated: time.Second}); got != want {
			t.Errorf("%v: %q", ahead, got)
		}
	}
}

// What is wrong with a command line is said, and nothing is sent.
func TestPauseRefusesWhatMakesNoSense(t *testing.T) {
	c := newConsole(t)
	dialed := c.dialed
	for want, args := range map[string][]string{
		"give --bucket, --topic or --all":               {"pause", "--reason=r"},
		"one of the three":                              {"pause", "--reason=r", "--bucket=1", "--all"},
		"--reason: say why":                             {"pause", "--bucket=1"},
		`--for "-1h": must be positive`:                 {"pause", "--bucket=1", "--reason=r", "--for=-1h"},
		`--for "60": needs a unit`:                      {"pause", "--bucket=1", "--reason=r", "--for=60"},
		"--bucket 8: the outbox has the buckets 0 to 7": {"pause", "--bucket=8", "--reason=r"},
		"--bucket 9: the outbox has the buckets 0 to 7": {"resume", "--bucket=9"},
		`--topic " ": must not be blank`:                {"pause", "--topic= ", "--reason=r"},
		`--reason " ": must not be blank`:               {"pause", "--bucket=1", "--reason= "},
		`--reason "\xff": must not be blank`:            {"pause", "--bucket=1", "--reason=\xff"},
		`--topic "\xff": must not be blank, be UTF-8`:   {"pause", "--topic=\xff", "--reason=r"},
		`--reason "a\nb": must not be blank`:            {"message", "park", "--topic=t", "--reason=a\nb"},
		`--reason "\xfe": must not be blank`:            {"message", "park", "--bucket=1", "--sequence=1", "--reason=\xfe"},
		`have 200 characters at most`:                   {"message", "park", "--topic=t", "--reason=" + strings.Repeat("r", maxNote+1)},
		"200 characters at most":                        {"pause", "--bucket=1", "--reason=" + strings.Repeat("x", 201)},
		`--by "a\nb": must`:                             {"pause", "--bucket=1", "--reason=r", "--by=a\nb"},
		"--all false: give --bucket":                    {"resume", "--all=off"},
		`"3": takes no such argument`:                   {"resume", "--all", "3"},
	} {
		got := c.run(slices.Insert(args, 1, "--table=orders")...)
		if got.code != exitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	if c.dialed != dialed {
		t.Error("the table was asked")
	}
}

// The pause of a topic ends by itself, and what was set aside is delivered then: until
// that is done nobody is told that the topic is paused, nor to resume it.
func TestATopicWhosePauseIsOverIsSaidToGoOn(t *testing.T) {
	c := newConsole(t)
	for bucket := range 8 {
		c.setAside(t, bucket, store.Marker{Topic: "placed", Reason: "migration", ParkedAt: ago(time.Hour), PausedUntil: ago(10 * time.Minute), PausedBy: "ann"})
	}
	const was = "topic placed was paused until 2026-03-01T11:50:00Z, by ann: migration; that ended 10m ago, and it is being delivered again"
	for _, test := range []struct {
		line   string
		wanted []string
	}{
		{"status", []string{was, "> nothing, its relays do that by themselves", "relay parked retry --call-off --topic placed"}},
		{"parked list", []string{"placed   8 of 8     1h    10m  was paused until 2026-03-01T11:50:00Z, by ann: migration\n"}},
		{"resume --topic placed --dry-run", []string{was}},
		{"pause --topic placed --reason again --dry-run", []string{was}},
		{"doctor", []string{"none is paused, and no topic is", "all are being delivered again"}},
	} {
		got := c.run(append(strings.Fields(test.line), "--table", "orders")...)
		said := got.stdout + got.stderr
		for _, wanted := range test.wanted {
			if !strings.Contains(strings.Join(strings.Fields(said), " "), strings.Join(strings.Fields(wanted), " ")) {
				t.Errorf("relay %s: no %q in\n%s", test.line, wanted, said)
			}
		}
		if strings.Contains(said, "placed is paused") || strings.Contains(said, "relay resume") {
			t.Errorf("relay %s says that it is paused:\n%s", test.line, said)
		}
	}
	if said := strings.Join(bucketLines(c.picture(t, 8), 0, 400), "\n"); !strings.Contains(said, "topic placed, for 1h, was paused until") {
		t.Errorf("relay top:\n%s", said)
	}
}
