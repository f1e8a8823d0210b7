package picture_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

var (
	keyA = strings.Repeat("a", 32)
	keyB = strings.Repeat("b", 32)
)

func (f *fixture) setAside(bucket int, markers ...store.Marker) {
	f.Helper()
	for _, m := range markers {
		if reply := f.Do(f.Context(), store.SetAside{Bucket: bucket, Marker: m}); reply.Err != nil {
			f.Fatal(reply.Err)
		}
	}
}

// An idle bucket is looked at with two small reads; what is found decides about more.
func TestAPictureTakesFewReads(t *testing.T) {
	f := newFixture(t)
	table := f.take()
	if got := counts(table.Cost); got != "count 4, readCoordination 1, readHead 4" {
		t.Errorf("an idle table: %s", got)
	}
	f.message(1, 1, time.Second, nil)                                             // as usual: counted
	f.message(2, 1, time.Hour, nil)                                               // for long: looked at
	f.setAside(3, store.Marker{KeyID: keyA, Topic: "placed", ParkedAt: 1})        // so are its rows
	f.setAside(0, store.Marker{Topic: "placed", Reason: "mistyped", ParkedAt: 1}) // and those of a topic
	table = f.take()
	if got := counts(table.Cost); got != "count 8, fetch 1, readCoordination 1, readHead 4, readMarkers 2" {
		t.Errorf("a table with work: %s", got)
	}
	requests, units := table.Cost.Total()
	var sum float64
	for _, s := range table.Cost.Requests {
		sum += s.Units
	}
	if requests != len(f.asked) || requests != 16 || units != sum || units <= 0 {
		t.Errorf("%d requests of %d, %v of %v units", requests, len(f.asked), units, sum)
	}
}

func counts(c picture.Cost) string {
	var all []string
	for _, s := range c.Requests {
		all = append(all, fmt.Sprint(s.Request, " ", s.Count))
	}
	return strings.Join(all, ", ")
}

func TestAPictureHasWhatTheBucketsHold(t *testing.T) {
	f := newFixture(t)
	for sequence := range int64(5) {
		if sequence > 0 {
			f.message(1, sequence+10, time.Minute, func(item attributes) { item["BucketCount"] = ticks(16) })
		}
		f.message(2, sequence+1, 3*time.Hour-time.Duration(sequence)*time.Minute, nil)
	}
	f.message(2, 6, 0, nil)
	f.setAside(2, store.Marker{KeyID: keyA, Topic: "placed", Reason: "MSG_SIZE_TOO_LARGE", ParkedAt: 1},
		store.Marker{KeyID: keyB, Topic: "placed", ParkedAt: 1}, store.Marker{Topic: "plcaed", ParkedAt: 1})
	for sequence := range int64(3) {
		f.put(f.schema.ParkedKey(2), outbox.ParkedRowSortKey(keyA, sequence+1), attributes{"Value": text("v")})
	}
	table := f.take()
	if b := table.Buckets[1]; b.Pending != 4 || b.PendingIsLimit || b.Oldest != time.Minute ||
		b.Head != (store.HeadRead{Waiting: true, Sequence: 11, Created: at(-time.Minute), Topic: "placed", BucketCount: 16}) {
		t.Errorf("bucket 1: %+v", b)
	}
	b := table.Buckets[2]
	keys, topics := b.Parked()
	if b.Pending != 5 || !b.PendingIsLimit || b.Oldest != 3*time.Hour || keys != 2 || topics != 1 || b.ParkedRows != 3 || b.ParkedIsLimit {
		t.Errorf("bucket 2: %+v", b)
	}
	if b := table.Buckets[3]; !reflect.DeepEqual(b, picture.Bucket{Lease: table.Leases[3]}) {
		t.Errorf("bucket 3: %+v", b)
	}
	want := picture.Totals{Pending: 9, PendingIsLimit: true, Oldest: 3 * time.Hour, ParkedKeys: 2, ParkedRows: 3}
	if got := table.Totals(); got != want {
		t.Errorf("totals %+v, want %+v", got, want)
	}
}

// What relays stop at is told with its reason, but looked for only where something
// has waited for long.
func TestAFirstMessageThatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	broken := func(item attributes) { item["Headers"] = text("x") }
	f.message(0, 7, time.Hour, broken)
	f.message(1, 7, time.Second, broken)
	f.message(2, 7, time.Hour, func(item attributes) { delete(item, "CreatedAtUtc") })
	table := f.take()
	for b, want := range map[int]string{0: "attribute Headers", 2: "attribute CreatedAtUtc is missing"} {
		if fault := table.Buckets[b].HeadFault; fault == nil || !strings.Contains(fault.Error(), want) {
			t.Errorf("bucket %d: %v", b, fault)
		}
	}
	if fault := table.Buckets[1].HeadFault; fault != nil {
		t.Errorf("bucket 1: %v", fault)
	}
}

func TestMarkersThatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	f.put(f.schema.ParkedKey(1), "KEY#"+keyA, attributes{"Topic": text("placed")})
	f.put(f.schema.ParkedKey(1), outbox.ParkedRowSortKey(keyA, 1), nil)
	b := f.take().Buckets[1]
	if len(b.UnreadableMarkers) != 1 || b.ParkedRows != 1 || b.Fault != nil {
		t.Errorf("%+v", b)
	}
}

