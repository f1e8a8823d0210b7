package outbox

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
)

// Row is a message as it was read from the table.
type Row struct {
	Sequence    int64 // its number in its bucket
	Message     Message
	BucketCount int // its writer's bucket count; 0 when the row has none, which is not checked
	Size        int // bytes of the whole item, see ItemSize
	// Item is the whole item as it was read, for whoever moves it. It is shared and not changed.
	Item map[string]types.AttributeValue
}

// ItemError says which item cannot be read and why. It carries no content of the item: it is meant to
// be logged.
type ItemError struct {
	PartitionKey, SortKey string // the values of the item's keys; empty when that is what is wrong
	Attribute             string // the name of the attribute
	Problem               string // what is wrong with it, such as "is missing"
}

func (e *ItemError) Error() string {
	return fmt.Sprintf("item %q %q: attribute %s %s", e.PartitionKey, e.SortKey, e.Attribute, e.Problem)
}

// EncodeMessage is the item of a message with the number seq in a bucket, as it is stored: the ID in
// lower case, the schema's bucket count as stamp, no attribute for what is absent. The item is a new
// map, but shares the bytes of the message's key and value. The message must be one that the Writer
// does not refuse. Protocol, section 1.
func (s Schema) EncodeMessage(m Message, bucket int, seq int64) map[string]types.AttributeValue {
	s = s.WithDefaults()
	item := make(map[string]types.AttributeValue, maxMessageAttributes)
	item[s.PartitionKey] = &types.AttributeValueMemberS{Value: s.MessagesKey(bucket)}
	item[s.SortKey] = &types.AttributeValueMemberS{Value: SequenceSortKey(seq)}
	item[AttrMessageId] = &types.AttributeValueMemberS{Value: m.ID.String()}
	item[AttrTopic] = &types.AttributeValueMemberS{Value: m.Topic}
	item[AttrCreatedAtUtc] = number(Ticks(m.CreatedAt))
	item[AttrBucketCount] = number(int64(s.BucketCount))
	if m.Key != nil {
		item[AttrKey] = &types.AttributeValueMemberB{Value: m.Key}
	}
	if m.Value != nil {
		item[AttrValue] = &types.AttributeValueMemberB{Value: m.Value}
	}
	if headers := EncodeHeaders(m.Headers); headers != nil {
		item[AttrHeaders] = &types.AttributeValueMemberB{Value: headers}
	}
	if m.Partition != nil {
		item[AttrPartition] = number(int64(*m.Partition))
	}
	return item
}

// maxMessageAttributes is how many attributes a message has when none is absent.
const maxMessageAttributes = 10

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// DecodeMessage reads a message item, also one that a .NET writer stored. It accepts a GUID in upper
// case, and attributes that it does not know. It never panics; its error is an *ItemError, for the
// first fault in the order key attributes, MessageId, Topic, CreatedAtUtc, BucketCount, Partition, Key,
// Value, Headers. Such a row stops its bucket: it is neither skipped nor deleted (protocol, section 5).
// The message shares the bytes of the item.
func (s Schema) DecodeMessage(item map[string]types.AttributeValue) (Row, error) {
	s = s.WithDefaults()
	return s.decode(item, func(r *itemReader) int64 { return r.sequence(s.SortKey) })
}

// decode reads a row, whose number sequence takes from its keys. The schema has its defaults.
func (s Schema) decode(item map[string]types.AttributeValue, sequence func(*itemReader) int64) (Row, error) {
	r := itemReader{item: item}
	r.fault.PartitionKey = r.text(s.PartitionKey)
	r.fault.SortKey = r.text(s.SortKey)
	row := Row{Sequence: sequence(&r), Size: ItemSize(item), Item: item}
	m := &row.Message
	m.ID = r.guid(AttrMessageId)
	m.Topic = r.text(AttrTopic)
	r.require(strings.TrimSpace(m.Topic) != "", AttrTopic, "is blank")
	if created, ok := r.integer(AttrCreatedAtUtc, 0, MaxTicks); ok {
		m.CreatedAt = FromTicks(created)
	} else {
		r.require(false, AttrCreatedAtUtc, missing)
	}
	if count, ok := r.integer(AttrBucketCount, 1, math.MaxInt32); ok {
		row.BucketCount = int(count)
	}
	if partition, ok := r.integer(AttrPartition, 0, math.MaxInt32); ok {
		p := int32(partition)
		m.Partition = &p
	}
	m.Key = r.binary(AttrKey)
	m.Value = r.binary(AttrValue)
	m.Headers = r.headers(AttrHeaders)
	if r.fault.Problem != "" {
		return Row{}, &r.fault
	}
	return row, nil
}

const missing = "is missing"

// itemReader takes attributes out of an item and remembers the first fault; after it, what it returns
// is not to be used.
type itemReader struct {
	item  map[string]types.AttributeValue
	fault ItemError
}

func (r *itemReader) require(holds bool, attribute, problem string) {
	if !holds && r.fault.Problem == "" {
		r.fault.Attribute, r.fault.Problem = attribute, problem
	}
}

func (r *itemReader) text(attribute string) string {
	value, present := r.item[attribute]
	r.require(present, attribute, missing)
	s, ok := value.(*types.AttributeValueMemberS)
	r.require(ok, attribute, "is not a string")
	if !ok {
		return ""
	}
	return s.Value
}

func (r *itemReader) sequence(attribute string) int64 {
	sequence, err := ParseSequence(r.text(attribute))
	if err != nil {
		r.require(false, attribute, fmt.Sprintf("is not a sequence number of %d digits", sequenceDigits))
	}
	return sequence
}

// guid wants 32 digits in five groups; of what else uuid.Parse accepts (braces, a urn) no writer
// writes anything.
func (r *itemReader) guid(attribute string) uuid.UUID {
	text := r.text(attribute)
	id, err := uuid.Parse(text)
	r.require(err == nil && len(text) == len(uuid.UUID{}.String()), attribute, "is not a GUID")
	return id
}

// integer is the number and whether it is there; absence is no fault, unlike another type or a value
// out of range. Numbers are never read as floats, which would round ticks.
func (r *itemReader) integer(attribute string, low, high int64) (int64, bool) {
	value, present := r.item[attribute]
	if !present {
		return 0, false
	}
	n, ok := value.(*types.AttributeValueMemberN)
	r.require(ok, attribute, "is not a number")
	if !ok {
		return 0, true
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || i < low || i > high {
		r.require(false, attribute, fmt.Sprintf("is not a whole number from %d to %d", low, high))
	}
	return i, true
}

// binary is nil when the attribute is absent, and never nil when it is there.
func (r *itemReader) binary(attribute string) []byte {
	value, present := r.item[attribute]
	if !present {
		return nil
	}
	b, ok := value.(*types.AttributeValueMemberB)
	r.require(ok, attribute, "is not binary")
	if !ok {
		return nil
	}
	if b.Value == nil {
		return []byte{}
	}
	return b.Value
}

func (r *itemReader) headers(attribute string) []Header {
	encoded := r.binary(attribute)
	if encoded == nil {
		return nil
	}
	headers, err := DecodeHeaders(encoded)
	if err != nil {
		r.require(false, attribute, "cannot be decoded: "+err.Error())
	}
	return headers
}
