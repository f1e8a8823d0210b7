package bucket

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
			"operator":  w.operator,
			"strange":   w.strange,
			"lands":     w.lands,
			"successor": w.successor,
			"flow":      w.flow,
		})
		w.heal(t)
	})
}

// whirl is a stage to which anything may happen.
type whirl struct {
	*stage
	next       int64            // the next number of the sequence
	reserved   []int64          // numbers that were handed out and not committed
	faulty     []int64          // rows that cannot be read
	unreadable []int64          // those of them that an operator has moved
	large      bool             // a row was too large to be moved; one is enough, they are slow
	marred     bool             // a marker cannot be read
	keys       map[int64]string // by number: the key's id
	discarded  map[int64]bool
	ended      []actors.Replied
	late       []store.Request     // lost, so it seemed: they reach the table yet, in any order
	orphaned   []publisher.Publish // of publishers that died

	steps       int
	tenures     int
	committedAt map[int64]int // by row: the step of its commit
	readAt      map[int64]int // by row: the step of its last read
	probedAt    map[int64]int // by number: the step in which it was last found missing
	judged      uint64        // the last batch that was judged
	// movedNow are the rows that were set aside since the last read of the head began.
	movedNow map[int64]bool
}

func newWhirl(t *rapid.T) *whirl {
	w := &whirl{
		stage: newStage(t), next: 1, readAt: map[int64]int{}, probedAt: map[int64]int{}, committedAt: map[int64]int{},
		keys: map[int64]string{}, discarded: map[int64]bool{}, movedNow: map[int64]bool{},
	}
	w.showsMarkers, w.observe = true, w.watch
	w.core.cfg.Poison = rapid.SampledFrom([]Poison{Block, Park, Park, DeadLetter}).Draw(t, "poison")
	w.core.cfg.PoisonAfter = rapid.IntRange(1, 2).Draw(t, "poison after")
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
			w.put1(t, w.next)
		}
		w.next++
	}
	if len(w.reserved) > 0 && rapid.Bool().Draw(t, "late") {
		i := rapid.IntRange(0, len(w.reserved)-1).Draw(t, "which")
		w.put1(t, w.reserved[i])
		w.reserved = slices.Delete(w.reserved, i, i+1)
	}
}

// put1 commits a row of one of a few keys, or of none.
func (w *whirl) put1(t *rapid.T, sequence int64) {
	words := strings.Fields(rapid.SampledFrom(whirlKeys).Draw(t, "key"))
	if !w.large && rapid.IntRange(0, 199).Draw(t, "large") == 0 {
		w.large = true
		w.rowIs(sequence, "sized", []string{"408500"})
	} else {
		w.rowIs(sequence, "of", words)
	}
	w.committed(sequence)
}

func (w *whirl) committed(sequence int64) {
	w.keys[sequence] = w.keyOf(sequence)
	w.committedAt[sequence] = w.steps
}

var whirlKeys = []string{"k", "k", "k2", "k payments", "nobody"}

// keyOf is the key id of a row in the table.
func (w *whirl) keyOf(sequence int64) string {
	reply := w.carryOut(store.Fetch{Bucket: w.core.cfg.Bucket, After: sequence - 1, Limit: 1})
	return outbox.ParkedKeyID(&reply.Result.(store.Fetched).Rows[0].Message)
}

func (w *whirl) rowFault(t *rapid.T) {
	if len(w.faulty) > 0 {
		w.repair()
		return
	}
	if rapid.IntRange(0, 9).Draw(t, "rare") == 0 {
		w.rowIs(w.next, rapid.SampledFrom([]string{"malformed", "nameless"}).Draw(t, "how"), nil)
		w.faulty = append(w.faulty, w.next)
		w.next++
	}
	w.unprocessed = rapid.SampledFrom([][]string{nil, {"all"}, {fmt.Sprint(w.next - 1)}}).Draw(t, "unprocessed")
}

func (w *whirl) repair() {
	for _, sequence := range w.faulty {
		w.putRow(sequence, nil)
		w.committed(sequence)
	}
	w.faulty = nil
}

