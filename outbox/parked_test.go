package outbox_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
)

// The ids are those of `printf 'orders\0\1k' | sha256sum`, and so on.
func TestKeysAreSetAsideUnderTheHashOfTopicAndKey(t *testing.T) {
	id := uuid.MustParse(someID)
	for _, c := range []struct {
		of   string
		m    outbox.Message
		hash string
	}{
		{"a key", outbox.Message{ID: id, Topic: "orders", Key: []byte("k")}, "d51b34c90384a0e326e59d0d9e71efb0"},
		{"an empty key", outbox.Message{ID: id, Topic: "orders", Key: []byte{}}, "93e00534eecb077a961c713e378d57ee"},
		{"no key", outbox.Message{ID: id, Topic: "orders"}, "c9b1d9efde9abd78c57ea6cc7876b156"},
	} {
		if got := outbox.ParkedKeyID(&c.m); got != c.hash || !outbox.ValidKeyID(got) {
			t.Errorf("%s: got %s, want %s", c.of, got, c.hash)
		}
	}
}

func TestRowsSetAsideSortBehindMarkersAndByTheirNumbers(t *testing.T) {
	id := strings.Repeat("ab", 16)
	nine, ten := outbox.ParkedRowSortKey(id, 9), outbox.ParkedRowSortKey(id, 10)
	if !(outbox.ParkedTopicSortKey("z") < outbox.ParkedKeySortKey("f") && outbox.ParkedKeySortKey("f") < nine && nine < ten) {
		t.Errorf("got the order of %s and %s", nine, ten)
	}
	keyID, sequence, err := outbox.ParseParkedRow(ten)
	if err != nil || keyID != id || sequence != 10 {
		t.Errorf("got %s, %d, %v", keyID, sequence, err)
	}
	for _, wrong := range []string{"", "ROW#", "ROW#" + id, "ROW#" + id + "#10", "KEY#" + id, "ROW#" + strings.Repeat("A", 32) + "#" + outbox.SequenceSortKey(1)} {
		if _, _, err := outbox.ParseParkedRow(wrong); err == nil {
			t.Errorf("%q was taken for the key of a row", wrong)
		}
	}
}

func TestARowSetAsideIsReadAsItWas(t *testing.T) {
	m := outbox.Message{ID: uuid.MustParse(someID), Topic: "t", Key: []byte("k"), CreatedAt: outbox.FromTicks(5)}
	moved := schema.EncodeMessage(m, 3, 7)
	moved["PK"], moved["SK"] = text(schema.ParkedKey(3)), text(outbox.ParkedRowSortKey(outbox.ParkedKeyID(&m), 7))
	row, err := schema.DecodeParkedRow(moved)
	if err != nil || row.Sequence != 7 || string(row.Message.Key) != "k" || row.Message.ID != m.ID {
		t.Errorf("got %+v, %v", row, err)
	}
	moved["SK"] = text(outbox.SequenceSortKey(7))
	if _, err := schema.DecodeParkedRow(moved); err == nil {
		t.Error("a row that was not set aside was read")
	}
}

// A row that cannot be read keeps its key's order as long as topic and key are there; else
// it stands alone, under the hash of `printf '\0\0%s' 0000000000000000007 | sha256sum`.
func TestWhatCannotBeReadIsSetAsideUnderItsKeyOrAlone(t *testing.T) {
	whole := schema.EncodeMessage(outbox.Message{Topic: "orders", Key: []byte("k")}, 3, 7)
	for name, c := range map[string]struct {
		change       func(item map[string]types.AttributeValue)
		keyID, topic string
	}{
		"no id":           {func(i map[string]types.AttributeValue) { delete(i, "MessageId") }, "d51b34c90384a0e326e59d0d9e71efb0", "orders"},
		"an odd header":   {func(i map[string]types.AttributeValue) { i["Headers"] = text("x") }, "d51b34c90384a0e326e59d0d9e71efb0", "orders"},
		"no key":          {func(i map[string]types.AttributeValue) { delete(i, "Key") }, alone, "orders"},
		"a key of text":   {func(i map[string]types.AttributeValue) { i["Key"] = text("k") }, alone, "orders"},
		"no topic":        {func(i map[string]types.AttributeValue) { delete(i, "Topic") }, alone, ""},
		"a blank topic":   {func(i map[string]types.AttributeValue) { i["Topic"] = text("  ") }, alone, ""},
		"an odd topic":    {func(i map[string]types.AttributeValue) { i["Topic"] = i["Key"] }, alone, ""},
		"nothing but key": {func(i map[string]types.AttributeValue) { delete(i, "Topic"); delete(i, "Key"); delete(i, "Value") }, alone, ""},
	} {
		item := maps.Clone(whole)
		c.change(item)
		if keyID, topic := schema.ParkedIdentity(item); keyID != c.keyID || topic != c.topic {
			t.Errorf("%s: got %s of %q, want %s of %q", name, keyID, topic, c.keyID, c.topic)
		}
	}
}

const alone = "2da674015e707031fe9ef130960d79f3"
