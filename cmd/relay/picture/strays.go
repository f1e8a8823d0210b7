package picture

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Strays are the ids of keys of a bucket that have rows set aside and no marker, so that
// no relay knows of them, and newer rows of these keys pass. They come about when somebody
// deletes a marker by hand. It takes one read for each key that has rows, and looks at most
// at so many keys; 0: at all. Markers are those that were read before.
//
// Owners and operators go on meanwhile: a key that was set aside since then looks like a
// stray, as one does whose marker cannot be read. To read the markers once more tells.
func Strays(ctx context.Context, table Asker, bucket, most int, markers []store.Marker) ([]string, error) {
	known := marked(store.MarkersPage{Markers: markers})
	var strays []string
	looked := 0
	for r := (store.FindParkedKey{Bucket: bucket}); most == 0 || looked < most; looked++ {
		found, err := Ask[store.ParkedKeyFound](ctx, table, r)
		if err != nil {
			return nil, err
		}
		if found.KeyID != "" && !known[found.KeyID] {
			strays = append(strays, found.KeyID)
		}
		if r.After = found.Next; r.After == "" {
			break
		}
	}
	if len(strays) == 0 {
		return nil, nil
	}
	for r := (store.ReadMarkers{Bucket: bucket}); ; {
		page, err := Ask[store.MarkersPage](ctx, table, r)
		if err != nil {
			return nil, err
		}
		since := marked(page)
		strays = slices.DeleteFunc(strays, func(keyID string) bool { return since[keyID] })
		if r.After = page.Next; r.After == "" {
			return strays, nil
		}
	}
}

// marked are the ids of the keys that have a marker, be it one that can be read or not.
func marked(page store.MarkersPage) map[string]bool {
	ids := map[string]bool{}
	for _, m := range page.Markers {
		ids[m.KeyID] = true
	}
	for _, fault := range page.Unreadable {
		var item *outbox.ItemError
		if errors.As(fault, &item) {
			ids[strings.TrimPrefix(item.SortKey, outbox.ParkedKeySortKeyPrefix)] = true
		}
	}
	return ids
}
