package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// What no output of any command may have, unless an operator asks for content: each
// is put where the real thing would be, and searched for in all that comes out.
const (
	canaryKey         = "canary-of-a-key-Zr81"
	canaryValue       = "canary-of-a-value-Yq27"
	canaryHeaderName  = "canary-of-a-header-name-Xp63"
	canaryHeaderValue = "canary-of-a-header-value-Wo49"
	canaryPassword    = "canary-of-a-password-Vn35"
	canaryToken       = "canary-of-a-token-Um71"
	canaryAWS         = "canary-of-an-aws-secret-Tl17"
)

func canaries() []string {
	return []string{canaryKey, canaryValue, canaryHeaderName, canaryHeaderValue, canaryPassword, canaryToken, canaryAWS}
}

// disguises are the forms in which a text may come out: as it is, in hex, in
// base64 at any offset, in a URL, and as the numbers that fmt and JSON make of bytes.
func disguises(text string) []string {
	digits := hex.EncodeToString([]byte(text))
	forms := []string{text, digits, strings.ToUpper(digits), strings.ToLower(text), url.QueryEscape(text),
		strings.Trim(fmt.Sprint([]byte(text)), "[]"), strings.ReplaceAll(strings.Trim(fmt.Sprint([]byte(text)), "[]"), " ", ",")}
	hexBytes := fmt.Sprintf("%#v", []byte(text)) // []byte{0x63, 0x61, …}
	forms = append(forms, strings.TrimSuffix(strings.TrimPrefix(hexBytes, "[]byte{"), "}"))
	for offset := range 3 {
		shifted := append(make([]byte, offset), text...)
		whole := base64.RawStdEncoding.EncodeToString(shifted)
		// What depends on the neighbours is left out.
		inner := whole[(8*offset+5)/6 : 8*len(shifted)/6]
		forms = append(forms, inner, strings.NewReplacer("+", "-", "/", "_").Replace(inner))
	}
	return forms
}

// leaks says which canaries an output has, and in which form.
func leaks(output string) (found []string) {
	for _, text := range canaries() {
		for _, form := range disguises(text) {
			if at := strings.Index(output, form); at >= 0 {
				found = append(found, fmt.Sprintf("%s, in …%s…", text, output[max(0, at-120):min(len(output), at+len(form)+20)]))
				break
			}
		}
	}
	return found
}

func mustNotLeak(t *testing.T, where, output string) {
	t.Helper()
	for _, leak := range leaks(output) {
		t.Errorf("%s has %s", where, leak)
	}
}

// Before anything is concluded from not finding a canary: each is found in all its
// disguises, wherever it stands.
func TestCanariesAreFound(t *testing.T) {
	for _, text := range canaries() {
		for _, output := range []string{
			text, `{"key":"` + text + `"}`, fmt.Sprintf("%q", text), fmt.Sprintf("%x", text), fmt.Sprintf("%X", text),
			fmt.Sprint([]byte(text)), fmt.Sprintf("%#v", []byte("a "+text+" b")), "https://u:" + url.QueryEscape(text) + "@host/",
			base64.StdEncoding.EncodeToString([]byte(text)), base64.URLEncoding.EncodeToString([]byte("x" + text + "yz")),
			base64.StdEncoding.EncodeToString([]byte("xy" + text + "z")), base64.StdEncoding.EncodeToString([]byte("xyz" + text)),
		} {
			if len(leaks(output)) != 1 {
				t.Errorf("%d found in %s", len(leaks(output)), output)
			}
		}
	}
	if found := leaks("canary-of-a-key, but another one"); found != nil {
		t.Errorf("found %v where there is none", found)
	}
}

// canaryMessage is a message of nothing but canaries, within a trace.
func canaryMessage(topic string) outbox.Message {
	m := outbox.NewMessage(topic, []byte(canaryKey), []byte(canaryValue))
	m.Headers = []outbox.Header{
		{Key: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
		{Key: "tracestate", Value: []byte("shop=" + canaryHeaderValue)},
		{Key: canaryHeaderName, Value: []byte(canaryHeaderValue)},
	}
	return m
}

// canaryRows are messages with which everything happens that can happen to one, each
// in a bucket of its own, since most of it holds the bucket up.
func canaryRows() []map[string]types.AttributeValue {
	var rows []map[string]types.AttributeValue
	add := func(bucket int, sequence int64, m outbox.Message, change func(item map[string]types.AttributeValue)) {
		item := schema.EncodeMessage(m, bucket, sequence)
		if change != nil {
			change(item)
		}
		rows = append(rows, item)
	}
	// Delivered.
	add(0, 1, canaryMessage("placed"), nil)
	// Rejected, since no client can send such a header, then set aside with what
	// follows of its key.
	rejected := canaryMessage("placed")
	rejected.Headers = append(rejected.Headers, outbox.Header{Key: canaryHeaderName + "\x00", Value: []byte(canaryHeaderValue)})
	add(1, 1, rejected, nil)
	add(1, 2, canaryMessage("placed"), nil)
	// Of a topic that does not exist.
	add(2, 1, canaryMessage("missing"), nil)
	// Of another type, or not decodable: no relay can read these.
	add(3, 1, canaryMessage("placed"), func(item map[string]types.AttributeValue) {
		item["Headers"] = &types.AttributeValueMemberB{Value: []byte(canaryHeaderName + canaryHeaderValue)}
	})
	add(4, 1, canaryMessage("placed"), func(item map[string]types.AttributeValue) { item["Key"] = text(canaryKey) })
	add(5, 1, canaryMessage("placed"), func(item map[string]types.AttributeValue) { item["Value"] = text(canaryValue) })
	add(6, 1, canaryMessage("placed"), func(item map[string]types.AttributeValue) { delete(item, "Topic") })
	// The same among what is set aside already.
	keyID := canaryKeyID()
	for i := range int64(2) {
		item := schema.EncodeMessage(canaryMessage("placed"), 7, i+1)
		item["SK"] = text(outbox.ParkedRowSortKey(keyID, i+1))
		item["PK"] = text(schema.ParkedKey(7))
		if i == 1 {
			item["Value"] = text(canaryValue)
		}
		rows = append(rows, item)
	}
	return rows
}

// canaryKeyID is under what rows of the canaries' topic and key are set aside.
func canaryKeyID() string {
	m := canaryMessage("placed")
	return outbox.ParkedKeyID(&m)
}

// canaryTable is a table with all of them.
func canaryTable(t *testing.T) *console {
	t.Helper()
	c := newConsole(t)
	for _, row := range canaryRows() {
		c.put(t, row)
	}
	c.setAside(t, 7, store.Marker{KeyID: canaryKeyID(), Topic: "placed", Reason: "INVALID_RECORD", Attempts: 3, ParkedAt: ago(time.Hour)})
	return c
}
