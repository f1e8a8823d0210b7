package bucket

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Whatever comes, in whatever order, the core breaks no invariant and none of the
// promises that judge checks; and when all faults end, the bucket is emptied, or
// the tenure has ended.
func TestWhateverComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWhirl(t)
		t.Repeat(map[string]func(*rapid.T){
			"":          func(*rapid.T) { w.judge() },
			"commit":    w.commit,
			"fault":     w.rowFault,
			"request":   w.requestEnds,
			"answered":  w.requestAnswered,
			"stale":     w.staleReply,
			"publisher": w.publisherAnswers,
			"round":     w.round,
			"command":   w.command,
			"time":      w.time,
			"peer":      w.peer,
		})
		w.heal(t)
	})
}

// whirl is a stage to which anything may happen.
type whirl struct {
	*stage
	next     int64   // the next number of the sequence
	reserved []int64 // numbers that were handed out and not committed
	faulty   []int64 // rows that cannot be read
	ended    []actors.Replied
	orphaned []publisher.Publish // of publishers that died

	steps    int
	readAt   map[int64]int // by row: the step of its last read
	probedAt map[int64]int // by number: the step in which it was last found missing
	judged   uint64        // the last batch that was judged
}

func newWhirl(t *rapid.T) *whirl {
	w := &whirl{stage: newStage(t), next: 1, readAt: map[int64]int{}, probedAt: map[int64]int{}}
	w.core.cfg.Fenced = rapid.Bool().Draw(t, "fenced")
	w.core.cfg.BatchSize = rapid.IntRange(1, 40).Draw(t, "batch size")
	if rapid.Bool().Draw(t, "resumed") {
		w.leaseIs([]string{"of", "A/A0", "until", "5s"})
		w.told([]string{"resume"})
	} else {
		w.told([]string{"claim"})
	}
	return w
}

func (w *whirl) commit(t *rapid.T) {
	for range rapid.IntRange(1, 30).Draw(t, "numbers") {
		if rapid.IntRange(0, 4).Draw(t, "reserved only") == 0 {
			w.reserved = append(w.reserved, w.next)
		} else {
			w.putRow(w.next, nil)
		}
		w.next++
	}
	if len(w.reserved) > 0 && rapid.Bool().Draw(t, "late") {
		i := rapid.IntRange(0, len(w.reserved)-1).Draw(t, "which")
		w.putRow(w.reserved[i], nil)
		w.reserved = slices.Delete(w.reserved, i, i+1)
	}
}

func (w *whirl) rowFault(t *rapid.T) {
	if len(w.faulty) > 0 {
		w.repair()
		return
	}
	if rapid.IntRange(0, 9).Draw(t, "rare") == 0 {
		w.rowIs(w.next, "malformed", nil)
		w.faulty = append(w.faulty, w.next)
		w.next++
	}
	w.unprocessed = rapid.SampledFrom([][]string{nil, {"all"}, {fmt.Sprint(w.next - 1)}}).Draw(t, "unprocessed")
}

func (w *whirl) repair() {
	for _, sequence := range w.faulty {
		w.putRow(sequence, nil)
	}
	w.faulty = nil
}

func (w *whirl) requestEnds(t *rapid.T) {
	w.finish(t, rapid.SampledFrom([]string{"answered", "unanswered", "lost", "throttled"}).Draw(t, "way"))
}

func (w *whirl) requestAnswered(t *rapid.T) { w.finish(t, "answered") }

func (w *whirl) finish(t *rapid.T, way string) {
	if len(w.waiting) > 0 {
		w.end(rapid.IntRange(0, len(w.waiting)-1).Draw(t, "request"), way)
	}
}

// end notes, for judge, what each read has shown.
func (w *whirl) end(i int, way string) {
	w.steps++
	d := w.waiting[i]
	reply := w.reply(d, way)
	w.waiting = slices.Delete(w.waiting, i, i+1)
	if fetched, ok := reply.Reply.Result.(store.Fetched); ok {
		for _, row := range fetched.Rows {
			w.readAt[row.Sequence] = w.steps
		}
	}
	if probed, ok := reply.Reply.Result.(store.Probed); ok && !probed.Filled {
		for n := d.request.(store.Probe).From; n <= d.request.(store.Probe).To; n++ {
			w.probedAt[n] = w.steps
		}
	}
	w.ended = append(w.ended, reply)
	w.step(reply)
}

// staleReply is one that came already: it must change nothing.
func (w *whirl) staleReply(t *rapid.T) {
	if len(w.ended) > 0 {
		w.step(rapid.SampledFrom(w.ended).Draw(t, "reply"))
	}
}

func (w *whirl) publisherAnswers(t *rapid.T) {
	if len(w.orphaned) > 0 && rapid.Bool().Draw(t, "of a dead publisher") {
		p := w.orphaned[0]
		w.orphaned = w.orphaned[1:]
		w.step(publisher.Published{Bucket: p.Bucket, Batch: p.Batch, Results: make([]publisher.Result, len(p.Rows))})
		return
	}
	if len(w.fences) > 0 {
		w.fenceIs([]string{rapid.SampledFrom([]string{"held", "held", "refused"}).Draw(t, "fence")})
		return
	}
	if len(w.submitted) == 0 {
		return
	}
	rows := len(w.submitted[0].Rows)
	acknowledged := rows - rapid.IntRange(0, min(rows, 2)).Draw(t, "not acknowledged")
	words := []string{"acknowledges", fmt.Sprint(acknowledged)}
	if acknowledged < rows {
		words = append(words, "then", rapid.SampledFrom([]string{"refused", "failed", "unknown"}).Draw(t, "outcome"))
	}
	w.stage.publisherAnswers(words)
}

