//go:build integration

package integration

import (
	"maps"
	"os"
	"slices"
	"testing"
	"time"
)

// outage is for how long the only broker is away, or INTEGRATION_OUTAGE.
const outage = 20 * time.Second

// The only broker is stopped for a while under load, and started again. Nothing is
// lost, nothing is rejected, the order holds, and no lease moves: an outage is only
// slow. The leases are as long as the outage, since a relay that has reached no
// broker for two of them hands its buckets back.
func TestBrokerThatIsAwayForAWhileLosesNothing(t *testing.T) {
	t.Parallel()
	away := outage
	if text := os.Getenv("INTEGRATION_OUTAGE"); text != "" {
		var err error
		if away, err = time.ParseDuration(text); err != nil {
			t.Fatalf("INTEGRATION_OUTAGE: %v", err)
		}
	}
	const rounds = 4
	k := newCluster(t, 1)
	s := newSharingOn(t, k.servers(), 1, 8)
	var fleet []*member
	for _, id := range []string{"a", "b"} {
		fleet = append(fleet, s.join(id, "--lease-duration", away.String(), "--lease-renew-interval", (away/rounds).String(), "--log-level", "debug"))
	}
	before := s.settle(fleet...)
	s.load()
	s.awaitDeliveryOfOneInEach()
	mark, left := s.traffic.mark(), time.Now()
	k.nodes[0].leave()
	for range rounds {
		s.awaitRounds(0, fleet...) // the next of each, an interval later
	}
	k.nodes[0].startAgain()
	returned := time.Now()
	s.awaitDeliveryOfOneInEach()
	t.Logf("the broker was away for %.0f s; all buckets had an acknowledgement %.1f s after its return",
		returned.Sub(left).Seconds(), time.Since(returned).Seconds())
	s.wantUnmoved(mark, before)
	s.finishLogged(fleet...)
	s.wantNothingRejected()
}

// Three brokers, each partition on all three, two of which must have a record before
// it is acknowledged: each broker is killed once under load, and started again.
// Every acknowledgement stops for some seconds until the others know that it is
// gone; nothing is lost, nothing is rejected, the order holds, and no lease moves.
func TestEachOfThreeBrokersIsKilledOnce(t *testing.T) {
	t.Parallel()
	k := newCluster(t, 3)
	s := newSharingOn(t, k.servers(), 3, 8)
	s.pace = 20 * time.Millisecond
	fleet := s.joinAll("a", "b")
	before := s.settle(fleet...)
	s.load()
	s.awaitDeliveryOfOneInEach()
	mark := s.traffic.mark()
	for _, n := range k.nodes {
		n.die()
		died := time.Now()
		s.awaitDeliveryOfOneInEach()
		t.Logf("broker %d killed: all buckets had an acknowledgement after %.1f s", n.number, time.Since(died).Seconds())
		n.startAgain()
		s.awaitDeliveryOfOneInEach()
	}
	s.wantUnmoved(mark, before)
	s.finishLogged(fleet...)
	s.wantNothingRejected()
}

// awaitDeliveryOfOneInEach writes one message to each bucket and waits until a
// consumer has them: the fleet works, on every bucket.
func (s *sharing) awaitDeliveryOfOneInEach() {
	s.t.Helper()
	written := len(s.messages)
	s.oneInEach(allBuckets(s.schema.BucketCount))
	s.kafka.await(s.t, s.messages[written:], map[string]int{s.topic: sharedPartitions})
}

// wantUnmoved wants each lease to be with the very process that had it.
func (s *sharing) wantUnmoved(mark int, before map[int]lease) {
	s.t.Helper()
	if after := s.leases(); !maps.Equal(before, after) {
		s.t.Errorf("the leases changed from %v to %v", before, after)
	}
	s.wantClaims(mark, nil)
	if seen := refusals(s.traffic.since(mark)); len(seen) > 0 {
		s.t.Errorf("writes were refused: %s", tally(seen))
	}
}

// finishLogged is finish with its figures told.
func (s *sharing) finishLogged(running ...*member) {
	s.t.Helper()
	duplicates := s.finish(running...)
	s.t.Logf("%d messages, all delivered, first deliveries in order, %d duplicates", len(s.messages), duplicates)
}

// wantNothingRejected wants no relay to have blamed a record, and none to have
// given up its producers or its buckets.
func (s *sharing) wantNothingRejected() {
	s.t.Helper()
	for _, m := range s.members {
		blamed := m.said(func(l line) bool {
			return slices.Contains([]string{"record.rejected", "bucket.blocked", "bucket.withheld", "bucket.lost", "relay.withdrawn"}, l.Event)
		})
		for _, l := range blamed {
			s.t.Errorf("%s: %s", m.name, l.text)
		}
		if fatal := m.said(func(l line) bool { return l.Event == "producer.failed" }); len(fatal) > 0 {
			s.t.Logf("%s: %d producers met a fatal error, the first: %s", m.name, len(fatal), fatal[0].text)
		}
	}
}
