package simulation

import (
	"container/heap"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// epoch is the wall clock at the beginning of virtual time, since the Unix
// epoch: 2026-01-01.
const epoch = 1767225600 * time.Second

// world is virtual time: what is due, what is ready, and the one source of
// randomness that chooses among it.
type world struct {
	rand source
	now  time.Duration
	due  dues
	seq  uint64
	// ready are the mailboxes with a message. Any of them may be next.
	ready  []*mailbox
	steps  uint64
	second time.Duration // the present one
	hurry  int           // steps within it
	// circles is told that a second has more steps than it can have.
	circles func(steps int)

	digest  digest
	observe func(Event) // nil: nobody
}

func newWorld(seed uint64, observe func(Event)) *world {
	return &world{
		rand:    source{rand.New(rand.NewPCG(seed, 0x62756b6574))},
		digest:  emptyDigest,
		observe: observe,
	}
}

// due is something that happens at an instant.
type due struct {
	at   time.Duration
	seq  uint64
	host *process // whose own doing it is: nil for the world's, which no crash stops
	// timer: it waits by the host's monotonic clock.
	timer bool
	do    func() // nil: cancelled
}

// dues is a heap by time, and in order of their making at the same time.
type dues []*due

func (d dues) Len() int { return len(d) }
func (d dues) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].seq < d[j].seq
}
func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)   { *d = append(*d, x.(*due)) }
func (d *dues) Pop() any {
	old := *d
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	return last
}

// At lets something happen after d, whoever crashes meanwhile.
func (w *world) At(d time.Duration, do func()) { w.schedule(nil, d, do) }

func (w *world) schedule(host *process, d time.Duration, do func()) *due {
	w.seq++
	e := &due{at: w.now + max(0, d), seq: w.seq, host: host, do: do}
	heap.Push(&w.due, e)
	return e
}

// timeFirst is how often time goes on although mailboxes have messages, one in
// so many steps: a process may be slow.
const timeFirst = 20

// mostSteps is how many steps one second of virtual time may have: a hundred times
// what a large fleet takes. More is an actor that goes round in circles.
const mostSteps = 2_000_000

// step runs one message of one mailbox, or what is due next. It is false when
// there is neither.
func (w *world) step() bool {
	if second := w.now / time.Second; second != w.second {
		w.second, w.hurry = second, 0
	}
	if w.hurry++; w.hurry == mostSteps {
		w.circles(mostSteps)
	}
	if n := len(w.ready); n > 0 && (len(w.due) == 0 || w.rand.IntN(timeFirst) > 0) {
		i := w.rand.IntN(n)
		m := w.ready[i]
		w.ready[i] = w.ready[n-1]
		w.ready[n-1] = nil
		w.ready = w.ready[:n-1]
		w.steps++
		m.run()
		return true
	}
	if len(w.due) == 0 {
		return false
	}
	e := heap.Pop(&w.due).(*due)
	w.now = max(w.now, e.at)
	switch {
	case e.do == nil || e.host != nil && e.host.dead:
	case e.host != nil && e.host.stalledUntil > w.now:
		// Happens when the process goes on; what comes first then is anybody's guess.
		e.at = e.host.stalledUntil + w.between(0, 5*time.Millisecond)
		heap.Push(&w.due, e)
	default:
		e.do()
	}
	return true
}

// runUntil lets time go on to an instant, or until done says so.
func (w *world) runUntil(end time.Duration, done func() bool) {
	w.At(end-w.now, func() {})
	for w.now < end && !done() && w.step() {
	}
}

// chance is true with a probability.
func (w *world) chance(p float64) bool { return w.rand.chance(p) }

// between is a random duration from a to b.
func (w *world) between(a, b time.Duration) time.Duration { return w.rand.between(a, b) }

// record adds one observable event to the digest, and tells who observes. Detail
// is nil, or a value that prints alike in every process: no pointers.
func (w *world) record(who, name string, detail any) {
	w.digest = w.digest.numbers(int64(w.now)).texts(who, name).detail(detail)
	if w.observe != nil {
		w.observe(Event{At: w.now, Who: who, Name: name, Detail: detail})
	}
}

// derived is a source of randomness of its own for a name.
func derived(seed uint64, name string) *rand.Rand {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, hash.Sum64()))
}
