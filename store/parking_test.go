package store_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

var (
	keyID   = strings.Repeat("ab", 16)
	otherID = strings.Repeat("cd", 16)
	tenure  = store.Tenure{Bucket: 3, Relay: "A", Incarnation: "A1", Claim: 7}
)

// parked is an item of the parked partition of bucket 3.
func (f fixture) parked(sortKey string, attributes item) item {
	whole := f.schema.Key(f.schema.KeyPrefix+"#PARKED#3", sortKey)
	maps.Copy(whole, attributes)
	return whole
}

// parkedMarker is the marker of keyID, set aside at noon.
func (f fixture) parkedMarker(more item) item {
	m := f.parked("KEY#"+keyID, item{"Topic": str("t"), "Reason": str("too large"), "Attempts": num(3), "ParkedAtUtc": num(int64(noon))})
	maps.Copy(m, more)
	return m
}

// parkedRow is a message as it stands in the parked partition.
func (f fixture) parkedRow(message item, id string) item {
	moved := maps.Clone(message)
	sequence := moved[f.schema.SortKey].(*types.AttributeValueMemberS).Value
	maps.Copy(moved, f.schema.Key(f.schema.KeyPrefix+"#PARKED#3", "ROW#"+id+"#"+sequence))
	return moved
}

// held stores the lease of the tenure, and returns the item.
func (f fixture) held() item {
	lease := f.coordination(lease3, item{"Owner": str("A"), "Incarnation": str("A1"), "Claim": num(7), "ExpiresAtUtc": num(1)})
	f.put(lease)
	return lease
}

// fetchedRows reads the waiting rows of bucket 3.
func (f fixture) fetchedRows() []outbox.Row {
	f.Helper()
	return f.do(store.Fetch{Bucket: 3, Limit: 100}, store.Done).Result.(store.Fetched).Rows
}

func (f fixture) refused(r store.Request, want store.Refusal) {
	f.Helper()
	if got := f.do(r, store.Refused).Result.(store.MoveResult).Refusal; got != want {
		f.Errorf("%s: refused is the %s, want the %s", r.RequestName(), got, want)
	}
}

var known = store.Marker{KeyID: keyID, Topic: "t", Reason: "too large", Attempts: 3, ParkedAt: noon}

func TestMarkersAreWrittenOnce(t *testing.T) {
	onBoth(t, func(f fixture) {
		lease := f.held()
		other := store.Marker{KeyID: otherID, Topic: "u", Reason: "operator", ParkedAt: noon, RetryAt: noon + 1}
		f.do(store.Mark{Tenure: tenure, Markers: []store.Marker{known, other}, Token: "1"}, store.Done)
		otherItem := f.parked("KEY#"+otherID, item{"Topic": str("u"), "Reason": str("operator"), "Attempts": num(0),
			"ParkedAtUtc": num(int64(noon)), "RetryAtUtc": num(int64(noon) + 1)})
		f.wantTable(lease, f.parkedMarker(nil), otherItem)
		// The same transaction again is the service's success.
		f.do(store.Mark{Tenure: tenure, Markers: []store.Marker{known, other}, Token: "1"}, store.Done)
		// Another one is refused, as a whole.
		third := store.Marker{KeyID: strings.Repeat("ef", 16), ParkedAt: noon}
		f.refused(store.Mark{Tenure: tenure, Markers: []store.Marker{third, known}, Token: "2"}, store.MarkerRefused)
		f.wantTable(lease, f.parkedMarker(nil), otherItem)
	})
}

