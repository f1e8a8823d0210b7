package relay_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	relay "github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// sampling is a configuration that samples the backlog, and what it samples.
func sampling(db store.API, b *broker, id string) (relay.Config, chan event.BacklogSampled, chan event.BacklogUnknown) {
	sampled, samples := observed[event.BacklogSampled]()
	unknown, unknowns := observed[event.BacklogUnknown]()
	cfg := config(db, b)
	cfg.RelayID, cfg.MetricsInterval = id, 30*time.Second
	cfg.Observers = []event.Observer{samples, unknowns}
	return cfg, sampled, unknown
}

// latest returns a sample that has begun after now: not the next, which may be under
// way, but the one after it.
func latest(t *testing.T, sampled chan event.BacklogSampled) event.BacklogSampled {
	t.Helper()
	synctest.Wait()
	for range len(sampled) {
		<-sampled
	}
	receive(t, sampled)
	return receive(t, sampled)
}

// What waits is counted, and how old it is, whatever the reason: here the broker
// does not answer. A bucket with more than the limit reports the limit, and says so.
func TestBacklogIsSampled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		cfg, sampled, _ := sampling(db, b, "A")
		cfg.PendingCountLimit = 4
		r := run(t, cfg)
		if first := receive(t, sampled); first.Messages != 0 || first.Oldest != 0 || first.Limited != 0 || len(first.Pending) != schema.BucketCount {
			t.Errorf("an empty outbox: %+v", first)
		}
		b.hold()
		enqueue(t, db, nil, "a", "a", "a")
		<-time.After(2 * time.Minute)
		got := latest(t, sampled)
		if got.Messages != 3 || got.Limited != 0 || got.Oldest < 2*time.Minute || got.Oldest > 3*time.Minute {
			t.Errorf("got %+v", got)
		}
		enqueue(t, db, nil, "a", "a", "a")
		if got := latest(t, sampled); got.Messages != 4 || got.Limited != 1 {
			t.Errorf("above the limit: %+v", got)
		}
		waiting := 0
		for _, bucket := range r.Status().Buckets {
			waiting += bucket.Pending
		}
		if backlog := r.Status().Backlog; waiting != 4 || backlog == nil || backlog.Messages != 4 || backlog.Limited != 1 {
			t.Errorf("status: %d in the buckets, %+v", waiting, backlog)
		}
		b.release()
		if got := latest(t, sampled); got.Messages != 0 || got.Oldest != 0 {
			t.Errorf("all is delivered: %+v", got)
		}
		r.stop()
		if s := r.Status(); s.Backlog != nil {
			t.Errorf("a stopped relay reports %+v", s.Backlog)
		}
	})
}

// putAside sets two rows of one key aside in bucket 3.
func putAside(t *testing.T, db *memtable.DB) {
	t.Helper()
	message := outbox.NewMessage("orders", []byte("k"), nil)
	id := outbox.ParkedKeyID(&message)
	marker := schema.Key(schema.ParkedKey(3), outbox.ParkedKeySortKey(id))
	marker[outbox.AttrTopic] = &types.AttributeValueMemberS{Value: "orders"}
	marker[outbox.AttrReason] = &types.AttributeValueMemberS{Value: "too large"}
	marker[outbox.AttrParkedAtUtc] = &types.AttributeValueMemberN{Value: "639000000000000000"}
	items := []map[string]types.AttributeValue{marker}
	for sequence := range int64(2) {
		row := schema.EncodeMessage(message, 3, sequence+1)
		for name, value := range schema.Key(schema.ParkedKey(3), outbox.ParkedRowSortKey(id, sequence+1)) {
			row[name] = value
		}
		items = append(items, row)
	}
	for _, item := range items {
		if _, err := db.PutItem(t.Context(), &sdk.PutItemInput{TableName: &schema.Table, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
}

// What is set aside is counted by key and row.
func TestBacklogHasWhatIsSetAside(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newTable(t)
		putAside(t, db)
		cfg, sampled, _ := sampling(db, newBroker(), "A")
		r := run(t, cfg)
		if got := receive(t, sampled); got.ParkedKeys != 1 || got.ParkedRows != 2 || got.Messages != 0 {
			t.Errorf("got %+v", got)
		}
		r.stop()
	})
}

// One relay of a fleet samples, so that the cost does not grow with it; when bucket 0
// moves, the one stops reporting, and the next samples at once.
func TestOneRelaySamplesTheBacklog(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newTable(t)
		cfgA, sampledA, unknownA := sampling(db, newBroker(), "A")
		a := run(t, cfgA)
		receive(t, sampledA)
		cfgB, sampledB, _ := sampling(db, newBroker(), "B")
		b := run(t, cfgB)
		<-time.After(3 * time.Minute)
		if len(sampledA) == 0 || len(sampledB) != 0 || len(unknownA) != 0 {
			t.Errorf("A sampled %d times and was left without %d times, B sampled %d times", len(sampledA), len(unknownA), len(sampledB))
		}
		if s := b.Status(); s.Backlog != nil || s.Buckets[0].Pending != -1 {
			t.Errorf("B reports %+v, %+v", s.Backlog, s.Buckets[0])
		}
		a.stop()
		stopped := time.Now()
		receive(t, sampledB)
		if took := time.Since(stopped); took > 2*relay.DefaultLeaseRenewInterval {
			t.Errorf("B samples %v after A has stopped", took)
		}
		b.stop()
	})
}

