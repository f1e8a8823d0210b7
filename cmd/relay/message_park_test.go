package main

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// The relay that owns the bucket moves the rows: it alone knows what is on its way.
func TestParkingARowMarksItsKeyAndMovesNothing(t *testing.T) {
	c := newConsole(t)
	c.fill(t, samples()...)
	before := c.table.Items("orders")
	got := c.run("message", "park", "--table", "orders", "--bucket", "3", "--sequence", "1", "--reason", "customer 4711 sends nonsense", "--yes")
	golden(t, "message_park.txt", got.stderr+"\n"+got.stdout)
	keyID := outbox.ParkedKeyID(&outbox.Message{Topic: "placed", Key: []byte("order-4711")})
	want := store.Marker{KeyID: keyID, Topic: "placed", Reason: "customer 4711 sends nonsense", ParkedAt: ago(0)}
	if m := c.markers(t, 3); got.code != exitDone || len(m) != 1 || m["KEY#"+keyID] != want {
		t.Errorf("%+v, %+v", got, m)
	}
	if rung := c.rung(t); len(rung) != 1 || rung[3] != ago(0) {
		t.Errorf("rung %v", rung)
	}
	waiting := 0
	for _, item := range c.table.Items("orders") {
		if reflect.DeepEqual(item["PK"], text("OUTBOX#MESSAGES#3")) {
			waiting++
		}
	}
	if waiting != len(before) {
		t.Errorf("%d of %d rows wait", waiting, len(before))
	}
}

func TestParkingARowWithoutAKeyIsOfThatRow(t *testing.T) {
	c := newConsole(t)
	c.fill(t, samples()...)
	got := c.runWith("YES\n", nil, "message", "park", "--table", "orders", "--bucket=3", "--sequence=3")
	if got.code != exitDone || !strings.Contains(got.stderr, "set aside row 3, which has no key, alone? [y/N]") {
		t.Errorf("%+v", got)
	}
	for _, m := range c.markers(t, 3) {
		if m.Topic != "cancelled" || m.Reason != operatorsReason {
			t.Errorf("%+v", m)
		}
	}
}

// Run again, the command changes nothing that is there, and tells the owner again.
func TestParkingWhatIsSetAsideAlready(t *testing.T) {
	c := newConsole(t)
	c.fill(t, samples()...)
	keyID := outbox.ParkedKeyID(&outbox.Message{Topic: "placed", Key: []byte("order-4711")})
	before := store.Marker{KeyID: keyID, Topic: "placed", Reason: "before", Attempts: 3, ParkedAt: 5}
	c.setAside(t, 3, before)
	got := c.run("message", "park", "--table", "orders", "--bucket=3", "--sequence=1", "--yes")
	if got.code != exitDone || !strings.Contains(got.stdout, "already: set aside key "+keyID) || c.markers(t, 3)["KEY#"+keyID] != before || len(c.rung(t)) != 1 {
		t.Errorf("%+v, %+v", got, c.markers(t, 3))
	}
}

// Nobody but the command can move a row that cannot be read; all of it is kept.
func TestParkingARowThatCannotBeReadMovesIt(t *testing.T) {
	c := newConsole(t)
	c.fill(t, samples()[:2]...)
	broken := schema.EncodeMessage(outbox.NewMessage("placed", nil, []byte("secret content")), 3, 3)
	broken["Headers"], broken["Unknown"] = text("secret headers"), text("kept")
	c.put(t, broken)
	got := c.run("message", "park", "--table", "orders", "--bucket=3", "--sequence=3", "--reason=broken headers", "--yes")
	keyID, _ := schema.ParkedIdentity(broken)
	if got.code != exitDone || !strings.Contains(got.stderr, "attribute Headers is not binary") || strings.Contains(got.stdout+got.stderr, "secret") {
		t.Errorf("%+v", got)
	}
	want := maps.Clone(broken)
	maps.Copy(want, schema.Key(schema.ParkedKey(3), outbox.ParkedRowSortKey(keyID, 3)))
	if moved := c.table.Peek("orders", "OUTBOX#PARKED#3", outbox.ParkedRowSortKey(keyID, 3)); !reflect.DeepEqual(moved, want) {
		t.Errorf("moved is %v", moved)
	}
	if c.table.Peek("orders", "OUTBOX#MESSAGES#3", outbox.SequenceSortKey(3)) != nil {
		t.Error("the row still blocks its bucket")
	}
	marker := store.Marker{KeyID: keyID, Topic: "placed", Reason: "broken headers", ParkedAt: ago(0)}
	if m := c.markers(t, 3); len(m) != 1 || m["KEY#"+keyID] != marker || len(c.rung(t)) != 1 {
		t.Errorf("%+v", m)
	}
}

