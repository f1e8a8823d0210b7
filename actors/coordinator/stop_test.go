package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/store"
)

// stopWhole drives a core that owns all buckets from its start to the end of a
// graceful stop, and returns how many messages that took.
func stopWhole(tb testing.TB, buckets int) int {
	cfg := Config{
		Relay: "A", BucketCount: buckets,
		LeaseDuration: 30 * time.Second, LeaseRenewInterval: 10 * time.Second, ShutdownTimeout: time.Minute, MaxConcurrency: 8,
	}
	c := newCore(cfg, "A1")
	var queue []any
	finished, steps := false, 0
	tenures := map[int64]int{}
	take := func(effects []effect) {
		for _, e := range effects {
			switch e := e.(type) {
			case do:
				reply := store.Reply{}
				switch e.request.(type) {
				case store.Heartbeat:
					reply.Result = store.HeartbeatResult{}
				case store.ReadCoordination:
					reply.Result = store.CoordinationPage{}
				}
				queue = append(queue, actors.Replied{Token: e.token, Request: e.request, Reply: reply})
			case spawn:
				tenures[e.tenure] = e.bucket
			case tell:
				switch e.message.(type) {
				case bucket.Quiesce:
					queue = append(queue, bucket.Quiesced{Bucket: tenures[e.tenure], Tenure: e.tenure})
				case bucket.Attend:
					queue = append(queue, bucket.Ended{Bucket: tenures[e.tenure], Tenure: e.tenure})
				}
			case finish:
				finished = true
			}
		}
	}
	now := actors.Instant{Wall: time.Hour}
	take(c.start(now))
	queue = append(queue, publisher.Connected{})
	asked := false
	for !finished {
		if len(queue) == 0 {
			if asked {
				tb.Fatal("the stop stands still")
			}
			asked = true
			queue = append(queue, Stop{})
		}
		message := queue[0]
		queue = queue[1:]
		steps++
		take(c.step(now, message))
	}
	return steps
}

// Each bucket costs a stop two words and the relay a handful more: a word of a
// child never sends another stamp or read.
func TestStopTakesAWordOfEachBucketTwice(t *testing.T) {
	for _, buckets := range []int{1, 8, 10_000} {
		if steps := stopWhole(t, buckets); steps > 2*buckets+10 {
			t.Errorf("%d buckets: %d messages", buckets, steps)
		}
	}
}

// What one bucket costs must not depend on how many there are.
func BenchmarkStop(b *testing.B) {
	for _, buckets := range []int{100, 10_000} {
		b.Run(fmt.Sprint(buckets), func(b *testing.B) {
			for b.Loop() {
				stopWhole(b, buckets)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*buckets), "ns/bucket")
		})
	}
}
