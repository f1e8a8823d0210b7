package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/bucketbrigade/relay/outbox"
)

// contentDocument is a message's content in JSON.
type contentDocument struct {
	Key     *bytesDocument   `json:"key"` // null: absent
	Value   *bytesDocument   `json:"value"`
	Headers []headerDocument `json:"headers"`
}

// bytesDocument holds bytes as text when they are UTF-8, else as base64.
type bytesDocument struct {
	Text   *string `json:"text,omitempty"`
	Base64 *string `json:"base64,omitempty"`
}

type headerDocument struct {
	Key   string         `json:"key"`
	Value *bytesDocument `json:"value"` // null: a null value
}

func contentOf(m outbox.Message) *contentDocument {
	d := &contentDocument{Key: bytesOf(m.Key), Value: bytesOf(m.Value), Headers: []headerDocument{}}
	for _, h := range m.Headers {
		d.Headers = append(d.Headers, headerDocument{Key: h.Key, Value: bytesOf(h.Value)})
	}
	return d
}

func bytesOf(b []byte) *bytesDocument {
	if b == nil {
		return nil
	}
	if utf8.Valid(b) {
		text := string(b)
		return &bytesDocument{Text: &text}
	}
	encoded := base64.StdEncoding.EncodeToString(b)
	return &bytesDocument{Base64: &encoded}
}

// printContent shows a message's content, each part on a line of its own that
// is cut at the text's width.
func printContent(w io.Writer, row outbox.Row) {
	line := func(format string, args ...any) {
		fmt.Fprintln(w, shortened(fmt.Sprintf(format, args...), textColumns))
	}
	m := row.Message
	line("%d", row.Sequence)
	line("  key    %s", quotedBytes(m.Key))
	line("  value  %s", quotedBytes(m.Value))
	for _, h := range m.Headers {
		line("  header %s = %s", strconv.Quote(h.Key), quotedBytes(h.Value))
	}
}

// quotedBytes makes whatever bytes safe for a terminal. Only as many as can be
// shown are quoted.
func quotedBytes(b []byte) string {
	switch {
	case b == nil:
		return "none"
	case len(b) > textColumns:
		return fmt.Sprintf("%d bytes: %q", len(b), b[:textColumns])
	default:
		return strconv.Quote(string(b))
	}
}
