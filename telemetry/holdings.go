package telemetry

import (
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
)

// holdings are the buckets that relays hold, each with its state, by relay.
type holdings map[string]map[int]fsm.State

// heldStates are the states of a bucket whose lease is held, in the order of a
// tenure. A bucket that is being claimed is nobody's yet.
func heldStates() []fsm.State {
	return []fsm.State{fsm.Owned, fsm.Withheld, fsm.Blocked, fsm.Paused, fsm.Draining, fsm.Releasing}
}

// note takes what an event changes. Whether the lease of a bucket whose actor has
// failed is still held is not known until a fresh one has looked.
func (h holdings) note(e event.Envelope) {
	switch v := e.Event.(type) {
	case event.StateChanged:
		h.changed(e.Relay, v)
	case event.RelayStopped, event.RelayReplaced, event.RelayRenamed:
		delete(h, e.Relay)
	case event.ActorFailed:
		if v.Actor == "coordinator" {
			delete(h, e.Relay)
		}
		delete(h[e.Relay], v.Bucket)
	}
}

func (h holdings) changed(relay string, v event.StateChanged) {
	if v.Machine != "bucket" {
		return
	}
	switch state := fsm.State(v.To); state {
	case fsm.Released, fsm.Lost:
		delete(h[relay], v.Bucket)
	default:
		if h[relay] == nil {
			h[relay] = map[int]fsm.State{}
		}
		h[relay][v.Bucket] = state
	}
}

// byState counts the buckets of all relays.
func (h holdings) byState() map[fsm.State]int64 {
	count := map[fsm.State]int64{}
	for _, buckets := range h {
		for _, state := range buckets {
			count[state]++
		}
	}
	return count
}
