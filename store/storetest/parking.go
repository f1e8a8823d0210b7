package storetest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// What is set aside goes through package store's own requests: what they promise
// (protocol.md section 7) must be true of whatever implements the port.

const parkingNoon store.Ticks = 638_700_000_000_000_001

var (
	parkingTenure = store.Tenure{Bucket: 3, Relay: "a", Incarnation: "a1", Claim: 4}
	parkedKey     = strings.Repeat("0f", 16)
	knownMarker   = store.Marker{KeyID: parkedKey, Topic: "t", Reason: "MSG_SIZE_TOO_LARGE", Attempts: 3, ParkedAt: parkingNoon}
)

// parking is a case's table as an outbox whose bucket 3 the tenure owns.
type parking struct {
	*fixture
	*store.Client
	schema outbox.Schema
	lease  item
}

func onLease(test func(p parking)) func(f *fixture) {
	return func(f *fixture) {
		schema := outbox.Schema{Table: f.table}.WithDefaults()
		p := parking{fixture: f, Client: store.NewClient(schema, f.fixtureClient(), f.fixtureClient()), schema: schema,
			lease: row("OUTBOX#COORDINATION", "LEASE#0000000003",
				item{"Owner": str("a"), "Incarnation": str("a1"), "Claim": num("4"), "ExpiresAtUtc": num(ticks1)})}
		p.store(p.lease)
		test(p)
	}
}

// fixtureClient is the client by a name that parking's own does not hide.
func (f *fixture) fixtureClient() Client { return f.Client }

func (p parking) do(r store.Request, class store.Class) store.Reply {
	p.Helper()
	reply := p.Do(p.Context(), r)
	if reply.Class != class {
		p.Fatalf("%s: got %s (%v), want %s", r.RequestName(), reply.Class, reply.Err, class)
	}
	return reply
}

func (p parking) refused(r store.Request, want store.Refusal) {
	p.Helper()
	if got := p.do(r, store.Refused).Result.(store.MoveResult).Refusal; got != want {
		p.Fatalf("%s: refused is the %s, want the %s", r.RequestName(), got, want)
	}
}

// message is a waiting row of bucket 3, with attributes that nobody knows.
func (p parking) message(sequence int64, value []byte) item {
	m := outbox.Message{ID: uuid.New(), Topic: "t", Key: []byte{}, Value: value, CreatedAt: parkingNoon.Time()}
	i := p.schema.EncodeMessage(m, 3, sequence)
	i["Future"] = fields(item{"N": num("639000000000000003"), "L": list(boolean(true), bin([]byte{}))})
	return i
}

// aside is an item as it stands in the parked partition.
func (p parking) aside(message item, keyID string, sequence int64) item {
	moved := maps.Clone(message)
	maps.Copy(moved, keyOf("OUTBOX#PARKED#3", outbox.ParkedRowSortKey(keyID, sequence)))
	return moved
}

func (p parking) marker(more item) item {
	m := row("OUTBOX#PARKED#3", "KEY#"+parkedKey,
		item{"Topic": str("t"), "Reason": str("MSG_SIZE_TOO_LARGE"), "Attempts": num("3"), "ParkedAtUtc": num(ticks1)})
	maps.Copy(m, more)
	return m
}

// move is a move of all waiting rows under one key.
func (p parking) move(markers ...store.Marker) store.Move {
	p.Helper()
	m := store.Move{Tenure: parkingTenure, Markers: markers, Token: uuid.NewString()}
	after := int64(0)
	for more := true; more; {
		page := p.do(store.Fetch{Bucket: 3, After: after, Limit: 100}, store.Done).Result.(store.Fetched)
		for _, r := range page.Rows {
			m.Rows, after = append(m.Rows, store.Moving{KeyID: parkedKey, Row: r}), r.Sequence
		}
		more = page.More
	}
	return m
}

