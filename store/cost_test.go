package store_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// The formula of docs/leases.md for what the coordination read costs: a lease has
// 112 bytes and its owner's id, a relay record 100 and its id, and 4 KB are a unit.
func TestCostOfTheCoordinationRead(t *testing.T) {
	for _, fleet := range []struct{ relays, buckets, id int }{{1, 8, 12}, {3, 8, 40}, {10, 64, 20}, {100, 1024, 30}} {
		db := memtable.New(memtable.Options{})
		schema := outbox.Schema{Table: "outbox", BucketCount: fleet.buckets}.WithDefaults()
		if err := store.CreateTable(context.Background(), db, schema); err != nil {
			t.Fatal(err)
		}
		client := store.NewClient(schema, db, db)
		now := store.Instant{Wall: 1_767_225_600_123_456_700}.Ticks()
		id := func(n int) string { return fmt.Sprintf("%0*d", fleet.id, n) }
		incarnation := strings.Repeat("9", 19) + "-deadbeef"
		for r := range fleet.relays {
			client.Do(context.Background(), store.Heartbeat{Relay: id(r), Incarnation: incarnation, Mode: "ordered", LastSeen: now})
		}
		for b := range fleet.buckets {
			client.Do(context.Background(), store.Claim{Bucket: b, Relay: id(b % fleet.relays), Incarnation: incarnation, Claim: 7, Now: now, Expires: now})
		}
		got := client.Do(context.Background(), store.ReadCoordination{}).Capacity
		bytes := fleet.buckets*(112+fleet.id) + fleet.relays*(100+fleet.id)
		want := math.Ceil(float64(bytes) / 4096)
		if math.Abs(got-want) > math.Max(1, want/100) {
			t.Errorf("%+v: the read costs %v units, by the formula %v", fleet, got, want)
		}
	}
}
