//go:build integration

package integration

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/outbox"
)

// A relay is asked to leave while the broker takes records and acknowledges none.
// It must not hand back a bucket of which something may still be published, so
// that the leases lapse, as after a crash.
func missedDeadline(t *testing.T) outcome {
	s := newSharing(t, 8)
	broker := newBrokerGate(t)
	leaver := s.join("a", "--brokers", broker.address(), "--shutdown-timeout", "2s")
	peer := s.join("b")
	before := s.settle(leaver, peer)
	own := bucketsOf(before, leaver)
	s.load()
	s.awaitRounds(1, leaver, peer)
	broker.acknowledgements.set()
	mark := s.traffic.mark()
	s.oneInEach(own)
	s.traffic.await(t, "rows of each bucket in flight", mark, func(seen []request) bool { return allInFlight(seen, leaver.name) })
	leaver.signal(syscall.SIGTERM)
	if code := leaver.exit(); code != 0 {
		t.Errorf("the relay ended with %d", code)
	}
	left := time.Now()
	if held := s.leases(); len(moved(before, held)) != 0 {
		t.Errorf("the leases are %v after the stop, want them as before: %v", held, before)
	}
	after, at := s.awaitFair(peer)
	s.wantMoved(mark, before, after, own)
	s.wantQuiet(2, peer)
	return s.outcome(mark, at.Sub(left), leaseDuration+renewInterval+requestTime, peer)
}

// oneInEach writes one message to each of these buckets.
func (s *sharing) oneInEach(buckets []int) {
	s.t.Helper()
	var messages []outbox.Message
	for _, b := range buckets {
		m := inBucket(s.topic, b, s.schema.BucketCount)
		messages = append(messages, m)
		s.messages = append(s.messages, sent{message: m, stream: string(m.Key), began: m.CreatedAt})
	}
	enqueue(s.t, s.client, s.schema, messages...)
}

// A relay stalls with its renewals on the way, longer than its lease. Its peers
// take its buckets; then the renewals arrive, and each of them is refused: a real
// loss, once. Awake, it writes to none of those buckets, and gets a share back
// only when its peers hand one over.
func stallWithRenewals(t *testing.T) outcome {
	s := newSharing(t, 8)
	fleet := s.joinAll("a", "b", "c")
	before := s.settle(fleet...)
	s.load()
	s.awaitRounds(1, fleet...)
	own, mark := bucketsOf(before, fleet[0]), s.traffic.mark()
	renewals := func(r request) bool { return r.relay == "a" && r.kind == keep }
	fleet[0].gate.hold(renewals)
	s.traffic.await(s.t, "its renewals", mark, func(seen []request) bool { return len(only(seen, renewals)) >= len(own) })
	fleet[0].pause()
	stalled := time.Now()
	after, at := s.awaitFair(fleet[1:]...)
	s.wantMoved(mark, before, after, own)
	fleet[0].gate.letGo()
	s.traffic.await(s.t, "their refusal", mark, func(seen []request) bool { return len(refusals(seen)) >= len(own) })
	s.wantReturn(fleet[0], own, after, fleet...)
	o := s.outcome(mark, at.Sub(stalled), leaseDuration+renewInterval+requestTime, fleet...)
	o.least, o.most = len(own), len(own)
	return o
}

// A relay stalls between two rounds, longer than its lease. It has nothing on the
// way that could be refused, and finds out by its next read.
func stallBetweenRounds(t *testing.T) outcome {
	s := newSharing(t, 8)
	fleet := s.joinAll("a", "b", "c")
	before := s.settle(fleet...)
	s.load()
	s.awaitRoundEnd(fleet[0])
	own, mark := bucketsOf(before, fleet[0]), s.traffic.mark()
	fleet[0].pause()
	stalled := time.Now()
	after, at := s.awaitFair(fleet[1:]...)
	s.wantMoved(mark, before, after, own)
	s.wantReturn(fleet[0], own, after, fleet...)
	return s.outcome(mark, at.Sub(stalled), leaseDuration+renewInterval+requestTime, fleet...)
}

