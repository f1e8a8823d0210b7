package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Whoever sets a topic aside that is being delivered again means it: the end of that
// retry must not let the topic go.
func TestParkingATopicCallsItsRetryOff(t *testing.T) {
	c := newConsole(t)
	c.setAside(t, 0, store.Marker{Topic: "nix", Reason: "mistyped", ParkedAt: ago(time.Hour), RetryAt: ago(time.Minute)})
	c.setAside(t, 1, store.Marker{Topic: "nix", Reason: "mistyped", ParkedAt: ago(time.Hour)})
	c.setAside(t, 2, store.Marker{Topic: "nix", Reason: "upgrade", ParkedAt: ago(time.Hour), PausedUntil: ago(time.Minute), PausedBy: "ann"})
	c.setAside(t, 3, store.Marker{Topic: "nix", Reason: "upgrade", ParkedAt: ago(time.Hour), PausedUntil: store.NoEnd, PausedBy: "ann"})
	got := c.run("message", "park", "--table", "orders", "--bucket-count=5", "--topic", "nix", "--yes")
	for _, want := range []string{
		"done: call off the retry of all of topic nix in bucket 0", "already: set aside all of topic nix in bucket 1",
		"done: call off the retry of all of topic nix in bucket 2", "already: set aside all of topic nix in bucket 3",
		"done: set aside all of topic nix in bucket 4",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in %+v", want, got)
		}
	}
	for _, want := range []string{"bucket 0: its retry, asked for 1m ago, is called off", "bucket 2: its retry, begun when its pause was over 1m ago, is called off", "bucket 3: it is paused already, and stays so"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %q in %+v", want, got)
		}
	}
	aside := store.Marker{Topic: "nix", Reason: operatorsReason, ParkedAt: ago(0)}
	for _, bucket := range []int{0, 2, 4} {
		if m := c.markers(t, bucket)["ALL#nix"]; m != aside {
			t.Errorf("bucket %d: %+v", bucket, m)
		}
	}
	if rung := c.rung(t); got.code != exitDone || len(rung) != 5 {
		t.Errorf("%+v, rung %v", got, rung)
	}
}

// The reason of a rejection stays, for it says what is wrong; that of a key which was set
// aside with its topic does not: the key would go on with the topic.
func TestParkingAKeyCallsItsRetryOff(t *testing.T) {
	keyID := outbox.ParkedKeyID(&outbox.Message{Topic: "placed", Key: []byte("order-4711")})
	rejected := store.Marker{KeyID: keyID, Topic: "placed", Reason: "MSG_SIZE_TOO_LARGE", Attempts: 3, ParkedAt: ago(time.Hour), RetryAt: ago(time.Minute)}
	withTopic := store.Marker{KeyID: keyID, Topic: "placed", Reason: store.ReasonTopic, ParkedAt: ago(time.Hour)}
	for _, test := range []struct {
		name   string
		before store.Marker
		flags  string
		reason string
	}{
		{"rejected", rejected, "", "MSG_SIZE_TOO_LARGE"},
		{"rejected, another reason given", rejected, "--reason=later", "later"},
		{"with its topic", withTopic, "", operatorsReason},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newConsole(t)
			c.fill(t, samples()...)
			c.setAside(t, 3, test.before, store.Marker{Topic: "placed", ParkedAt: ago(time.Hour), RetryAt: ago(2 * time.Minute)})
			got := c.run(append([]string{"message", "park", "--table", "orders", "--bucket=3", "--sequence=1", "--yes"}, strings.Fields(test.flags)...)...)
			want := store.Marker{KeyID: keyID, Topic: "placed", Reason: test.reason, Attempts: test.before.Attempts, ParkedAt: ago(0)}
			if m := c.markers(t, 3)["KEY#"+keyID]; got.code != exitDone || m != want || len(c.rung(t)) != 1 {
				t.Errorf("%+v\n%+v", got, m)
			}
		})
	}
}