// A moved row keeps every attribute, those of a later version too, and is read back as
// the message that it was.
func TestMovedRowsAreUnchanged(t *testing.T) {
	onBoth(t, func(f fixture) {
		lease := f.held()
		first, second, later := f.message(1, []byte("v")), f.message(2, nil), f.message(3, nil)
		first["Future"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{num(1)}}
		f.put(f.parkedMarker(nil), first, second, later)
		rows := f.fetchedRows()
		before := maps.Clone(rows[0].Item)
		move := store.Move{Tenure: tenure, Markers: []store.Marker{known}, Token: "1",
			Rows: []store.Moving{{KeyID: keyID, Row: rows[0]}, {KeyID: keyID, Row: rows[1]}}}
		for range 2 { // the second is the SDK's, or the owner's, repetition
			f.do(move, store.Done)
			f.wantTable(lease, later, f.parkedMarker(nil), f.parkedRow(first, keyID), f.parkedRow(second, keyID))
		}
		if !reflect.DeepEqual(rows[0].Item, before) {
			t.Error("the row that was fetched was changed")
		}
		got := f.do(store.FetchParked{Bucket: 3, KeyID: keyID, Limit: 9}, store.Done).Result.(store.Fetched)
		if len(got.Rows) != 2 || got.Malformed != nil || !reflect.DeepEqual(got.Rows[0].Message, rows[0].Message) || got.Rows[1].Sequence != 2 {
			t.Errorf("got %+v", got)
		}
		if waiting := f.fetchedRows(); len(waiting) != 1 || waiting[0].Sequence != 3 {
			t.Errorf("an ordinary fetch shows %+v", waiting)
		}
	})
}

// Case by case, what a move requires; nothing is moved in part.
func TestMovesThatAreRefused(t *testing.T) {
	onBoth(t, func(f fixture) {
		lease, one, two := f.held(), f.message(1, nil), f.message(2, nil)
		f.put(f.parkedMarker(nil), one, two)
		rows := f.fetchedRows()
		moving := []store.Moving{{KeyID: keyID, Row: rows[0]}, {KeyID: keyID, Row: rows[1]}}
		for name, change := range map[string]func(*store.Move){
			"an earlier claim":       func(m *store.Move) { m.Tenure.Claim = 6 },
			"an earlier incarnation": func(m *store.Move) { m.Tenure.Incarnation = "A0" },
			"another relay":          func(m *store.Move) { m.Tenure.Relay = "B" },
			"a lease that is not":    func(m *store.Move) { m.Tenure.Bucket = 4 },
		} {
			move := store.Move{Tenure: tenure, Markers: []store.Marker{known}, Rows: moving, Token: name}
			change(&move)
			f.refused(move, store.LeaseRefused)
		}
		again, gone := known, known
		again.ParkedAt, gone.KeyID = noon+1, otherID
		f.refused(store.Move{Tenure: tenure, Markers: []store.Marker{again}, Rows: moving, Token: "again"}, store.MarkerRefused)
		f.refused(store.Move{Tenure: tenure, Markers: []store.Marker{gone}, Rows: moving, Token: "gone"}, store.MarkerRefused)
		f.wantTable(lease, one, two, f.parkedMarker(nil))

		f.do(store.Delete{Bucket: 3, Sequences: []int64{2}}, store.Done)
		f.refused(store.Move{Tenure: tenure, Markers: []store.Marker{known}, Rows: moving, Token: "late"}, store.RowRefused)
		f.wantTable(lease, one, f.parkedMarker(nil))
	})
}

func TestAcknowledgedRowsAreRemovedUnderTheLease(t *testing.T) {
	onBoth(t, func(f fixture) {
		lease := f.held()
		one, two := f.parkedRow(f.message(1, nil), keyID), f.parkedRow(f.message(2, nil), keyID)
		foreign := f.parkedRow(f.message(1, nil), otherID)
		f.put(one, two, foreign)
		stale := tenure
		stale.Claim = 6
		f.refused(store.RemoveParked{Tenure: stale, KeyID: keyID, Sequences: []int64{1}, Token: "1"}, store.LeaseRefused)
		// One that an operator has discarded meanwhile is no fault.
		f.do(store.RemoveParked{Tenure: tenure, KeyID: keyID, Sequences: []int64{1, 2, 9}, Token: "2"}, store.Done)
		f.wantTable(lease, foreign)
	})
}

