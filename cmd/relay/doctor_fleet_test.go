package main

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// before is a moment before noon as the table has it; with a negative duration after.
func before(d time.Duration) types.AttributeValue { return ticksValue(ago(d)) }

// record puts a relay's record; attributes are added to it, or replace some.
func (c *console) record(t *testing.T, id string, attributes map[string]types.AttributeValue) {
	t.Helper()
	item := schema.Key(schema.CoordinationKey(), outbox.RelaySortKey(id))
	item[outbox.AttrLastSeenUtc], item[outbox.AttrIncarnation], item[outbox.AttrMode] = before(4*time.Second), text("1-a"), text("ordered")
	for name, value := range attributes {
		if item[name] = value; value == nil {
			delete(item, name)
		}
	}
	c.put(t, item)
}

// ownLease puts a bucket's lease; likewise.
func (c *console) ownLease(t *testing.T, bucket int, owner string, attributes map[string]types.AttributeValue) {
	t.Helper()
	item := schema.Key(schema.CoordinationKey(), outbox.LeaseSortKey(bucket))
	item[outbox.AttrOwner], item[outbox.AttrExpiresAtUtc] = text(owner), before(-26*time.Second)
	for name, value := range attributes {
		if item[name] = value; value == nil {
			delete(item, name)
		}
	}
	c.put(t, item)
}

// settled is a console on the table of a fleet of two with nothing wrong about it.
func settled(t *testing.T) *console {
	c := newConsole(t)
	for i, id := range []string{"A", "B"} {
		c.record(t, id, nil)
		for bucket := 4 * i; bucket < 4*i+4; bucket++ {
			c.ownLease(t, bucket, id, nil)
		}
	}
	return c
}

func TestDoctorOnASettledFleet(t *testing.T) {
	e := settled(t).examine(t)
	for _, check := range e.Checks {
		if check.Status == statusFailure || check.Status == statusWarning {
			t.Errorf("%+v", check)
		}
	}
	e.wants(t, checkRelays, statusOK, "2 active relays", "A (ordered), B (ordered)")
	e.wants(t, checkLeases, statusOK, "8 buckets")
}

// attributes are some of an item.
type attributes = map[string]types.AttributeValue

// A lease that cannot be read counts neither as an active relay's nor as nobody's.
func TestDoctorDoesNotCountAnUnreadableLease(t *testing.T) {
	c := settled(t)
	c.ownLease(t, 2, "A", attributes{"ExpiresAtUtc": text("soon")})
	e := c.examine(t)
	e.wants(t, checkLeases, statusOK, "7 buckets", "each is leased to an active relay")
	e.wants(t, checkCoordination, statusFailure, "LEASE#0000000002")
}

