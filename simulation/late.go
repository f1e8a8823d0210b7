package simulation

import (
	"slices"
	"time"

	"github.com/bucketbrigade/relay/store"
)

// lateness are the requests that land after their senders gave up: at any time,
// or, where it hurts most, just before the next request about the same item.
type lateness struct {
	lurking []*lurker
	apply   func(*lurker)
}

type lurker struct {
	process *process
	request store.Request
	from    time.Duration // when its sender gives up
}

// latest is how long after that it lands.
const latest = 20 * time.Second

func (t *lateness) add(w *world, l lurker, apply func(*lurker)) {
	t.lurking, t.apply = append(t.lurking, &l), apply
	w.At(w.between(l.from-w.now, l.from-w.now+latest), func() { t.release(&l) })
}

// release lets a request land, once.
func (t *lateness) release(l *lurker) {
	if i := slices.Index(t.lurking, l); i >= 0 {
		t.lurking = slices.Delete(t.lurking, i, i+1)
		t.apply(l)
	}
}

// land lets late requests about the same item land before a request that is about
// to be applied, half of the time.
func (t *lateness) land(w *world, p *process, r store.Request) {
	for _, l := range slices.Clone(t.lurking) {
		if l.from <= w.now && l.about(p, r) && w.chance(0.5) {
			t.release(l)
		}
	}
}

// about tells whether a request is about the same lease, rows, or relay record.
func (l *lurker) about(p *process, r store.Request) bool {
	if l.request.Lane() != r.Lane() || l.request.ConcernsBucket() != r.ConcernsBucket() {
		return false
	}
	return r.ConcernsBucket() >= 0 || l.process.relay == p.relay
}
