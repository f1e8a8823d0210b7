package outbox_test

import (
	"strings"
	"testing"

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
