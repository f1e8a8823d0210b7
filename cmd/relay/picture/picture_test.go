package picture_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when pictures are taken, a second that is not whole.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 300_000_000, time.UTC)

func at(d time.Duration) store.Ticks { return store.Ticks(outbox.Ticks(noon.Add(d))) }

// fixture is a table of four buckets, of which pictures are taken.
type fixture struct {
	*testing.T
	db     *memtable.DB
	schema outbox.Schema
	// answer may change what the table answers; nil: nothing does.
	answer func(store.Request, store.Reply) store.Reply

	mutex sync.Mutex
	asked []string // names of requests
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, db: memtable.New(memtable.Options{}), schema: outbox.Schema{Table: "orders", BucketCount: 4}.WithDefaults()}
	if err := store.CreateTable(t.Context(), f.db, f.schema); err != nil {
		t.Fatal(err)
	}
	return f
}

// Do implements picture.Asker.
func (f *fixture) Do(ctx context.Context, r store.Request) store.Reply {
	reply := store.NewClient(f.schema, f.db, f.db).Do(ctx, r)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.asked = append(f.asked, r.RequestName())
	if f.answer != nil {
		reply = f.answer(r, reply)
	}
	return reply
}

func options() picture.Options {
	return picture.Options{BucketCount: 4, LeaseDuration: 30 * time.Second, CountLimit: 5, Concurrency: 2,
		Now: func() time.Time { return noon }}
}

func (f *fixture) take() picture.Table {
	f.Helper()
	f.asked = nil
	table, err := picture.Take(f.Context(), f, options())
	if err != nil {
		f.Fatal(err)
	}
	return table
}

// put writes an item of a partition and sort key.
func (f *fixture) put(partition, sortKey string, attributes map[string]types.AttributeValue) {
	f.Helper()
	item := f.schema.Key(partition, sortKey)
	for name, value := range attributes {
		item[name] = value
	}
	if _, err := f.db.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item}); err != nil {
		f.Fatal(err)
	}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func ticks(n store.Ticks) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(int64(n))}
}

type attributes = map[string]types.AttributeValue

func (f *fixture) lease(bucket int, a attributes) {
	f.put(f.schema.CoordinationKey(), outbox.LeaseSortKey(bucket), a)
}

func (f *fixture) relay(id string, a attributes) {
	f.put(f.schema.CoordinationKey(), outbox.RelaySortKey(id), a)
}

// message puts a message that has waited for some time.
func (f *fixture) message(bucket int, sequence int64, age time.Duration, change func(item attributes)) {
	f.Helper()
	m := outbox.Message{ID: uuid.New(), Topic: "placed", Value: []byte("v"), CreatedAt: noon.Add(-age)}
	item := f.schema.EncodeMessage(m, bucket, sequence)
	if change != nil {
		change(item)
	}
	f.put(f.schema.MessagesKey(bucket), outbox.SequenceSortKey(sequence), item)
}