func TestDoctorOnAFleetThatIsUnwell(t *testing.T) {
	for _, test := range []struct {
		name       string
		change     func(t *testing.T, c *console)
		args       []string
		id, status string
		texts      []string
	}{
		{"a lease of nobody", func(t *testing.T, c *console) { c.ownLease(t, 5, "ghost", nil) }, nil,
			checkLeases, statusWarning, []string{"bucket 5", "ghost, which has no record", "relay lease release"}},
		{"leases of a silent one", func(t *testing.T, c *console) {
			c.record(t, "B", attributes{"LastSeenUtc": before(45 * time.Second)})
		}, nil, checkLeases, statusWarning, []string{"buckets 4-7", "B, which is silent"}},
		{"leases of a stopped one", func(t *testing.T, c *console) {
			c.record(t, "B", attributes{"StoppedAtUtc": before(4 * time.Second)})
		}, nil, checkLeases, statusWarning, []string{"buckets 4-7", "B, which has stopped"}},
		{"a free bucket for long", func(t *testing.T, c *console) {
			c.ownLease(t, 2, "", attributes{"Owner": nil, "ExpiresAtUtc": before(5 * time.Minute)})
		}, nil, checkLeases, statusFailure, []string{"bucket 2", "without an owner for more than 1m30s", "clock.skewed"}},
		{"a bucket that was never leased", func(t *testing.T, c *console) {
			c.ownLease(t, 2, "", attributes{"Owner": nil, "ExpiresAtUtc": nil})
		}, nil, checkLeases, statusWarning, []string{"bucket 2", "without an owner yet"}},
		{"a lease that cannot be read", func(t *testing.T, c *console) {
			c.ownLease(t, 2, "A", attributes{"ExpiresAtUtc": text("soon")})
		}, nil, checkCoordination, statusFailure, []string{"LEASE#0000000002", "ExpiresAtUtc", "put right"}},
		{"leases of more buckets", func(t *testing.T, c *console) { c.ownLease(t, 8, "A", nil); c.ownLease(t, 9, "A", nil) }, nil,
			checkBucketCount, statusFailure, []string{"leases of buckets 8-9", "have 8 buckets", "same bucket-count"}},
		{"one that ended without a release", func(t *testing.T, c *console) {
			c.record(t, "C", attributes{"LastSeenUtc": before(3 * time.Minute)})
		}, nil, checkSilent, statusWarning, []string{"C was last seen 3m ago", "out of memory"}},
		{"nobody", func(t *testing.T, c *console) {
			c.record(t, "A", attributes{"StoppedAtUtc": before(time.Hour)})
			c.record(t, "B", attributes{"StoppedAtUtc": before(time.Hour)})
		}, nil, checkRelays, statusWarning, []string{"no relay is active", "relay run"}},
		{"nobody for rows that wait", func(t *testing.T, c *console) {
			c.record(t, "A", attributes{"StoppedAtUtc": before(time.Hour)})
			c.record(t, "B", attributes{"StoppedAtUtc": before(time.Hour)})
			c.waitsSince(t, time.Hour, outbox.Message{Topic: "placed"})
		}, nil, checkRelays, statusFailure, []string{"messages have waited", "relay run"}},
		{"one of the peer", func(t *testing.T, c *console) {
			c.record(t, "B", attributes{"Incarnation": nil, "Mode": nil})
		}, nil, checkForeign, statusWarning, []string{"of Dekaf.Outbox: B", "poison to block"}},
		{"one of the peer, and we block", func(t *testing.T, c *console) {
			c.record(t, "B", attributes{"Incarnation": nil, "Mode": nil})
		}, []string{"--poison", "block"}, checkForeign, statusOK, []string{"B"}},
		{"one of the peer, and a key is set aside", func(t *testing.T, c *console) {
			c.record(t, "B", attributes{"Incarnation": nil, "Mode": nil})
			c.marker(t, 3, "placed", "MSG_SIZE_TOO_LARGE", time.Hour)
		}, []string{"--poison", "block"}, checkForeign, statusFailure, []string{"relay parked retry --all"}},
		{"two modes", func(t *testing.T, c *console) { c.record(t, "B", attributes{"Mode": text("fenced")}) }, nil,
			checkModes, statusWarning, []string{"of both modes, 1 fenced, 1 ordered: a fleet is fenced only when all of it is", "late copies", "consumers must read committed records"}},
		{"another mode", func(*testing.T, *console) {}, []string{"--mode", "fenced"},
			checkModes, statusWarning, []string{"mode ordered, the settings here say fenced"}},
		{"another lease duration", func(t *testing.T, c *console) {
			c.ownLease(t, 4, "B", attributes{"ExpiresAtUtc": before(-86 * time.Second)})
		}, nil, checkDurations, statusWarning, []string{"B 1m30s", "say 30s", "same lease-duration"}},
		{"a heartbeat from the future", func(t *testing.T, c *console) {
			c.record(t, "B", attributes{"LastSeenUtc": before(-6 * time.Second)})
		}, nil, checkRelayClocks, statusFailure, []string{"B by 6.0 s", "NTP"}},
		{"paused without an end", func(t *testing.T, c *console) {
			endless := &types.AttributeValueMemberN{Value: strconv.FormatInt(outbox.MaxTicks, 10)}
			for _, bucket := range []int{1, 2} {
				c.ownLease(t, bucket, "A", attributes{"PausedUntilUtc": endless, "PausedBy": text("ops@desk"), "PauseReason": text("migration")})
			}
		}, nil, checkPauses, statusWarning, []string{"buckets 1-2", "until resumed, by ops@desk: migration", "relay resume --bucket 1"}},
		{"paused for a while", func(t *testing.T, c *console) {
			c.ownLease(t, 1, "A", attributes{"PausedUntilUtc": before(-time.Hour)})
		}, nil, checkPauses, statusWarning, []string{"bucket 1", "until 2026-03-01T13:00:00Z"}},
		{"a paused topic", func(t *testing.T, c *console) {
			for bucket := range 8 {
				c.setAside(t, bucket, store.Marker{Topic: "placed", Reason: "migration", ParkedAt: 1, PausedUntil: store.NoEnd, PausedBy: "ann"})
			}
		}, nil, checkPauses, statusWarning, []string{"topic placed", "until resumed, by ann: migration", "relay resume --topic placed"}},
		{"a paused topic that is being delivered again", func(t *testing.T, c *console) {
			c.setAside(t, 3, store.Marker{Topic: "placed", ParkedAt: 1, PausedUntil: store.NoEnd, RetryAt: 2})
		}, nil, checkPauses, statusOK, []string{"none is paused, and no topic is"}},
		{"a pause that has ended", func(t *testing.T, c *console) {
			c.ownLease(t, 1, "A", attributes{"PausedUntilUtc": before(time.Hour)})
		}, nil, checkPauses, statusOK, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := settled(t)
			test.change(t, c)
			c.examine(t, test.args...).wants(t, test.id, test.status, test.texts...)
		})
	}
}

