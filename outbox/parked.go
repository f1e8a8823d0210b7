package outbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Sort keys of a bucket's parked partition (protocol, section 7). Markers sort before rows.
const (
	ParkedTopicSortKeyPrefix = "ALL#" // see ParkedTopicSortKey
	ParkedKeySortKeyPrefix   = "KEY#" // see ParkedKeySortKey
	ParkedRowSortKeyPrefix   = "ROW#" // see ParkedRowSortKey
)

const keyIDDigits = 32

// ParkedKeyID is the id under which the rows of a message's topic and key are set aside: 32 hex digits
// of a hash. Messages without a key have one each, of their topic and message id.
func ParkedKeyID(m *Message) string {
	hash := sha256.New()
	hash.Write([]byte(m.Topic))
	if m.Key != nil {
		hash.Write([]byte{0, 1})
		hash.Write(m.Key)
	} else {
		hash.Write([]byte{0, 0})
		hash.Write([]byte(m.ID.String()))
	}
	return hex.EncodeToString(hash.Sum(nil))[:keyIDDigits]
}

// ParkedIdentity is the key id, and the topic, under which an item of a bucket that cannot be read as a
// message is set aside: those of its topic and key when these two can be read, so that later rows of that
// key do not pass it; else, and without a key, an id of its own, over no topic, byte 0, byte 0 and its sort
// key as text, which is no message's id since a topic is never blank. The topic is empty when it cannot be read.
func (s Schema) ParkedIdentity(item map[string]types.AttributeValue) (keyID, topic string) {
	s = s.WithDefaults()
	r := itemReader{item: item}
	if topic = r.text(AttrTopic); strings.TrimSpace(topic) == "" {
		topic = ""
	}
	r.require(topic != "", AttrTopic, "is blank")
	key := r.binary(AttrKey)
	if r.fault.Problem == "" && key != nil {
		return ParkedKeyID(&Message{Topic: topic, Key: key}), topic
	}
	hash := sha256.New()
	hash.Write([]byte{0, 0})
	if sortKey, isText := item[s.SortKey].(*types.AttributeValueMemberS); isText {
		hash.Write([]byte(sortKey.Value))
	}
	return hex.EncodeToString(hash.Sum(nil))[:keyIDDigits], topic
}

// ValidKeyID tells whether a text has the form of a ParkedKeyID.
func ValidKeyID(id string) bool {
	return len(id) == keyIDDigits && strings.Trim(id, "0123456789abcdef") == ""
}

// ParkedTopicSortKey is the sort key of the marker of a whole topic.
func ParkedTopicSortKey(topic string) string { return ParkedTopicSortKeyPrefix + topic }

// ParkedKeySortKey is the sort key of the marker of a topic and key.
func ParkedKeySortKey(keyID string) string { return ParkedKeySortKeyPrefix + keyID }

// ParkedRowSortKey is the sort key of a row that was set aside.
func ParkedRowSortKey(keyID string, sequence int64) string {
	return ParkedRowSortKeyPrefix + keyID + "#" + SequenceSortKey(sequence)
}

// ParseParkedRow is the key id and the number in the sort key of a row that was set aside.
func ParseParkedRow(sortKey string) (keyID string, sequence int64, err error) {
	digits, isRow := strings.CutPrefix(sortKey, ParkedRowSortKeyPrefix)
	keyID, number, divided := strings.Cut(digits, "#")
	if !isRow || !divided || !ValidKeyID(keyID) {
		return "", 0, fmt.Errorf("%q is not the sort key of a row set aside", sortKey)
	}
	sequence, err = ParseSequence(number)
	return keyID, sequence, err
}

// DecodeParkedRow reads a row that was set aside, as DecodeMessage reads one that was not.
func (s Schema) DecodeParkedRow(item map[string]types.AttributeValue) (Row, error) {
	s = s.WithDefaults()
	return s.decode(item, func(r *itemReader) int64 {
		_, sequence, err := ParseParkedRow(r.text(s.SortKey))
		r.require(err == nil, s.SortKey, "is not the key of a row set aside")
		return sequence
	})
}
