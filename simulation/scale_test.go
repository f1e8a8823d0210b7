package simulation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/simulation"
)

// A hundred relays that start at once on 1,024 free buckets, with the service's
// limits on the one partition that all coordination goes to, have settled within
// three rounds; from then on the writes of a round come spread over the interval.
func TestThousandBucketsHundredRelays(t *testing.T) {
	const (
		relays, buckets = 100, 1024
		interval        = 10 * time.Second
		watched         = 3*interval + 2*interval // rounds to settle, and two more
	)
	var lastStart, lastClaim time.Duration
	throttled, moves := 0, 0
	var kept [watched / time.Second]int // by second
	r := simulation.Run(simulation.Options{
		Relays: relays, Buckets: buckets, Duration: watched, PollInterval: interval,
		Capacity: simulation.ServiceCapacity(),
		Observe: func(e simulation.Event) {
			if e.At >= watched {
				return
			}
			switch e.Detail.(type) {
			case event.RelayStarted:
				lastStart = e.At
			case event.BucketClaimed:
				lastClaim = e.At
				moves++
			case event.BucketKept:
				kept[e.At/time.Second]++
			case event.StoreThrottled:
				throttled++
			}
		},
	})
	demandOK(t, r)
	took := lastClaim - lastStart
	if took > 3*interval {
		t.Errorf("settled %v after the last start, want within three rounds", took)
	}
	if refused := r.Refused["claim"]; refused > (relays-1)*buckets {
		t.Errorf("%d claims were refused", refused)
	}
	if throttled > 0 {
		t.Errorf("throttled %d times", throttled)
	}
	quiet := kept[3*interval/time.Second:]
	if busiest := slices.Max(quiet); busiest > buckets/2 {
		t.Errorf("%d of %d leases are kept within one second", busiest, buckets)
	}
	t.Logf("settled %.1f s after the last of %d starts; %d claims, %d of them refused; the busiest second of a settled round has %d of %d keeps",
		took.Seconds(), relays, moves, r.Refused["claim"], slices.Max(quiet), buckets)
}

// handovers follows who owns what through a scenario.
type handovers struct {
	since   map[int]time.Duration // buckets without an owner
	unowned time.Duration         // bucket-seconds
	moves   map[int]int           // by bucket
}

// settled is when the fleet has divided the buckets; what counts comes after it.
const settled = 100 * time.Second

func (h *handovers) observe(e simulation.Event) {
	if e.At < settled {
		return
	}
	switch d := e.Detail.(type) {
	case event.BucketClaimed:
		if since, known := h.since[d.Bucket]; known {
			h.unowned += e.At - since
			delete(h.since, d.Bucket)
			h.moves[d.Bucket]++
		}
	case event.BucketReleased:
		h.since[d.Bucket] = e.At
	}
}

// A rolling update of ten relays over 64 buckets, under load, one relay a minute:
// with the new one first, as a Deployment does, and with the old one's id, as a
// StatefulSet does. Nothing is delivered twice, nothing refused, and of each
// step only the buckets move that have to.
func TestRollingUpdate(t *testing.T) {
	const relays, buckets = 10, 64
	for _, way := range []string{"new first", "old id"} {
		t.Run(way, func(t *testing.T) {
			var script strings.Builder
			fmt.Fprintf(&script, "# A rolling update\nbuckets %d\nrate 20\n\n", buckets)
			for i := range relays { // their rounds are half a second apart
				fmt.Fprintf(&script, "at %dms start old%02d\n", 500*i, i)
			}
			for i := range relays {
				at := int(settled/time.Second) + 8 + 60*i
				switch way {
				case "new first":
					fmt.Fprintf(&script, "at %ds start new%02d\nat %ds stop old%02d\n", at, i, at+29, i)
				default:
					fmt.Fprintf(&script, "at %ds stop old%02d\nat %ds start new%02d as old%02d\n", at, i, at+29, i, i)
				}
			}
			fmt.Fprintf(&script, "at %ds expect no duplicates\nexpect no refused since 100s\n", 100+60*relays)
			s, err := simulation.ParseScenario("rolling", strings.NewReader(script.String()))
			if err != nil {
				t.Fatal(err)
			}
			h := handovers{since: map[int]time.Duration{}, moves: map[int]int{}}
			s.Options.Observe = h.observe
			demandOK(t, s.Run())
			most, total := 0, 0
			for _, n := range h.moves {
				most, total = max(most, n), total+n
			}
			t.Logf("%d moves of %d buckets, %d at most of one; %.1f unowned bucket-seconds; no duplicate",
				total, buckets, most, h.unowned.Seconds())
			// Each relay that leaves has a share of a tenth, and so has each that comes.
			if need := relays * (buckets/relays + 1 + buckets/(relays+1) + 1); total > need {
				t.Errorf("%d moves, want at most %d", total, need)
			}
		})
	}
}
