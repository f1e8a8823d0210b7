package simulation

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// drain publishes what waits in a bucket, in order, and deletes each row after its
// acknowledgement, as a relay of the peer does: it knows of nothing that is set aside.
func (p *peer) drain(t *testing.T, b int) {
	t.Helper()
	client := store.NewClient(p.f.schema, p.f.db, p.f.db)
	page, ok := client.Do(context.Background(), store.Fetch{Bucket: b, Limit: 100}).Result.(store.Fetched)
	if !ok {
		t.Fatalf("bucket %d cannot be read", b)
	}
	producer, err := p.f.broker.Factory(p.id).Open(publisher.Options{Number: 1, MaxMessageBytes: 1 << 20}, func(message any) {
		reported, _ := message.(publisher.Reported)
		for _, r := range reported.Reports {
			if r.Fault != nil {
				t.Errorf("the peer's record %v: %v", r.Token, r.Fault)
			}
			client.Do(context.Background(), store.Delete{Bucket: b, Sequences: []int64{r.Token.Sequence}})
			c := p.f.checker
			c.catchUp()
			c.rowsOf[b] = slices.DeleteFunc(c.rowsOf[b], func(sequence int64) bool { return sequence == r.Token.Sequence })
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range page.Rows {
		m := row.Message
		id := outbox.Header{Key: publisher.DefaultMessageIDHeader, Value: []byte(m.ID.String())}
		record := publisher.Record{Topic: m.Topic, Partition: partitionOf(m), Key: m.Key, Value: m.Value, Headers: append(slices.Clone(m.Headers), id)}
		if err := producer.Produce(record, publisher.Token{Bucket: b, Sequence: row.Sequence}); err != nil {
			t.Fatal(err)
		}
	}
}

// A fleet goes back to relays of the peer while rows are set aside, and comes again. The peer
// sees none of these rows, and none is lost; a move that ours had under way is
// refused, although the peer leaves our incarnation and claim on the lease; and when
// ours are back, what is set aside is delivered, in order, and the key that is left
// without rows is cleared.
func TestGoingBackToThePeerWithRowsSetAside(t *testing.T) {
	const before = `# Back to the peer
# Rows are set aside.
start A
within 15s A owns 8 buckets
reject m1 m3
commit m1 m2 in bucket 0 key a
within 30s 2 rows set aside of key a in bucket 0
hold move of A in bucket 0
commit m3 keyless in bucket 0
within 30s 2 sent move of A in bucket 0
accept m1 m3
stall A for 100s
after 70s expect no deliveries of m1 m2 m3
expect 1 rows in bucket 0
commit m4 in bucket 0 key b
after 1s expect 1 deliveries of m3 m4
land move of A in bucket 0
within 1s 1 refused move of A in bucket 0
expect 2 rows set aside in bucket 0
within 120s A owns 8 buckets
operator retries key a in bucket 0
within 60s order of key a is m1 m2
expect 1 deliveries of m1..m4
within 60s key a in bucket 0 is free
`
	for seed := range uint64(5) {
		s, err := ParseScenario("script", strings.NewReader("# Title\n# Story\nseed 0\n"+before))
		if err != nil {
			t.Fatal(err)
		}
		s.Options.Seed = seed
		stage := newStage(s, s.Options.WithDefaults())
		p := &peer{f: stage.fleet, id: "relay-0-net"}
		for i, step := range s.steps {
			stage.through(s.steps[i : i+1])
			switch {
			case strings.HasPrefix(step.text, "stall"):
				p.start()
			case strings.HasPrefix(step.text, "commit m4"):
				p.drain(t, 0)
			case strings.HasPrefix(step.text, "land"):
				p.stopped = true // as a crash
			}
		}
		stage.heal()
		stage.fleet.settle()
		for _, v := range stage.fleet.checker.violations {
			t.Errorf("seed %d: %v", seed, v)
		}
	}
}
