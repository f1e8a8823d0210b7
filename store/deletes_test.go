package store_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// A delete removes these rows of this bucket and nothing else; rows that are gone
// already are no fault (case L-09).
func TestDelete(t *testing.T) {
	onBoth(t, func(f fixture) {
		other := f.schema.EncodeMessage(outbox.Message{Topic: "t"}, 4, 1)
		kept := f.message(3, nil)
		f.put(f.message(1, nil), f.message(2, nil), kept, other)
		r := store.Delete{Bucket: 3, Sequences: []int64{1, 2, 9}}
		for range 2 {
			if got := f.do(r, store.Done).Result.(store.Deleted); got.Unprocessed != nil {
				t.Errorf("unprocessed %v", got.Unprocessed)
			}
			f.wantTable(kept, other)
		}
	})
}

// Case D-06: what the service leaves undone is named by its numbers, in the
// request's order, whatever order the service names it in.
func TestUnprocessedDeletes(t *testing.T) {
	onBoth(t, func(f fixture) {
		left := []int64{20, 3, 7}
		api := scripted{batch: func(in *dynamodb.BatchWriteItemInput) (*dynamodb.BatchWriteItemOutput, error) {
			var undone []types.WriteRequest
			for _, sequence := range left {
				undone = append(undone, types.WriteRequest{DeleteRequest: &types.DeleteRequest{
					Key: f.schema.Key(f.schema.MessagesKey(3), outbox.SequenceSortKey(sequence)),
				}})
			}
			return &dynamodb.BatchWriteItemOutput{
				UnprocessedItems: map[string][]types.WriteRequest{f.schema.Table: undone},
			}, nil
		}}
		f.Client = store.NewClient(f.schema, api, nil)
		r := store.Delete{Bucket: 3, Sequences: []int64{1, 3, 7, 20, 21}}
		got := f.do(r, store.Done).Result.(store.Deleted)
		if !slices.Equal(got.Unprocessed, []int64{3, 7, 20}) {
			t.Errorf("got %v", got.Unprocessed)
		}
	})
}

// Unprocessed items that make no sense say nothing certain about the rows.
func TestUnprocessedNonsense(t *testing.T) {
	for name, write := range map[string]types.WriteRequest{
		"a put":      {PutRequest: &types.PutRequest{}},
		"no key":     {DeleteRequest: &types.DeleteRequest{}},
		"an odd key": {DeleteRequest: &types.DeleteRequest{Key: item{"PK": str("x"), "SK": str("y")}}},
	} {
		api := scripted{batch: func(*dynamodb.BatchWriteItemInput) (*dynamodb.BatchWriteItemOutput, error) {
			return &dynamodb.BatchWriteItemOutput{UnprocessedItems: map[string][]types.WriteRequest{"orders": {write}}}, nil
		}}
		reply := store.NewClient(schemas["default"], api, nil).Do(t.Context(), store.Delete{Sequences: []int64{1}})
		if reply.Class != store.Ambiguous || reply.Result != nil || !errors.Is(reply.Err, store.ErrUnavailable) {
			t.Errorf("%s: got %+v", name, reply)
		}
	}
}

