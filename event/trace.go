package event

import (
	"encoding/hex"
	"strings"
)

// Trace is where in a trace a message was written: what a writer put into the message's
// header traceparent, and no more of the message. It is a plain value of 24 bytes, so
// that no event that has one can carry anything else along.
type Trace struct {
	ID   [16]byte // the trace
	Span [8]byte  // the span within it
}

// TraceHeader is the name of the header that ParseTrace reads, of W3C's Trace Context.
const TraceHeader = "traceparent"

// A traceparent is version, trace id, span id and flags in lower-case hex, with hyphens
// between them. Versions after the first may have more behind that.
const (
	traceparentLength = len("00-") + 32 + len("-") + 16 + len("-00")
	sampledFlag       = 1
)

// ParseTrace reads the value of a header traceparent. It is not ok when that is no valid
// one, or when the trace was not sampled, so that nobody has recorded it.
func ParseTrace(value []byte) (t Trace, ok bool) {
	if len(value) < traceparentLength {
		return Trace{}, false
	}
	rest := string(value[traceparentLength:])
	var version, flags [1]byte
	for _, field := range []struct {
		into []byte
		at   int
	}{{version[:], 0}, {t.ID[:], 3}, {t.Span[:], 36}, {flags[:], 53}} {
		end := field.at + hex.EncodedLen(len(field.into))
		text := string(value[field.at:end])
		_, err := hex.Decode(field.into, []byte(text))
		if err != nil || text != strings.ToLower(text) || end < traceparentLength && value[end] != '-' {
			return Trace{}, false
		}
	}
	fits := version[0] == 0 && rest == "" || version[0] > 0 && version[0] < 0xff && (rest == "" || rest[0] == '-')
	if !fits || t.ID == [16]byte{} || t.Span == [8]byte{} || flags[0]&sampledFlag == 0 {
		return Trace{}, false
	}
	return t, true
}

// String is the two ids in hex.
func (t Trace) String() string {
	return hex.EncodeToString(t.ID[:]) + "-" + hex.EncodeToString(t.Span[:])
}

// MarshalText is String, for JSON.
func (t Trace) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
