package integration

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// soundTable has one item of each form, and one free and one held lease.
func soundTable() []item {
	incarnation := text("0639080000000000000-0123abcd")
	return []item{
		{"PK": text("OUTBOX#SEQUENCE#3"), "SK": text("SEQUENCE"), "Sequence": number("41")},
		{"PK": text("OUTBOX#COORDINATION"), "SK": text("LEASE#0000000003"), "ExpiresAtUtc": number("639080000000000001")},
		{"PK": text("OUTBOX#COORDINATION"), "SK": text("LEASE#0000000004"), "ExpiresAtUtc": number("639080000000000001"),
			"Owner": text("b"), "Incarnation": incarnation, "Claim": number("1")},
		{"PK": text("OUTBOX#COORDINATION"), "SK": text("RELAY#a"), "LastSeenUtc": number("639080000000000001"),
			"StoppedAtUtc": number("639080000000000001"), "Incarnation": incarnation, "Mode": text("ordered")},
		{"PK": text("OUTBOX#MESSAGES#3"), "SK": text("0000000000000000042")},
		{"PK": text("OUTBOX#PARKED#3"), "SK": text("KEY#0123456789abcdef0123456789abcdef"), "Topic": text("orders"),
			"Reason": text("MSG_SIZE_TOO_LARGE"), "Attempts": number("3"), "ParkedAtUtc": number("639080000000000001")},
		{"PK": text("OUTBOX#PARKED#3"), "SK": text("ROW#0123456789abcdef0123456789abcdef#0000000000000000041")},
	}
}

func TestInspectAcceptsTheDocumentedForms(t *testing.T) {
	s := inspect(soundTable())
	if len(s.problems) != 0 || s.messages != 1 || s.parked != 1 || s.sequences[3] != 41 || s.leases[4] != "b" ||
		len(s.leases) != 2 || s.relays["a"] != "639080000000000001" {
		t.Errorf("%+v", s)
	}
}

func TestInspectBites(t *testing.T) {
	for name, c := range map[string]struct {
		item      int
		attribute string
		value     types.AttributeValue // nil: removed
		problem   string
	}{
		"an unknown partition":      {0, "PK", text("OUTBOX#STATE"), "no item has such keys"},
		"a short lease key":         {1, "SK", text("LEASE#3"), "no item has such keys"},
		"no sequence":               {0, "Sequence", nil, "has no Sequence"},
		"a sequence as text":        {0, "Sequence", text("41"), "Sequence is S, not N"},
		"a lease without an expiry": {1, "ExpiresAtUtc", nil, "has no ExpiresAtUtc"},
		"an expiry in milliseconds": {1, "ExpiresAtUtc", number("1772357400000"), "ExpiresAtUtc is 1772357400000"},
		"an owner as number":        {2, "Owner", number("7"), "Owner is N, not S?"},
		"a free-form incarnation":   {2, "Incarnation", text("7"), "Incarnation is 7"},
		"an undocumented attribute": {3, "Host", text("h"), "has Host"},
		"a marker without a reason": {5, "Reason", nil, "has no Reason"},
		"a short key id":            {6, "SK", text("ROW#0123#0000000000000000041"), "no item has such keys"},
		"a relay without heartbeat": {3, "LastSeenUtc", nil, "has no LastSeenUtc"},
	} {
		t.Run(name, func(t *testing.T) {
			table := soundTable()
			if c.value == nil {
				delete(table[c.item], c.attribute)
			} else {
				table[c.item][c.attribute] = c.value
			}
			s := inspect(table)
			if len(s.problems) != 1 || !strings.Contains(s.problems[0], c.problem) {
				t.Errorf("%q", s.problems)
			}
		})
	}
}
