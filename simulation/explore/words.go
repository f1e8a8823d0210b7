package explore

import (
	"fmt"

	"github.com/bucketbrigade/relay/store"
)

// words is a choice in words, as it is about to happen in a world.
func (w *world) words(c choice) string {
	process := func() string { return w.processes[c.index].name }
	request := func() string { return w.request(w.wires[c.index]) }
	clocks := map[int]string{-1: "behind by half of the skew", 0: "right", 1: "ahead by half of the skew"}
	switch c.kind {
	case arrive:
		if w.wires[c.index].reply != nil {
			return "the answer arrives: " + request()
		}
		return request()
	case land:
		return "lands late: " + request()
	case hold:
		return "gets no answer, and may land later: " + request()
	case repeat:
		return "is applied, and repeated by the SDK: " + request()
	case throttle:
		return "is throttled: " + request()
	case slow:
		return "arrives a tick later: " + request()
	case slowAnswer:
		return "is applied, and answered a tick later: " + request()
	case start:
		return fmt.Sprintf("relay %s starts, its clock %s", relayID(c.index), clocks[c.operand])
	case stop:
		return process() + " is asked to stop"
	case crash:
		return process() + " dies"
	case stall:
		return fmt.Sprintf("%s stands still for %d ticks", process(), c.operand)
	case setClock:
		return fmt.Sprintf("%s's clock is set: %s", process(), clocks[c.operand])
	case fail:
		return process() + "'s bucket actor panics"
	case elapse:
		return fmt.Sprintf("tick %d", w.tick+1)
	}
	return w.wordsOfDelivery(c)
}

// request is a request in words, with times in ticks.
func (w *world) request(one wire) string {
	name := w.processes[one.process].name
	at := func(t store.Ticks) string {
		return fmt.Sprintf("%.3g", t.Sub(store.Instant{Wall: epoch}.Ticks()).Seconds())
	}
	switch r := one.request.(type) {
	case store.Heartbeat:
		return fmt.Sprintf("%s's heartbeat of %s", name, at(r.LastSeen))
	case store.Claim:
		return fmt.Sprintf("%s's claim %d of bucket %d until %s", name, r.Claim, r.Bucket, at(r.Expires))
	case store.Keep:
		return fmt.Sprintf("%s's keep of bucket %d until %s, seen %s", name, r.Bucket, at(r.Expires), at(r.Seen))
	case store.Release:
		return fmt.Sprintf("%s's release of bucket %d at %s, seen %s", name, r.Bucket, at(r.Now), at(r.Seen))
	case store.StampStopped:
		return fmt.Sprintf("%s's stamp at %s", name, at(r.At))
	case store.Prune:
		return fmt.Sprintf("%s's prune of %s", name, r.Relay)
	case store.Delete:
		return fmt.Sprintf("%s's delete of rows %v", name, r.Sequences)
	case store.Fetch:
		return fmt.Sprintf("%s's fetch after %d", name, r.After)
	case store.Probe:
		return fmt.Sprintf("%s's probe from %d to %d", name, r.From, r.To)
	}
	return name + "'s " + wordsOfAside(one.request)
}

// wordsOfAside is a request about what is set aside in words.
func wordsOfAside(request store.Request) string {
	switch r := request.(type) {
	case store.FetchParked:
		return fmt.Sprintf("fetch of what is set aside after %d", r.After)
	case store.Mark:
		text := fmt.Sprintf("mark in tenure %d of", r.Tenure.Claim)
		for _, m := range r.Markers {
			text += " " + nameOf(m)
		}
		return text
	case store.Move:
		text := fmt.Sprintf("move in tenure %d of rows", r.Tenure.Claim)
		for _, one := range r.Rows {
			text += fmt.Sprintf(" %d", one.Row.Sequence)
		}
		return text
	case store.RemoveParked:
		return fmt.Sprintf("removal in tenure %d of rows %v", r.Tenure.Claim, r.Sequences)
	case store.Unmark:
		return fmt.Sprintf("unmark in tenure %d of %s, wish %d", r.Tenure.Claim, nameOf(r.Marker), r.Marker.RetryAt)
	case store.EndRetry:
		return fmt.Sprintf("end of retry %d in tenure %d of %s", r.Marker.RetryAt, r.Tenure.Claim, nameOf(r.Marker))
	}
	return request.RequestName()
}