// Relays and leases are judged as relays judge each other, at the very edges too.
func TestTheFleetIsJudgedByItsOwnFacts(t *testing.T) {
	f := newFixture(t)
	f.relay("active", attributes{"LastSeenUtc": ticks(at(-30*time.Second) + 1), "Mode": text("ordered"), "Incarnation": text("1-a")})
	f.relay("silent", attributes{"LastSeenUtc": ticks(at(-30 * time.Second))})
	f.relay("stopped", attributes{"LastSeenUtc": ticks(at(0)), "StoppedAtUtc": ticks(at(0))})
	f.relay("broken", attributes{"LastSeenUtc": text("noon")})
	f.lease(0, attributes{"Owner": text("active"), "ExpiresAtUtc": ticks(at(0) + 1)})
	f.lease(1, attributes{"Owner": text("gone"), "ExpiresAtUtc": ticks(at(0))})
	f.lease(2, attributes{"Owner": text("active"), "ExpiresAtUtc": ticks(at(time.Second)), "PausedUntilUtc": ticks(at(0) + 1),
		"PausedBy": text("ann"), "PauseReason": text("deploy")})
	f.lease(7, attributes{"Owner": text("stopped"), "ExpiresAtUtc": ticks(at(time.Second))})
	fleet, err := picture.ReadFleet(t.Context(), f, options())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range fleet.Relays {
		got = append(got, fmt.Sprintf("%s %s %d", r.ID, r.State, r.Owned))
	}
	for _, l := range append(fleet.Leases, fleet.Beyond...) {
		got = append(got, fmt.Sprintf("%d %s %t %s", l.Bucket, l.State, l.Held, l.Holder))
	}
	want := []string{"active active 2", "silent silent 0", "stopped stopped 0",
		"0 owned true active", "1 lapsed false unknown", "2 paused true active", "3 free false ", "7 owned true stopped"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if len(fleet.Unreadable) != 1 || !strings.Contains(fleet.Unreadable[0].Error(), "RELAY#broken") {
		t.Errorf("unreadable: %v", fleet.Unreadable)
	}
}

func TestWhatALeaseMeans(t *testing.T) {
	for name, c := range map[string]struct {
		lease attributes
		state picture.LeaseState
		held  bool
	}{
		"released":                {attributes{"ExpiresAtUtc": ticks(at(0))}, picture.Free, false},
		"rung for, never held":    {attributes{"Attention": ticks(at(0))}, picture.Free, false},
		"an owner without an end": {attributes{"Owner": text("a")}, picture.Free, false},
		"an end that is no time":  {attributes{"Owner": text("a"), "ExpiresAtUtc": text("soon")}, picture.Lapsed, false},
		"a pause that is over":    {attributes{"Owner": text("a"), "ExpiresAtUtc": ticks(at(1e9)), "PausedUntilUtc": ticks(at(0))}, picture.Owned, true},
		"a pause without owner":   {attributes{"PausedUntilUtc": ticks(store.Ticks(outbox.MaxTicks))}, picture.Paused, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.lease(0, c.lease)
			fleet, err := picture.ReadFleet(t.Context(), f, options())
			if err != nil || fleet.Leases[0].State != c.state || fleet.Leases[0].Held != c.held {
				t.Errorf("%+v, %v", fleet.Leases[0], err)
			}
		})
	}
}

// The service's clock decides where it is known; within its whole seconds, ours is
// the finer one.
func TestThePictureIsJudgedByTheServicesClock(t *testing.T) {
	for _, c := range []struct {
		date      time.Duration // of the answer, from noon; 0: it has none
		at, ahead time.Duration
	}{
		{0, 0, 0},
		{-300 * time.Millisecond, 0, 0},
		{-time.Hour, -time.Hour + time.Second, time.Hour - time.Second},
		{time.Hour, time.Hour, -time.Hour},
	} {
		f := newFixture(t)
		f.relay("a", attributes{"LastSeenUtc": ticks(at(0))})
		f.message(0, 1, 2*time.Hour, nil)
		f.answer = func(r store.Request, reply store.Reply) store.Reply {
			if r.RequestName() == "readCoordination" && c.date != 0 {
				reply.Date = at(c.date)
			}
			return reply
		}
		table := f.take()
		if want := noon.Add(c.at); !table.At.Equal(want) || table.ClockAhead != c.ahead {
			t.Errorf("%v: at %v, ahead %v", c.date, table.At, table.ClockAhead)
		}
		if want := 2*time.Hour + c.at; table.Buckets[0].Oldest != want {
			t.Errorf("%v: the oldest waits %v, want %v", c.date, table.Buckets[0].Oldest, want)
		}
		if silent := c.at >= 30*time.Second; (table.Relays[0].State == picture.Silent) != silent {
			t.Errorf("%v: the relay is %s", c.date, table.Relays[0].State)
		}
	}
}