// fleetAt are the checks of a fleet as read at noon, with a date of the table's.
func fleetAt(least, most time.Duration) *fleetChecks {
	s := settings.Defaults()
	s.Relay.Table = "orders"
	clock := picture.Clock{Dated: true, AheadLeast: least, AheadMost: most, Tolerated: s.Relay.MaxClockSkew / 2}
	return &fleetChecks{settings: &s, outbox: &outboxChecks{settings: &s}, seen: picture.Fleet{At: noon, Clock: clock}}
}

// A clock fails only when it is certainly off by more than half of max-clock-skew (2 s):
// a date has whole seconds.
func TestDoctorJudgesThisHostsClock(t *testing.T) {
	for _, test := range []struct {
		least, most time.Duration
		status      string
		text        string
	}{
		{-time.Second, 10 * time.Millisecond, statusOK, "between -1.0 s and 0.0 s ahead"},
		{900 * time.Millisecond, 1900 * time.Millisecond, statusOK, "ahead"},
		{1100 * time.Millisecond, 2100 * time.Millisecond, statusFailure, "between 1.1 s and 2.1 s ahead"},
		{-1900 * time.Millisecond, -900 * time.Millisecond, statusOK, "between 0.9 s and 1.9 s behind"},
		{-31 * time.Second, -30 * time.Second, statusFailure, "between 30.0 s and 31.0 s behind"},
	} {
		e := examination{doctorDocument: doctorDocument{Checks: fleetAt(test.least, test.most).judge()}}
		e.wants(t, checkClock, test.status, "this host", test.text)
	}
}

// With 10,000 buckets as with three, what is wrong is named in a few words.
func TestManyNumbersAreNamedInAFewWords(t *testing.T) {
	for want, ascending := range map[string][]int{
		"bucket 3":                              {3},
		"buckets 1, 3-5, 9":                     {1, 3, 4, 5, 9},
		"buckets 0-9999":                        every(10_000, 1),
		"buckets 0, 2, 4, 6, 8, 10 and 94 more": every(200, 2),
	} {
		if got := bucketsText(ascending); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// every step-th number below a limit.
func every(limit, step int) []int {
	var numbers []int
	for n := 0; n < limit; n += step {
		numbers = append(numbers, n)
	}
	return numbers
}
