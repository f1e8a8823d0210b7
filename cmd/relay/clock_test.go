package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// dated is a table whose answers have a date.
type dated struct {
	store.API
	at time.Time
}

func (d dated) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...options) (*dynamodb.QueryOutput, error) {
	out, err := d.API.Query(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	_, out.ResultMetadata, err = (&awsmiddleware.RecordResponseTiming{}).HandleDeserialize(ctx, middleware.DeserializeInput{},
		middleware.DeserializeHandlerFunc(func(context.Context, middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
			answer := &http.Response{Header: http.Header{"Date": {d.at.UTC().Format(http.TimeFormat)}}}
			return middleware.DeserializeOutput{RawResponse: &smithyhttp.Response{Response: answer}}, middleware.Metadata{}, nil
		}))
	return out, err
}

// offClock is a console on a host whose clock, which says noon, is off by so much. Twenty
// minutes ago, by the table's clock, a topic was paused, for so long.
func offClock(t *testing.T, off, pause time.Duration) (c *console, now time.Time) {
	c, now = newConsole(t), noon.Add(-off)
	c.through = func(api store.API) store.API { return dated{api, now} }
	before := func(d time.Duration) store.Ticks { return store.Ticks(outbox.Ticks(now.Add(-d))) }
	c.setAside(t, 3,
		store.Marker{KeyID: keyA, Topic: "placed", Reason: store.ReasonTopic, ParkedAt: before(19 * time.Minute)},
		store.Marker{Topic: "placed", Reason: "upgrade", ParkedAt: before(20 * time.Minute), PausedUntil: before(20*time.Minute - pause), PausedBy: "ann"})
	c.putAside(t, 3, keyA, 1, outbox.Message{Topic: "placed"})
	return c, now
}

// Whether a pause has ended, and what is long ago, does not depend on the clock of the
// host that a command runs on.
func TestCommandsGoByTheTablesClock(t *testing.T) {
	const over, on = 10 * time.Minute, 30 * time.Minute
	for _, off := range []time.Duration{-time.Hour, -time.Minute, 0, time.Minute, time.Hour} {
		for line, says := range map[string]map[time.Duration]string{
			"status":                         {over: "was paused in bucket 3", on: "is paused in bucket 3"},
			"parked list":                    {over: "  was paused until", on: "      -  paused until"},
			"parked show " + keyA:            {over: "with its topic, begun when its pause was over at", on: "retry      not asked for"},
			"parked retry --dry-run " + keyA: {over: "set aside 19m", on: "set aside 19m"},
			"parked retry --call-off --topic placed --dry-run": {over: "begun when its pause was over 10m", on: "there is nothing to do"},
			"parked discard " + keyA + " 1 --dry-run":          {over: "begun when its pause was over 10m", on: "discard row 1"},
			"message park --topic placed --dry-run":            {over: "its retry, begun when its pause was over 10m", on: "it is paused already, and stays so"},
			"pause --topic placed --reason r --dry-run":        {over: "was paused in bucket 3", on: "is paused already in bucket 3"},
			"resume --topic placed --dry-run":                  {over: "was paused in bucket 3", on: "is paused in bucket 3"},
			"resume --all --dry-run":                           {over: "there is nothing to do", on: "topic placed stays paused in bucket 3"},
		} {
			for pause, want := range says {
				c, _ := offClock(t, off, pause)
				got := c.run(append(strings.Fields(line), "--table", "orders")...)
				if printed := got.stdout + got.stderr; got.code != exitDone || !strings.Contains(printed, want) ||
					strings.Contains(printed, "this host's clock is") != (off != 0) {
					t.Errorf("relay %s, with a clock that is off by %v and a pause of %v: %+v, want %q", line, off, pause, got, want)
				}
			}
		}
	}
}

// How old a message is does not depend on it either.
func TestAgesAreByTheTablesClock(t *testing.T) {
	c, now := offClock(t, time.Hour, time.Minute)
	c.put(t, schema.EncodeMessage(outbox.Message{Topic: "placed", CreatedAt: now.Add(-5 * time.Minute)}, 2, 1))
	if got := c.run("message", "list", "--table", "orders", "--bucket=2"); !strings.Contains(got.stdout, "  5m1s  ") {
		t.Errorf("%+v", got)
	}
	got := c.run("message", "list", "--table", "orders", "--bucket=2", "--output=json")
	var d waitingDocument
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || d.Messages[0].AgeSeconds < 299 || d.Messages[0].AgeSeconds > 301 {
		t.Errorf("%v: %+v", err, got)
	}
}

// What a command writes, others compare: it is by the table's clock, too.
func TestChangesAreWrittenByTheTablesClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		for line, written := range map[string]func(c *console) store.Ticks{
			"parked retry " + keyA:                   func(c *console) store.Ticks { return c.markers(t, 3)["KEY#"+keyA].RetryAt },
			"resume --topic placed":                  func(c *console) store.Ticks { return c.markers(t, 3)["ALL#placed"].RetryAt },
			"message park --topic other":             func(c *console) store.Ticks { return c.markers(t, 3)["ALL#other"].ParkedAt },
			"pause --topic other --reason r":         func(c *console) store.Ticks { return c.markers(t, 3)["ALL#other"].ParkedAt },
			"parked discard " + keyA + " 1":          func(c *console) store.Ticks { return c.rung(t)[3] },
			"message park --topic placed":            func(c *console) store.Ticks { return c.rung(t)[3] },
			"parked retry --call-off --topic placed": func(c *console) store.Ticks { return c.rung(t)[3] },
		} {
			c, now := offClock(t, off, time.Minute)
			got := c.run(append(strings.Fields(line), "--table", "orders", "--yes")...)
			if at := written(c).Time(); got.code != exitDone || at.Sub(now).Abs() > time.Second {
				t.Errorf("relay %s, with a clock that is off by %v: %v, at %v\n%s", line, off, got, at, fmt.Sprint(now))
			}
		}
	}
}
