package store_test

import (
	"testing"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// The head of a bucket says since when something waits, also when the row cannot be
// read otherwise; an unreadable time is no time, and no error.
func TestReadHead(t *testing.T) {
	onBoth(t, func(f fixture) {
		head := func() store.HeadRead { return f.do(store.ReadHead{Bucket: 3}, store.Done).Result.(store.HeadRead) }
		if got := head(); got != (store.HeadRead{}) {
			t.Errorf("an empty bucket: %+v", got)
		}
		row := f.message(7, nil)
		row["Topic"] = num(1)
		f.put(f.message(9, nil), row)
		if got := head(); got != (store.HeadRead{Waiting: true, Created: noon}) {
			t.Errorf("got %+v", got)
		}
		row["CreatedAtUtc"] = str("soon")
		f.put(row)
		if got := head(); got != (store.HeadRead{Waiting: true}) {
			t.Errorf("an unreadable time: %+v", got)
		}
		delete(row, "CreatedAtUtc")
		f.put(row)
		if got := head(); got != (store.HeadRead{Waiting: true}) {
			t.Errorf("no time: %+v", got)
		}
	})
}

// Each part of a bucket is counted by itself, page by page, up to the limit of each.
func TestCount(t *testing.T) {
	onBoth(t, func(f fixture) {
		for sequence := range int64(7) {
			f.put(f.message(sequence+1, nil), f.parkedRow(f.message(sequence+10, nil), keyID))
		}
		f.put(f.parkedMarker(nil), f.parked(outbox.ParkedTopicSortKey("bills"), nil))
		for part, want := range map[store.Part]int{store.Pending: 7, store.ParkedRows: 7, store.ParkedKeys: 1} {
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
