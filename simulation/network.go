package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// lane is one lane's queue of a process: at most limit requests at once.
type lane struct {
	busy    int
	limit   int
	waiting []func()
	// slowUntil is the end of a while in which many answers come late.
	slowUntil time.Duration
}

// network is between the processes and the table. It decides what happens to
// each request.
type network struct {
	world  *world
	client *store.Client
	dice   *dice
	// timeouts are when a sender gives up, by lane.
	timeouts   [2]time.Duration
	late       int      // requests of a script that are still to land
	lateness   lateness // those that are still to land after their senders gave up
	dateless   bool     // answers do not say the time
	meter      *meter   // of the coordination partition
	overloaded int      // requests that it had no capacity for
	// latency of one way; 0: drawn anew for each.
	latency time.Duration
	// scripted takes a request on its way instead of the rates; false: it does not.
	// Nil: nothing is scripted.
	scripted func(p *process, r store.Request, done func(store.Reply)) bool
	// sent is told of each request as it really leaves its process; what it returns is
	// told the answer as that comes back.
	sent func(p *process, r store.Request) (answered func(store.Reply))
	// applied is told of each request at the instant at which it is applied, with
	// what came of it.
	applied func(p *process, r store.Request, apply func() store.Reply) store.Reply
}

// Latency of one way between a process and the table.
const (
	fastest = 500 * time.Microsecond
	slowest = 8 * time.Millisecond
)

// send takes one request on its way. The answer comes once, unless the process
// dies, with the instant at which the request left; zero: it did not.
func (n *network) send(p *process, r store.Request, answer func(reply store.Reply, sent actors.Instant)) {
	l := &p.lanes[r.Lane()]
	if l.busy >= l.limit {
		l.waiting = append(l.waiting, func() { n.send(p, r, answer) })
		return
	}
	l.busy++
	var left actors.Instant
	done := func(reply store.Reply) {
		l.busy--
		answer(reply, left)
		if len(l.waiting) > 0 {
			next := l.waiting[0]
			l.waiting = l.waiting[1:]
			next()
		}
	}
	if deadline := r.Deadline(); !deadline.IsZero() && p.Now().Until(deadline) <= 0 {
		n.reply(p, 0, store.NotSent(r), done)
		return
	}
	left = p.Now()
	answered := n.sent(p, r)
	n.route(p, r, func(reply store.Reply) {
		answered(reply)
		done(reply)
	})
}

// route decides what happens to the request, by the rates.
func (n *network) route(p *process, r store.Request, done func(store.Reply)) {
	if n.scripted != nil && n.scripted(p, r, done) {
		return
	}
	w := n.world
	out, back := n.way(), n.way()
	timeout := n.timeout(p, r)
	switch {
	case p.cutOffUntil > w.now, n.strikes(RequestLost, p, r):
		n.reply(p, timeout, unanswered(r), done)
	case n.strikes(Throttled, p, r):
		n.reply(p, out+back, throttled(r), done)
	case mayConflict(r) && n.strikes(Conflicted, p, r):
		n.reply(p, out+back, store.Reply{Class: store.Retriable, Err: fmt.Errorf("%s: %w", r.RequestName(), store.ErrConflict)}, done)
	case n.strikes(AppliedLate, p, r):
		n.lateness.add(w, lurker{p, r, w.now + timeout}, func(l *lurker) { n.apply(l.process, l.request) })
		n.reply(p, timeout, unanswered(r), done)
	case n.strikes(AnswerLost, p, r):
		w.At(out, func() { n.apply(p, r) })
		if n.dice.of(AnswerLost).chance(0.5) { // the SDK tries again
			w.At(out+back, func() { n.reply(p, back, n.apply(p, r), done) })
			return
		}
		n.reply(p, timeout, unanswered(r), done)
	case n.slow(p, r):
		if s := n.dice.of(AnswerLate); s.chance(0.5) { // slow on its way to the table
			out = s.between(out, max(out, timeout-back))
			timeout = back
		}
		back = n.dice.of(AnswerLate).between(back, timeout)
		w.At(out, func() { n.reply(p, back, n.apply(p, r), done) })
	case isDiscover(r) && n.strikes(StaleRead, p, r):
		n.reply(p, n.dice.of(StaleRead).between(back, 2*time.Second), n.apply(p, r), done)
	case isFetch(r) && n.strikes(SplitCommit, p, r):
		w.At(out, func() { n.fetchInParts(p, r, back, done) })
	case isPaged(r) && n.strikes(PageCut, p, r):
		w.At(out, func() { n.reply(p, back, n.cut(n.apply(p, r)), done) })
	default:
		n.attempt(p, r, 1, timeout, out, back, done)
	}
}

// attempt lets the table have a request unless it has no capacity for it, and the
// SDK repeat it then, for as long as its sender waits.
func (n *network) attempt(p *process, r store.Request, number int, timeout, out, back time.Duration, done func(store.Reply)) {
	w := n.world
	w.At(out, func() {
		if n.meter.admits(r, w.now) {
			n.reply(p, back, n.apply(p, r), done)
			return
		}
		n.overloaded++
		wait := w.between(0, retryPause<<(number-1))
		if number == attempts || wait > timeout {
			n.reply(p, back, throttled(r), done)
			return
		}
		n.attempt(p, r, number+1, timeout-wait, back+wait+out, back, done)
	})
}

// way is the time of one way, now.
func (n *network) way() time.Duration {
	if n.latency > 0 {
		return n.latency
	}
	return n.world.between(fastest, slowest)
}

// strikes tells whether a fault of a kind happens to the request.
func (n *network) strikes(kind Fault, p *process, r store.Request) bool {
	return n.dice.strikes(kind, p.name, r.RequestName())
}

