package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// A read shows leases and relays as they were written, in the order of their
// keys, and nothing else of the partition.
func TestReadCoordination(t *testing.T) {
	onBoth(t, func(f fixture) {
		f.put(
			f.coordination("LEASE#0000000002", nil),
			f.coordination("LEASE#0000000011", item{"ExpiresAtUtc": num(5)}),
			f.coordination(lease3, item{
				"Owner": str("A"), "ExpiresAtUtc": num(int64(noon)), "Incarnation": str("A1"), "Claim": num(7),
				"Attention": num(8), "PausedUntilUtc": num(9), "PausedBy": str("me"), "PauseReason": str("why"),
			}),
			f.coordination("RELAY#B", item{"LastSeenUtc": num(1), "StoppedAtUtc": num(2), "Incarnation": str("B1"), "Mode": str("ordered")}),
			f.coordination("RELAY#A", item{"LastSeenUtc": num(3)}),
			f.coordination("SOMETHING#else", item{"LastSeenUtc": str("x")}),
		)
		page := f.do(store.ReadCoordination{}, store.Done).Result.(store.CoordinationPage)
		want := store.CoordinationPage{
			Leases: []store.Lease{
				{Bucket: 2},
				{Bucket: 3, Owner: "A", Expires: noon, Incarnation: "A1", Claim: 7, Attention: 8, PausedUntil: 9, PausedBy: "me", PauseReason: "why"},
				{Bucket: 11, Expires: 5},
			},
			Relays: []store.RelayRecord{
				{ID: "A", LastSeen: 3},
				{ID: "B", LastSeen: 1, Stopped: 2, Incarnation: "B1", Mode: "ordered"},
			},
		}
		if !reflect.DeepEqual(page, want) {
			t.Errorf("got %+v, want %+v", page, want)
		}
	})
}

// Case L-18: a partition of more than 1 MB comes in pages, each of which says how
// to go on, and together they are the whole.
func TestReadCoordinationByPages(t *testing.T) {
	onBoth(t, func(f fixture) {
		const relays = 60
		for i := range relays {
			f.put(f.coordination(fmt.Sprintf("RELAY#%03d", i), item{"LastSeenUtc": num(1), "Note": str(strings.Repeat("x", 50_000))}))
		}
		f.put(f.coordination(lease3, nil))
		var pages, leases int
		var ids []string
		for after := ""; pages == 0 || after != ""; pages++ {
			page := f.do(store.ReadCoordination{After: after}, store.Done).Result.(store.CoordinationPage)
			leases += len(page.Leases)
			for _, r := range page.Relays {
				ids = append(ids, r.ID)
			}
			after = page.Next
		}
		if pages < 3 || leases != 1 || len(ids) != relays || !slices.IsSorted(ids) {
			t.Errorf("%d pages with %d leases and the relays %v", pages, leases, ids)
		}
	})
}

// Items that cannot be read are told of by name, and block neither the others nor
// the read; a lease without a readable owner and expiry still stands for its
// bucket, so that nobody claims it (case L-25). What else is wrong on a lease is
// told, and decides nothing.
func TestUnreadableCoordination(t *testing.T) {
	numbers := []string{"ExpiresAtUtc", "Claim", "Attention", "PausedUntilUtc"}
	texts := []string{"Owner", "Incarnation", "PausedBy", "PauseReason"}
	for _, attribute := range append(numbers, texts...) {
		for _, wrong := range []types.AttributeValue{
			&types.AttributeValueMemberBOOL{Value: true}, &types.AttributeValueMemberNULL{Value: true},
			&types.AttributeValueMemberB{Value: []byte{1}}, &types.AttributeValueMemberL{}, num(1), str("1"),
			&types.AttributeValueMemberN{Value: "1.5"}, &types.AttributeValueMemberN{Value: "1E30"},
		} {
			if _, isText := wrong.(*types.AttributeValueMemberS); isText && slices.Contains(texts, attribute) {
				continue
			}
			if wrong := wrong; reflect.DeepEqual(wrong, num(1)) && slices.Contains(numbers, attribute) {
				continue
			}
			f := newFixture(t, schemas["custom"])
			f.put(f.coordination(lease3, item{attribute: wrong}), f.coordination("LEASE#0000000004", nil), f.relay(item{"LastSeenUtc": num(1)}))
			page := f.do(store.ReadCoordination{}, store.Done).Result.(store.CoordinationPage)
			decides := attribute == "Owner" || attribute == "ExpiresAtUtc"
			if len(page.Leases) != 2 || page.Leases[0].Unreadable != decides || page.Leases[0].Bucket != 3 || page.Leases[1].Unreadable || len(page.Relays) != 1 {
				t.Errorf("%s as %T: read %+v", attribute, wrong, page)
			}
			wantItemError(t, errors.Join(page.Unreadable...), lease3, attribute)
		}
	}
	f := newFixture(t, schemas["default"])
	f.put(
		f.relay(item{"LastSeenUtc": str("1")}),
		f.coordination("LEASE#3", nil), f.coordination("LEASE#00000000-3", nil), f.coordination("LEASE#99999999999999999999", nil),
	)
	page := f.do(store.ReadCoordination{}, store.Done).Result.(store.CoordinationPage)
	if len(page.Leases)+len(page.Relays) != 0 || len(page.Unreadable) != 4 {
		t.Errorf("read %+v", page)
	}
	wantItemError(t, page.Unreadable[3], "RELAY#A", "LastSeenUtc")
}

