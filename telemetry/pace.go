package telemetry

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bucketbrigade/relay/event"
)

const (
	// firstPause is how long a fault is held back after its first line; the
	// pause doubles with each further line.
	firstPause = time.Minute
	// longestPause is where the doubling ends.
	longestPause = time.Hour
	// sweepPause keeps the faults of many buckets, each with a time of its own,
	// from being searched at every event.
	sweepPause = time.Second
	// maxTracked bounds the memory of one pacer, all relays together: about
	// 20 MB when a fleet of 10,000 buckets has every fault at once. A fault that
	// finds no room is held back.
	maxTracked = 65_536
)

// pacer decides which events are told. It keeps, for each relay, the faults
// that last or were told a short while ago; its clock is the Elapsed of the
// relay's own envelopes.
//
// It is safe for concurrent use.
type pacer struct {
	begins map[reflect.Type]beginning
	ends   map[reflect.Type][]ending

	// tracked is the number of faults in relays, read without the lock so that
	// a healthy relay's acknowledgements do not queue for it.
	tracked atomic.Int64

	mu     sync.Mutex
	relays map[string]*relayFaults
}

// relayFaults are the faults of one relay.
type relayFaults struct {
	faults map[faultKey]*faultState
	// due is when sweep looks at them next: not after any fault's wake, but for
	// sweepPause between two sweeps.
	due time.Duration
}

// faultKey identifies one fault of one relay.
type faultKey struct {
	fault   string // the stable name of the event that begins it
	subject subject
}

// faultState is one fault's history.
type faultState struct {
	last     event.Envelope // the report that is told again
	variant  int64          // which row, for faults of rows
	lasting  bool           // begun, can end, and has not ended
	tried    bool           // it is reported whenever what fails is tried
	silent   bool           // nothing was tried for a whole pause: it is not told until it is reported
	told     bool           // people know of it since it last began
	since    time.Duration  // when it last began
	next     time.Duration  // not told before
	pause    time.Duration  // between the last line and next
	repeated int            // reports since the last line
}

// wake is when the fault is to be looked at again although nothing happens to
// it: to be told again while it lasts, else to be forgotten after one more
// pause in which it was not reported.
func (f *faultState) wake() time.Duration {
	switch {
	case f.silent && f.lasting:
		return math.MaxInt64
	case f.lasting:
		return f.next
	}
	return f.next + f.pause
}

// tell notes that a line is written now and returns how many reports it stands
// for beside itself.
func (f *faultState) tell(now time.Duration) (repeated int) {
	if f.pause == 0 {
		f.pause = firstPause
	} else {
		f.pause = min(2*f.pause, longestPause)
	}
	f.next = now + f.pause
	f.told = true
	repeated, f.repeated = f.repeated, 0
	return repeated
}

// verdict is what is to be written because of one event: first the reminders,
// then the event itself.
type verdict struct {
	reminders []reminder
	on        verdictOn
}

// verdictOn is what the pacer adds to one line.
type verdictOn struct {
	heldBack bool
	ended    []string      // faults that end here, of which people were told
	lasted   time.Duration // of the longest of them, or of the fault so far
	repeated int           // reports that were held back since the line before
}

// reminder is one more line about a fault that goes on.
type reminder struct {
	key      faultKey
	envelope event.Envelope
	lasted   time.Duration
	repeated int
}

func newPacer(faults []fault) *pacer {
	p := &pacer{
		begins: map[reflect.Type]beginning{},
		ends:   map[reflect.Type][]ending{},
		relays: map[string]*relayFaults{},
	}
	for _, f := range faults {
		f.begins.lasts = len(f.ends) > 0
		p.begins[f.begins.kind] = f.begins
		for _, e := range f.ends {
			e.fault = f.begins.fault
			p.ends[e.kind] = append(p.ends[e.kind], e)
		}
	}
	return p
}

