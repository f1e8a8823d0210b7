package relay_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// A table that does not exist ends Run at once, and says so; so does one with other
// keys.
func TestRunWithoutItsTable(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		err := run(t, config(memtable.New(memtable.Options{}), newBroker())).endsWith(relay.ErrTable)
		if !errors.Is(err, store.ErrTableMissing) {
			t.Errorf("got %v", err)
		}
		cfg := config(newTable(t), newBroker())
		cfg.PartitionKey, cfg.SortKey = "hash", "range"
		err = run(t, cfg).endsWith(relay.ErrTable)
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("other keys: got %v", err)
		}
	})
}

// A relay that is to send letters and has no topic for them does not begin: it takes
// no share, and ends with an error that names the topic.
func TestRunWithoutItsDeadLetterTopic(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newTable(t)
		cfg := config(db, newBroker())
		cfg.Poison, cfg.DeadLetterTopic = relay.PoisonDeadLetter, missingTopic
		err := run(t, cfg).endsWith(relay.ErrDeadLetterTopic)
		if !strings.Contains(err.Error(), missingTopic) {
			t.Errorf("got %v", err)
		}
		if items := db.Items(schema.Table); len(items) > 0 {
			t.Errorf("it has written %v", items)
		}
		cfg.Poison = relay.PoisonPark
		r := run(t, cfg) // without the policy, the topic does not matter
		<-time.After(time.Minute)
		if !r.Status().Ready() {
			t.Errorf("got %+v", r.Status())
		}
		r.stop()
	})
}

// Case K-03: a message that was written with another bucket count ends Run with an
// error that names both; nothing of its bucket is published or deleted, and the
// relay hands everything back.
func TestRunWithAnotherBucketCount(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		w, err := outbox.NewWriter(db, outbox.Options{Table: schema.Table, BucketCount: 16})
		if err != nil {
			t.Fatal(err)
		}
		partition := int32(3)
		m := outbox.NewMessage("orders", []byte("k"), nil)
		m.Partition = &partition
		if err := w.Enqueue(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		cfg := config(db, b)
		cfg.RelayID = "A"
		err = run(t, cfg).endsWith(relay.ErrBucketCount)
		if text := err.Error(); !strings.Contains(text, "16") || !strings.Contains(text, "8") {
			t.Errorf("the error names not both counts: %v", err)
		}
		if left := scan(db).rows; left != 1 || len(b.appended) != 0 {
			t.Errorf("%d rows are left, %d were published", left, len(b.appended))
		}
		wantHandedBack(t, db, "A")
	})
}

// A process that starts under the id of a running one takes its place; the older one
// ends, and says by whom it was replaced.
func TestRunReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		cfg := config(db, b)
		cfg.RelayID = "A"
		older := run(t, cfg)
		<-time.After(15 * time.Second)
		younger := run(t, cfg)
		err := older.endsWith(relay.ErrReplaced)
		if incarnation := younger.Status().Incarnation; !strings.Contains(err.Error(), incarnation) {
			t.Errorf("got %v, want the successor %s in it", err, incarnation)
		}
		<-time.After(20 * time.Second)
		if n := len(younger.Status().Buckets); n != schema.BucketCount {
			t.Errorf("the successor owns %d buckets", n)
		}
		younger.stop()
		wantHandedBack(t, db, "A")
	})
}

// breaking is an observer that panics at the first event of a type, inside the actor
// that emits it: the nearest thing to a broken invariant that needs no hook.
func breaking[E event.Event]() event.Observer {
	var once sync.Once
	return event.ObserverFunc(func(e event.Envelope) {
		if _, wanted := e.Event.(E); wanted {
			broken := false
			once.Do(func() { broken = true })
			if broken {
				panic("broken")
			}
		}
	})
}

// A coordinator that breaks ends Run with ErrBroken, and says why.
func TestRunBroken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		failed, observer := observed[event.ActorFailed]()
		cfg := config(newTable(t), newBroker())
		cfg.Observers = []event.Observer{observer, breaking[event.RoundCompleted]()}
		err := run(t, cfg).endsWith(relay.ErrBroken)
		if !strings.Contains(err.Error(), "broken") {
			t.Errorf("got %v", err)
		}
		if e := receive(t, failed); e.Actor != "coordinator" || !strings.Contains(e.Reason, "broken") {
			t.Errorf("told of %+v", e)
		}
	})
}

// A bucket's actor that breaks takes nothing with it: a fresh one resumes the lease
// at the next round, and what was not removed is delivered.
func TestBucketBreaks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		cfg := config(db, b)
		cfg.RelayID = "A"
		failed, failures := observed[event.ActorFailed]()
		claimed, claims := observed[event.BucketClaimed]()
		removed, removals := observed[event.BatchRemoved]()
		cfg.Observers = []event.Observer{failures, claims, removals, breaking[event.BatchFetched]()}
		enqueue(t, db, nil, "a", "b", "c", "d", "e", "f")
		r := run(t, cfg)
		e := receive(t, failed)
		if !strings.HasPrefix(e.Actor, "bucket ") || slices.ContainsFunc(r.Status().Buckets, func(b relay.BucketStatus) bool { return b.Bucket == e.Bucket }) {
			t.Errorf("told of %+v; status %+v", e, r.Status().Buckets)
		}
		resumed := 0
		for range schema.BucketCount + 1 {
			if c := receive(t, claimed); c.Resumed {
				resumed++
			}
		}
		if resumed != 1 {
			t.Errorf("%d leases were resumed", resumed)
		}
		b.take(t, 6)
		for rows := 0; rows < 6; {
			rows += receive(t, removed).Rows
		}
		r.stop()
		wantHandedBack(t, db, "A")
	})
}

