package outbox

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	headersVersion = 1
	// A header takes at least its two lengths.
	minHeaderBytes = 8
	nullLength     = -1
)

// EncodeHeaders is the Headers attribute of a message with these headers, or nil for none, which is no
// attribute at all: byte 1, then in little-endian int32 the number of headers, and for each the length
// of its key, the key, the length of its value (-1 for a null one), the value. Protocol, section 1.
func EncodeHeaders(headers []Header) []byte {
	if len(headers) == 0 {
		return nil
	}
	size := 5
	for _, h := range headers {
		size += minHeaderBytes + len(h.Key) + len(h.Value)
	}
	out := make([]byte, 0, size)
	out = append(out, headersVersion)
	out = appendLength(out, len(headers))
	for _, h := range headers {
		out = appendLength(out, len(h.Key))
		out = append(out, h.Key...)
		if h.Value == nil {
			out = appendLength(out, nullLength)
			continue
		}
		out = appendLength(out, len(h.Value))
		out = append(out, h.Value...)
	}
	return out
}

func appendLength(out []byte, n int) []byte {
	return binary.LittleEndian.AppendUint32(out, uint32(int32(n)))
}

// DecodeHeaders reverses EncodeHeaders. Zero bytes are an error, for a message without headers has no
// attribute; a count of zero is none. Keys pass as they are. An unknown version, a negative count or
// length, a count that the bytes cannot hold, missing bytes and trailing bytes are errors, found
// before anything is allocated for them. The values are copies: encoded is not kept.
func DecodeHeaders(encoded []byte) ([]Header, error) {
	if len(encoded) == 0 {
		return nil, errors.New("headers are empty: the version byte is missing")
	}
	if encoded[0] != headersVersion {
		return nil, fmt.Errorf("headers have version %d, known is %d", encoded[0], headersVersion)
	}
	r := headerReader{rest: encoded[1:]}
	count, err := r.length("number of headers")
	if err != nil {
		return nil, err
	}
	if count < 0 || count > len(r.rest)/minHeaderBytes {
		return nil, fmt.Errorf("%d headers do not fit into %d bytes", count, len(r.rest))
	}
	if count == 0 && len(r.rest) == 0 {
		return nil, nil
	}
	headers := make([]Header, count)
	for i := range headers {
		if headers[i], err = r.header(); err != nil {
			return nil, fmt.Errorf("header %d: %w", i, err)
		}
	}
	if len(r.rest) > 0 {
		return nil, fmt.Errorf("%d bytes follow the last of %d headers", len(r.rest), count)
	}
	return headers, nil
}

// headerReader takes fields off the front of rest.
type headerReader struct{ rest []byte }

func (r *headerReader) header() (Header, error) {
	n, err := r.length("key length")
	if err != nil {
		return Header{}, err
	}
	key, err := r.bytes(n, "key")
	if err != nil {
		return Header{}, err
	}
	if n, err = r.length("value length"); err != nil {
		return Header{}, err
	}
	h := Header{Key: string(key)}
	if n == nullLength {
		return h, nil
	}
	value, err := r.bytes(n, "value")
	if err != nil {
		return Header{}, err
	}
	h.Value = append([]byte{}, value...)
	return h, nil
}

func (r *headerReader) length(what string) (int, error) {
	if len(r.rest) < 4 {
		return 0, fmt.Errorf("%s: 4 bytes wanted, %d left", what, len(r.rest))
	}
	n := int32(binary.LittleEndian.Uint32(r.rest))
	r.rest = r.rest[4:]
	return int(n), nil
}

func (r *headerReader) bytes(n int, what string) ([]byte, error) {
	if n < 0 || n > len(r.rest) {
		return nil, fmt.Errorf("%s: %d bytes wanted, %d left", what, n, len(r.rest))
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out, nil
}