// requests are one of each kind.
func requests() []store.Request {
	at := store.Instant{Wall: 1, Mono: 2}
	return []store.Request{
		store.Heartbeat{Relay: "A", LastSeen: noon, NotAfter: at},
		store.ReadCoordination{NotAfter: at},
		store.Claim{Bucket: 3, Relay: "A", Incarnation: "A1", NotAfter: at},
		store.Keep{Bucket: 3, Relay: "A", Incarnation: "A1", NotAfter: at},
		store.Release{Bucket: 3, Relay: "A", NotAfter: at},
		store.StampStopped{Relay: "A", Incarnation: "A1", NotAfter: at},
		store.Prune{Relay: "A", NotAfter: at},
		store.Discover{Bucket: 3, NotAfter: at},
		store.Fetch{Bucket: 3, Limit: 1, NotAfter: at},
		store.Probe{Bucket: 3, From: 1, To: 2, NotAfter: at},
		store.Delete{Bucket: 3, Sequences: []int64{1}, NotAfter: at},
		store.ReadMarkers{Bucket: 3, NotAfter: at},
		store.FetchParked{Bucket: 3, KeyID: keyID, Limit: 1, NotAfter: at},
		store.Mark{Tenure: tenure, Markers: []store.Marker{{KeyID: keyID, ParkedAt: noon}}, Token: "1", NotAfter: at},
		store.Move{Tenure: tenure, Rows: []store.Moving{{KeyID: keyID, Row: outbox.Row{Sequence: 1, Item: item{}}}}, Token: "2", NotAfter: at},
		store.RemoveParked{Tenure: tenure, KeyID: keyID, Sequences: []int64{1}, Token: "3", NotAfter: at},
		store.EndRetry{Tenure: tenure, Marker: store.Marker{KeyID: keyID, ParkedAt: noon}, Token: "4", NotAfter: at},
		store.Unmark{Tenure: tenure, Marker: store.Marker{KeyID: keyID, ParkedAt: noon}, Token: "5", NotAfter: at},
		store.SetAside{Bucket: 3, Marker: store.Marker{Topic: "t", ParkedAt: noon}, NotAfter: at},
		store.AskRetry{Bucket: 3, Topic: "t", At: noon, NotAfter: at},
		store.DiscardParked{Bucket: 3, KeyID: keyID, Sequence: 1, NotAfter: at},
		store.Ring{Bucket: 3, At: noon, NotAfter: at},
		store.FindParkedKey{Bucket: 3, NotAfter: at},
		store.CountParked{Bucket: 3, KeyID: keyID, Limit: 1, NotAfter: at},
		store.ReadRow{Bucket: 3, Sequence: 1, NotAfter: at},
		store.Pause{Bucket: 3, Until: noon, By: "b", Reason: "r", NotAfter: at},
		store.Resume{Bucket: 3, Seen: noon, NotAfter: at},
		store.PauseTopic{Bucket: 3, Marker: store.Marker{Topic: "t", ParkedAt: noon, PausedUntil: noon}, NotAfter: at},
		store.CallOff{Bucket: 3, Seen: store.Marker{Topic: "t", ParkedAt: noon, RetryAt: noon}, ParkedAt: noon + 1, NotAfter: at},
		store.MoveUnreadable{Bucket: 3, Sequence: 1, Item: item{}, Marker: store.Marker{KeyID: keyID}, Token: "6", NotAfter: at},
	}
}

// isRead tells the requests that change nothing.
func isRead(r store.Request) bool {
	switch r.(type) {
	case store.ReadCoordination, store.Discover, store.Fetch, store.Probe,
		store.ReadMarkers, store.FetchParked, store.CountParked, store.FindParkedKey, store.ReadRow:
		return true
	}
	return false
}

// Case D-11: what keeps leases alive never shares a client with messages. Each
// request knows its lane, its deadline and its bucket, and has a name of its own.
func TestLanes(t *testing.T) {
	names := map[string]bool{}
	for _, r := range requests() {
		coordination := slices.Contains([]string{
			"heartbeat", "readCoordination", "claim", "keep", "release", "stampStopped", "prune",
		}, r.RequestName())
		lost := errors.New("lost")
		client := store.NewClient(schemas["default"], failing(lost), nil)
		if coordination {
			client = store.NewClient(schemas["default"], nil, failing(lost))
		}
		if reply := client.Do(t.Context(), r); !errors.Is(reply.Err, lost) {
			t.Errorf("%s: got %v", r.RequestName(), reply.Err)
		}
		if lane := r.Lane().String(); (lane == "coordination") != coordination {
			t.Errorf("%s: lane %s", r.RequestName(), lane)
		}
		if (r.Deadline() != store.Instant{Wall: 1, Mono: 2}) {
			t.Errorf("%s: deadline %v", r.RequestName(), r.Deadline())
		}
		ofBucket := reflect.ValueOf(r).FieldByName("Bucket").IsValid() || reflect.ValueOf(r).FieldByName("Tenure").IsValid()
		if want := map[bool]int{true: 3, false: -1}[ofBucket]; r.ConcernsBucket() != want {
			t.Errorf("%s: bucket %d, want %d", r.RequestName(), r.ConcernsBucket(), want)
		}
		if names[r.RequestName()] {
			t.Errorf("two requests are called %s", r.RequestName())
		}
		names[r.RequestName()] = true
	}
}

// A request whose deadline has passed was certainly not applied.
func TestNotSent(t *testing.T) {
	for _, r := range requests() {
		reply := store.NotSent(r)
		if reply.Class != store.Retriable || !errors.Is(reply.Err, store.ErrNotSent) || reply.Result != nil {
			t.Errorf("%s: got %+v", r.RequestName(), reply)
		}
	}
}

// What a request consumed is told, for the metrics.
func TestCapacity(t *testing.T) {
	f := newFixture(t, schemas["default"])
	f.put(f.message(1, make([]byte, 8192)))
	for _, r := range requests() {
		if _, keep := r.(store.Keep); keep {
			continue // refused before a claim of the same values
		}
		reply := f.Do(t.Context(), r)
		if reply.Class == store.Done && reply.Capacity <= 0 && r.RequestName() != "release" {
			t.Errorf("%s: no capacity", r.RequestName())
		}
	}
}