func (w *whirl) round(t *rapid.T) {
	w.told(append([]string{"round"}, rapid.SampledFrom([][]string{
		nil, nil, nil, {"yields"}, {"carried"}, {"read", "1s"}, {"read", "15s"},
	}).Draw(t, "round")...))
}

func (w *whirl) command(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "command") {
	case 0:
		w.told([]string{"quiesce"})
	case 1, 2:
		w.orphaned = append(w.orphaned, w.submitted...)
		w.submitted, w.fences = nil, nil
		w.told([]string{"rebind"})
	default:
		w.told([]string{"wake"})
	}
}

func (w *whirl) time(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "clock") {
	case 0:
		w.wall -= time.Duration(rapid.IntRange(1, 50).Draw(t, "back")) * time.Second
	case 1:
		w.wall += time.Duration(rapid.IntRange(1, 50).Draw(t, "suspended")) * time.Second
	default:
		w.pass(time.Duration(rapid.IntRange(1, 8000).Draw(t, "milliseconds")) * time.Millisecond)
	}
}

func (w *whirl) peer(t *rapid.T) {
	lease := w.lease()
	switch rapid.IntRange(0, 7).Draw(t, "hand") {
	case 0:
		w.leaseIs([]string{"paused", "until", (w.wall + 5*time.Second).String()})
	case 1:
		w.leaseIs([]string{"paused", "until", "-1h"})
	case 2:
		if lease != nil && lease.Expires <= w.instant().Ticks() {
			w.leaseIs([]string{"of", "B", "until", (w.wall + 30*time.Second).String()})
		}
	}
}

// judge checks what must hold whenever the core has come to rest.
func (w *whirl) judge() {
	leaseWrites := 0
	for _, d := range w.waiting {
		switch r := d.request.(type) {
		case store.Claim, store.Keep, store.Release:
			leaseWrites++
		case store.Delete:
			for _, sequence := range r.Sequences {
				if !w.acknowledged[sequence] {
					w.t.Fatalf("row %d is deleted and was never acknowledged", sequence)
				}
			}
			if !slices.IsSorted(r.Sequences) {
				w.t.Fatalf("deleted out of order: %v", r.Sequences)
			}
		}
	}
	if leaseWrites > 1 {
		w.t.Fatalf("%d lease writes are under way", leaseWrites)
	}
	if len(w.fences) > 1 {
		w.t.Fatalf("the fence was asked for %d times at once", len(w.fences))
	}
	if len(w.submitted) > 1 {
		w.t.Fatalf("the publisher has %d batches of one bucket", len(w.submitted))
	}
}

// step judges each batch in the moment in which it is submitted.
func (w *whirl) step(message any) {
	w.steps++
	w.stage.step(message)
	if len(w.submitted) == 1 && w.submitted[0].Batch != w.judged {
		w.judgeBatch(w.submitted[0])
	}
}

// judgeBatch checks the one rule of section 5: no row is published behind a gap
// that was not found empty after the read that returned the row.
func (w *whirl) judgeBatch(p publisher.Publish) {
	w.judged = p.Batch
	if p.NotAfter.PassedAt(w.instant()) {
		w.t.Fatalf("batch %d is published after its lease's validity", p.Batch)
	}
	first := w.core.expected
	if p.Rows[0].Sequence < first {
		first = 1
	}
	for i, row := range p.Rows {
		if i > 0 && row.Sequence <= p.Rows[i-1].Sequence {
			w.t.Fatalf("rows out of order: %v", sequences(p.Rows))
		}
		for n := first; n < row.Sequence; n++ {
			isRow := slices.ContainsFunc(p.Rows[:i], func(r outbox.Row) bool { return r.Sequence == n })
			if !isRow && w.probedAt[n] <= w.readAt[row.Sequence] {
				w.t.Fatalf("row %d is published behind %d, which was not probed after the row was read", row.Sequence, n)
			}
		}
	}
}

// heal ends all faults and demands progress.
func (w *whirl) heal(t *rapid.T) {
	w.repair()
	w.unprocessed = nil
	w.leaseIs([]string{"paused", "until", "-1h"})
	drains := w.core.machine.In(fsm.Draining, fsm.Releasing)
	for range 40 {
		w.pass(5 * time.Second)
		words := []string{"round"}
		if drains {
			words = append(words, "yields")
		}
		w.told(words)
		for len(w.waiting)+len(w.submitted)+len(w.fences) > 0 {
			switch {
			case len(w.waiting) > 0:
				w.end(0, "answered")
			case len(w.fences) > 0:
				w.fenceIs([]string{"held"})
			default:
				w.stage.publisherAnswers([]string{"acknowledges", "all"})
			}
			w.judge()
		}
		if w.stopped || !drains && len(w.remaining()) == 0 {
			return
		}
	}
	t.Fatalf("no progress: the bucket is %s, %v are left", w.core.machine.State(), w.remaining())
}
