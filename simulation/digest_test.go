package simulation

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// Two runs that differ in any field of any event have different digests, also
// when a field was added to a type whose fields are told by hand.
func TestTheDigestCoversEveryField(t *testing.T) {
	details := []any{
		appended{}, committed{}, event.StateChanged{}, event.RecordAcknowledged{}, event.BatchPublished{}, event.BatchFetched{},
		event.BatchRemoved{}, event.BucketWoken{}, event.BucketKept{}, event.GapProbed{}, started{}, paused{}, faultOf{},
	}
	for _, r := range []store.Request{
		store.Discover{}, store.Fetch{}, store.Probe{}, store.Delete{Sequences: []int64{7}}, store.Keep{}, store.ReadCoordination{},
	} {
		name := r.RequestName()
		details = append(details, applied{Request: name, Of: r}, applied{Request: name, Outcome: store.Refused, Of: r})
		for _, changed := range variants(reflect.ValueOf(r)) {
			details = append(details, applied{Request: name, Of: changed.Interface().(store.Request)})
		}
	}
	seen := map[digest]string{}
	for _, detail := range details {
		value := reflect.ValueOf(detail)
		name := value.Type().String()
		for _, v := range append(variants(value), value) {
			d := emptyDigest.texts(name).detail(v.Interface())
			text := name + " " + fmt.Sprintf("%+v", v.Interface())
			if other, same := seen[d]; same && other != text {
				t.Errorf("%s and %s have one digest", text, other)
			}
			seen[d] = text
		}
	}
}

// What is next to each other does not run together.
func TestTheDigestKeepsTextsApart(t *testing.T) {
	seen := map[digest][]string{}
	for _, texts := range [][]string{
		{}, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"ab"}, {"a", "b"}, {"a\x00"}, {"\x00a"},
		{"12345678"}, {"1234567", "8"}, {"123456789"}, {"12345678", "9"},
	} {
		d := emptyDigest.texts(texts...)
		if other, same := seen[d]; same {
			t.Errorf("%q and %q have one digest", texts, other)
		}
		seen[d] = texts
	}
}

// variants are copies of a struct, each with one field changed, those of structs
// within it included.
func variants(of reflect.Value) []reflect.Value {
	var all []reflect.Value
	for i := range of.NumField() {
		var fields []reflect.Value
		switch field := of.Field(i); field.Kind() {
		case reflect.Struct:
			fields = variants(field)
		case reflect.Slice:
			fields = append(fields, reflect.Append(field, reflect.Zero(field.Type().Elem())))
		case reflect.String:
			fields = append(fields, reflect.ValueOf(field.String()+"x").Convert(field.Type()))
		case reflect.Bool:
			fields = append(fields, reflect.ValueOf(!field.Bool()))
		case reflect.Interface: // a request: its own variants are tried
		default:
			fields = append(fields, reflect.ValueOf(1).Convert(field.Type()))
		}
		for _, f := range fields {
			changed := reflect.New(of.Type()).Elem()
			changed.Set(of)
			changed.Field(i).Set(f)
			all = append(all, changed)
		}
	}
	return all
}