func wantItemError(t *testing.T, err error, sortKey, attribute string) {
	t.Helper()
	var fault *outbox.ItemError
	if !errors.As(err, &fault) || fault.SortKey != sortKey || fault.Attribute != attribute || fault.PartitionKey == "" {
		t.Errorf("got the error %v, want one of attribute %s of item %s", err, attribute, sortKey)
	}
}

// message is a row of bucket 3.
func (f fixture) message(sequence int64, value []byte) item {
	m := outbox.Message{ID: uuid.New(), Topic: "orders", Value: value, CreatedAt: noon.Time()}
	return f.schema.EncodeMessage(m, 3, sequence)
}

func rowsOf(fetched store.Fetched) (numbers []int64) {
	for _, row := range fetched.Rows {
		numbers = append(numbers, row.Sequence)
	}
	return numbers
}

// A fetch reads ascending from a number on, as many rows as it was told, and says
// whether there may be more.
func TestFetch(t *testing.T) {
	onBoth(t, func(f fixture) {
		for _, sequence := range []int64{5, 10, 2, 9, 1_000_000_000_000} {
			f.put(f.message(sequence, nil))
		}
		f.put(f.schema.EncodeMessage(outbox.Message{ID: uuid.New(), Topic: "t"}, 4, 1)) // another bucket's
		for _, test := range []struct {
			after int64
			limit int
			rows  []int64
			more  bool
		}{
			{0, 2, []int64{2, 5}, true},
			{0, 100, []int64{2, 5, 9, 10, 1_000_000_000_000}, false},
			{5, 100, []int64{9, 10, 1_000_000_000_000}, false},
			{9, 1, []int64{10}, true},
			{1_000_000_000_000, 1, nil, false},
		} {
			got := f.do(store.Fetch{Bucket: 3, After: test.after, Limit: test.limit}, store.Done).Result.(store.Fetched)
			if !slices.Equal(rowsOf(got), test.rows) || got.More != test.more || got.Malformed != nil {
				t.Errorf("after %d, limit %d: got %v, more %t, %v", test.after, test.limit, rowsOf(got), got.More, got.Malformed)
			}
		}
	})
}

