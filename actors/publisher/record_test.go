package publisher

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
)

func headerText(headers []outbox.Header) string {
	var out bytes.Buffer
	for _, h := range headers {
		fmt.Fprintf(&out, "%s=%q ", h.Key, h.Value)
	}
	return out.String()
}

// A consumer finds the relay's headers last, the message id in lower case at the
// very end, and never a caller's header that pretends to be one of them. Case
// counts, and everything else of the caller's stays as it was.
func TestRelaysHeadersAreTheLast(t *testing.T) {
	id := uuid.MustParse("AB000000-0000-0000-0000-0000000000CD")
	row := outbox.Row{Sequence: 42, Message: outbox.Message{ID: id, Headers: []outbox.Header{
		{Key: "a", Value: nil},
		{Key: "x-outbox-message-id", Value: []byte("forged")},
		{Key: "X-Outbox-Message-Id", Value: []byte("kept")},
		{Key: "x-outbox-sequence", Value: []byte("7")},
		{Key: "a", Value: []byte{}},
	}}}
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"default", Config{},
			`a="" X-Outbox-Message-Id="kept" x-outbox-sequence="7" a="" x-outbox-message-id="ab000000-0000-0000-0000-0000000000cd" `},
		{"positions", Config{PositionHeaders: true},
			`a="" X-Outbox-Message-Id="kept" a="" x-outbox-bucket="3" x-outbox-sequence="42" x-outbox-message-id="ab000000-0000-0000-0000-0000000000cd" `},
		{"other name", Config{MessageIDHeader: "id"},
			`a="" x-outbox-message-id="forged" X-Outbox-Message-Id="kept" x-outbox-sequence="7" a="" id="ab000000-0000-0000-0000-0000000000cd" `},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg := test.cfg.WithDefaults()
			record := cfg.recordOf(3, &row, 0)
			if got := headerText(record.Headers); got != test.want {
				t.Errorf("headers\n%s\nwant\n%s", got, test.want)
			}
			if record.Headers[0].Value != nil {
				t.Error("a null header value is not null any more")
			}
		})
	}
}

// Null and empty stay apart, as a consumer sees them.
func TestRecordKeepsNullAndEmptyApart(t *testing.T) {
	cfg := Config{}.WithDefaults()
	for _, value := range [][]byte{nil, {}, {1}} {
		row := outbox.Row{Message: outbox.Message{Key: value, Value: value}}
		record := cfg.recordOf(0, &row, 0)
		for _, got := range [][]byte{record.Key, record.Value} {
			if (got == nil) != (value == nil) || !bytes.Equal(got, value) {
				t.Errorf("%#v became %#v", value, got)
			}
		}
	}
}

// Keyed rows land where Java's client would put them (case K-02), an empty key on
// one partition and keyless rows on many, each always on the same (case K-01).
func TestPartitionOfAMessage(t *testing.T) {
	for key, want := range map[string]int32{"21": 0, "foobar": 6, "abc": 3, "": 9} {
		if got := partitionOf(&outbox.Message{Key: []byte(key)}, 12); got != want {
			t.Errorf("key %q goes to partition %d, want %d", key, got, want)
		}
	}
	seven := int32(7)
	if got := partitionOf(&outbox.Message{Key: []byte("21"), Partition: &seven}, 12); got != 7 {
		t.Errorf("an explicit partition became %d", got)
	}
	used := map[int32]bool{}
	for i := range 200 {
		m := outbox.Message{ID: uuid.NewSHA1(uuid.Nil, []byte{byte(i)})}
		p := partitionOf(&m, 12)
		used[p] = true
		if again := partitionOf(&m, 12); again != p {
			t.Fatalf("the same message goes to %d, then to %d", p, again)
		}
	}
	if len(used) != 12 {
		t.Errorf("200 keyless messages use %d of 12 partitions", len(used))
	}
}

// A bucket's keyless rows must not be bound to a few partitions because bucket and
// partition come from one hash.
func TestKeylessRowsOfABucketSpread(t *testing.T) {
	used := map[int32]bool{}
	for i := range 4000 {
		m := outbox.Message{ID: uuid.NewSHA1(uuid.Nil, []byte(fmt.Sprint(i)))}
		if m.Bucket(8) == 3 {
			used[partitionOf(&m, 8)] = true
		}
	}
	if len(used) != 8 {
		t.Errorf("the keyless rows of a bucket use %d of 8 partitions", len(used))
	}
}

// The size is exact to the byte: the request of a record as Kafka's format 2 has
// it, written out by hand.
func TestRequestBytes(t *testing.T) {
	tests := []struct {
		record Record
		want   int
	}{
		{Record{}, 61 + 1 + 6},                                         // length, attributes, two deltas, null key, null value, no headers
		{Record{Key: []byte{}, Value: []byte{}}, 61 + 1 + 6},           // empty: a length of one byte, as null has
		{Record{Value: make([]byte, 63)}, 61 + 2 + 6 + 63},             // the record's length takes two bytes from 64 on
		{Record{Value: make([]byte, 64)}, 61 + 2 + 7 + 64},             // and so does the value's
		{Record{Value: make([]byte, 8192)}, 61 + 3 + 8 + 8192},         // three bytes
		{Record{Headers: []outbox.Header{{Key: "k"}}}, 61 + 1 + 6 + 3}, // key's length, key, null value
	}
	for _, test := range tests {
		if got := requestBytes(&test.record); got != test.want {
			t.Errorf("a request of %d bytes of value and %d headers takes %d bytes, want %d",
				len(test.record.Value), len(test.record.Headers), got, test.want)
		}
	}
}

// Of a row, the relay's own headers are counted too, and a caller's that they replace
// are not.
func TestRequestBytesOfARow(t *testing.T) {
	row := outbox.Row{Sequence: 12, Message: outbox.Message{ID: uuid.New(), Topic: "t", Value: make([]byte, 1000),
		Headers: []outbox.Header{{Key: DefaultMessageIDHeader, Value: make([]byte, 500)}}}}
	const id = 36
	want := 61 + 2 + 3 + 1 + 2 + 1000 + 1 + (1 + len(DefaultMessageIDHeader) + 1 + id)
	if got := (Config{}).RequestBytes(3, &row); got != want {
		t.Errorf("got %d bytes, want %d", got, want)
	}
	want += 1 + len(BucketHeader) + 1 + len("3") + 1 + len(SequenceHeader) + 1 + len("12")
	if got := (Config{PositionHeaders: true}).RequestBytes(3, &row); got != want {
		t.Errorf("with position headers: got %d bytes, want %d", got, want)
	}
}