// A relay that has lost bucket 0 says that it does not know the backlog any more,
// rather than a figure that grows old.
func TestTheBacklogIsForgottenWithBucketZero(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newTable(t)
		cfg, sampled, unknown := sampling(db, newBroker(), "A")
		r := run(t, cfg)
		receive(t, sampled)
		seize(t, db, 0, "a stranger")
		if e := receive(t, unknown); e.Err != nil || r.Status().Backlog != nil {
			t.Errorf("it says %v, and reports %+v", e.Err, r.Status().Backlog)
		}
		r.stop()
	})
}

// An idle outbox costs what docs/metrics.md says; without metrics, nothing.
func TestWhatASampleCosts(t *testing.T) {
	for interval, want := range map[time.Duration]float64{30 * time.Second: 1 * float64(schema.BucketCount), 0: 0} {
		t.Run(fmt.Sprint(interval), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				cfg := config(newTable(t), newBroker())
				cfg.MetricsInterval = interval
				ended, observer := observed[event.RequestCompleted]()
				cfg.Observers = []event.Observer{observer}
				r := run(t, cfg)
				<-time.After(20 * time.Second)
				r.stop()
				close(ended)
				units := 0.0
				for e := range ended {
					if e.Request == "readHead" || e.Request == "count" {
						units += e.Capacity
					}
				}
				if units != want {
					t.Errorf("a sample costs %v units, want %v", units, want)
				}
			})
		})
	}
}

// queries is a table of which some queries can be made to hang or to fail.
type queries struct {
	store.API
	counts, heads atomic.Pointer[func(context.Context) error]
}

func (q *queries) Query(ctx context.Context, in *sdk.QueryInput, o ...func(*sdk.Options)) (*sdk.QueryOutput, error) {
	how := q.counts.Load()
	if in.ProjectionExpression != nil {
		how = q.heads.Load()
	} else if in.Select != types.SelectCount || in.Limit != nil && *in.Limit == 1 {
		how = nil
	}
	if how != nil {
		if err := (*how)(ctx); err != nil {
			return nil, err
		}
	}
	return q.API.Query(ctx, in, o...)
}

// A table that hangs or fails when the backlog is measured: the age is known as
// long as heads can be read, and the last counts stand in; without heads the relay
// says that it does not know. Messages and leases are not disturbed.
func TestBacklogOfAFailingTable(t *testing.T) {
	hanging := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	refusing := func(context.Context) error { return &types.ProvisionedThroughputExceededException{} }
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		putAside(t, db)
		lane := &queries{API: db}
		cfg, sampled, unknown := sampling(lane, b, "A")
		cfg.Coordination = db
		lost, losses := observed[event.BucketLost]()
		cfg.Observers = append(cfg.Observers, losses)
		r := run(t, cfg)
		receive(t, sampled)
		b.hold()
		enqueue(t, db, nil, "a", "a", "a")
		if got := latest(t, sampled); got.Messages != 3 {
			t.Fatalf("got %+v", got)
		}
		for name, how := range map[string]func(context.Context) error{"hanging": hanging, "refusing": refusing} {
			lane.counts.Store(&how)
			if got := latest(t, sampled); got.Messages != 3 || got.Limited != 1 || got.Oldest == 0 || got.Took > 11*time.Second {
				t.Errorf("%s counts: %+v", name, got)
			} else if got.ParkedKeys != 1 || got.ParkedRows != 2 {
				t.Errorf("%s counts: what is set aside is forgotten: %+v", name, got)
			}
			lane.counts.Store(nil)
			if got := latest(t, sampled); got.Messages != 3 || got.Limited != 0 {
				t.Errorf("after %s counts: %+v", name, got)
			}
		}
		lane.heads.Store(&refusing)
		if e := receive(t, unknown); e.Err == nil || r.Status().Backlog != nil {
			t.Errorf("without heads: %v, %+v", e.Err, r.Status().Backlog)
		}
		b.release()
		b.take(t, 3)
		if len(lost) != 0 {
			t.Errorf("%d leases are lost", len(lost))
		}
		r.stop()
	})
}