// A page of a fetch ends at 1 MB, and the next one goes on after its last row.
func TestFetchByPages(t *testing.T) {
	f := newFixture(t, schemas["custom"])
	for sequence := range int64(8) {
		f.put(f.message(sequence+1, make([]byte, 300_000)))
	}
	var rows []int64
	pages := 0
	for after, more := int64(0), true; more; pages++ {
		page := f.do(store.Fetch{Bucket: 3, After: after, Limit: 500}, store.Done).Result.(store.Fetched)
		rows, more = append(rows, rowsOf(page)...), page.More
		if more {
			after = rows[len(rows)-1]
		}
	}
	if pages < 3 || !slices.Equal(rows, []int64{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("%d pages, rows %v", pages, rows)
	}
}

// A row that cannot be read ends the batch before it, and is named with the
// attribute at fault; it is neither skipped nor an error of the request.
func TestFetchMalformedRow(t *testing.T) {
	wrong := map[string]types.AttributeValue{
		"MessageId": str("no guid"), "Topic": num(1), "Key": str("k"), "Value": num(1), "Partition": str("1"),
		"CreatedAtUtc": str("1"), "BucketCount": str("8"), "Headers": &types.AttributeValueMemberB{Value: []byte{9}},
	}
	check := func(name string, change func(item)) {
		f := newFixture(t, schemas["custom"])
		row := f.message(2, nil)
		change(row)
		f.put(f.message(1, nil), row, f.message(3, nil))
		got := f.do(store.Fetch{Bucket: 3, Limit: 100}, store.Done).Result.(store.Fetched)
		if !slices.Equal(rowsOf(got), []int64{1}) {
			t.Errorf("%s: got the rows %v, want those before the fault", name, rowsOf(got))
		}
		wantItemError(t, got.Malformed, outbox.SequenceSortKey(2), name)
	}
	for name, value := range wrong {
		check(name, func(row item) { row[name] = value })
	}
	for _, name := range []string{"MessageId", "Topic", "CreatedAtUtc"} {
		check(name, func(row item) { delete(row, name) })
	}
	f := newFixture(t, schemas["default"])
	key := f.message(1, nil)
	key["SK"] = str("oops")
	f.put(f.message(7, nil), key)
	got := f.do(store.Fetch{Bucket: 3, Limit: 100}, store.Done).Result.(store.Fetched)
	wantItemError(t, got.Malformed, "oops", "SK")
}

// Discovery and probes count one key, in the right range; a probe's bounds belong
// to it.
func TestDiscoverAndProbe(t *testing.T) {
	onBoth(t, func(f fixture) {
		waiting := func() bool {
			return f.do(store.Discover{Bucket: 3}, store.Done).Result.(store.Discovered).Waiting
		}
		if waiting() {
			t.Error("an empty bucket has a message")
		}
		f.put(f.message(5, nil))
		if !waiting() || f.do(store.Discover{Bucket: 4}, store.Done).Result.(store.Discovered).Waiting {
			t.Error("discovery looks elsewhere")
		}
		for _, test := range []struct {
			from, to int64
			want     bool
		}{{1, 4, false}, {1, 5, true}, {5, 5, true}, {5, 9, true}, {6, 9, false}} {
			got := f.do(store.Probe{Bucket: 3, From: test.from, To: test.to}, store.Done).Result.(store.Probed)
			if got.Filled != test.want {
				t.Errorf("probe %d-%d: got %t", test.from, test.to, got.Filled)
			}
		}
	})
}

// Case O-21: whatever decides about order or leases reads strongly consistent;
// only the look at an idle bucket does not, which costs one key, and what measures.
func TestConsistency(t *testing.T) {
	var sent *dynamodb.QueryInput
	api := scripted{query: func(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
		sent = in
		return &dynamodb.QueryOutput{}, nil
	}}
	client := store.NewClient(schemas["default"], api, api)
	for _, test := range []struct {
		request    store.Request
		consistent bool
		limit      int32
		selects    types.Select
	}{
		{store.ReadCoordination{}, true, 0, ""},
		{store.Fetch{Limit: 500}, true, 500, ""},
		{store.Probe{From: 1, To: 2}, true, 1, types.SelectCount},
		{store.Discover{}, false, 1, types.SelectCount},
		{store.ReadHead{}, false, 1, ""},
		{store.Count{Limit: 100}, false, 100, types.SelectCount},
		{store.Count{Of: store.ParkedRows, Limit: 100}, false, 100, types.SelectCount},
		{store.FindParkedKey{}, true, 1, ""},
	} {
		client.Do(t.Context(), test.request)
		if aws.ToBool(sent.ConsistentRead) != test.consistent || aws.ToInt32(sent.Limit) != test.limit || sent.Select != test.selects {
			t.Errorf("%s: consistent %t, limit %d, select %q", test.request.RequestName(),
				aws.ToBool(sent.ConsistentRead), aws.ToInt32(sent.Limit), sent.Select)
		}
	}
}
