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

// steering is what a terminal would obey, in whatever is text in a table.
const steering = "\x1b[2J\x1b]0;evil\a\r\u202e"

// steeringTable has it wherever writers, relays and operators can put a text: in rows that
// wait, can be read and cannot, in what is set aside, in leases, pauses and records.
func steeringTable(t *testing.T) *console {
	t.Helper()
	c := newConsole(t)
	c.relay(t, steering, map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(time.Hour)), "Mode": text(steering), "Incarnation": text(steering)})
	c.relay(t, "a"+steering, map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(0)), "Mode": text(steering), "Incarnation": text("1")})
	c.relay(t, "b"+steering, map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(-time.Hour)), "Mode": text("fenced"), "Incarnation": text("1")})
	c.relay(t, "c"+steering, map[string]types.AttributeValue{"LastSeenUtc": ticksValue(ago(0))})
	c.relay(t, "d"+steering, map[string]types.AttributeValue{"LastSeenUtc": text(steering)})
	lease := owned(steering, -time.Hour)
	lease["PausedUntilUtc"], lease["PausedBy"], lease["PauseReason"] = ticksValue(ago(-time.Hour)), text(steering), text(steering)
	c.lease(t, 0, lease)
	c.lease(t, 1, owned(steering+"gone", time.Hour))
	c.lease(t, 2, owned("a"+steering, time.Hour))
	c.lease(t, 3, map[string]types.AttributeValue{"Owner": text(steering), "ExpiresAtUtc": text(steering)})
	c.lease(t, 9, owned(steering, time.Hour))
	c.putItem(t, schema.CoordinationKey(), "LEASE#"+steering, owned(steering, time.Hour))
	m := outbox.Message{Topic: steering, Key: []byte(steering), Value: []byte(steering), Headers: []outbox.Header{{Key: steering, Value: []byte(steering)}}}
	for bucket := range 8 {
		m.ID, m.CreatedAt = uuid.UUID{byte(bucket)}, noon.Add(-time.Hour)
		item := schema.EncodeMessage(m, bucket, 1)
		switch bucket {
		case 4:
			item["Id"], item["MessageId"] = text(steering), text(steering)
		case 5:
			item["SK"] = text(steering)
		case 6:
			item["CreatedAtUtc"] = &types.AttributeValueMemberS{Value: steering}
		}
		c.put(t, item)
		c.putAside(t, bucket, keyA, 1, m)
		c.putAside(t, bucket, keyB, 2, m)
		c.setAside(t, bucket, store.Marker{KeyID: keyA, Topic: steering, Reason: steering, ParkedAt: 1},
			store.Marker{Topic: steering, Reason: steering, ParkedAt: 1, PausedUntil: ago(-time.Hour), PausedBy: steering},
			store.Marker{Topic: "b" + steering, Reason: steering, ParkedAt: 1})
		c.putItem(t, schema.ParkedKey(bucket), "KEY#"+steering, map[string]types.AttributeValue{"Topic": text(steering)})
		c.putItem(t, schema.ParkedKey(bucket), "ROW#"+steering, nil)
		c.putItem(t, schema.ParkedKey(bucket), "ROW#"+keyA+"#"+steering, nil)
	}
	c.putItem(t, schema.SequenceKey(1), outbox.CounterSortKey, map[string]types.AttributeValue{outbox.AttrSequence: text(steering)})
	return c
}

// What writers, relays and operators have put into the table cannot steer a terminal,
// whatever command shows it, as a result or in an error.
func TestNoCommandLetsTheTableSteerATerminal(t *testing.T) {
	lines := canaryLines(t)
	lines["message list"] = append(lines["message list"], "--table orders --bucket 1 --show-content")
	lines["parked show"] = append(lines["parked show"], "--table orders --show-content "+canaryKeyID())
	for command, arguments := range lines {
		for _, argument := range arguments {
			line := command + " " + strings.ReplaceAll(argument, canaryKeyID(), keyA)
			obeyed := "\x1b\a\r\u202e"
			if strings.Contains(line, "--output json") {
				obeyed = "\x1b\a\r" // the rest is for programs, as it is
			}
			for _, c := range []*console{steeringTable(t), reluctant(steeringTable(t))} {
				got := c.run(strings.Fields(line)...)
				if printed := got.stdout + got.stderr; strings.ContainsAny(printed, obeyed) {
					t.Errorf("relay %s: %q", line, printed)
				}
			}
		}
	}
}