// A bucket that cannot be read leaves a blank, and the picture has the others.
func TestAFaultLeavesABlank(t *testing.T) {
	f := newFixture(t)
	for b := range 4 {
		f.message(b, 1, time.Minute, nil)
		f.setAside(b, store.Marker{KeyID: keyA, Topic: "placed", ParkedAt: 1})
	}
	for failing, want := range map[string]picture.Bucket{
		"readHead":    {},
		"readMarkers": {Oldest: time.Minute, Pending: 1, PendingIsLimit: true},
		"count":       {Oldest: time.Minute, Pending: 1, PendingIsLimit: true},
		"fetch":       {Oldest: time.Minute, Pending: 1},
	} {
		f.answer = func(r store.Request, reply store.Reply) store.Reply {
			if r.RequestName() == failing && r.ConcernsBucket() == 2 {
				return store.Reply{Class: store.Retriable, Err: store.ErrThrottled}
			}
			return reply
		}
		table := f.take()
		b := table.Buckets[2]
		if !errors.Is(b.Fault, store.ErrThrottled) || !strings.Contains(b.Fault.Error(), "bucket 2") || b.Oldest != want.Oldest ||
			b.Pending != want.Pending || b.PendingIsLimit != want.PendingIsLimit {
			t.Errorf("%s: %+v", failing, b)
		}
		for _, i := range []int{0, 1, 3} {
			if table.Buckets[i].Fault != nil || table.Buckets[i].Pending != 1 {
				t.Errorf("%s: bucket %d: %+v", failing, i, table.Buckets[i])
			}
		}
		if sum := table.Totals(); !sum.PendingIsLimit || !sum.ParkedIsLimit {
			t.Errorf("%s: the totals pass for the whole: %+v", failing, sum)
		}
	}
}

// A table that answers nothing is not asked again and again.
func TestTooManyFaultsEndThePicture(t *testing.T) {
	f := newFixture(t)
	f.schema.BucketCount = 1000
	f.answer = func(r store.Request, reply store.Reply) store.Reply {
		if r.RequestName() == "readHead" {
			return store.Reply{Class: store.Retriable, Err: store.ErrThrottled}
		}
		return reply
	}
	o := options()
	o.BucketCount = 1000
	table, err := picture.Take(t.Context(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.asked); n > 1+8+o.Concurrency {
		t.Errorf("%d requests", n)
	}
	if b := table.Buckets[999]; !errors.Is(b.Fault, picture.ErrGivenUp) || b.Lease.Bucket != 999 {
		t.Errorf("the last bucket: %+v", b)
	}
}

func TestWithoutTheFleetThereIsNoPicture(t *testing.T) {
	f := newFixture(t)
	f.answer = func(store.Request, store.Reply) store.Reply {
		return store.Reply{Class: store.Retriable, Err: store.ErrTableMissing}
	}
	if _, err := picture.Take(t.Context(), f, options()); !errors.Is(err, store.ErrTableMissing) {
		t.Error(err)
	}
}

func TestAPictureIsInterrupted(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.answer = func(_ store.Request, reply store.Reply) store.Reply { cancel(); return reply }
	if _, err := picture.Take(ctx, f, options()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// However many markers there are, reading them ends; a page has thousands.
func TestMarkersAreReadUpToTheLimit(t *testing.T) {
	f := newFixture(t)
	var markers []store.Marker
	for i := range 3 {
		markers = append(markers, store.Marker{KeyID: fmt.Sprintf("%032x", i), Topic: "t", ParkedAt: 1})
	}
	pages := 0
	f.answer = func(r store.Request, reply store.Reply) store.Reply {
		if r.RequestName() == "readMarkers" && r.ConcernsBucket() == 1 {
			pages++ // of what the one marker that is there stands for
			reply.Result = store.MarkersPage{Markers: markers, Next: "KEY#" + markers[2].KeyID}
		}
		return reply
	}
	f.setAside(1, markers[0])
	b := f.take().Buckets[1]
	if keys, _ := b.Parked(); pages != 2 || keys != 6 || !b.ParkedIsLimit {
		t.Errorf("%d pages, %d keys, %t", pages, keys, b.ParkedIsLimit)
	}
}

// All requests of a picture read.
func TestAPictureChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.message(1, 1, time.Hour, nil)
	f.setAside(1, store.Marker{KeyID: keyA, Topic: "placed", ParkedAt: 1})
	before := f.db.Items("orders")
	f.take()
	if !reflect.DeepEqual(before, f.db.Items("orders")) {
		t.Error("the table has changed")
	}
	reads := map[string]bool{"readCoordination": true, "readHead": true, "readMarkers": true, "count": true, "fetch": true}
	for _, name := range f.asked {
		if !reads[name] {
			t.Errorf("%s was asked; known as reads: %v", name, slices.Sorted(maps.Keys(reads)))
		}
	}
}

// A key that is set aside while the picture is taken is no stray: its marker came after
// the markers were read, and before its rows.
func TestRowsWithoutAMarkerAreTold(t *testing.T) {
	f := newFixture(t)
	row := func(bucket int, keyID string) {
		item := f.schema.EncodeMessage(outbox.NewMessage("placed", []byte("k"), nil), bucket, 1)
		maps.Copy(item, f.schema.Key(f.schema.ParkedKey(bucket), outbox.ParkedRowSortKey(keyID, 1)))
		f.put("", "", item)
	}
	row(1, keyA)
	f.answer = func(r store.Request, reply store.Reply) store.Reply {
		if r.RequestName() == "readMarkers" && r.ConcernsBucket() == 2 && len(reply.Result.(store.MarkersPage).Markers) == 0 {
			store.NewClient(f.schema, f.db, f.db).Do(f.Context(), store.SetAside{Bucket: 2, Marker: store.Marker{KeyID: keyA, Topic: "placed", ParkedAt: 1}})
		}
		return reply
	}
	row(2, keyA)
	buckets := f.take().Buckets
	if got := buckets[1].Strays; len(got) != 1 || got[0] != keyA {
		t.Errorf("bucket 1: %v", got)
	}
	if got := buckets[2].Strays; len(got) != 0 {
		t.Errorf("bucket 2: %v", got)
	}
}
