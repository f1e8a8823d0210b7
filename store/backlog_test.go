package store_test

import (
	"testing"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// The head of a bucket says what waits there and since when, also when the row cannot
// be read as a whole; what cannot be read of it is not told, and no error.
func TestReadHead(t *testing.T) {
	onBoth(t, func(f fixture) {
		want := func(name string, want store.HeadRead) {
			t.Helper()
			if got := f.do(store.ReadHead{Bucket: 3}, store.Done).Result.(store.HeadRead); got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		want("an empty bucket", store.HeadRead{})
		row := f.message(7, nil)
		stamp := f.schema.BucketCount
		f.put(f.message(9, nil), row)
		want("a message", store.HeadRead{Waiting: true, Sequence: 7, Created: noon, Topic: "orders", BucketCount: stamp})
		row["Topic"], row["Value"], row["BucketCount"] = num(1), num(1), num(16)
		f.put(row)
		want("another stamp, an unreadable topic", store.HeadRead{Waiting: true, Sequence: 7, Created: noon, BucketCount: 16})
		row["CreatedAtUtc"] = str("soon")
		delete(row, "BucketCount")
		f.put(row)
		want("an unreadable time, no stamp", store.HeadRead{Waiting: true, Sequence: 7})
		delete(row, "CreatedAtUtc")
		f.put(row)
		want("no time", store.HeadRead{Waiting: true, Sequence: 7})
		row[f.schema.SortKey] = str("0")
		f.put(row)
		want("no number", store.HeadRead{Waiting: true})
	})
}

// Each part of a bucket is counted by itself, page by page, up to the limit of each.
func TestCount(t *testing.T) {
	onBoth(t, func(f fixture) {
		for sequence := range int64(7) {
			f.put(f.message(sequence+1, nil), f.parkedRow(f.message(sequence+10, nil), keyID))
		}
		f.put(f.parkedMarker(nil), f.parked(outbox.ParkedTopicSortKey("bills"), nil))
		for part, want := range map[store.Part]int{store.Pending: 7, store.ParkedRows: 7, store.ParkedKeys: 1, store.Parked: 9} {
			total, pages := 0, 0
			for after := ""; pages == 0 || after != ""; pages++ {
				counted := f.do(store.Count{Bucket: 3, Of: part, After: after, Limit: 3}, store.Done).Result.(store.ItemsCounted)
				if counted.Items > 3 {
					t.Errorf("a page of %d items", counted.Items)
				}
				total, after = total+counted.Items, counted.Next
			}
			if total != want {
				t.Errorf("part %d: counted %d, want %d", part, total, want)
			}
		}
		if got := f.do(store.Count{Bucket: 4, Limit: 3}, store.Done).Result.(store.ItemsCounted); got != (store.ItemsCounted{}) {
			t.Errorf("another bucket: %+v", got)
		}
	})
}