// Rows of a key need not come for its retry to be called off.
func TestParkedRetryCallsOff(t *testing.T) {
	c := asideExample(t) // keyA is being retried
	got := c.run("parked", "retry", "--call-off", "--table", "orders", keyA, keyB, "--yes")
	want := store.Marker{KeyID: keyA, Topic: "placed", Reason: "MSG_SIZE_TOO_LARGE: 5,000 bytes, the topic takes 2,000", Attempts: 3, ParkedAt: ago(0)}
	if m := c.markers(t, 3)["KEY#"+keyA]; got.code != exitDone || m != want {
		t.Errorf("%+v\n%+v", got, m)
	}
	if rung := c.rung(t); len(rung) != 1 || rung[3] != ago(0) || strings.Contains(got.stdout, keyB) {
		t.Errorf("%+v, rung %v", got, rung)
	}
	got = c.run("parked", "retry", "--call-off", "--table", "orders", "--all")
	if got.code != exitDone || got.stdout != "there is nothing to do\n" {
		t.Errorf("%+v", got)
	}
	got = c.run("parked", "retry", "--call-off", "--table", "orders", strings.Repeat("d", 32))
	if got.code != exitFailed || !strings.Contains(got.stderr, "not set aside, so that nothing was asked for") {
		t.Errorf("a key that is not set aside: %+v", got)
	}
}

// A retry that is another one by now, or has ended, is not what the operator has seen.
func TestCallingOffARetryThatHasEnded(t *testing.T) {
	c := asideExample(t)
	seen := c.markers(t, 3)["KEY#"+keyA]
	c.do(t, store.AskRetry{Bucket: 3, KeyID: keyA, At: ago(0)})
	outcome, err := (&app{timeout: defaultPatience}).send(t.Context(), store.NewClient(schema, c.table, c.table), store.CallOff{Bucket: 3, Seen: seen, ParkedAt: ago(0), Reason: "r"})
	if outcome != outcomeFailed || err == nil || !strings.Contains(err.Error(), "run the command again") {
		t.Errorf("%s: %v", outcome, err)
	}
}

// A key that was set aside with its topic is retried with it, and whoever looks at it, or
// throws a row of it away, must know.
func TestTheRetryOfATopicShowsAtItsKeys(t *testing.T) {
	c := newConsole(t)
	c.setAside(t, 3, store.Marker{KeyID: keyA, Topic: "placed", Reason: store.ReasonTopic, ParkedAt: ago(time.Hour)},
		store.Marker{Topic: "placed", Reason: "mistyped", ParkedAt: ago(time.Hour), RetryAt: ago(time.Minute)})
	c.putAside(t, 3, keyA, 1, outbox.Message{Topic: "placed"})
	got := c.run("parked", "show", "--table", "orders", keyA)
	if !strings.Contains(got.stdout, "retry      with its topic, asked for at 2026-") {
		t.Errorf("%+v", got)
	}
	var d asideDocument
	got = c.run("parked", "show", "--table", "orders", keyA, "--output=json")
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || d.Buckets[0].Marker.Retry == nil || d.Buckets[0].Marker.RetryAt != nil {
		t.Errorf("%v: %+v", err, got)
	}
	for _, how := range []string{"--dry-run", "--yes"} {
		got = c.run("parked", "discard", "--table", "orders", keyA, "1", how)
		if got.code != exitDone || !strings.Contains(got.stderr, "the retry of its key is under way, with its topic, asked for 1m ago") ||
			!strings.Contains(got.stderr, "relay parked retry --call-off "+keyA) {
			t.Errorf("%s: %+v", how, got)
		}
	}
}

// Why a key is set aside names the limit at its end.
func TestParkedShowsTheWholeReason(t *testing.T) {
	c := newConsole(t)
	reason := strings.Repeat("the broker says MSG_SIZE_TOO_LARGE and goes on about it, ", 4) + "the topic's max.message.bytes is 2000"
	c.setAside(t, 3, store.Marker{KeyID: keyA, Topic: "placed", Reason: reason, ParkedAt: ago(time.Hour)})
	got := c.run("parked", "show", "--table", "orders", keyA)
	fitsWidth(t, "parked_show.txt", got.stdout)
	if whole := strings.Join(strings.Fields(got.stdout), " "); !strings.Contains(whole, reason) {
		t.Errorf("got %s", got.stdout)
	}
}