func (w *whirl) requestEnds(t *rapid.T) {
	w.finish(t, rapid.SampledFrom([]string{"answered", "unanswered", "lost", "throttled", "conflicted"}).Draw(t, "way"))
}

func (w *whirl) requestAnswered(t *rapid.T) { w.finish(t, "answered") }

// flow lets all go well for a while, but for what the broker has against records.
func (w *whirl) flow(t *rapid.T) {
	rejects := rapid.IntRange(0, 3).Draw(t, "rejects one in")
	for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
		switch {
		case len(w.waiting) > 0:
			w.end(0, "answered")
		case len(w.submitted) > 0 && rejects > 0 && i%rejects == 0:
			w.stage.publisherAnswers([]string{"acknowledges", "0", "then", "refused"})
		case len(w.submitted) > 0:
			w.stage.publisherAnswers([]string{"acknowledges", "all"})
		default:
			w.pass(3 * time.Second)
			w.told([]string{"round"})
		}
		w.judge()
	}
}

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
	w.noteMoved(d.request, reply.Reply)
	if way == "lost" {
		w.mayLand(d.request)
	}
	w.ended = append(w.ended, reply)
	w.step(reply)
}

// noteMoved: a row that was moved out of a batch leaves a gap that is none.
func (w *whirl) noteMoved(r store.Request, reply store.Reply) {
	switch r := r.(type) {
	case store.Fetch:
		if r.After == 0 {
			w.movedNow = map[int64]bool{}
		}
	case store.Move:
		for _, m := range r.Rows {
			if reply.Class == store.Done {
				w.movedNow[m.Row.Sequence] = true
			}
		}
	}
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
		nil, nil, nil, {"yields"}, {"leaves"}, {"carried"}, {"read", "1s"}, {"read", "15s"},
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

// heal ends all faults and demands progress.
func (w *whirl) heal(t *rapid.T) {
	w.repair()
	for len(w.late) > 0 {
		w.land(0)
	}
	w.mend()
	w.unprocessed = nil
	w.leaseIs([]string{"paused", "until", "-1h"})
	drains := w.core.machine.In(fsm.Draining, fsm.Releasing)
	parting := rapid.SampledFrom([]string{"yields", "leaves"}).Draw(t, "parting")
	for range 60 {
		w.pass(5 * time.Second)
		w.retryAll()
		w.discardUnreadable()
		words := []string{"round"}
		if drains {
			words = append(words, parting)
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
		rows, markers := w.setAside()
		if w.stopped || !drains && len(w.remaining())+len(rows)+len(markers) == 0 {
			return
		}
	}
	rows, markers := w.setAside()
	t.Fatalf("no progress: the bucket is %s, %v are left, and aside %v under %v", w.core.machine.State(), w.remaining(), rows, markers)
}

// retryAll asks for a retry of all that is set aside, once.
func (w *whirl) retryAll() {
	page := w.carryOut(store.ReadMarkers{Bucket: w.core.cfg.Bucket}).Result.(store.MarkersPage)
	for _, m := range page.Markers {
		if m.RetryAt == 0 {
			w.carryOut(store.AskRetry{Bucket: w.core.cfg.Bucket, KeyID: m.KeyID, Topic: m.Topic, At: w.instant().Ticks()})
		}
	}
	if len(page.Markers) > 0 {
		w.carryOut(store.Ring{Bucket: w.core.cfg.Bucket, At: w.instant().Ticks()})
	}
}

// discardUnreadable discards rows that were set aside and cannot be read, before the
// owner hears of it.
func (w *whirl) discardUnreadable() {
	rows, _ := w.setAside()
	for _, keyID := range slices.Sorted(maps.Keys(rows)) {
		for _, sequence := range rows[keyID] {
			if slices.Contains(w.unreadable, sequence) {
				w.carryOut(store.DiscardParked{Bucket: w.core.cfg.Bucket, KeyID: keyID, Sequence: sequence})
			}
		}
	}
}