var parkingCases = []testCase{
	{"a key is set aside, its rows move, are removed one by one, and the marker goes", onLease(func(p parking) {
		first, second := p.message(1, []byte("v")), p.message(2, []byte{})
		p.store(first, second)
		p.do(store.Mark{Tenure: parkingTenure, Markers: []store.Marker{knownMarker}, Token: uuid.NewString()}, store.Done)
		p.do(p.move(knownMarker), store.Done)
		p.wantRows(p.lease, p.marker(nil), p.aside(first, parkedKey, 1), p.aside(second, parkedKey, 2))
		got := p.do(store.FetchParked{Bucket: 3, KeyID: parkedKey, After: 1, Limit: 10}, store.Done).Result.(store.Fetched)
		if len(got.Rows) != 1 || got.Rows[0].Sequence != 2 || got.Malformed != nil {
			p.Fatalf("got %+v", got)
		}
		p.do(store.RemoveParked{Tenure: parkingTenure, KeyID: parkedKey, Sequences: []int64{1, 2, 3}, Token: uuid.NewString()}, store.Done)
		p.do(store.Unmark{Tenure: parkingTenure, Marker: knownMarker, Token: uuid.NewString()}, store.Done)
		p.wantRows(p.lease)
	})},
	{"what another tenure sent is refused, whatever it is", onLease(func(p parking) {
		kept := []item{p.lease, p.message(1, nil), p.marker(nil), p.aside(p.message(2, nil), parkedKey, 2)}
		p.store(kept[1:]...)
		for _, late := range []store.Tenure{
			{Bucket: 3, Relay: "a", Incarnation: "a1", Claim: 3}, {Bucket: 3, Relay: "a", Incarnation: "a0", Claim: 4},
			{Bucket: 3, Relay: "b", Incarnation: "a1", Claim: 4}, {Bucket: 2, Relay: "a", Incarnation: "a1", Claim: 4},
		} {
			move := p.move(knownMarker)
			move.Tenure = late
			another := knownMarker
			another.KeyID = strings.Repeat("1e", 16)
			p.refused(move, store.LeaseRefused)
			p.refused(store.Mark{Tenure: late, Markers: []store.Marker{another}, Token: uuid.NewString()}, store.LeaseRefused)
			p.refused(store.RemoveParked{Tenure: late, KeyID: parkedKey, Sequences: []int64{2}, Token: uuid.NewString()}, store.LeaseRefused)
			p.refused(store.Unmark{Tenure: late, Marker: knownMarker, Token: uuid.NewString()}, store.LeaseRefused)
			p.refused(store.EndRetry{Tenure: late, Marker: knownMarker, Token: uuid.NewString()}, store.LeaseRefused)
		}
		p.wantRows(kept...)
	})},
	{"a move names what is not as it was read, and moves nothing in part", onLease(func(p parking) {
		first, second := p.message(1, nil), p.message(2, nil)
		p.store(first, second)
		move := p.move(knownMarker)
		p.refused(move, store.MarkerRefused)
		later := knownMarker
		later.ParkedAt++
		p.do(store.Mark{Tenure: parkingTenure, Markers: []store.Marker{later}, Token: uuid.NewString()}, store.Done)
		p.refused(move, store.MarkerRefused)
		p.refused(store.Mark{Tenure: parkingTenure, Markers: []store.Marker{knownMarker}, Token: uuid.NewString()}, store.MarkerRefused)
		move.Markers[0] = later
		p.do(store.Delete{Bucket: 3, Sequences: []int64{2}}, store.Done)
		p.refused(move, store.RowRefused)
		p.wantRows(p.lease, first, p.marker(item{"ParkedAtUtc": num(ticks2)}))
	})},
	{"a repeated transaction succeeds once, even after its rows are gone", onLease(func(p parking) {
		p.store(p.message(1, nil), p.marker(nil))
		move := p.move(knownMarker)
		p.do(move, store.Done)
		p.do(store.DiscardParked{Bucket: 3, KeyID: parkedKey, Sequence: 1}, store.Done)
		p.do(move, store.Done)
		p.wantRows(p.lease, p.marker(nil))
		move.Markers = nil
		if reply := p.do(move, store.Ambiguous); !errors.Is(reply.Err, store.ErrInvalid) {
			p.Fatalf("a token of other items: got %v", reply.Err)
		}
	})},
	{"a chunk of 40 rows and 3 MB under 19 markers moves as a whole", onLease(func(p parking) {
		var markers []store.Marker
		want := []item{p.lease}
		for i := range 19 {
			m := store.Marker{KeyID: fmt.Sprintf("%032x", i), Topic: "t", Reason: "r", ParkedAt: parkingNoon}
			markers = append(markers, m)
			want = append(want, row("OUTBOX#PARKED#3", "KEY#"+m.KeyID,
				item{"Topic": str("t"), "Reason": str("r"), "Attempts": num("0"), "ParkedAtUtc": num(ticks1)}))
		}
		p.do(store.Mark{Tenure: parkingTenure, Markers: markers, Token: uuid.NewString()}, store.Done)
		for i := range store.MaxMoves {
			m := p.message(int64(i+1), make([]byte, store.MaxMoveBytes/store.MaxMoves-300))
			p.store(m)
			want = append(want, p.aside(m, parkedKey, int64(i+1)))
		}
		p.do(p.move(markers...), store.Done)
		p.wantRows(want...)
	})},
	{"a row that gets too large by its move is not refused, and stays", onLease(func(p parking) {
		m := p.message(1, nil)
		m["Value"] = bin(make([]byte, 400*1024-outbox.ItemSize(m)-len("Value")-10))
		p.store(m, p.marker(nil))
		if reply := p.do(p.move(knownMarker), store.Retriable); !errors.Is(reply.Err, store.ErrInvalid) {
			p.Fatalf("got %v", reply.Err)
		}
		p.wantRows(p.lease, m, p.marker(nil))
	})},
	{"a retry ends, and a marker goes, only as it was read", onLease(func(p parking) {
		p.store(p.marker(nil))
		p.do(store.AskRetry{Bucket: 3, KeyID: parkedKey, At: parkingNoon + 1}, store.Done)
		p.refused(store.Unmark{Tenure: parkingTenure, Marker: knownMarker, Token: uuid.NewString()}, store.MarkerRefused)
		asked := knownMarker
		asked.RetryAt = parkingNoon + 1
		p.do(store.AskRetry{Bucket: 3, KeyID: parkedKey, At: parkingNoon + 2}, store.Done)
		p.refused(store.EndRetry{Tenure: parkingTenure, Marker: asked, Reason: "no", Token: uuid.NewString()}, store.MarkerRefused)
		p.wantRows(p.lease, p.marker(item{"RetryAtUtc": num(ticks3)}))
		asked.RetryAt = parkingNoon + 2
		p.do(store.EndRetry{Tenure: parkingTenure, Marker: asked, Reason: "no", Attempts: 4, Token: uuid.NewString()}, store.Done)
		p.wantRows(p.lease, p.marker(item{"Reason": str("no"), "Attempts": num("4")}))
		p.refused(store.Unmark{Tenure: parkingTenure, Marker: knownMarker, Token: uuid.NewString()}, store.MarkerRefused)
		failed := knownMarker
		failed.Attempts = 4
		p.do(store.Unmark{Tenure: parkingTenure, Marker: failed, Token: uuid.NewString()}, store.Done)
		p.do(store.AskRetry{Bucket: 3, KeyID: parkedKey, At: parkingNoon + 3}, store.Refused)
		p.wantRows(p.lease)
	})},
	{"markers are read apart from rows, topics first", onLease(func(p parking) {
		topic := store.Marker{Topic: "über#all", Reason: "mistyped", ParkedAt: parkingNoon}
		p.do(store.SetAside{Bucket: 3, Marker: knownMarker}, store.Done)
		p.do(store.SetAside{Bucket: 3, Marker: topic}, store.Done)
		p.store(p.aside(p.message(1, nil), parkedKey, 1), row("OUTBOX#PARKED#3", "KEY#odd", nil))
		page := p.do(store.ReadMarkers{Bucket: 3}, store.Done).Result.(store.MarkersPage)
		if !reflect.DeepEqual(page.Markers, []store.Marker{topic, knownMarker}) || len(page.Unreadable) != 1 || page.Next != "" {
			p.Fatalf("got %+v", page)
		}
		if page = p.do(store.ReadMarkers{Bucket: 3, After: "ALL#über#all"}, store.Done).Result.(store.MarkersPage); len(page.Markers) != 1 {
			p.Fatalf("behind the topic: got %+v", page)
		}
		second := topic
		second.ParkedAt++
		result := p.do(store.SetAside{Bucket: 3, Marker: second}, store.Refused).Result.(store.SetAsideResult)
		if result.Existing == nil || *result.Existing != topic {
			p.Fatalf("got %+v", result)
		}
	})},
	{"a row that cannot be read moves as it was read, and only so", onLease(func(p parking) {
		odd := p.message(8, []byte("v"))
		delete(odd, "Topic")
		odd["Headers"] = &types.AttributeValueMemberNULL{Value: true}
		odd["Partition"] = list(num("1"))
		p.store(odd)
		read := p.do(store.ReadRow{Bucket: 3, Sequence: 8}, store.Done).Result.(store.RowRead)
		p.wantItem(read.Item, odd)
		move := store.MoveUnreadable{Bucket: 3, Sequence: 8, Item: read.Item, Marker: knownMarker, Token: uuid.NewString()}
		repaired := maps.Clone(odd)
		repaired["Topic"] = str("t")
		p.store(repaired)
		p.refused(move, store.RowRefused)
		p.wantRows(p.lease, repaired)
		p.store(odd, p.marker(item{"Reason": str("before"), "RetryAtUtc": num(ticks2), "ParkedAtUtc": num(ticks3)}))
		p.do(move, store.Done)
		p.wantRows(p.lease, p.marker(item{"Reason": str("before"), "RetryAtUtc": num(ticks2)}), p.aside(odd, parkedKey, 8))
	})},
	{"a ring reaches the lease and nothing else of it, claimed or not", onLease(func(p parking) {
		p.do(store.Ring{Bucket: 3, At: parkingNoon}, store.Done)
		p.do(store.Ring{Bucket: 7, At: parkingNoon + 1}, store.Done)
		p.lease["Attention"] = num(ticks1)
		p.wantRows(p.lease, row("OUTBOX#COORDINATION", "LEASE#0000000007", item{"Attention": num(ticks2)}))
		p.do(store.Claim{Bucket: 7, Relay: "a", Incarnation: "a1", Claim: 1, Now: parkingNoon, Expires: parkingNoon + 1}, store.Done)
	})},
	{"a pause stands beside the lease, and goes as it was seen", onLease(func(p parking) {
		pause := store.Pause{Bucket: 3, Until: store.NoEnd, By: "me", Reason: "über"}
		p.do(pause, store.Done)
		second := store.Pause{Bucket: 3, Until: parkingNoon, By: "you", Reason: "no"}
		if old := p.do(second, store.Refused).Result.(store.LeaseResult).Old; old == nil || old.PausedUntil != store.NoEnd {
			p.Fatalf("got %+v", old)
		}
		p.do(store.Resume{Bucket: 3, Seen: parkingNoon}, store.Refused)
		before := maps.Clone(p.lease)
		p.lease["PausedUntilUtc"], p.lease["PausedBy"], p.lease["PauseReason"] = num("3155378975999999999"), str("me"), str("über")
		p.wantRows(p.lease)
		p.do(store.Resume{Bucket: 3, Seen: store.NoEnd}, store.Done)
		p.do(store.Resume{Bucket: 7, Seen: store.NoEnd}, store.Done)
		p.wantRows(before)
	})},
	{"a topic's pause has another end unless it is retried", onLease(func(p parking) {
		m := store.Marker{Topic: "t", Reason: "r", ParkedAt: parkingNoon, PausedUntil: parkingNoon + 1, PausedBy: "me"}
		p.do(store.PauseTopic{Bucket: 3, Marker: m}, store.Done)
		longer := m
		longer.ParkedAt, longer.PausedUntil = parkingNoon+1, store.NoEnd
		p.do(store.PauseTopic{Bucket: 3, Marker: longer}, store.Refused)
		p.do(store.PauseTopic{Bucket: 3, Seen: parkingNoon, Marker: longer}, store.Done)
		p.wantRows(p.lease, row("OUTBOX#PARKED#3", "ALL#t", item{"Reason": str("r"), "ParkedAtUtc": num(ticks2),
			"PausedUntilUtc": num("3155378975999999999"), "PausedBy": str("me")}))
		p.do(store.AskRetry{Bucket: 3, Topic: "t", At: parkingNoon}, store.Done)
		p.do(store.PauseTopic{Bucket: 3, Seen: parkingNoon + 1, Marker: m}, store.Refused)
	})},
	{"a retry is called off as it was asked for, and what goes before it stays refused", onLease(func(p parking) {
		p.store(p.marker(nil))
		p.do(store.AskRetry{Bucket: 3, KeyID: parkedKey, At: parkingNoon + 1}, store.Done)
		asked := knownMarker
		asked.RetryAt = parkingNoon + 1
		off := store.CallOff{Bucket: 3, Seen: asked, ParkedAt: parkingNoon + 2, Reason: "again"}
		p.do(store.CallOff{Bucket: 3, Seen: knownMarker, ParkedAt: parkingNoon + 2, Reason: "no"}, store.Refused)
		p.do(off, store.Done)
		called := p.marker(item{"Reason": str("again"), "ParkedAtUtc": num(ticks3)})
		p.wantRows(p.lease, called)
		if again := p.do(off, store.Done).Result.(store.SetAsideResult); !again.Repeated {
			p.Fatal("its repetition passes for another one")
		}
		for _, known := range []store.Marker{knownMarker, asked} {
			p.refused(store.Unmark{Tenure: parkingTenure, Marker: known, Token: uuid.NewString()}, store.MarkerRefused)
		}
		p.wantRows(p.lease, called)
	})},
	{"keys that have rows are found one by one, with a marker or without", onLease(func(p parking) {
		p.store(p.marker(nil), row("OUTBOX#PARKED#3", "ROW#nonsense", nil))
		for _, keyID := range []string{parkedKey, strings.Repeat("1e", 16)} {
			for i := range int64(3) {
				p.store(p.aside(p.message(i+1, nil), keyID, i+1))
			}
		}
		var found []string
		r := store.FindParkedKey{Bucket: 3}
		for next := true; next; {
			one := p.do(r, store.Done).Result.(store.ParkedKeyFound)
			found = append(found, one.KeyID)
			if one.Unreadable != nil {
				found[len(found)-1] = "unreadable"
			}
			r.After, next = one.Next, one.Next != ""
		}
		want := []string{strings.Repeat("1e", 16), parkedKey}
		slices.Sort(want)
		if want = append(want, "unreadable", ""); !slices.Equal(found, want) {
			p.Fatalf("got %q", found)
		}
	})},
	{"rows are counted by pages of a limit and of 1 MB", onLease(func(p parking) {
		p.store(p.marker(nil), p.aside(p.message(1, nil), strings.Repeat("1e", 16), 1))
		for i := range int64(5) {
			p.store(p.aside(p.message(i+1, make([]byte, 300*1024)), parkedKey, i+1))
		}
		for limit, want := range map[int][]int{2: {2, 2, 1}, 100: {3, 2}} {
			var counts []int
			r := store.CountParked{Bucket: 3, KeyID: parkedKey, Limit: limit}
			for next := true; next; {
				page := p.do(r, store.Done).Result.(store.Counted)
				counts = append(counts, page.Rows)
				r.After, next = page.Next, page.Next != 0
			}
			if !slices.Equal(counts, want) {
				p.Fatalf("by %d: got pages of %v rows, want %v", limit, counts, want)
			}
		}
	})},
	{"a move costs twice what it checks, puts and deletes", onLease(func(p parking) {
		p.store(p.message(1, nil), p.message(2, make([]byte, 1500)), p.marker(nil))
		if reply := p.do(p.move(knownMarker), store.Done); reply.Capacity != 2*(1+1+2*1+2*2) {
			p.Fatalf("got %v units", reply.Capacity)
		}
	})},
}
