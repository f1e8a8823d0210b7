package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/actors/coordinator"
)

// stopGracefully asks a process to stop, as SIGTERM does.
func (f *fleet) stopGracefully(p *process) {
	f.record(p.name, processStopping, nil)
	p.leaving = true
	p.system.Root.Send(p.coordinator, coordinator.Stop{})
}

// succeed starts a successor of a process that ends: under the same id, or under
// a new one, soon or after a while.
func (f *fleet) succeed(p *process, s source) {
	id := f.newID()
	if p.dead && s.chance(0.5) {
		id = p.relay
	}
	after := s.between(0, f.o.LeaseDuration)
	if s.chance(0.3) { // at once, as a supervisor does
		after = s.between(0, 100*time.Millisecond)
	}
	f.startLater(after, id)
}

func (f *fleet) replaceAll() {
	n := len(f.processes)
	for n > 0 && len(f.processes) > 0 {
		f.bury(f.processes[0])
	}
	for range n {
		f.boot(f.newID())
	}
}

// rollOver replaces one of these processes after another: either its successor starts
// first, under a new id, or it stops first, and the successor has its id.
func (f *fleet) rollOver(these []*process, s source) {
	surge, after := s.chance(0.5), time.Duration(0)
	for _, p := range slices.Clone(these) {
		if surge {
			f.startLater(after, f.newID())
		} else {
			f.startLater(after+s.between(time.Second, f.o.LeaseRenewInterval+time.Second), p.relay)
		}
		f.stopLater(after+s.between(0, time.Second), p)
		after += s.between(time.Second, 2*f.o.LeaseRenewInterval+time.Second)
	}
}

// changeMode has all that start from now on in the other mode, and replaces those that
// run: all of them, or, when the change ends half way, some. The fleet is mixed until
// the last is replaced.
func (f *fleet) changeMode(s source) {
	if f.mode == relay.ModeFenced {
		f.mode = relay.ModeOrdered
	} else {
		f.mode = relay.ModeFenced
	}
	these := len(f.processes)
	if s.chance(0.5) {
		these = s.IntN(these)
	}
	f.rollOver(f.processes[:these], s)
}

// crowd starts so many relays at once that some have no bucket, and stops most of
// them after a while.
func (f *fleet) crowd(s source) {
	for range f.o.Buckets {
		p := f.boot(f.newID())
		f.At(s.between(f.o.LeaseRenewInterval, 2*f.o.LeaseDuration), func() {
			if !f.healed {
				f.stopIfAlive(p)
			}
		})
	}
}

func (f *fleet) stopIfAlive(p *process) {
	if !p.dead && !p.ended && !p.leaving {
		f.stopGracefully(p)
	}
}

// startLater boots a process after a while, without which the run is not over.
func (f *fleet) startLater(after time.Duration, id string) {
	f.starting++
	f.At(after, func() {
		f.starting--
		f.boot(id)
	})
}

// stopLater stops a process after a while, without which the run is not over.
func (f *fleet) stopLater(after time.Duration, p *process) {
	f.stopping++
	f.At(after, func() {
		f.stopping--
		f.stopIfAlive(p)
	})
}

func (f *fleet) newID() string {
	f.named++
	return fmt.Sprintf("relay-%d", f.named)
}
