package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bucketbrigade/relay/actors/coordinator"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// sent checks a request at the instant at which it really leaves its process.
// What it returns takes the answer when that has come.
func (c *checker) sent(p *process, r store.Request) (answered func(store.Reply)) {
	if p.ended {
		c.about(p.name, r.ConcernsBucket()).violated("I-33", "%s sends a %s although its relay has ended", p.name, r.RequestName())
	}
	if !c.fleet.net.dateless {
		c.withClock(p, r)
	}
	w := c.witness(p)
	if r.Lane() == store.Coordination && r.ConcernsBucket() >= 0 {
		return w.writesLease(c, p, r)
	}
	switch r := r.(type) {
	case store.Heartbeat:
		return w.beats(c, p, r)
	case store.ReadCoordination:
		at := c.fleet.now
		return func(reply store.Reply) { w.shown(r, reply, at) }
	case store.StampStopped:
		w.stop.stamped = true
		if r.At <= w.lastSeen {
			c.about(p.name, -1).violated("I-30", "%s stamps its record with a time that is not behind its own last heartbeat, which may land late", p.name)
		}
	case store.Prune:
		if age := r.Stopped.Sub(r.Dead); age != 9*c.fleet.o.LeaseDuration {
			c.about(p.name, -1).violated("I-20", "%s prunes stopped records %v after it prunes silent ones", p.name, age)
		}
	case store.Fetch, store.Probe, store.Delete, store.ReadMarkers, store.FetchParked,
		store.Mark, store.Move, store.RemoveParked, store.Unmark, store.EndRetry:
		return w.drains(c, p, r)
	}
	return func(store.Reply) {}
}

// drains checks a request that drains a bucket: a batch has one at a time, or
// some probes. It takes the answer unless that comes to a later tenure or batch.
func (w *witness) drains(c *checker, p *process, r store.Request) (answered func(store.Reply)) {
	d := &w.buckets[r.ConcernsBucket()].drain
	tenure, sent := d.tenure, d.tick()
	w.asks(c, p, r)
	switch r := r.(type) {
	case store.Fetch:
		if r.After == 0 {
			d.began, d.head, d.chunk, d.open = c.fleet.now, sent, nil, 0
		}
	case store.FetchParked:
		if r.After == 0 {
			d.head, d.chunk, d.open = sent, nil, 0
		}
	case store.ReadMarkers:
		if r.After == "" {
			d.head, d.chunk, d.open = sent, nil, 0
		}
	default:
		w.transacts(c, p, r, sent)
	}
	if _, probes := r.(store.Probe); !probes && d.open > 0 || d.open >= probesAtOnce {
		c.about(p.name, r.ConcernsBucket()).violated("I-19", "%s sends a %s of bucket %d while it awaits the answers of %d requests", p.name, r.RequestName(), r.ConcernsBucket(), d.open)
	}
	d.open++
	if r, deletes := r.(store.Delete); deletes {
		if !c.holds(p, r.Bucket) {
			c.about(p.name, r.Bucket).violated("I-6", "%s deletes from bucket %d without a valid lease", p.name, r.Bucket)
		}
		w.deletes(c, p, r)
		d.deleting(r)
	}
	head := d.head
	return func(reply store.Reply) {
		if d.tenure != tenure || d.head != head { // nobody waits for it any more
			return
		}
		d.open--
		d.aside.answered(r, reply, d.token)
		switch answer := reply.Result.(type) {
		case store.Fetched:
			if fetch, fetches := r.(store.Fetch); fetches {
				d.pageFetched(fetch, answer)
				c.readFirst(p, r.ConcernsBucket(), answer.Rows, d.began)
			}
		case store.Probed:
			d.gapProbed(r.(store.Probe), answer, sent)
		case store.Deleted:
			if len(answer.Unprocessed) == 0 {
				d.removed()
			}
		case store.MoveResult:
			if move, moves := r.(store.Move); moves && reply.Class == store.Done {
				for _, m := range move.Rows {
					d.setsAside(m.Row.Sequence)
				}
			}
		}
	}
}

