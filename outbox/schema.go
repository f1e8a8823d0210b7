package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// What the zero values of a Schema mean, and what DynamoDB and the protocol allow.
const (
	DefaultPartitionKey = "PK"
	DefaultSortKey      = "SK"
	DefaultKeyPrefix    = "OUTBOX"
	DefaultBucketCount  = 8
	MaxBucketCount      = 10_000

	maxAttributeNameBytes = 255   // DynamoDB, for a key attribute
	maxKeyPrefixBytes     = 1_024 // half of what DynamoDB gives a partition key value
)

// Sort keys of the items that are not messages.
const (
	CounterSortKey     = "SEQUENCE" // the one item under SequenceKey
	LeaseSortKeyPrefix = "LEASE#"   // see LeaseSortKey
	RelaySortKeyPrefix = "RELAY#"   // see RelaySortKey
)

const sequenceDigits = 19

// Schema is where the items of one outbox live. Every writer and relay of an outbox must have the same
// one. Zero values mean the defaults, in every method; only Table has none.
type Schema struct {
	// Table is the table's name, or its ARN. Required.
	Table string
	// PartitionKey and SortKey name the table's key attributes, both strings. Default PK and SK.
	PartitionKey, SortKey string
	// KeyPrefix begins every partition key value, so that several outboxes, or an outbox and other
	// items, can share a table. Default OUTBOX, at most 1,024 bytes.
	KeyPrefix string
	// BucketCount is into how many buckets the messages are divided, 1 to 10,000. Default 8. It is
	// stamped on each message, and may be changed only while no message is stored.
	BucketCount int
}

// WithDefaults is the schema with its zero values replaced by what they mean.
func (s Schema) WithDefaults() Schema {
	s.PartitionKey = cmp.Or(s.PartitionKey, DefaultPartitionKey)
	s.SortKey = cmp.Or(s.SortKey, DefaultSortKey)
	s.KeyPrefix = cmp.Or(s.KeyPrefix, DefaultKeyPrefix)
	s.BucketCount = cmp.Or(s.BucketCount, DefaultBucketCount)
	return s
}

// Validate returns all faults of the schema, joined, each with the field and its value, or nil. Zero
// values are no faults, except that of Table.
func (s Schema) Validate() error {
	s = s.WithDefaults()
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	switch {
	case strings.TrimSpace(s.Table) == "":
		fault("Table: %q: a table name is required", s.Table)
	case !strings.HasPrefix(s.Table, "arn:") && !tableName(s.Table):
		fault("Table: %q is no table name: 3 to 255 of a-z, A-Z, 0-9, '_', '-' and '.'", s.Table)
	}
	text := func(field, value string, limit int) {
		switch {
		case strings.TrimSpace(value) == "":
			fault("%s: %q is blank", field, value)
		case !utf8.ValidString(value):
			fault("%s: %q is not valid UTF-8", field, value)
		case len(value) > limit:
			fault("%s: %q has %d bytes, the limit is %d", field, value, len(value), limit)
		}
	}
	keyAttribute := func(field, value string) {
		text(field, value, maxAttributeNameBytes)
		if slices.Contains(Attributes(), value) {
			fault("%s: %q is an attribute of the outbox itself", field, value)
		}
	}
	keyAttribute("PartitionKey", s.PartitionKey)
	keyAttribute("SortKey", s.SortKey)
	if s.PartitionKey == s.SortKey {
		fault("SortKey: %q is the PartitionKey too", s.SortKey)
	}
	text("KeyPrefix", s.KeyPrefix, maxKeyPrefixBytes)
	if s.BucketCount < 1 || s.BucketCount > MaxBucketCount {
		fault("BucketCount: %d is not between 1 and %d", s.BucketCount, MaxBucketCount)
	}
	return errors.Join(faults...)
}

// tableName tells whether DynamoDB takes the name for a table.
func tableName(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	return len(name) >= 3 && len(name) <= 255 && strings.Trim(name, allowed) == ""
}

// MessagesKey is the partition key value of the messages of a bucket.
func (s Schema) MessagesKey(bucket int) string { return s.bucketKey("MESSAGES", bucket) }

// SequenceKey is the partition key value of a bucket's sequence, whose sort key is CounterSortKey.
func (s Schema) SequenceKey(bucket int) string { return s.bucketKey("SEQUENCE", bucket) }

// ParkedKey is the partition key value of what was set aside from a bucket.
func (s Schema) ParkedKey(bucket int) string { return s.bucketKey("PARKED", bucket) }

// CoordinationKey is the partition key value of all leases and relays.
func (s Schema) CoordinationKey() string { return s.WithDefaults().KeyPrefix + "#COORDINATION" }

func (s Schema) bucketKey(kind string, bucket int) string {
	return s.WithDefaults().KeyPrefix + "#" + kind + "#" + strconv.Itoa(bucket)
}

// Key is the primary key of an item, as a new map.
func (s Schema) Key(partitionKey, sortKey string) map[string]types.AttributeValue {
	s = s.WithDefaults()
	return map[string]types.AttributeValue{
		s.PartitionKey: &types.AttributeValueMemberS{Value: partitionKey},
		s.SortKey:      &types.AttributeValueMemberS{Value: sortKey},
	}
}

// SequenceSortKey is the sort key of the message with this number: 19 digits, so that the order of the
// text is the order of the numbers. Numbers begin at 1.
func SequenceSortKey(sequence int64) string {
	const zeros = "0000000000000000000" // sequenceDigits of them
	digits := strconv.FormatInt(sequence, 10)
	return zeros[min(len(digits), len(zeros)):] + digits
}

// ParseSequence is the number in a message's sort key. Anything but 19 decimal digits that fit an
// int64 is an error.
func ParseSequence(sortKey string) (int64, error) {
	notDigit := func(r rune) bool { return r < '0' || r > '9' }
	if len(sortKey) != sequenceDigits || strings.ContainsFunc(sortKey, notDigit) {
		return 0, fmt.Errorf("%q is not a sequence number of %d digits", sortKey, sequenceDigits)
	}
	sequence, err := strconv.ParseInt(sortKey, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is beyond the last sequence number", sortKey)
	}
	return sequence, nil
}

// LeaseSortKey is the sort key of a bucket's lease: LEASE# and the bucket in 10 digits.
func LeaseSortKey(bucket int) string { return fmt.Sprintf("%s%010d", LeaseSortKeyPrefix, bucket) }

// RelaySortKey is the sort key of a relay's record: RELAY# and its id.
func RelaySortKey(id string) string { return RelaySortKeyPrefix + id }
