package outbox_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/outbox"
)

// bytesOrNil draws nil, empty and other slices, which all mean something else.
func bytesOrNil(limit int) *rapid.Generator[[]byte] {
	return rapid.OneOf(
		rapid.Just[[]byte](nil),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, limit), func(b []byte) []byte { return append([]byte{}, b...) }),
	)
}

func someHeaders() *rapid.Generator[[]outbox.Header] {
	one := rapid.Custom(func(t *rapid.T) outbox.Header {
		return outbox.Header{Key: rapid.String().Draw(t, "key"), Value: bytesOrNil(40).Draw(t, "value")}
	})
	return rapid.Map(rapid.SliceOfN(one, 0, 8), func(headers []outbox.Header) []outbox.Header {
		if len(headers) == 0 {
			return nil
		}
		return headers
	})
}

func TestHeadersComeBackAsTheyWereGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		headers := someHeaders().Draw(t, "headers")
		encoded := outbox.EncodeHeaders(headers)
		if headers == nil {
			if encoded != nil {
				t.Fatalf("no headers are encoded as %x, want no attribute", encoded)
			}
			return
		}
		decoded, err := outbox.DecodeHeaders(encoded)
		if err != nil || !reflect.DeepEqual(decoded, headers) {
			t.Fatalf("decoded %#v, %v, want %#v", decoded, err, headers)
		}
	})
}

func TestMalformedHeadersAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ encoded, problem string }{
		"no bytes":                    {"", "version byte is missing"},
		"an unknown version":          {"\x02\x00\x00\x00\x00", "version 2"},
		"version zero":                {"\x00\x00\x00\x00\x00", "version 0"},
		"no count":                    {"\x01", "number of headers"},
		"half a count":                {"\x01\x01\x00", "number of headers"},
		"a negative count":            {"\x01\xff\xff\xff\xff", "-1 headers"},
		"a count without its headers": {"\x01\x01\x00\x00\x00", "1 headers do not fit into 0 bytes"},
		"a count that would cost gigabytes": {"\x01\xff\xff\xff\x7f" + strings.Repeat("\x00", 64),
			"2147483647 headers do not fit into 64 bytes"},
		"a count that would need one byte more": {"\x01\x02\x00\x00\x00" + strings.Repeat("\x00", 15),
			"2 headers do not fit into 15 bytes"},
		"a negative key length": {"\x01\x01\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00", "header 0: key: -1 bytes"},
		"a key that is cut off": {"\x01\x01\x00\x00\x00\x09\x00\x00\x00abcdefgh", "header 0: key: 9 bytes wanted, 8 left"},
		"a value length of -2":  {"\x01\x01\x00\x00\x00\x00\x00\x00\x00\xfe\xff\xff\xff", "header 0: value: -2 bytes"},
		"a value that is cut off": {"\x01\x01\x00\x00\x00\x01\x00\x00\x00k\x02\x00\x00\x00v",
			"header 0: value: 2 bytes wanted, 1 left"},
		"a second header that is cut off": {"\x01\x02\x00\x00\x00" + "\x04\x00\x00\x00abcd\x04\x00\x00\x00abcd" + "\x01\x00",
			"header 1: key length: 4 bytes wanted, 2 left"},
		"bytes behind the last header": {"\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00!", "1 bytes follow"},
		"bytes behind no header":       {"\x01\x00\x00\x00\x00!", "1 bytes follow"},
	} {
		t.Run(name, func(t *testing.T) {
			headers, err := outbox.DecodeHeaders([]byte(test.encoded))
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v, %v, want an error with %q", headers, err, test.problem)
			}
		})
	}
}

func TestDecodedHeadersDoNotShareTheirBytesWithTheItem(t *testing.T) {
	encoded := outbox.EncodeHeaders([]outbox.Header{{Key: "k", Value: []byte("v")}})
	headers, err := outbox.DecodeHeaders(encoded)
	if err != nil {
		t.Fatal(err)
	}
	clear(encoded)
	if headers[0].Key != "k" || string(headers[0].Value) != "v" {
		t.Errorf("the header became %v", headers[0])
	}
}

// Whatever decodes is what its encoding says, byte for byte, and nothing makes the decoder panic.
func FuzzDecodeHeaders(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 0})
	f.Add([]byte{1, 255, 255, 255, 127, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add(outbox.EncodeHeaders([]outbox.Header{{Key: "ключ"}, {Key: "", Value: []byte{}}, {Key: "a", Value: []byte("b")}}))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		headers, err := outbox.DecodeHeaders(encoded)
		if err != nil {
			return
		}
		again := outbox.EncodeHeaders(headers)
		if len(headers) == 0 {
			again = []byte{1, 0, 0, 0, 0}
		}
		if !bytes.Equal(again, encoded) {
			t.Errorf("%x decodes to %v, which is encoded as %x", encoded, headers, again)
		}
	})
}