// transacts checks a transaction on its way. One that is repeated is the first of
// its batch.
func (w *witness) transacts(c *checker, p *process, r store.Request, sent uint64) {
	b := r.ConcernsBucket()
	d := &w.buckets[b].drain
	t, is := c.asideWriteOf(r)
	if !is {
		return
	}
	if !c.holds(p, b) {
		c.about(p.name, b).violated("I-6", "%s sends a %s of bucket %d without a valid lease", p.name, r.RequestName(), b)
	}
	if d.token == t.token {
		d.head, d.chunk, d.open = sent, nil, 0
		return
	}
	d.token = t.token
	switch r := r.(type) {
	case store.Move:
		w.moves(c, p, r)
	case store.RemoveParked:
		c.removesParked(p, r)
	}
}

// beats: no heartbeat before the relay could work.
func (w *witness) beats(c *checker, p *process, r store.Heartbeat) func(store.Reply) {
	if !w.tableRead || !w.reached {
		c.about(p.name, -1).violated("I-13", "%s sends a heartbeat before it has read the table and reached a broker", p.name)
	}
	w.incarnation, w.lastBeat, w.beaten = r.Incarnation, c.fleet.now, false
	w.lastSeen, w.roundNow = max(w.lastSeen, r.LastSeen), r.LastSeen
	w.view = sighting{}
	return func(reply store.Reply) { w.beaten = reply.Class == store.Done }
}

// shown takes a page of the coordination partition.
func (w *witness) shown(r store.ReadCoordination, reply store.Reply, sent time.Duration) {
	page, ok := reply.Result.(store.CoordinationPage)
	if !ok {
		return
	}
	if r.After == "" {
		w.view = sighting{at: sent}
	}
	w.view.leases = append(w.view.leases, page.Leases...)
	w.view.relays = append(w.view.relays, page.Relays...)
	w.view.whole = page.Next == ""
	if w.view.whole {
		w.tableRead = true
		w.stop.reads, w.stop.freed = w.stop.reads+1, false
		w.bells()
	}
}

// claims: a claim is sent only after an accepted heartbeat, and only for a lease
// that the round was shown as free.
func (w *witness) claims(c *checker, p *process, r store.Claim) {
	about := c.about(p.name, r.Bucket)
	if w.known(r.Claim) {
		about.violated("I-20", "%s claims bucket %d under a number that it has used", p.name, r.Bucket)
	}
	if !w.beaten {
		about.violated("I-22", "%s claims bucket %d although its heartbeat was not accepted", p.name, r.Bucket)
	}
	free := w.view.whole
	for _, lease := range w.view.leases {
		if lease.Bucket == r.Bucket {
			free = free && (lease.Owner == "" || lease.Expires == 0 || lease.Expires <= r.Now)
		}
	}
	if !free {
		about.violated("I-22", "%s claims bucket %d, which it was not shown as free", p.name, r.Bucket)
	}
	if r.Expires != r.Now.Add(c.fleet.o.LeaseDuration) {
		about.violated("I-20", "%s claims bucket %d for %v", p.name, r.Bucket, r.Expires.Sub(r.Now))
	}
	w.buckets[r.Bucket].plan = w.planned(p, c.fleet.o.LeaseDuration, r.Now)
}

// planYields are the buckets that a plan made of what the round was shown hands
// back.
func (w *witness) planYields(c *checker, p *process) []int {
	var active []string
	for _, r := range w.view.relays {
		if r.Stopped == 0 && r.LastSeen > w.roundNow.Add(-c.fleet.o.LeaseDuration) {
			active = append(active, r.ID)
		}
	}
	leases := make([]coordinator.LeaseState, c.fleet.o.Buckets)
	for _, l := range w.view.leases {
		if l.Expires != 0 && l.Bucket < len(leases) {
			leases[l.Bucket] = coordinator.LeaseState{Owner: l.Owner, Expired: l.Expires <= w.roundNow}
		}
	}
	return coordinator.MakePlan(active, p.relay, leases).Release
}

func (w *witness) known(number int64) bool {
	_, known := w.numbers[number]
	return known
}

