package outbox_test

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/outbox"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
func binary(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

var schema = outbox.Schema{Table: "table"}

const someID = "6f1c2a5e-93d4-4b0c-8a7e-0d1f2b3c4d5e"

// peerItem is a message with everything, as a .NET writer with upper-case GUIDs stores it.
func peerItem() item {
	return item{
		"PK": text("OUTBOX#MESSAGES#3"), "SK": text("0000000000000000042"),
		"MessageId": text(strings.ToUpper(someID)), "Topic": text("orders"),
		"Key": binary([]byte("k")), "Value": binary([]byte("v")),
		"Headers":   binary(outbox.EncodeHeaders([]outbox.Header{{Key: "h"}})),
		"Partition": number("11"), "CreatedAtUtc": number("638000000000000001"), "BucketCount": number("8"),
	}
}

func TestPeersItemIsRead(t *testing.T) {
	eleven := int32(11)
	got, err := schema.DecodeMessage(peerItem())
	want := outbox.Row{Sequence: 42, BucketCount: 8, Size: outbox.ItemSize(peerItem()), Item: peerItem(), Message: outbox.Message{
		ID: uuid.MustParse(someID), Topic: "orders", Key: []byte("k"), Value: []byte("v"),
		Headers: []outbox.Header{{Key: "h"}}, Partition: &eleven, CreatedAt: outbox.FromTicks(638_000_000_000_000_001),
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func TestItemIsWrittenAsThePeerReadsIt(t *testing.T) {
	row, err := schema.DecodeMessage(peerItem())
	if err != nil {
		t.Fatal(err)
	}
	want := peerItem()
	want["MessageId"] = text(someID)
	if got := schema.EncodeMessage(row.Message, 3, 42); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// Absent attributes mean something: no key, a tombstone, no headers, no partition.
func TestWhatIsAbsentHasNoAttribute(t *testing.T) {
	m := outbox.Message{ID: uuid.MustParse(someID), Topic: "t", CreatedAt: time.Unix(0, 0)}
	want := item{
		"PK": text("OUTBOX#MESSAGES#0"), "SK": text("0000000000000000001"), "MessageId": text(someID),
		"Topic": text("t"), "CreatedAtUtc": number("621355968000000000"), "BucketCount": number("8"),
	}
	if got := schema.EncodeMessage(m, 0, 1); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	delete(want, "BucketCount")
	row, err := schema.DecodeMessage(want)
	if err != nil || row.BucketCount != 0 || row.Message.Key != nil || row.Message.Value != nil {
		t.Errorf("got %+v, %v", row, err)
	}
}

func TestMessagesComeBackFromTheirItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := outbox.Schema{Table: "table", PartitionKey: "p", SortKey: "s", BucketCount: rapid.IntRange(1, 10_000).Draw(t, "count")}
		m := outbox.Message{
			ID:        uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")),
			Topic:     "t" + rapid.String().Draw(t, "topic"),
			Key:       bytesOrNil(30).Draw(t, "key"),
			Value:     bytesOrNil(30).Draw(t, "value"),
			Headers:   someHeaders().Draw(t, "headers"),
			Partition: rapid.Ptr(rapid.Int32Range(0, 1<<31-1), true).Draw(t, "partition"),
			CreatedAt: outbox.FromTicks(rapid.Int64Range(0, outbox.MaxTicks).Draw(t, "created")),
		}
		sequence := rapid.Int64Range(1, 1<<62).Draw(t, "sequence")
		stored := s.EncodeMessage(m, m.Bucket(s.BucketCount), sequence)
		got, err := s.DecodeMessage(stored)
		want := outbox.Row{Sequence: sequence, Message: m, BucketCount: s.BucketCount, Size: outbox.ItemSize(stored), Item: stored}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
		}
	})
}

// A malformed row stops its bucket, so an operator must learn which row it is and what is wrong with it.
func TestMalformedItemIsNamed(t *testing.T) {
	const bad = "bad"
	for name, test := range map[string]struct {
		attribute string
		value     types.AttributeValue // nil: the attribute is missing
		problem   string
	}{
		"no partition key":          {"PK", nil, "is missing"},
		"no sort key":               {"SK", nil, "is missing"},
		"a short sort key":          {"SK", text("42"), "is not a sequence number of 19 digits"},
		"a sort key of numbers":     {"SK", number("42"), "is not a string"},
		"no id":                     {"MessageId", nil, "is missing"},
		"an id that is binary":      {"MessageId", binary(make([]byte, 16)), "is not a string"},
		"an id that is no GUID":     {"MessageId", text(bad), "is not a GUID"},
		"an id in braces":           {"MessageId", text("{" + someID + "}"), "is not a GUID"},
		"an id without hyphens":     {"MessageId", text(strings.ReplaceAll(someID, "-", "")), "is not a GUID"},
		"no topic":                  {"Topic", nil, "is missing"},
		"an empty topic":            {"Topic", text(""), "is blank"},
		"no time":                   {"CreatedAtUtc", nil, "is missing"},
		"a time that is text":       {"CreatedAtUtc", text("2024-01-01"), "is not a number"},
		"a time with a fraction":    {"CreatedAtUtc", number("1.5"), "is not a whole number from 0"},
		"a time after 9999":         {"CreatedAtUtc", number("3155378975999999999000"), "is not a whole number"},
		"a bucket count of zero":    {"BucketCount", number("0"), "is not a whole number from 1 to 2147483647"},
		"a bucket count as text":    {"BucketCount", text("8"), "is not a number"},
		"a negative partition":      {"Partition", number("-1"), "is not a whole number from 0 to 2147483647"},
		"a partition beyond int32":  {"Partition", number("2147483648"), "is not a whole number"},
		"a key that is text":        {"Key", text("k"), "is not binary"},
		"a value that is NULL":      {"Value", &types.AttributeValueMemberNULL{Value: true}, "is not binary"},
		"headers that are empty":    {"Headers", binary(nil), "cannot be decoded: headers are empty"},
		"headers that are cut off":  {"Headers", binary([]byte{1, 1, 0, 0, 0}), "cannot be decoded"},
		"an attribute that is null": {"Value", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			stored := peerItem()
			delete(stored, test.attribute)
			if test.value != nil {
				stored[test.attribute] = test.value
			}
			_, err := schema.DecodeMessage(stored)
			if test.problem == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			var fault *outbox.ItemError
			if !errors.As(err, &fault) {
				t.Fatalf("got %v, want an ItemError", err)
			}
			if fault.Attribute != test.attribute || !strings.Contains(fault.Problem, test.problem) {
				t.Errorf("got %q %q, want %q %q", fault.Attribute, fault.Problem, test.attribute, test.problem)
			}
			if test.attribute != "PK" && test.attribute != "SK" {
				want := `item "OUTBOX#MESSAGES#3" "0000000000000000042": attribute ` + test.attribute
				if !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%q does not begin with %q", err, want)
				}
			}
		})
	}
}