// observe takes one event into account and says what is to be written.
func (p *pacer) observe(e event.Envelope) verdict {
	kind := reflect.TypeOf(e.Event)
	begin, begins := p.begins[kind]
	if !begins && p.tracked.Load() == 0 {
		return verdict{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if isOver(e.Event) {
		p.forget(e.Relay)
		return verdict{}
	}
	var v verdict
	if begins && begin.applies(e.Event) {
		v.on = p.begin(begin, e)
	}
	if r := p.relays[e.Relay]; r != nil {
		if !begins {
			v.on = r.end(p.ends[kind], e)
		}
		v.reminders = p.sweep(r, e.Elapsed)
	}
	return v
}

// begin notes a report of a fault. A fault that was told a short while ago is
// held back until its pause is over, also when it had ended in between: one
// that comes and goes every second must not fill the log either. The sweep tells
// it then, if it still lasts.
func (p *pacer) begin(b beginning, e event.Envelope) verdictOn {
	key := faultKey{b.fault, b.subject(e.Event)}
	variant := b.variant(e.Event)
	r := p.relays[e.Relay]
	if r == nil {
		r = &relayFaults{faults: map[faultKey]*faultState{}, due: e.Elapsed + firstPause}
		p.relays[e.Relay] = r
	}
	f := r.faults[key]
	switch {
	case f == nil && p.tracked.Load() >= maxTracked:
		return verdictOn{heldBack: true}
	case f == nil:
		f = &faultState{variant: variant}
		r.faults[key] = f
		p.tracked.Add(1)
	case f.variant != variant, !f.lasting && e.Elapsed >= f.wake():
		// Another row's fault, or one that was over and is as good as forgotten.
		*f = faultState{variant: variant}
	}
	if !f.lasting {
		f.since, f.told, f.lasting = e.Elapsed, false, b.lasts
	}
	f.last, f.tried, f.silent = e, b.tried, false
	var on verdictOn
	if e.Elapsed < f.next {
		f.repeated++
		on.heldBack = true
	} else {
		on.repeated = f.tell(e.Elapsed)
		on.lasted = max(0, e.Elapsed-f.since)
	}
	r.due = min(r.due, f.wake())
	return on
}

// end closes the faults that the event ends.
func (r *relayFaults) end(ends []ending, e event.Envelope) verdictOn {
	var on verdictOn
	for _, end := range ends {
		f := r.faults[faultKey{end.fault, end.subject(e.Event)}]
		if f == nil || !f.lasting {
			continue
		}
		if variant := end.variant(e.Event); variant != 0 && variant != f.variant {
			continue
		}
		f.lasting = false
		if !f.told {
			continue
		}
		on.ended = append(on.ended, end.fault)
		on.lasted = max(on.lasted, e.Elapsed-f.since)
		on.repeated += f.repeated
		f.repeated = 0
	}
	return on
}

// sweep tells the lasting faults whose pause is over once more, and forgets
// those that neither last nor were reported for a while. It costs nothing
// before one is due.
func (p *pacer) sweep(r *relayFaults, now time.Duration) []reminder {
	if now < r.due {
		return nil
	}
	var out []reminder
	r.due = now + longestPause
	for key, f := range r.faults {
		if now >= f.wake() {
			if !f.lasting {
				delete(r.faults, key)
				p.tracked.Add(-1)
				continue
			}
			if f.silent = f.tried && f.repeated == 0; f.silent {
				continue
			}
			out = append(out, reminder{key, f.last, max(0, now-f.since), f.tell(now)})
		}
		r.due = min(r.due, f.wake())
	}
	r.due = max(r.due, now+sweepPause)
	slices.SortFunc(out, func(a, b reminder) int { return a.key.compare(b.key) })
	return out
}

// forget drops all that is known of a relay.
func (p *pacer) forget(relay string) {
	if r := p.relays[relay]; r != nil {
		p.tracked.Add(-int64(len(r.faults)))
		delete(p.relays, relay)
	}
}

func (k faultKey) compare(o faultKey) int {
	return cmp.Or(
		cmp.Compare(k.fault, o.fault),
		cmp.Compare(k.subject.bucket, o.subject.bucket),
		cmp.Compare(k.subject.name, o.subject.name),
	)
}
