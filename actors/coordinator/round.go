package coordinator

import (
	"errors"
	"fmt"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

const (
	pruneEvery    = 10 // rounds
	deadDurations = 10 // lease durations after which a silent relay's record goes
	firstStartTry = time.Second
	everyRound    = 1
)

// round is one coordination round: heartbeat, read, plan (protocol.md section 3).
type round struct {
	token  uint64 // of the request under way; 0: none
	now    actors.Instant
	readAt actors.Instant
	// mayClaim: our heartbeat was accepted in this round.
	mayClaim bool
	silent   bool // it has no heartbeat, since our clock is ahead, or may be
	clock    clockSaid
	view     view
}

// view is what a read of the coordination partition has shown.
type view struct {
	leases []*store.Lease // by bucket; nil: no item
	relays []store.RelayRecord
}

func (c *core) newView() view { return view{leases: make([]*store.Lease, c.cfg.BucketCount)} }

// add takes one page. Leases at or beyond the bucket count are ignored.
func (v *view) add(page store.CoordinationPage) {
	for i := range page.Leases {
		if b := page.Leases[i].Bucket; b < len(v.leases) {
			v.leases[b] = &page.Leases[i]
		}
	}
	v.relays = append(v.relays, page.Relays...)
}

// beginRound starts a round with the heartbeat. The read alone comes while the
// relay is starting, since it takes no share before it can work (case M-12), while
// it has withdrawn, and when its clock is not to be trusted.
func (c *core) beginRound() {
	c.round, c.paced = round{now: c.now, view: c.newView()}, nil
	c.timers[roundTimer]++ // a broker that was reached has begun it before its time
	c.round.silent = c.away() || c.state == starting && !(c.tableRead && c.connected) || c.guard.doubtful(c.now)
	if c.round.silent {
		c.read("")
		return
	}
	if c.state == starting {
		c.state = standby
	}
	beat := c.now.Ticks()
	c.beats++
	c.lastBeat = max(c.lastBeat, beat) // our clock may have been set back since the one before
	c.round.token = c.do(store.Heartbeat{
		Relay:       c.id.relay,
		Incarnation: c.id.incarnation,
		Mode:        c.cfg.Mode,
		LastSeen:    beat,
		NotAfter:    c.now.Add(c.cfg.LeaseRenewInterval),
	})
}

// read asks for a page of the coordination partition.
func (c *core) read(after string) {
	if after == "" {
		c.round.readAt = c.now
	}
	c.round.token = c.do(store.ReadCoordination{After: after})
}

func (c *core) roundReplied(m actors.Replied) {
	switch m.Request.(type) {
	case store.Heartbeat:
		c.beaten(m.Reply)
	case store.ReadCoordination:
		page, ok := m.Reply.Result.(store.CoordinationPage)
		if !ok {
			c.readFailed(m.Reply)
			return
		}
		c.round.view.add(page)
		c.reportUnreadable(page)
		if page.Next != "" {
			c.read(page.Next)
			return
		}
		c.allRead()
	}
}

// beaten takes the heartbeat's end. Refused or unanswered, this round claims
// nothing. The old record tells of another process under our id.
func (c *core) beaten(r store.Reply) {
	result, _ := r.Result.(store.HeartbeatResult)
	if result.Previous != nil && result.Previous.Incarnation > c.id.incarnation {
		c.replaced(result.Previous.Incarnation)
		return
	}
	switch r.Class {
	case store.Done:
		c.round.mayClaim = true
		if c.refusing {
			c.refusing = false
			c.emit(event.HeartbeatAccepted{})
		}
	case store.Refused:
		c.refusing = true
		var ahead time.Duration
		if result.Previous != nil {
			ahead = result.Previous.LastSeen.Sub(c.round.now.Ticks())
		}
		c.emit(event.HeartbeatRefused{Ahead: ahead})
	default:
		if c.rounds == 0 && store.Unusable(r.Err) {
			c.finish(fmt.Errorf("%w: %w", ErrTable, r.Err))
			return
		}
	}
	c.read("")
}

// readFailed: what we hold is kept under the expiry that we last wrote. A table
// that cannot be used at all ends a relay that has not begun.
func (c *core) readFailed(r store.Reply) {
	if c.state == starting && store.Unusable(r.Err) {
		c.finish(fmt.Errorf("%w: %w", ErrTable, r.Err))
		return
	}
	if c.state == starting {
		pause := min(firstStartTry<<min(c.failed, 4), c.cfg.LeaseRenewInterval)
		c.failed++
		c.arm(roundTimer, pause)
		return
	}
	c.judgeClock()
	for b, k := range c.children {
		if k.tenure != 0 && !c.away() {
			c.tell(b, bucket.Carry{Round: c.forBuckets()})
		}
	}
	c.nextRound(everyRound)
}

func (c *core) forBuckets() bucket.Round {
	return bucket.Round{Now: c.round.now, ReadAt: c.round.readAt, Off: c.round.clock.off, Ahead: c.round.clock.ahead}
}

func (c *core) reportUnreadable(page store.CoordinationPage) {
	for _, err := range page.Unreadable {
		unreadable := event.LeaseUnreadable{Err: err}
		var item *outbox.ItemError
		if errors.As(err, &item) {
			unreadable.Item = item.SortKey
		}
		c.emit(unreadable)
	}
}

// allRead plans on what was read and carries out our part.
func (c *core) allRead() {
	c.judgeClock()
	if c.state == starting {
		c.tableRead = true
		if c.connected && !c.round.clock.off {
			c.beginRound()
			return
		}
		c.nextRound(everyRound) // the table is read again until a broker is reached, and our clock is right
		return
	}
	if by := c.successor(); by != "" {
		c.replaced(by)
		return
	}
	switch {
	case c.away():
		c.mayComeBack()
		return
	case c.state == stopping || c.state == withdrawn:
		c.holdAll()
		c.nextRound(everyRound)
		return
	case c.mustWithdraw():
		return
	case c.round.clock.off: // nothing is claimed or pruned
		c.holdAll()
		c.nextRound(everyRound)
		return
	case c.round.silent: // our clock is right after all
		c.beginRound()
		return
	}
	plan := MakePlan(c.activeRelays(), c.id.relay, c.leaseStates())
	c.carryOut(plan)
	c.prune()
	c.completed(plan)
}

// successor is the incarnation of a process that runs under our id and began
// later; empty for none. It shows in our record, and on leases that it resumed
// before its heartbeat: that one is refused for as long as its clock is behind
// ours, and the two would take the leases from each other round by round.
func (c *core) successor() string {
	for _, r := range c.round.view.relays {
		if r.ID == c.id.relay && r.Incarnation > c.id.incarnation {
			return r.Incarnation
		}
	}
	for _, lease := range c.round.view.leases {
		if lease != nil && lease.Owner == c.id.relay && lease.Incarnation > c.id.incarnation {
			return lease.Incarnation
		}
	}
	return ""
}

// activeRelays are those that count, by the round's now. That we count is the
// plan's business.
func (c *core) activeRelays() []string {
	oldest := c.round.now.Ticks().Add(-c.cfg.LeaseDuration)
	var ids []string
	for _, r := range c.round.view.relays {
		if r.Stopped == 0 && r.LastSeen > oldest {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// unclaimable owns, for the plan, what cannot be read: no relay has such an id.
const unclaimable = "\x00"

func (c *core) leaseStates() []LeaseState {
	now := c.round.now.Ticks()
	states := make([]LeaseState, len(c.round.view.leases))
	for b, lease := range c.round.view.leases {
		switch {
		case lease == nil:
		case lease.Unreadable:
			states[b] = LeaseState{Owner: unclaimable}
		case lease.Expires == 0:
			// A lease without an expiry has no owner.
		default:
			states[b] = LeaseState{Owner: lease.Owner, Expired: lease.Expires <= now}
		}
	}
	return states
}

// carryOut does our part of the plan: renewals first, then releases, then
// claims.
func (c *core) carryOut(plan Plan) {
	c.worked = c.worked || len(plan.Keep) > 0
	planned := make([]bool, len(c.children))
	for _, b := range append(plan.Keep, plan.Release...) {
		planned[b] = true
	}
	for b, k := range c.children {
		if k.tenure != 0 && !planned[b] { // not ours by this read
			c.attend(b, bucket.Hold)
		}
	}
	c.hold(plan.Keep)
	for _, b := range plan.Release {
		c.attend(b, bucket.Yield)
	}
	if !c.round.mayClaim {
		return
	}
	for _, b := range plan.Claim {
		if c.children[b].tenure == 0 && c.maySpawn(b) {
			c.spawn(b, bucket.Claim{Round: c.forBuckets(), Lease: c.round.view.leases[b]})
		}
	}
}

// attend tells the bucket's actor of the round; a lease that names us without
// an actor gets one, which resumes it.
func (c *core) attend(b int, verdict bucket.Verdict) {
	lease := c.round.view.leases[b]
	if lease != nil && lease.Owner == c.id.relay && lease.Incarnation != c.id.incarnation {
		c.children[b].elder = lease.Expires
	}
	switch {
	case c.children[b].tenure != 0:
		c.tell(b, bucket.Attend{Round: c.forBuckets(), Lease: lease, Verdict: verdict})
	case c.maySpawn(b):
		c.spawn(b, bucket.Resume{Round: c.forBuckets(), Lease: *lease, Elder: c.children[b].elder})
	}
}

// prune deletes the records of relays that are long gone.
func (c *core) prune() {
	if c.rounds%pruneEvery != pruneEvery-1 {
		return
	}
	now := c.round.now.Ticks()
	r := store.Prune{
		Dead:     now.Add(-deadDurations * c.cfg.LeaseDuration),
		Stopped:  now.Add(-c.cfg.LeaseDuration),
		NotAfter: c.round.now.Add(c.cfg.LeaseRenewInterval),
	}
	for _, record := range c.round.view.relays {
		if record.ID == c.id.relay {
			continue
		}
		if record.LastSeen < r.Dead || record.Stopped != 0 && record.LastSeen < r.Stopped {
			r.Relay = record.ID
			c.do(r)
		}
	}
}

// completed ends the round and says what it found.
func (c *core) completed(plan Plan) {
	c.state = active
	if plan.StandbyRank >= 0 {
		c.state = standby
	}
	if !c.ready {
		c.ready = true
		c.emit(event.RelayReady{After: actors.Elapsed(c.began, c.now)})
	}
	c.rounds++
	owned := 0
	for _, k := range c.children {
		if k.tenure != 0 {
			owned++
		}
	}
	c.emit(c.fleetSeen())
	c.emit(event.RoundCompleted{
		Active:      c.countActive(),
		Owned:       owned,
		StandbyRank: plan.StandbyRank,
		Took:        actors.Elapsed(c.round.now, c.now),
		Ahead:       c.round.clock.by,
	})
	c.nextRound(c.stride(plan.StandbyRank))
}

// countActive is how many relays count, ourselves included.
func (c *core) countActive() int {
	count := 1
	for _, id := range c.activeRelays() {
		if id != c.id.relay {
			count++
		}
	}
	return count
}

// stride is every how many rounds a relay of that standby rank runs: far ones
// refresh their heartbeat within three quarters of the lease duration.
func (c *core) stride(rank int) int {
	if rank < c.cfg.BucketCount {
		return everyRound
	}
	return max(everyRound, int(c.cfg.LeaseDuration*3/4/c.cfg.LeaseRenewInterval))
}

// nextRound arms the next round, an interval after this one began. Rounds never
// overlap.
func (c *core) nextRound(stride int) {
	wait := time.Duration(stride)*c.cfg.LeaseRenewInterval - actors.Elapsed(c.round.now, c.now)
	c.arm(roundTimer, wait)
}