// wantReturn lets the stalled relay go on. It asks nothing more about the buckets
// that it has lost; only what its peers hand over moves, and it claims that once.
func (s *sharing) wantReturn(stalled *member, lost []int, before map[int]lease, fleet ...*member) {
	s.t.Helper()
	mark := s.traffic.mark()
	stalled.wake()
	after, _ := s.awaitFair(fleet...)
	back := bucketsOf(after, stalled)
	s.wantMoved(mark, before, after, back)
	if released := applied(s.traffic.since(mark), release, ""); !slices.Equal(released, back) {
		s.t.Errorf("buckets %v came back, and %v were handed over", back, released)
	}
	if seen := trespasses(s.traffic.since(mark), stalled.name, lost); len(seen) > 0 {
		s.t.Errorf("awake, and before it had a bucket back, it sent %s", tally(seen))
	}
	s.wantQuiet(2, fleet...)
}

// Six relays start at once on free buckets. Their first plans may overlap; every
// bucket gets one owner all the same, and the next rounds are quiet.
func manyStarts(t *testing.T) outcome {
	const relays, buckets = 6, 16
	s := newSharing(t, buckets)
	fleet := s.joinAll("a", "b", "c", "d", "e", "f")
	s.traffic.await(t, "the heartbeats of all", 0, func(seen []request) bool {
		return !slices.ContainsFunc(fleet, func(m *member) bool { return beats(seen, m) == 0 })
	})
	came := time.Now()
	_, at := s.awaitFair(fleet...)
	s.awaitRounds(1, fleet...)
	s.load()
	settled := s.traffic.mark()
	s.wantQuiet(2, fleet...)
	// What two rounds are for a start, and one more, since plans may overlap once.
	o := s.outcome(0, at.Sub(came), 3*renewInterval+requestTime, fleet...)
	o.most = (relays - 1) * buckets
	if late := refusals(s.traffic.since(settled)); len(late) > 0 {
		s.t.Errorf("refused writes when the fleet had settled: %s", tally(late))
	}
	return o
}

// Twelve relays share two buckets. The ten that come later are standbys, even
// though their ids sort first: nothing moves. The first two of them run every
// round, those behind them every second one, and none writes a lease. Then an
// owner leaves, and the first in line takes over within two rounds.
func moreThanBuckets(t *testing.T) outcome {
	s := newSharing(t, 2)
	owners := s.joinAll("k", "l")
	before := s.settle(owners...)
	s.load()
	mark := s.traffic.mark()
	standbys := s.joinAll("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	s.awaitRounds(1, standbys...)
	s.wantQuiet(1, owners...)
	s.wantClaims(mark, nil)
	s.wantStandbys(before, owners, standbys)

	departure := s.traffic.mark()
	left := time.Now()
	owners[0].stop()
	after, at := s.awaitFair(append([]*member{owners[1]}, standbys...)...)
	s.wantMoved(departure, before, after, bucketsOf(before, owners[0]))
	if got := after[bucketsOf(before, owners[0])[0]].owner; got != "a" {
		s.t.Errorf("%s has taken over, want the first in line", got)
	}
	s.wantQuiet(2, owners[1], standbys[0])
	return s.outcome(mark, at.Sub(left), 2*renewInterval, append(standbys, owners[1])...)
}

// wantStandbys counts what each of the twelve sends in some settled rounds.
func (s *sharing) wantStandbys(leases map[int]lease, owners, standbys []*member) {
	s.t.Helper()
	const far = 2 // rounds between two of those far back: three quarters of the lease
	mark := s.traffic.mark()
	s.awaitRounds(2, append(slices.Clone(owners), standbys...)...)
	seen := s.traffic.since(mark)
	for _, m := range owners {
		sent := s.wantPrice(price{relay: m.name, owned: bucketsOf(leases, m), every: renewInterval, rounds: 2}, seen)
		s.t.Logf("2 busy rounds of %s: %s", m.name, sent)
	}
	for rank, m := range standbys {
		every := renewInterval
		if rank >= s.schema.BucketCount {
			every = far * renewInterval
		}
		sent := s.wantPrice(price{relay: m.name, every: every, rounds: 2}, seen)
		s.t.Logf("2 rounds, one every %v, of %s, number %d in line: %s", every, m.name, rank+1, sent)
	}
}
