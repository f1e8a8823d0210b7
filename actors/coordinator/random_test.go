package coordinator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/store"
)

// Whatever comes, in whatever order, the core breaks no invariant and none of the
// rules that judge checks; and a relay that is told to stop ends, once.
func TestWhateverComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &whirl{stage: newStage(t, rapid.IntRange(1, 6).Draw(t, "buckets"))}
		w.dated = rapid.Bool().Draw(t, "dated")
		w.take(w.core.start(w.instant()))
		t.Repeat(map[string]func(*rapid.T){
			"":        func(*rapid.T) { w.judge() },
			"request": w.requestEnds,
			"stale":   w.staleReply,
			"broker":  w.broker,
			"bucket":  w.bucketSays,
			"lease":   w.lease,
			"relay":   w.relay,
			"time":    w.time,
			"command": w.command,
		})
		w.stopped()
	})
}

// whirl is a stage to which anything may happen.
type whirl struct {
	*stage
	ended []actors.Replied
}

func (w *whirl) requestEnds(t *rapid.T) {
	if len(w.waiting) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.waiting)-1).Draw(t, "request")
	d := w.waiting[i]
	w.ended = append(w.ended, actors.Replied{Token: d.token, Request: d.request, Reply: w.carryOut(d.request)})
	w.end(i, rapid.SampledFrom([]string{
		"answered", "answered", "answered", "unanswered", "lost", "throttled",
	}).Draw(t, "way"))
}

// staleReply is one that came already: it must change nothing.
func (w *whirl) staleReply(t *rapid.T) {
	if len(w.ended) > 0 {
		w.step(rapid.SampledFrom(w.ended).Draw(t, "reply"))
	}
}

func (w *whirl) broker(t *rapid.T) {
	w.act([]string{"broker", rapid.SampledFrom([]string{"reached", "lost"}).Draw(t, "broker")})
}

// bucketSays is any word of any actor that ever lived.
func (w *whirl) bucketSays(t *rapid.T) {
	tenure := int64(rapid.IntRange(0, len(w.buckets)).Draw(t, "tenure"))
	b, known := w.buckets[tenure]
	if !known {
		return
	}
	w.step(rapid.SampledFrom([]any{
		bucket.Quiesced{Bucket: b, Tenure: tenure}, bucket.Quiesced{Bucket: b, Tenure: tenure},
		bucket.Ended{Bucket: b, Tenure: tenure}, bucket.Ended{Bucket: b, Tenure: tenure},
		bucket.Failed{Bucket: b, Tenure: tenure, Reason: "drawn"}, childDied{b, tenure}, publisherDied{w.core.publisher},
	}).Draw(t, "word"))
}

func (w *whirl) lease(t *rapid.T) {
	b := rapid.IntRange(0, w.core.cfg.BucketCount+1).Draw(t, "bucket")
	w.leaseIs(b, rapid.SampledFrom([][]string{
		{"of", "A/A1", "until", w.later(25)}, {"of", "A/A1", "until", w.later(25)}, {"of", "A/A0", "until", w.later(5)},
		{"of", "B", "until", w.later(20)}, {"of", "B", "until", w.later(-5)}, {"of", "nobody"}, {"of", "B"}, {"unreadable"},
	}).Draw(t, "lease"))
}

func (w *whirl) relay(t *rapid.T) {
	id := rapid.SampledFrom([]string{"0", "B", "C"}).Draw(t, "id")
	words := []string{"seen", w.later(-rapid.IntRange(0, 400).Draw(t, "ago"))}
	if rapid.IntRange(0, 3).Draw(t, "stopped") == 0 {
		words = append(words, "stopped")
	}
	w.relayIs(id, words)
}

func (w *whirl) later(seconds int) string {
	return (w.wall + time.Duration(seconds)*time.Second).String()
}

func (w *whirl) time(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "clock") == 0 {
		w.wall += time.Duration(rapid.IntRange(-50, 50).Draw(t, "set")) * time.Second
	}
	w.pass(time.Duration(rapid.IntRange(1, 12_000).Draw(t, "milliseconds")) * time.Millisecond)
}

func (w *whirl) command(t *rapid.T) {
	switch rapid.IntRange(0, 29).Draw(t, "command") {
	case 0:
		w.step(Stop{})
	case 1:
		w.step(bucket.Mismatched{Bucket: 0, Sequence: 1, Stamped: 99})
	case 2:
		w.relayIs("A/A2", []string{"seen", fmt.Sprint(w.wall)})
	default:
		w.step(Notify{Buckets: []int{rapid.IntRange(-1, 7).Draw(t, "bucket")}})
	}
}

// judge checks what must hold whenever the core has come to rest.
func (w *whirl) judge() {
	if w.finished > 1 {
		w.t.Fatalf("it has ended %d times", w.finished)
	}
	of := func(names ...string) (n int) {
		for _, d := range w.waiting {
			if d.token == w.core.round.token || d.token == w.core.stop.token {
				if slices.Contains(names, d.request.RequestName()) {
					n++
				}
			}
		}
		return n
	}
	if of("heartbeat", "readCoordination", "stampStopped") > 1 {
		w.t.Fatal("rounds overlap")
	}
	owners := map[int]int64{}
	for b, k := range w.core.children {
		if k.tenure == 0 {
			continue
		}
		if w.buckets[k.tenure] != b {
			w.t.Fatalf("tenure %d is taken for bucket %d, but is of bucket %d", k.tenure, b, w.buckets[k.tenure])
		}
		owners[b] = k.tenure
	}
	for _, d := range w.waiting {
		if r, release := d.request.(store.Release); release && owners[r.Bucket] != 0 {
			w.t.Fatalf("the lease of bucket %d is freed over the head of its actor", r.Bucket)
		}
	}
}

// stopped ends all faults, tells the relay to stop, and demands that it ends, within
// the shutdown timeout and some.
func (w *whirl) stopped() {
	w.step(Stop{})
	for range 300 {
		if w.finished == 1 {
			return
		}
		for len(w.waiting) > 0 && w.finished == 0 {
			w.end(0, "answered")
		}
		for b, k := range w.core.children {
			if k.tenure != 0 && !k.quiesced && w.finished == 0 {
				w.step(bucket.Quiesced{Bucket: b, Tenure: k.tenure})
			}
		}
		w.pass(100 * time.Millisecond)
		w.judge()
	}
	w.t.Fatal("it was told to stop and goes on")
}
