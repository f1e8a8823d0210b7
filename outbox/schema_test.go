package outbox_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/outbox"
)

func TestZeroSchemaMeansTheDefaultsEverywhere(t *testing.T) {
	s := outbox.Schema{Table: "table"}
	want := outbox.Schema{Table: "table", PartitionKey: "PK", SortKey: "SK", KeyPrefix: "OUTBOX", BucketCount: 8}
	if got := s.WithDefaults(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := s.Validate(); err != nil {
		t.Errorf("only the table is required, got %v", err)
	}
	wantKey := map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: "OUTBOX#MESSAGES#3"},
		"SK": &types.AttributeValueMemberS{Value: "0000000000000000042"},
	}
	if got := s.Key(s.MessagesKey(3), outbox.SequenceSortKey(42)); !reflect.DeepEqual(got, wantKey) {
		t.Errorf("got key %v, want %v", got, wantKey)
	}
}

func TestKeysAreThoseOfTheProtocol(t *testing.T) {
	s := outbox.Schema{Table: "table", KeyPrefix: "BILLING", PartitionKey: "p", SortKey: "s"}
	for got, want := range map[string]string{
		s.MessagesKey(0):                      "BILLING#MESSAGES#0",
		s.MessagesKey(9_999):                  "BILLING#MESSAGES#9999",
		s.SequenceKey(12):                     "BILLING#SEQUENCE#12",
		s.ParkedKey(12):                       "BILLING#PARKED#12",
		s.CoordinationKey():                   "BILLING#COORDINATION",
		outbox.CounterSortKey:                 "SEQUENCE",
		outbox.LeaseSortKey(3):                "LEASE#0000000003",
		outbox.RelaySortKey("pod-1#a"):        "RELAY#pod-1#a",
		outbox.SequenceSortKey(math.MaxInt64): "9223372036854775807",
		outbox.SequenceSortKey(1):             "0000000000000000001",
		fmt.Sprint(len(s.Key("a", "b"))):      "2",
		s.Key("a", "b")["p"].(*types.AttributeValueMemberS).Value: "a",
		s.Key("a", "b")["s"].(*types.AttributeValueMemberS).Value: "b",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSequenceSortKeysSortLikeTheirNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Int64Min(0), 1, 20).Draw(t, "numbers")
		slices.Sort(numbers)
		var keys []string
		for _, n := range numbers {
			key := outbox.SequenceSortKey(n)
			if parsed, err := outbox.ParseSequence(key); err != nil || parsed != n {
				t.Fatalf("%d became %d, %v", n, parsed, err)
			}
			keys = append(keys, key)
		}
		if !slices.IsSorted(keys) {
			t.Fatalf("keys out of order: %q", keys)
		}
	})
}

func TestParseSequenceTakesNothingButNineteenDigits(t *testing.T) {
	for _, text := range []string{
		"", "1", "SEQUENCE", "000000000000000001", "00000000000000000001", "-000000000000000001",
		"+000000000000000001", " 000000000000000001", "00000000000000000_1", "000000000x000000001",
		"9223372036854775808", "٠٠٠٠٠٠٠٠٠1",
	} {
		if n, err := outbox.ParseSequence(text); err == nil {
			t.Errorf("%q is read as %d", text, n)
		}
	}
}

func TestValidateNamesEveryFaultWithItsValue(t *testing.T) {
	err := outbox.Schema{Table: " ", PartitionKey: "Owner", SortKey: "\t", KeyPrefix: "  ", BucketCount: -3}.Validate()
	if err == nil {
		t.Fatal("no fault")
	}
	for _, want := range []string{
		`Table: " "`, `PartitionKey: "Owner" is an attribute`, `SortKey: "\t" is blank`, `KeyPrefix: "  " is blank`,
		"BucketCount: -3 is not between 1 and 10000",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

func TestValidateFindsEachFault(t *testing.T) {
	valid := outbox.Schema{Table: "table", PartitionKey: "p", SortKey: "s", KeyPrefix: "x", BucketCount: 10_000}
	if err := valid.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*outbox.Schema){
		"Table":                                 func(s *outbox.Schema) { s.Table = "" },
		`SortKey: "p" is the PartitionKey too`:  func(s *outbox.Schema) { s.SortKey = "p" },
		`SortKey: "PK" is the PartitionKey too`: func(s *outbox.Schema) { s.PartitionKey, s.SortKey = "", "PK" },
		"PartitionKey: \"\\xff\" is not valid":  func(s *outbox.Schema) { s.PartitionKey = "\xff" },
		"has 256 bytes, the limit is 255":       func(s *outbox.Schema) { s.SortKey = strings.Repeat("s", 256) },
		"has 1025 bytes, the limit is 1024":     func(s *outbox.Schema) { s.KeyPrefix = strings.Repeat("x", 1025) },
		"BucketCount: 10001":                    func(s *outbox.Schema) { s.BucketCount = 10_001 },
	} {
		s := valid
		spoil(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", s, err, want)
		}
	}
}

// A key attribute that is also an attribute of some item would be overwritten by it, or overwrite it.
func TestKeyAttributesMayNotBeNamedLikeAnyAttribute(t *testing.T) {
	names := strings.Fields(`MessageId Topic Key Value Headers Partition CreatedAtUtc BucketCount Sequence
		Owner ExpiresAtUtc Incarnation Claim Attention PausedUntilUtc PausedBy PauseReason
		LastSeenUtc StoppedAtUtc Mode Reason ParkedAtUtc RetryAtUtc Attempts`)
	for _, name := range names {
		if (outbox.Schema{Table: "table", PartitionKey: name}).Validate() == nil {
			t.Errorf("PartitionKey %s is accepted", name)
		}
		if (outbox.Schema{Table: "table", SortKey: name}).Validate() == nil {
			t.Errorf("SortKey %s is accepted", name)
		}
	}
}
