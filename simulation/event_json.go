package simulation

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
	"unicode"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// MarshalJSON writes the event as an object: "at" in seconds, "who", "event", its
// name; "bucket" when it is about one; and "detail" unless there is none, with
// the fields of Detail in lowerCamelCase. Durations are in seconds, times in RFC
// 3339, errors and classes as their texts.
func (e Event) MarshalJSON() ([]byte, error) {
	line := struct {
		At     float64 `json:"at"`
		Who    string  `json:"who"`
		Event  string  `json:"event"`
		Bucket *int    `json:"bucket,omitempty"`
		Detail any     `json:"detail,omitempty"`
	}{At: e.At.Seconds(), Who: e.Who, Event: e.Name}
	if b := e.Bucket(); b >= 0 {
		line.Bucket = &b
	}
	if e.Detail != nil {
		line.Detail = plain(reflect.ValueOf(e.Detail))
	}
	return json.Marshal(line)
}

// plain is a value in the terms of JSON.
func plain(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	switch value := v.Interface().(type) {
	case error:
		return value.Error()
	case time.Duration:
		return value.Seconds()
	case store.Ticks:
		return outbox.FromTicks(int64(value)).Format(time.RFC3339Nano)
	case time.Time:
		return value.UTC().Format(time.RFC3339Nano)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return plain(v.Elem())
	case reflect.Struct:
		fields := map[string]any{}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fields[lowerCamel(f.Name)] = plain(v.Field(i))
			}
		}
		return fields
	case reflect.Slice:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = plain(v.Index(i))
		}
		return items
	case reflect.Uint8: // a class or a kind
		return fmt.Sprint(v.Interface())
	}
	return v.Interface()
}

// lowerCamel is a field's name in JSON: LastSeen is lastSeen, ID is id.
func lowerCamel(field string) string {
	runes := []rune(field)
	for i, r := range runes {
		if !unicode.IsUpper(r) || i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
			break
		}
		runes[i] = unicode.ToLower(r)
	}
	return string(runes)
}
