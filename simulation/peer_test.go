package simulation

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/actors/coordinator"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// peer is a relay of Dekaf.Outbox.DynamoDB in a fleet of ours, as far as leases go:
// it sends the requests of its documentation's page, which have neither
// incarnation nor claim number.
type peer struct {
	f       *fleet
	id      string
	stopped bool
	leases  map[int]types.AttributeValue // expiries that the round has read
	refused int
	owns    int // by its last round
}

type attributes = map[string]types.AttributeValue

func ticksOf(d time.Duration) store.Ticks { return store.Instant{Wall: epoch + d}.Ticks() }

func numeric(t store.Ticks) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(int64(t))}
}

// start runs a round now, and every interval.
func (p *peer) start() {
	if !p.stopped {
		p.round()
		p.f.At(p.f.o.LeaseRenewInterval, p.start)
	}
}

func (p *peer) round() {
	s, now := p.f.schema, ticksOf(p.f.now)
	record := s.Key(s.CoordinationKey(), outbox.RelaySortKey(p.id))
	record[outbox.AttrLastSeenUtc] = numeric(now)
	_, err := p.f.db.PutItem(context.Background(), &dynamodb.PutItemInput{
		TableName: &s.Table, Item: record,
		ConditionExpression:       aws.String("attribute_not_exists(LastSeenUtc) OR LastSeenUtc <= :now"),
		ExpressionAttributeValues: attributes{":now": numeric(now)},
	})
	p.count(err)
	active, leases := p.read(now)
	plan := coordinator.MakePlan(active, p.id, leases)
	p.owns = len(plan.Keep)
	expiry := now.Add(p.f.o.LeaseDuration)
	for _, b := range plan.Keep {
		p.write(b, "SET ExpiresAtUtc = :x", "#o = :me AND ExpiresAtUtc = :seen", attributes{":x": numeric(expiry), ":seen": p.leases[b], ":me": p.me()})
	}
	for _, b := range plan.Release {
		p.write(b, "SET ExpiresAtUtc = :now REMOVE #o", "#o = :me AND ExpiresAtUtc = :seen", attributes{":now": numeric(now), ":seen": p.leases[b], ":me": p.me()})
	}
	for _, b := range plan.Claim {
		p.write(b, "SET #o = :me, ExpiresAtUtc = :x", "attribute_not_exists(#o) OR attribute_not_exists(ExpiresAtUtc) OR ExpiresAtUtc <= :now",
			attributes{":me": p.me(), ":x": numeric(expiry), ":now": numeric(now)})
	}
}

func (p *peer) me() types.AttributeValue { return &types.AttributeValueMemberS{Value: p.id} }

// read is the coordination partition as the page has it.
func (p *peer) read(now store.Ticks) (active []string, leases []coordinator.LeaseState) {
	client := store.NewClient(p.f.schema, p.f.db, p.f.db)
	page := client.Do(context.Background(), store.ReadCoordination{}).Result.(store.CoordinationPage)
	for _, r := range page.Relays {
		if r.Stopped == 0 && r.LastSeen > now.Add(-p.f.o.LeaseDuration) {
			active = append(active, r.ID)
		}
	}
	leases, p.leases = make([]coordinator.LeaseState, p.f.o.Buckets), map[int]types.AttributeValue{}
	for _, l := range page.Leases {
		leases[l.Bucket] = coordinator.LeaseState{Owner: l.Owner, Expired: l.Expires <= now}
		p.leases[l.Bucket] = numeric(l.Expires)
	}
	return active, leases
}

func (p *peer) write(b int, update, condition string, values attributes) {
	s := p.f.schema
	_, err := p.f.db.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName: &s.Table, Key: s.Key(s.CoordinationKey(), outbox.LeaseSortKey(b)),
		UpdateExpression: &update, ConditionExpression: &condition,
		ExpressionAttributeNames: map[string]string{"#o": outbox.AttrOwner}, ExpressionAttributeValues: values,
	})
	p.count(err)
}

func (p *peer) count(err error) {
	var failed *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &failed):
		p.refused++
	case err != nil:
		panic(err)
	}
}

// A relay of the .NET peer shares the buckets with ours: each takes its part, hands
// back what exceeds it, and takes over from the other, and no write of either is
// refused.
func TestRelayOfThePeerIsNotDisturbed(t *testing.T) {
	for seed := range uint64(20) {
		f := newFleet(Options{Seed: seed}.WithDefaults())
		f.createTopics()
		p := &peer{f: f, id: "relay-0-net"}
		never := func() bool { return f.failed() }
		holds := func(what string, theirs, ours int) {
			t.Helper()
			f.checker.catchUp()
			held := 0
			for _, process := range f.processes {
				held += f.holding(process)
			}
			if p.owns != theirs || held != ours {
				t.Errorf("seed %d: %s: the peer owns %d and ours %d, want %d and %d", seed, what, p.owns, held, theirs, ours)
			}
		}
		first := f.boot("relay-1")
		f.runUntil(25*time.Second, never)
		f.At(f.between(0, 10*time.Second), p.start)
		f.runUntil(70*time.Second, never)
		holds("the peer joins", 4, 4)
		f.At(f.between(0, 10*time.Second), func() { f.boot("relay-2") })
		f.runUntil(130*time.Second, never)
		if p.owns < 2 || p.owns > 3 {
			t.Errorf("seed %d: the peer owns %d of 8 among three", seed, p.owns)
		}
		f.stopGracefully(first)
		f.runUntil(180*time.Second, never)
		holds("one of ours stops", 4, 4)
		p.stopped = true // as a crash
		f.runUntil(250*time.Second, never)
		p.owns = 0
		holds("the peer crashes", 0, 8)
		if refused := total(f.checker.refused) + p.refused; refused > 0 {
			t.Errorf("seed %d: %d writes were refused, %d of them the peer's", seed, refused, p.refused)
		}
		for _, v := range f.checker.violations {
			t.Errorf("seed %d: %v", seed, v)
		}
	}
}
