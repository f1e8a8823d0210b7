//go:build integration

package integration

import (
	"testing"
	"time"
)

// A relay is stopped by SIGSTOP with rows of each of its buckets on their way to the
// broker, longer than its lease lasts. Its peer takes the buckets, publishes those
// rows and newer ones of the same keys. Then SIGCONT, under load: the requests that
// were under way land behind the newer rows. That is what ordered mode cannot
// prevent: late copies, each counted here. First deliveries stay in order, the
// relay that was frozen deletes nothing of what it has lost, and nothing is missing.
func TestRelayFrozenWithRowsOnTheirWay(t *testing.T) {
	t.Parallel()
	s := newSharing(t, 8)
	broker := newBrokerGate(t)
	frozen := s.join("a", "--brokers", broker.address())
	peer := s.join("b")
	before := s.settle(frozen, peer)
	own := bucketsOf(before, frozen)
	s.load()
	s.awaitRounds(1, frozen, peer)

	broker.requests.set()
	mark := s.traffic.mark()
	s.oneInEach(own)
	s.traffic.await(t, "rows of each bucket on their way", mark, func(seen []request) bool { return allInFlight(seen, frozen.name) })
	frozen.pause()
	stopped := time.Now()
	after, at := s.awaitFair(peer)
	s.wantMoved(mark, before, after, own)
	s.awaitDeliveryOfOneInEach() // and with them what was on its way
	s.awaitRounds(1, peer)

	awake := s.traffic.mark()
	frozen.wake()
	broker.requests.lift()
	t.Logf("frozen for %.1f s; its peer had its %d buckets after %.1f s", time.Since(stopped).Seconds(), len(own), at.Sub(stopped).Seconds())
	s.awaitFair(frozen, peer)
	if seen := trespasses(s.traffic.since(awake), frozen.name, own); len(seen) > 0 {
		t.Errorf("awake, and before it had a bucket back, it sent %s", tally(seen))
	}
	s.awaitDeliveryOfOneInEach()
	duplicates := s.finish(frozen, peer)
	t.Logf("%d messages, all delivered, first deliveries in order, %d duplicates", len(s.messages), duplicates)
	if duplicates == 0 {
		t.Error("no record is a duplicate: the requests that were under way have not landed")
	}
}
