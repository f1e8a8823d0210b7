package bucket

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// operator changes what is set aside, and rings, mostly.
func (w *whirl) operator(t *rapid.T) {
	key := rapid.SampledFrom([]string{"k", "k2"}).Draw(t, "of")
	rows, _ := w.setAside()
	rings := rapid.SampledFrom([][]string{nil, nil, nil, {"silently"}}).Draw(t, "rings")
	switch rapid.IntRange(0, 12).Draw(t, "does") {
	case 0:
		w.stage.operator(append([]string{"parks", key}, rings...))
	case 1:
		w.stage.operator(append([]string{"parks", "topic", "orders"}, rings...))
	case 2:
		w.stage.operator(append([]string{"retries", "topic", "orders"}, rings...))
	case 3:
		keyID := outbox.ParkedKeyID(&outbox.Message{Topic: "orders", Key: []byte(key)})
		if len(rows[keyID]) > 0 {
			sequence := rows[keyID][0]
			w.stage.operator([]string{"discards", key, fmt.Sprint(sequence)})
			w.discarded[sequence] = true
		}
	case 4:
		w.moveFaulty()
	case 5:
		end := w.wall + time.Duration(rapid.IntRange(1, 40).Draw(t, "pause"))*time.Second
		w.stage.operator(append([]string{"pauses", "topic", "orders", end.String()}, rings...))
	case 6, 7:
		w.callOff(t, rings)
	default:
		w.stage.operator(append([]string{"retries", key}, rings...))
	}
	w.did = nil
}

// callOff sets a key, or the topic, aside again, whether its retry is under way or not.
func (w *whirl) callOff(t *rapid.T, rings []string) {
	_, markers := w.setAside()
	if len(markers) == 0 || w.marred {
		return
	}
	kind, name, _ := strings.Cut(rapid.SampledFrom(markers).Draw(t, "marker"), "#")
	switch {
	case kind == "ALL":
		w.stage.operator(append([]string{"withdraws", "topic", name}, rings...))
	case name == outbox.ParkedKeyID(&outbox.Message{Topic: "orders", Key: []byte("k")}):
		w.stage.operator(append([]string{"withdraws", "k"}, rings...))
	}
}

// moveFaulty is "relay message park" of the row that cannot be read.
func (w *whirl) moveFaulty() {
	if len(w.faulty) == 0 {
		return
	}
	sequence := w.faulty[0]
	if w.stage.operator([]string{"moves", fmt.Sprint(sequence)}); !slices.Contains(w.remaining(), sequence) {
		w.faulty, w.unreadable = nil, append(w.unreadable, sequence)
	}
}

// strange puts a marker into the table that cannot be read, or takes it away.
func (w *whirl) strange(t *rapid.T) {
	_, markers := w.setAside()
	switch {
	case w.marred:
		w.mend()
	case rapid.IntRange(0, 3).Draw(t, "rare") == 0 && !slices.Contains(markers, outbox.ParkedKeySortKey(outbox.ParkedKeyID(&outbox.Message{Topic: "orders", Key: []byte("k2")}))):
		w.markerIs("unreadable")
		w.marred = true
	}
}

func (w *whirl) mend() {
	if w.marred {
		w.markerIs("gone")
		w.marred = false
	}
}

// mayLand notes a write whose end nobody knows: it may reach the table later.
func (w *whirl) mayLand(r store.Request) {
	switch r.(type) {
	case store.Mark, store.Move, store.RemoveParked, store.Unmark, store.EndRetry, store.Delete:
		w.late = append(w.late, r)
	}
}

func (w *whirl) lands(t *rapid.T) {
	if len(w.late) > 0 {
		w.land(rapid.IntRange(0, len(w.late)-1).Draw(t, "late"))
	}
}

func (w *whirl) land(i int) {
	r := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	w.noteMoved(r, w.carryOut(r))
}

// successor begins another tenure, when this one has ended, or its process crashes.
// What it has sent may still reach the table.
func (w *whirl) successor(t *rapid.T) {
	if !w.stopped && rapid.IntRange(0, 4).Draw(t, "crash") > 0 {
		return
	}
	for _, d := range w.waiting {
		w.mayLand(d.request)
	}
	w.waiting, w.submitted, w.fences, w.orphaned, w.ended, w.stopped = nil, nil, nil, nil, nil, false
	clear(w.timers)
	w.tenures++
	cfg := w.core.cfg
	cfg.Claim += rapid.Int64Range(0, 1).Draw(t, "claim")
	if cfg.Claim == w.core.cfg.Claim {
		cfg.Incarnation, cfg.Claim = fmt.Sprintf("A%d", w.tenures+1), 1
	}
	w.core = newCore(cfg)
	if lease := w.lease(); lease != nil && lease.Owner == "A" && lease.Expires > 0 {
		w.told([]string{"resume"})
		return
	}
	w.leaseIs([]string{"of", "nobody"})
	w.told([]string{"claim"})
}