func TestUnknownAttributesAreIgnored(t *testing.T) {
	stored := peerItem()
	stored["Added"] = &types.AttributeValueMemberM{Value: item{"later": text("x")}}
	row, err := schema.DecodeMessage(stored)
	if err != nil || row.Size != outbox.ItemSize(stored) {
		t.Errorf("got size %d, %v, want %d", row.Size, err, outbox.ItemSize(stored))
	}
}

// Whatever is stored: no panic, an ItemError, or a row that is encoded as it was.
func FuzzDecodeMessage(f *testing.F) {
	f.Add("0000000000000000042", someID, "orders", []byte("k"), []byte{}, []byte{1, 0, 0, 0, 0}, "638000000000000001", "8", "0", uint16(0))
	f.Add("", "", "", []byte{}, []byte{}, []byte{}, "", "", "", uint16(0xffff))
	f.Add("9223372036854775808", "{"+someID+"}", "\xff", []byte{0}, []byte{0}, []byte{1, 255, 255, 255, 127}, "1e125", "-1", "2147483648", uint16(1))
	f.Fuzz(func(t *testing.T, sortKey, id, topic string, key, value, headers []byte, created, count, partition string, absent uint16) {
		all := []struct {
			name  string
			value types.AttributeValue
		}{
			{"PK", text("OUTBOX#MESSAGES#1")}, {"SK", text(sortKey)}, {"MessageId", text(id)}, {"Topic", text(topic)},
			{"Key", binary(key)}, {"Value", binary(value)}, {"Headers", binary(headers)},
			{"CreatedAtUtc", number(created)}, {"BucketCount", number(count)}, {"Partition", number(partition)},
		}
		stored := item{}
		for i, a := range all {
			if absent&(1<<i) == 0 {
				stored[a.name] = a.value
			}
		}
		kept := maps.Clone(stored)
		row, err := schema.DecodeMessage(stored)
		if !reflect.DeepEqual(stored, kept) {
			t.Fatal("the item was changed")
		}
		var fault *outbox.ItemError
		if err != nil {
			if !errors.As(err, &fault) || fault.Attribute == "" || fault.Problem == "" {
				t.Fatalf("got %v, want an ItemError with attribute and problem", err)
			}
			return
		}
		again, err := schema.DecodeMessage(schema.EncodeMessage(row.Message, 1, row.Sequence))
		if err != nil || !reflect.DeepEqual(again.Message, row.Message) || again.Sequence != row.Sequence {
			t.Fatalf("%+v came back as %+v, %v", row, again, err)
		}
	})
}