// A marker is taken away, and a retry is ended, only as it was read: an operator's wish
// that came later stays.
func TestMarkersEndOnlyAsTheyWereRead(t *testing.T) {
	onBoth(t, func(f fixture) {
		lease := f.held()
		asked := known
		asked.RetryAt = noon + 5
		topic := store.Marker{Topic: "all", Reason: "mistyped", ParkedAt: noon, RetryAt: noon + 5}
		topicItem := f.parked("ALL#all", item{"Reason": str("mistyped"), "ParkedAtUtc": num(int64(noon)), "RetryAtUtc": num(int64(noon) + 5)})
		f.put(f.parkedMarker(item{"RetryAtUtc": num(int64(noon) + 5)}), topicItem)

		earlier, other := asked, asked
		earlier.RetryAt, other.ParkedAt = noon+4, noon+1
		for i, m := range []store.Marker{known, earlier, other} {
			f.refused(store.Unmark{Tenure: tenure, Marker: m, Token: fmt.Sprint("u", i)}, store.MarkerRefused)
			f.refused(store.EndRetry{Tenure: tenure, Marker: m, Reason: "no", Token: fmt.Sprint("e", i)}, store.MarkerRefused)
		}
		f.do(store.EndRetry{Tenure: tenure, Marker: asked, Reason: "still too large", Attempts: 4, Token: "1"}, store.Done)
		f.wantTable(lease, topicItem, f.parkedMarker(item{"Reason": str("still too large"), "Attempts": num(4)}))
		f.refused(store.Unmark{Tenure: tenure, Marker: asked, Token: "2"}, store.MarkerRefused)
		f.do(store.Unmark{Tenure: tenure, Marker: known, Token: "3"}, store.Done)
		f.wantTable(lease, topicItem)

		f.do(store.EndRetry{Tenure: tenure, Marker: topic, Reason: "no", Attempts: 9, Token: "4"}, store.Done)
		f.wantTable(lease, f.parked("ALL#all", item{"Reason": str("no"), "ParkedAtUtc": num(int64(noon))}))
		topic.RetryAt = 0
		f.do(store.Unmark{Tenure: tenure, Marker: topic, Token: "5"}, store.Done)
		f.wantTable(lease)
	})
}

// All markers are read, topics first, and never a row; what cannot be read is
// reported, not dropped.
func TestReadMarkers(t *testing.T) {
	onBoth(t, func(f fixture) {
		f.put(
			f.parked("ALL#b#c", item{"Reason": str("r"), "ParkedAtUtc": num(1)}),
			f.parkedMarker(item{"RetryAtUtc": num(9), "Future": str("x")}),
			f.parked("KEY#"+otherID, item{"Reason": str("r"), "ParkedAtUtc": num(2)}),
			f.parkedRow(f.message(1, nil), keyID),
			f.parked("ALL#", item{"ParkedAtUtc": num(1)}),
			f.parked("ALL#x", item{"Reason": str("r")}),
			f.parked("ALL#y", item{"ParkedAtUtc": str("1")}),
			f.parked("KEY#short", item{"ParkedAtUtc": num(1)}),
			f.parked("KEY#"+strings.Repeat("0", 32), item{"Topic": num(1), "ParkedAtUtc": num(1)}),
			f.parked("NOTE", nil),
		)
		page := f.do(store.ReadMarkers{Bucket: 3}, store.Done).Result.(store.MarkersPage)
		retried := known
		retried.RetryAt = 9
		want := []store.Marker{{Topic: "b#c", Reason: "r", ParkedAt: 1}, retried, {KeyID: otherID, Reason: "r", ParkedAt: 2}}
		if !reflect.DeepEqual(page.Markers, want) || page.Next != "" {
			t.Errorf("got %+v, want %+v", page.Markers, want)
		}
		var faults []string
		for _, err := range page.Unreadable {
			var fault *outbox.ItemError
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			faults = append(faults, fault.SortKey+": "+fault.Attribute+" "+fault.Problem)
		}
		of := f.schema.SortKey + " is neither of a topic nor of a key set aside"
		if want := []string{"ALL#: " + of, "ALL#x: ParkedAtUtc is missing", "ALL#y: ParkedAtUtc is a S, must be a number",
			"KEY#" + strings.Repeat("0", 32) + ": Topic is a N, must be a string", "KEY#short: " + of, "NOTE: " + of}; !reflect.DeepEqual(faults, want) {
			t.Errorf("got %q, want %q", faults, want)
		}
	})
}

