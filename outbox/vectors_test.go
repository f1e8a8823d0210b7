package outbox_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
)

// The files in testdata hold cases with the right answers, computed by the peer's rules. A writer or
// relay that differs in one of them would send a key to another bucket, or misread what is stored.

func readVectors[T any](t *testing.T, file string) []T {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []T
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatal("no vectors in " + file)
	}
	return vectors
}

// unhex keeps null and empty apart.
func unhex(t *testing.T, text *string) []byte {
	t.Helper()
	if text == nil {
		return nil
	}
	raw, err := hex.DecodeString(*text)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{}, raw...)
}

func TestBucketIsTheOneThatEveryPeerChooses(t *testing.T) {
	type vector struct {
		Key         *string   `json:"key_hex"`
		ID          uuid.UUID `json:"message_id"`
		BucketCount int       `json:"bucket_count"`
		Partition   *int32    `json:"partition"`
		Bucket      int       `json:"bucket"`
		Murmur2     *uint32   `json:"murmur2"`
	}
	for i, v := range readVectors[vector](t, "buckets.json") {
		m := outbox.Message{ID: v.ID, Key: unhex(t, v.Key), Partition: v.Partition}
		if got := m.Bucket(v.BucketCount); got != v.Bucket {
			t.Errorf("vector %d: bucket %d, want %d", i, got, v.Bucket)
		}
		if v.Murmur2 == nil {
			continue
		}
		if got := outbox.Murmur2(m.Key); got != *v.Murmur2 {
			t.Errorf("vector %d: hash %d, want %d", i, got, *v.Murmur2)
		}
	}
}

// A Java producer and the relay must choose the same partition for a key (case K-02).
func TestMurmur2IsThatOfJava(t *testing.T) {
	for key, want := range map[string]struct {
		hash     int32
		ofTwelve int
	}{
		"21": {-973932308, 0}, "foobar": {-790332482, 6}, "abc": {479470107, 3}, "": {275646681, 9},
	} {
		got := outbox.Murmur2([]byte(key))
		if int32(got) != want.hash || int(got&0x7fffffff)%12 != want.ofTwelve {
			t.Errorf("%q: hash %d, want %d", key, int32(got), want.hash)
		}
	}
}

func TestHeadersAreEncodedAsEveryPeerDoes(t *testing.T) {
	type vector struct {
		Headers [][2]*string `json:"headers"`
		Encoded *string      `json:"encoded_hex"`
	}
	for i, v := range readVectors[vector](t, "headers.json") {
		var headers []outbox.Header
		for _, h := range v.Headers {
			headers = append(headers, outbox.Header{Key: *h[0], Value: unhex(t, h[1])})
		}
		encoded := outbox.EncodeHeaders(headers)
		if want := unhex(t, v.Encoded); !reflect.DeepEqual(encoded, want) {
			t.Errorf("vector %d: encoded %x, want %x", i, encoded, want)
		}
		if encoded == nil {
			continue
		}
		decoded, err := outbox.DecodeHeaders(encoded)
		if err != nil || !reflect.DeepEqual(decoded, headers) {
			t.Errorf("vector %d: decoded %v, %v, want %v", i, decoded, err, headers)
		}
	}
}

func TestTicksAreThoseOfDotNet(t *testing.T) {
	type vector struct {
		Time  time.Time `json:"rfc3339"`
		Ticks string    `json:"ticks"`
	}
	for _, v := range readVectors[vector](t, "ticks.json") {
		want, err := strconv.ParseInt(v.Ticks, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := outbox.Ticks(v.Time); got != want {
			t.Errorf("%s: %d ticks, want %d", v.Time, got, want)
		}
		if got := outbox.FromTicks(want); !got.Equal(v.Time) || got.Location() != time.UTC {
			t.Errorf("%d ticks: %s, want %s", want, got, v.Time)
		}
	}
}