// The transaction that moves a row becomes visible in parts. An owner that sees the row gone
// reads the markers, and must find that of its key, lest the key's next row pass.
func TestParkingARowThatCannotBeReadWritesItsMarkerFirst(t *testing.T) {
	c := newConsole(t)
	broken := schema.EncodeMessage(outbox.NewMessage("placed", []byte("k"), nil), 3, 3)
	broken["Headers"] = text("broken")
	c.put(t, broken)
	keyID, _ := schema.ParkedIdentity(broken)
	var before *store.Marker
	c.through = func(store.API) store.API {
		return &moving{c.table, func() {
			if m, is := c.markers(t, 3)["KEY#"+keyID]; is {
				before = &m
			}
		}}
	}
	got := c.run("message", "park", "--table", "orders", "--bucket=3", "--sequence=3", "--yes")
	if got.code != exitDone || before == nil {
		t.Errorf("the marker before the move is %v; %+v", before, got)
	}
	if after := c.markers(t, 3)["KEY#"+keyID]; before != nil && after.ParkedAt <= before.ParkedAt {
		t.Errorf("an owner that found no row under the marker may remove it: %+v, then %+v", before, after)
	}
}

// moving is a table that tells before it carries out a transaction.
type moving struct {
	store.API
	tell func()
}

func (m *moving) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	m.tell()
	return m.API.TransactWriteItems(ctx, in, opts...)
}

// A marker would be of no use, since owners stop at the row; and these settings may be
// the ones that are wrong. A row that is where it belongs keeps its place.
func TestParkingARowOfAnotherBucketCountSaysWhatToDo(t *testing.T) {
	three, twelve := int32(3), int32(12)
	for name, test := range map[string]struct {
		partition *int32
		remedy    []string
	}{
		"where it belongs": {&three, []string{"it is where it belongs: of the item\n    OUTBOX#MESSAGES#3 0000000000000000007\n  set BucketCount to 8\n"}},
		"elsewhere": {&twelve, []string{"it belongs to bucket 4", "relay message list --bucket 3 --limit 1000 --show-content --output json",
			"delete the item OUTBOX#MESSAGES#3 0000000000000000007", "relay message enqueue"}},
	} {
		c := newConsole(t)
		m := outbox.NewMessage("placed", nil, nil)
		m.Partition = test.partition
		c.put(t, outbox.Schema{Table: "orders", BucketCount: 16}.EncodeMessage(m, 3, 7))
		got := c.run("message", "park", "--table", "orders", "--bucket=3", "--sequence=7", "--yes")
		for _, want := range append(test.remedy, "row 7 of bucket 3 was written for 16 buckets, and the settings here say 8", "--bucket-count 16") {
			if !strings.Contains(got.stderr, want) {
				t.Errorf("%s: no %q in %+v", name, want, got)
			}
		}
		if got.code != exitFailed || len(c.markers(t, 3)) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestParkingATopicReachesEveryBucket(t *testing.T) {
	c := newConsole(t)
	got := c.run("message", "park", "--table", "orders", "--bucket-count=4", "--topic", "plcaed", "--reason", "mistyped", "--yes", "--output", "json")
	var d changeDocument
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != exitDone || d.DryRun || len(d.Requests) != 8 {
		t.Fatalf("%v: %+v", err, got)
	}
	for i, r := range d.Requests {
		if want := []string{"setAside", "ring"}[i%2]; r.Request != want || r.Bucket != i/2 || r.Outcome != outcomeDone {
			t.Errorf("request %d is %+v", i, r)
		}
	}
	for bucket := range 4 {
		want := store.Marker{Topic: "plcaed", Reason: "mistyped", ParkedAt: ago(0)}
		if m := c.markers(t, bucket); len(m) != 1 || m["ALL#plcaed"] != want {
			t.Errorf("bucket %d: %+v", bucket, m)
		}
	}
	if rung := c.rung(t); len(rung) != 4 {
		t.Errorf("rung %v", rung)
	}
}

func TestParkingARowThatDoesNotWait(t *testing.T) {
	got := newConsole(t).run("message", "park", "--table", "orders", "--bucket=3", "--sequence=9", "--yes")
	if got.code != exitFailed || !strings.Contains(got.stderr, "bucket 3 has no row 9 that waits") {
		t.Errorf("%+v", got)
	}
}