func TestMarkersComeInPages(t *testing.T) {
	onBoth(t, func(f fixture) {
		const markers = 40
		for i := range markers {
			f.put(f.parked(fmt.Sprintf("ALL#%03d", i), item{"Reason": str(strings.Repeat("x", 50_000)), "ParkedAtUtc": num(1)}))
		}
		var got []store.Marker
		r, pages := store.ReadMarkers{Bucket: 3}, 0
		for next := true; next; pages++ {
			page := f.do(r, store.Done).Result.(store.MarkersPage)
			got = append(got, page.Markers...)
			r.After, next = page.Next, page.Next != ""
		}
		if len(got) != markers || pages < 2 || got[markers-1].Topic != "039" {
			t.Errorf("got %d markers in %d pages", len(got), pages)
		}
	})
}

// Rows of one key come ascending, from after a number, and only they; one that cannot
// be read ends the page.
func TestFetchParked(t *testing.T) {
	onBoth(t, func(f fixture) {
		broken := f.parkedRow(f.message(12, nil), keyID)
		delete(broken, "Topic")
		f.put(f.parkedMarker(nil), f.parkedRow(f.message(2, nil), keyID), f.parkedRow(f.message(9, nil), keyID),
			f.parkedRow(f.message(10, nil), keyID), broken, f.parkedRow(f.message(13, nil), keyID),
			f.parkedRow(f.message(3, nil), otherID))
		for _, test := range []struct {
			after     int64
			limit     int
			want      []int64
			malformed bool
			more      bool
		}{
			{0, 2, []int64{2, 9}, false, true},
			{0, 9, []int64{2, 9, 10}, true, false},
			{9, 9, []int64{10}, true, false},
			{12, 9, []int64{13}, false, false},
			{13, 9, nil, false, false},
		} {
			got := f.do(store.FetchParked{Bucket: 3, KeyID: keyID, After: test.after, Limit: test.limit}, store.Done).Result.(store.Fetched)
			var numbers []int64
			for _, row := range got.Rows {
				numbers = append(numbers, row.Sequence)
			}
			if !reflect.DeepEqual(numbers, test.want) || (got.Malformed != nil) != test.malformed || got.More != test.more {
				t.Errorf("after %d: got %v, %v, more: %t", test.after, numbers, got.Malformed, got.More)
			}
		}
		f.put(f.parked("ROW#"+otherID+"#nonsense", nil))
		got := f.do(store.FetchParked{Bucket: 3, KeyID: otherID, After: 3, Limit: 9}, store.Done).Result.(store.Fetched)
		if got.Malformed == nil {
			t.Errorf("what is no row was passed over: %+v", got)
		}
	})
}

// Reads of what is set aside are strongly consistent, and ask for what they consumed.
func TestReadsOfWhatIsSetAside(t *testing.T) {
	for _, r := range requests() {
		if !isRead(r) || r.RequestName() == "discover" || r.RequestName() == "readCoordination" {
			continue
		}
		asked := false
		api := scripted{query: func(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
			asked = *in.ConsistentRead && in.ReturnConsumedCapacity == types.ReturnConsumedCapacityTotal
			return &dynamodb.QueryOutput{}, nil
		}}
		store.NewClient(schemas["default"], api, nil).Do(t.Context(), r)
		if !asked {
			t.Errorf("%s may be stale, or costs nobody knows what", r.RequestName())
		}
	}
}
