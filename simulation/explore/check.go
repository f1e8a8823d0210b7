package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/store"
)

// Violation is a broken promise and the way to it.
type Violation struct {
	Invariant string // its number in docs/invariants.md
	Detail    string
	Trace     []string // what happened, in order
	// Scenario is the same for simulation/testdata; empty where its language cannot say
	// it.
	Scenario string
}

func (v *Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Invariant, v.Detail)
	for i, line := range v.Trace {
		fmt.Fprintf(&b, "\n%4d  %s", i+1, line)
	}
	return b.String()
}

// breaks notes a broken promise; the first counts.
func (w *world) breaks(invariant, format string, args ...any) {
	if w.broken == nil {
		w.broken = &Violation{Invariant: invariant, Detail: fmt.Sprintf(format, args...)}
	}
}

// observe hears what a relay says.
func (x *search) observe(p *process, e event.Event) {
	w := x.world
	switch e := e.(type) {
	case event.BucketKept:
		p.beliefs[e.Bucket] = actors.Instant{Wall: e.Wall, Mono: e.Mono}
	case event.BucketWithheld:
		p.beliefs[e.Bucket] = actors.Instant{}
	case event.StateChanged:
		if to := fsm.State(e.To); e.Machine == "bucket" && (to == fsm.Releasing || to == fsm.Released || to == fsm.Lost) {
			p.beliefs[e.Bucket] = actors.Instant{}
		}
	case event.BucketLost:
		lease := w.table.leases[e.Bucket]
		if n := w.named[e.Bucket]; lease.Owner == p.relay && n.incarnation == p.incarnation() && w.tick-n.since >= 2*x.o.Interval {
			w.breaks("I-24", "%s gives up bucket %d, whose lease names it since tick %d", p.name, e.Bucket, n.since)
		}
	case event.ActorFailed:
		if e.Reason == chosen {
			break
		}
		w.breaks("I-9", "%s: %s failed: %s", p.name, e.Actor, e.Reason)
	case event.RelayWithdrawn:
		w.breaks("I-24", "%s withdraws although its clock is right", p.name)
	}
}

// incarnation is that of the process, as its coordinator made it.
func (p *process) incarnation() string {
	return fmt.Sprintf("%019d-%08x", p.bornAt, p.number+1)
}

// written checks what a write has done to the table.
func (w *world) written(p *process, r store.Request, before *table) {
	for b := range w.named {
		was, is := before.leases[b], w.table.leases[b]
		incarnation := is.Incarnation
		if is.Owner == "" {
			incarnation = ""
		}
		if w.named[b].incarnation != incarnation {
			w.named[b] = naming{incarnation, w.tick}
		}
		if is == was {
			continue
		}
		switch r.(type) {
		case store.Keep:
			if is.Expires < was.Expires {
				w.breaks("I-7", "%s's keep moves the expiry of bucket %d backwards", p.name, b)
			}
		case store.Release:
			if was.Owner != "" && was.Incarnation != p.incarnation() {
				w.breaks("I-20", "%s's release frees bucket %d, which another process has", p.name, b)
			}
		}
	}
	switch r := r.(type) {
	case store.Heartbeat, store.StampStopped, store.Prune:
		w.recordWritten(p, r, before)
	case store.Delete:
		w.deleting(p, r)
	default:
		w.changedAside(p, r, before)
	}
}

// recordWritten checks what a write has done to relay records: nobody's record goes
// back in time or away while it lives, a stopped process stays stopped, and nobody
// hides its successor.
func (w *world) recordWritten(p *process, r store.Request, before *table) {
	relay := p.relay
	if prune, prunes := r.(store.Prune); prunes {
		relay = prune.Relay
	}
	was, is := before.record(relay), w.table.record(relay)
	if was == is || was.ID == "" {
		return
	}
	switch r.(type) {
	case store.Heartbeat:
		if is.LastSeen < was.LastSeen {
			w.breaks("I-20", "%s's heartbeat moves its record backwards", p.name)
		}
		if was.Stopped != 0 && was.Incarnation == is.Incarnation {
			w.breaks("I-20", "%s's late heartbeat revives its stopped record", p.name)
		}
	case store.StampStopped:
		if was.Incarnation != "" && was.Incarnation != p.incarnation() {
			w.breaks("I-20", "%s's stamp hides another process under its id", p.name)
		}
	case store.Prune:
		lives := func(other *process) bool {
			return other.relay == relay && !other.gone() && other.incarnation() == was.Incarnation
		}
		if slices.ContainsFunc(w.processes, lives) && was.Stopped == 0 {
			w.breaks("I-20", "%s prunes the record of relay %s, which lives", p.name, relay)
		}
	}
}

// check looks for two relays that hold one lease valid by their own reckoning, and at
// the rows.
func (w *world) check() {
	for b := range w.search.o.Buckets {
		var holder *process
		for _, p := range w.processes {
			if !p.holds(w, b) {
				continue
			}
			if holder != nil && holder.relay != p.relay { // two processes of one id overlap for a round
				w.breaks("I-5", "%s and %s both hold the lease of bucket %d valid", holder.name, p.name, b)
			}
			holder = p
		}
	}
	w.checkAside()
}

// holds tells whether a process holds a lease valid: neither of its clocks has passed
// the end.
func (p *process) holds(w *world, b int) bool {
	return !p.gone() && !p.beliefs[b].IsZero() && !p.beliefs[b].PassedAt(p.now(w))
}

// settled demands what is true of a fleet in which nothing has gone wrong for long:
// each bucket has a living owner that works on it, the split is fair, no write is
// refused, and who was asked to stop has ended. It is false when nobody is left to work.
func (w *world) settled() (alive bool) {
	var relays []*process
	for _, p := range w.processes {
		switch {
		case p.gone():
		case p.leaving:
			w.breaks("I-10", "%s was asked to stop, and has not ended", p.name)
		default:
			relays = append(relays, p)
		}
	}
	if len(relays) == 0 {
		return false
	}
	if w.refused > 0 {
		w.breaks("I-12", "%d writes of a settled fleet were refused", w.refused)
	}
	owned := make([]int, len(relays))
	for b, lease := range w.table.leases {
		i := slices.IndexFunc(relays, func(p *process) bool { return p.relay == lease.Owner && p.holds(w, b) })
		if i < 0 {
			w.breaks("I-10", "nobody works on bucket %d, which names %q", b, lease.Owner)
			return true
		}
		owned[i]++
	}
	if slices.Max(owned)-slices.Min(owned) > 1 {
		w.breaks("I-10", "the split is %v", owned)
	}
	w.settledAside()
	w.settledDelivery()
	return true
}

// tell puts the way to a violation into words.
func (x *search) tell(v *Violation) {
	w := x.beginning()
	for _, c := range x.path {
		v.Trace = append(v.Trace, w.words(c))
		w = w.after(c)
	}
	if w.broken == nil {
		v.Trace = append(v.Trace, fmt.Sprintf("nothing goes wrong any more from tick %d on", w.tick))
	}
	v.Scenario = x.scenario(v)
}