// A publisher that breaks is replaced, and what it had is published again.
func TestPublisherBreaks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		b.panic = 1
		failed, observer := observed[event.ActorFailed]()
		cfg := config(db, b)
		cfg.RelayID = "A"
		cfg.Observers = []event.Observer{observer}
		enqueue(t, db, nil, "k")
		r := run(t, cfg)
		if e := receive(t, failed); e.Actor != "publisher" {
			t.Errorf("told of %+v", e)
		}
		b.take(t, 1)
		r.stop()
		if left := scan(db).rows; left != 0 {
			t.Errorf("%d rows are left", left)
		}
		wantHandedBack(t, db, "A")
	})
}

// slow is a table that takes its time over what is coordination, and counts.
type slow struct {
	store.API
	takes time.Duration

	mu       sync.Mutex
	hangs    bool          // never answers; guarded by mu
	underWay int           // guarded by mu
	most     int           // guarded by mu
	latest   time.Duration // see notice; guarded by mu
}

func (s *slow) hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs = true
}

// wait is what a request takes; an error when its time is up before.
func (s *slow) wait(ctx context.Context) error {
	s.mu.Lock()
	s.underWay++
	s.most = max(s.most, s.underWay)
	hangs := s.hangs
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.underWay--
	}()
	var answered <-chan time.Time
	if !hangs {
		answered = time.After(s.takes)
	}
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slow) Query(ctx context.Context, in *sdk.QueryInput, o ...func(*sdk.Options)) (*sdk.QueryOutput, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.API.Query(ctx, in, o...)
}

func (s *slow) UpdateItem(ctx context.Context, in *sdk.UpdateItemInput, o ...func(*sdk.Options)) (*sdk.UpdateItemOutput, error) {
	s.notice(in)
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.API.UpdateItem(ctx, in, o...)
}

// notice notes how long after its round's begin a claim or keep was sent.
func (s *slow) notice(in *sdk.UpdateItemInput) {
	expiry, found := in.ExpressionAttributeValues[":expiry"].(*types.AttributeValueMemberN)
	if !found {
		return
	}
	ticks, err := strconv.ParseInt(expiry.Value, 10, 64)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = max(s.latest, time.Since(outbox.FromTicks(ticks).Add(-relay.DefaultLeaseDuration)))
}

// A lease write that cannot leave within LeaseRenewInterval of its round's begin is
// not sent at all: its expiry would be taken from a clock that nobody looked at for
// too long. The deadline counts when it is sent, not when it is queued.
func TestLateLeaseWritesAreNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newTable(t)
		cfg := config(db, newBroker())
		lane := &slow{API: db, takes: 3500 * time.Millisecond}
		cfg.Coordination, cfg.MaxConcurrency = lane, 1
		r := run(t, cfg)
		<-time.After(2 * time.Minute)
		lane.mu.Lock()
		latest := lane.latest
		lane.mu.Unlock()
		if latest < 5*time.Second || latest > relay.DefaultLeaseRenewInterval {
			t.Errorf("the latest was sent %v after its round's begin", latest)
		}
		r.cancel()
		receive(t, r.ended)
	})
}

// No more than MaxConcurrency coordination requests are under way at once, however
// many buckets there are.
func TestMaxConcurrency(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newTable(t)
		cfg := config(db, newBroker())
		lane := &slow{API: db, takes: 50 * time.Millisecond}
		cfg.Coordination, cfg.BucketCount, cfg.MaxConcurrency = lane, 40, 3
		claimed, observer := observed[event.BucketClaimed]()
		cfg.Observers = []event.Observer{observer}
		r := run(t, cfg)
		for range cfg.BucketCount {
			receive(t, claimed)
		}
		r.stop()
		if lane.most != 3 {
			t.Errorf("%d requests were under way at once", lane.most)
		}
	})
}

// Case D-11: messages that hang starve no renewal, and a request that is never
// answered ends by itself: the leases are kept for as long as it goes on.
func TestMessagesHang(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newTable(t)
		cfg := config(db, newBroker())
		cfg.DynamoDB, cfg.RelayID = &slow{API: db, hangs: true}, "A"
		lost, losses := observed[event.BucketLost]()
		withheld, withholdings := observed[event.BucketWithheld]()
		cfg.Observers = []event.Observer{losses, withholdings}
		r := run(t, cfg)
		<-time.After(3 * time.Minute)
		if owners := scan(db).owners; len(owners) != schema.BucketCount || len(lost)+len(withheld) != 0 {
			t.Errorf("owned: %v; %d lost, %d withheld", owners, len(lost), len(withheld))
		}
		r.stop()
		wantHandedBack(t, db, "A")
	})
}

// Case X-07: coordination that hangs is an outage, not a lost lease: the relay works
// on until its validity ends, and not a moment longer.
func TestCoordinationHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, b := newTable(t), newBroker()
		lane := &slow{API: db}
		cfg := config(db, b)
		cfg.Coordination = lane
		ready, observer := observed[event.RelayReady]()
		cfg.Observers = []event.Observer{observer}
		r := run(t, cfg)
		receive(t, ready)
		synctest.Wait()
		lane.hang()
		<-time.After(15 * time.Second)
		enqueue(t, db, r.Notify, "in time")
		b.take(t, 1)
		<-time.After(20 * time.Second)
		enqueue(t, db, r.Notify, "too late")
		<-time.After(time.Minute)
		if len(b.appended) != 0 {
			t.Errorf("published after the leases' validity: %v", ids(b.take(t, 1)))
		}
		r.cancel()
		receive(t, r.ended)
	})
}