// slow tells whether the answer comes late. At times it is not one that does: for
// a while most of the answers on a process's lane do.
func (n *network) slow(p *process, r store.Request) bool {
	l, now := &p.lanes[r.Lane()], n.world.now
	late, anew := n.dice.rates[AnswerLate], now >= l.slowUntil
	if !anew {
		late = 0.7
	}
	if !n.dice.rollAt(AnswerLate, late) {
		return false
	}
	n.dice.note(AnswerLate, p.name, r.RequestName())
	if s := n.dice.of(AnswerLate); anew && s.chance(0.3) {
		l.slowUntil = now + s.between(n.timeouts[r.Lane()], 10*n.timeouts[r.Lane()])
	}
	return true
}

func isDiscover(r store.Request) bool {
	_, discover := r.(store.Discover)
	return discover
}

func isPaged(r store.Request) bool {
	switch r.(type) {
	case store.ReadCoordination, store.ReadMarkers, store.FetchParked:
		return true
	}
	return isFetch(r)
}

// mayConflict tells whether a request may meet a transaction.
func mayConflict(r store.Request) bool {
	switch r.(type) {
	case store.Keep, store.Claim, store.Mark, store.Move, store.RemoveParked, store.Unmark, store.EndRetry:
		return true
	}
	return false
}

// cut ends a page anywhere behind its first item.
func (n *network) cut(reply store.Reply) store.Reply {
	switch page := reply.Result.(type) {
	case store.Fetched:
		if len(page.Rows) > 1 {
			page.Rows = page.Rows[:1+n.dice.of(PageCut).IntN(len(page.Rows)-1)]
			page.More, page.Malformed = true, nil
		}
		reply.Result = page
	case store.MarkersPage:
		if len(page.Markers) > 1 {
			page.Markers = page.Markers[:1+n.dice.of(PageCut).IntN(len(page.Markers)-1)]
			last := page.Markers[len(page.Markers)-1]
			page.Next = outbox.ParkedKeySortKey(last.KeyID)
			if last.KeyID == "" {
				page.Next = outbox.ParkedTopicSortKey(last.Topic)
			}
		}
		reply.Result = page
	case store.CoordinationPage:
		// Leases sort before relays.
		if len(page.Leases) > 1 {
			page.Leases = page.Leases[:1+n.dice.of(PageCut).IntN(len(page.Leases)-1)]
			page.Relays = nil
			page.Next = outbox.LeaseSortKey(page.Leases[len(page.Leases)-1].Bucket)
		}
		reply.Result = page
	}
	return reply
}

func isFetch(r store.Request) bool {
	_, fetch := r.(store.Fetch)
	return fetch
}

// fetchInParts reads the bucket twice, a little apart, and answers with the head
// of the first reading and the rest of the second: a query is not isolated from
// a transaction that commits while it runs.
func (n *network) fetchInParts(p *process, r store.Request, back time.Duration, done func(store.Reply)) {
	s := n.dice.of(SplitCommit)
	first := n.apply(p, r)
	n.world.At(s.between(0, 30*time.Millisecond), func() {
		second := n.apply(p, r)
		a, read := first.Result.(store.Fetched)
		b, again := second.Result.(store.Fetched)
		if read && again && len(b.Rows) > 0 {
			border := b.Rows[s.IntN(len(b.Rows))].Sequence
			rows := slices.DeleteFunc(slices.Clone(a.Rows), func(row outbox.Row) bool { return row.Sequence >= border })
			for _, row := range b.Rows {
				if row.Sequence >= border {
					rows = append(rows, row)
				}
			}
			b.Rows = rows
			second.Result = b
		}
		n.reply(p, back, second, done)
	})
}

// timeout is when the sender gives up.
func (n *network) timeout(p *process, r store.Request) time.Duration {
	timeout := n.timeouts[r.Lane()]
	if deadline := r.Deadline(); !deadline.IsZero() {
		timeout = min(timeout, max(slowest, p.Now().Until(deadline)))
	}
	return timeout
}

// apply lets the table have the request, now.
func (n *network) apply(p *process, r store.Request) store.Reply {
	n.lateness.land(n.world, p, r)
	reply := n.applied(p, r, func() store.Reply { return n.client.Do(context.Background(), r) })
	n.meter.takes(r, reply.Capacity)
	if !n.dateless {
		reply.Date = date(n.world.now)
	}
	n.world.record(p.name, requestApplied, applied{r.RequestName(), reply.Class, r})
	return reply
}

// date is what the service's answers say of the time, in whole seconds.
func date(now time.Duration) store.Ticks {
	return store.Instant{Wall: (epoch + now).Truncate(time.Second)}.Ticks()
}

// reply brings an answer to a process that lives.
func (n *network) reply(p *process, after time.Duration, reply store.Reply, done func(store.Reply)) {
	n.world.schedule(p, after, func() { done(reply) })
}

func throttled(r store.Request) store.Reply {
	return store.Reply{Class: store.Retriable, Err: fmt.Errorf("%s: %w", r.RequestName(), store.ErrThrottled)}
}

// unanswered is what the sender of a request concludes when no answer came: a
// read can be repeated, a write may have been applied.
func unanswered(r store.Request) store.Reply {
	reply := store.Reply{Class: store.Ambiguous, Err: fmt.Errorf("%s: %w", r.RequestName(), store.ErrUnavailable)}
	switch r.(type) {
	case store.ReadCoordination, store.Discover, store.Fetch, store.Probe, store.ReadMarkers, store.FetchParked:
		reply.Class = store.Retriable
	}
	return reply
}