// planned is what a plan is made of, as text: the relays that count, and the
// state of each lease, as they were shown.
func (w *witness) planned(p *process, lease time.Duration, now store.Ticks) string {
	ids := []string{p.relay}
	for _, r := range w.view.relays {
		if r.Stopped == 0 && r.LastSeen > now.Add(-lease) {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	var text strings.Builder
	fmt.Fprintln(&text, slices.Compact(ids))
	for _, l := range w.view.leases {
		if l.Owner != "" && l.Expires != 0 {
			fmt.Fprintln(&text, l.Bucket, l.Owner, l.Expires <= now)
		}
	}
	return text.String()
}

// writesLease checks a claim, keep or release on its way. A bucket has one at a
// time, but for a relay that stops: what it has handed back and cannot see to be
// free it hands back again.
func (w *witness) writesLease(c *checker, p *process, r store.Request) (answered func(store.Reply)) {
	b := &w.buckets[r.ConcernsBucket()]
	about := c.about(p.name, r.ConcernsBucket())
	if b.writes > 0 && !w.stop.freed {
		about.violated("I-15", "%s sends a %s of bucket %d while another write of its lease is under way", p.name, r.RequestName(), r.ConcernsBucket())
	}
	var expires store.Ticks
	switch r := r.(type) {
	case store.Claim:
		w.claims(c, p, r)
		expires, b.clean = r.Expires, w.cleanly(r.Bucket)
		w.begins(p, r.Bucket, r.Claim)
	case store.Keep:
		if r.Claim == b.tenure && r.Seen < b.granted {
			about.violated("I-24", "%s keeps bucket %d under an expiry that is older than its own last write", p.name, r.Bucket)
		}
		if w.numbers[r.Claim] != r.Bucket && w.known(r.Claim) {
			about.violated("I-20", "%s keeps bucket %d under the number of another tenure", p.name, r.Bucket)
		}
		if w.isAway(c, p) && b.drain.aside.unanswered == "" {
			about.violated("I-46", "%s keeps bucket %d although it withdrew %v ago", p.name, r.Bucket, c.fleet.now-w.withdrew)
		}
		expires, b.clean = r.Expires, b.clean && r.Claim == b.tenure
		w.begins(p, r.Bucket, r.Claim)
	case store.Release:
		w.releases(c, p, r)
	}
	b.writes++
	return func(reply store.Reply) {
		b.writes, b.wrote = b.writes-1, c.fleet.now
		if expires != 0 && reply.Class == store.Done {
			b.granted = expires
		}
	}
}

// isAway tells whether a relay has withdrawn, and has had its time for handing its
// buckets back; a round's time is what its last writes may take.
func (w *witness) isAway(c *checker, p *process) bool {
	since := max(w.withdrew, p.stalledUntil)
	return w.withdrew > 0 && c.fleet.now-since > shutdownTimeout+c.fleet.o.LeaseRenewInterval
}

// begins notes a claim or keep on its way, and the tenure that it is of.
func (w *witness) begins(p *process, bucket int, number int64) {
	b := &w.buckets[bucket]
	w.numbers[number] = bucket
	b.tenure, b.sentMono = number, p.Now().Mono
}

// releases: nothing of the tenure is in flight, the lease is not that of another
// process under the same id, and a relay that stops has stamped its record before.
// What an earlier tenure lost, while it was outstanding, may still trail in: nobody
// can call it back, and the tenures of others have known of it no more than this one.
func (w *witness) releases(c *checker, p *process, r store.Release) {
	about := c.about(p.name, r.Bucket)
	n := 0
	for t := range w.outstanding { // the order does not matter
		if t.Bucket == r.Bucket && int64(t.Batch>>32) == w.buckets[r.Bucket].tenure {
			n++
		}
	}
	if n > 0 {
		about.violated("I-6", "%s releases bucket %d with %d of its records outstanding", p.name, r.Bucket, n)
	}
	lease := c.item(outbox.LeaseSortKey(r.Bucket))
	frees := lease[outbox.AttrOwner] == text(r.Relay) && lease[outbox.AttrExpiresAtUtc] == number(r.Seen)
	if frees && lease[outbox.AttrIncarnation] != text(w.incarnation) {
		about.violated("I-34", "%s releases bucket %d, whose lease names another process under its id", p.name, r.Bucket)
	}
	if w.stop.under && !w.stop.stamped && !w.buckets[r.Bucket].draining {
		about.violated("I-30", "%s stops and hands bucket %d back before it has stamped its record", p.name, r.Bucket)
	}
	w.stop.freed = true
}

// stopped: a graceful stop that had the time ends with a read that shows no lease
// of the relay, or with the third read.
func (w *witness) stopped(c *checker, p *process) {
	inTime := c.fleet.now-w.stop.began < shutdownTimeout*3/4 && p.stalledUntil < w.stop.began
	if w.stop.under && p.endedWith == nil && inTime && w.stop.freed && w.stop.reads < 3 {
		c.about(p.name, -1).violated("I-30", "%s has handed leases back and ends without another look", p.name)
	}
}
