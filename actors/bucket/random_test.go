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
			"flow":      w.flow,
		})
		w.heal(t)
	})
}

// whirl is a stage to which anything may happen.
type whirl struct {
	*stage
	next      int64            // the next number of the sequence
	reserved  []int64          // numbers that were handed out and not committed
	faulty    []int64          // rows that cannot be read
	keys      map[int64]string // by number: the key's id
	discarded map[int64]bool
	ended     []actors.Replied
	orphaned  []publisher.Publish // of publishers that died

	steps    int
	readAt   map[int64]int // by row: the step of its last read
	probedAt map[int64]int // by number: the step in which it was last found missing
	judged   uint64        // the last batch that was judged
	// movedNow are the rows that were set aside since the last read of the head began.
	movedNow map[int64]bool
}

func newWhirl(t *rapid.T) *whirl {
	w := &whirl{
		stage: newStage(t), next: 1, readAt: map[int64]int{}, probedAt: map[int64]int{},
		keys: map[int64]string{}, discarded: map[int64]bool{}, movedNow: map[int64]bool{},
	}
	w.showsMarkers = true
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
	w.rowIs(sequence, "of", []string{rapid.SampledFrom(whirlKeys).Draw(t, "key")})
	w.keys[sequence] = w.keyOf(sequence)
}

var whirlKeys = []string{"k", "k", "k2", "nobody"}

// keyOf is the key id of a row in the table.
func (w *whirl) keyOf(sequence int64) string {
	reply := w.carryOut(store.Fetch{Bucket: w.core.cfg.Bucket, After: sequence - 1, Limit: 1})
	return outbox.ParkedKeyID(&reply.Result.(store.Fetched).Rows[0].Message)
}

func (w *whirl) operator(t *rapid.T) {
	key := rapid.SampledFrom([]string{"k", "k2"}).Draw(t, "of")
	rows, _ := w.setAside()
	switch rapid.IntRange(0, 9).Draw(t, "does") {
	case 0:
		w.stage.operator([]string{"parks", key})
	case 1:
		w.stage.operator([]string{"parks", "topic", "orders"})
	case 2:
		w.stage.operator([]string{"retries", "topic", "orders"})
	case 3:
		keyID := outbox.ParkedKeyID(&outbox.Message{Topic: "orders", Key: []byte(key)})
		if len(rows[keyID]) > 0 {
			sequence := rows[keyID][0]
			w.stage.operator([]string{"discards", key, fmt.Sprint(sequence)})
			w.discarded[sequence] = true
		}
	default:
		w.stage.operator([]string{"retries", key})
	}
	w.did = nil
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
		w.keys[sequence] = w.keyOf(sequence)
	}
	w.faulty = nil
}

func (w *whirl) requestEnds(t *rapid.T) {
	w.finish(t, rapid.SampledFrom([]string{"answered", "unanswered", "lost", "throttled"}).Draw(t, "way"))
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
		case store.RemoveParked:
			for _, sequence := range r.Sequences {
				if !w.acknowledged[sequence] {
					w.t.Fatalf("row %d, which was set aside, is removed and was never acknowledged", sequence)
				}
			}
		}
	}
	w.judgeTable()
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

// judgeTable: what was committed is in the table, once, unless it was acknowledged
// or discarded.
func (w *whirl) judgeTable() {
	present := map[int64]int{}
	for _, sequence := range w.remaining() {
		present[sequence]++
	}
	rows, _ := w.setAside()
	for _, keyID := range slices.Sorted(maps.Keys(rows)) {
		for _, sequence := range rows[keyID] {
			present[sequence]++
			if w.keys[sequence] != keyID {
				w.t.Fatalf("row %d of the key %s is set aside under %s", sequence, w.keys[sequence], keyID)
			}
		}
	}
	for sequence := range w.keys {
		switch {
		case present[sequence] > 1:
			w.t.Fatalf("row %d is in the table twice", sequence)
		case present[sequence] == 0 && !w.acknowledged[sequence] && !w.discarded[sequence]:
			w.t.Fatalf("row %d is lost", sequence)
		}
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
	if w.judgeAside(p) {
		return
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
			if !isRow && !w.movedNow[n] && w.probedAt[n] <= w.readAt[row.Sequence] {
				w.t.Fatalf("row %d is published behind %d, which was not probed after the row was read", row.Sequence, n)
			}
		}
	}
}

// judgeAside checks that rows pass none of their key that is set aside. It tells
// whether the rows were set aside themselves, so that no gap matters to them.
func (w *whirl) judgeAside(p publisher.Publish) bool {
	aside, _ := w.setAside()
	if w.core.batch.keyed {
		waiting := aside[w.core.batch.key.KeyID]
		for i, row := range p.Rows {
			if i >= len(waiting) || waiting[i] != row.Sequence && !w.discarded[row.Sequence] {
				w.t.Fatalf("of %v, set aside, %v are published", waiting, sequences(p.Rows))
			}
		}
		return true
	}
	for _, row := range p.Rows {
		if waiting := aside[outbox.ParkedKeyID(&row.Message)]; len(waiting) > 0 && row.Message.Topic == "orders" {
			w.t.Fatalf("row %d is published although %v of its key are set aside", row.Sequence, waiting)
		}
	}
	return false
}

// heal ends all faults and demands progress.
func (w *whirl) heal(t *rapid.T) {
	w.repair()
	w.unprocessed = nil
	w.leaseIs([]string{"paused", "until", "-1h"})
	drains := w.core.machine.In(fsm.Draining, fsm.Releasing)
	for range 60 {
		w.pass(5 * time.Second)
		w.retryAll()
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
		rows, markers := w.setAside()
		if w.stopped || !drains && len(w.remaining())+len(rows)+len(markers) == 0 {
			return
		}
	}
	rows, markers := w.setAside()
	t.Fatalf("no progress: the bucket is %s, %v are left, and aside %v under %v", w.core.machine.State(), w.remaining(), rows, markers)
}

// retryAll asks for a retry of all that is set aside.
func (w *whirl) retryAll() {
	_, markers := w.setAside()
	for _, marker := range markers {
		kind, name, _ := strings.Cut(marker, "#")
		r := store.AskRetry{Bucket: w.core.cfg.Bucket, KeyID: name, At: w.instant().Ticks()}
		if kind == "ALL" {
			r.KeyID, r.Topic = "", name
		}
		w.carryOut(r)
	}
	if len(markers) > 0 {
		w.carryOut(store.Ring{Bucket: w.core.cfg.Bucket, At: w.instant().Ticks()})
	}
}
