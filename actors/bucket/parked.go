package bucket

import (
	"cmp"
	"slices"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// parked is what the tenure knows of what is set aside of its bucket
// (protocol.md section 7).
type parked struct {
	// known: the markers were read in this tenure, and nobody has rung since.
	// Invariant: nothing is read of the bucket, to be sent, while they are not known.
	known bool
	// early: they were asked for when what the tenure before has sent may not have been
	// seen as a whole: a marker of it may be missing.
	early bool
	taken bool // they were read in this tenure, be they known or not
	// heard is the Attention that the round before the last read of the markers had
	// shown: a bell that rang between the two is heard once more (case M-11).
	heard   store.Ticks
	asking  store.Ticks    // the same, of the read under way
	reading []store.Marker // of the pages so far

	keys   []parkedKey   // Invariant: ascending by KeyID
	topics []parkedTopic // Invariant: ascending by Topic
	// said is what the log and the status were told last of the topics that are paused.
	said []event.PausedTopic

	// headTurn: the bucket's head is next, else a retry. They take turns, so that
	// neither waits for the end of the other.
	headTurn bool
	// drained: since the markers were read, and the last one was written, a look at the
	// head has found its end, so that rows which are to be moved are.
	drained bool
	// checking: a key is looked at that may have no rows.
	checking bool
	// owed: a poll had no time for that, since messages waited, or were on their way. So one
	// is looked at before the next of them: a bucket that is never idle would never come to
	// it, and set the key's next rows aside for no reason.
	owed bool
	// served is the key whose retry had the last turn: the next one's is behind it.
	served   string
	rejected int64          // the row that has ended the last retry
	failing  actors.Instant // since when rows of retries come back unacknowledged; zero: they do not
	// surveyed: none was found that wants a retry, and no marker has changed since.
	surveyed bool
}

// parkedKey is one key that is set aside.
type parkedKey struct {
	store.Marker
	// filled: it has rows, as this tenure has seen or brought about.
	filled   bool
	failures int            // of its retry, in a row
	rested   actors.Instant // when its retry may go on; zero: now
}

// parkedTopic is a whole topic that is set aside.
type parkedTopic struct {
	store.Marker
	over bool // its pause has ended, by our clock
}

// retried tells whether the topic is delivered again: somebody has asked for it, or its
// pause is over.
func (t parkedTopic) retried() bool { return t.RetryAt != 0 || t.over }

// endPauses finds the topics whose pause is over by now. When our clock was ahead, and is
// set back, a pause goes on: what has passed meanwhile is delivered, and what comes later is
// set aside, so that no order is lost, and an operator's pause is not ended for that.
func (p *parked) endPauses(now store.Ticks) {
	for i := range p.topics {
		t := &p.topics[i]
		if over := t.PausedUntil != 0 && t.PausedUntil <= now; over != t.over {
			t.over, p.surveyed = over, false
		}
	}
}

// paused are the topics whose pause goes on.
func (p *parked) paused() (topics []event.PausedTopic) {
	for _, t := range p.topics {
		if t.PausedUntil == 0 || t.retried() {
			continue
		}
		paused := event.PausedTopic{Topic: t.Topic, By: t.PausedBy, Reason: t.Reason}
		if t.PausedUntil < store.NoEnd {
			paused.Until = t.PausedUntil.Time()
		}
		topics = append(topics, paused)
	}
	return topics
}

// sayPausedTopics tells which topics are paused, when that is not what was told last.
func (c *core) sayPausedTopics() {
	paused := c.parked.paused()
	if slices.Equal(paused, c.parked.said) {
		return
	}
	c.parked.said = paused
	if len(paused) == 0 {
		c.emit(event.TopicsResumed{Bucket: c.cfg.Bucket})
		return
	}
	c.emit(event.TopicsPaused{Bucket: c.cfg.Bucket, Topics: paused})
}

// attention is what the round's read shows of the bell.
func (c *core) attention() store.Ticks {
	if c.lease.read == nil {
		return 0
	}
	return c.lease.read.Attention
}

// listen hears the bell: an operator has changed what is set aside. A batch that waits
// after a failure goes on at once, since that may be what the operator is about.
func (c *core) listen() {
	if c.parked.known && c.attention() != c.parked.heard {
		c.parked.known = false
		c.wake("attention")
		if c.valid() {
			c.cutPause()
		}
	}
}

// readMarkers asks for a page of what is set aside.
func (c *core) readMarkers(after string) {
	if after == "" {
		c.parked.asking, c.parked.reading, c.parked.early = c.attention(), nil, !c.mayRetry()
	}
	c.batch.token = c.do(store.ReadMarkers{Bucket: c.cfg.Bucket, After: after, NotAfter: c.lease.validUntil})
}

func (c *core) markersRead(m actors.Replied) {
	page, ok := m.Reply.Result.(store.MarkersPage)
	if !ok {
		c.failBatch()
		return
	}
	if len(page.Unreadable) > 0 {
		// Nobody knows whose rows are not to pass.
		c.blockAt(0, page.Unreadable[0].Error())
		c.blocked.marker = true
		c.failBatch()
		return
	}
	c.parked.reading = append(c.parked.reading, page.Markers...)
	if page.Next != "" {
		c.readMarkers(page.Next)
		return
	}
	c.parked.take(c.now.Ticks())
	c.sayPausedTopics()
	if c.blocked.marker {
		c.unblock()
	}
	if len(c.parked.keys)+len(c.parked.topics) > 0 {
		c.emit(event.MarkersRead{Bucket: c.cfg.Bucket, Keys: len(c.parked.keys), Topics: len(c.parked.topics)})
	}
	c.proceed()
}

// take makes the markers that were read those that are known. Of topics whose pause is
// over nobody is told as of paused ones.
func (p *parked) take(now store.Ticks) {
	p.known, p.taken, p.heard, p.drained, p.surveyed = true, true, p.asking, false, false
	p.keys, p.topics = nil, nil
	for _, m := range p.reading {
		if m.KeyID == "" {
			p.topics = append(p.topics, parkedTopic{Marker: m})
		} else {
			p.keys = append(p.keys, parkedKey{Marker: m})
		}
	}
	p.reading = nil
	slices.SortFunc(p.keys, func(a, b parkedKey) int { return cmp.Compare(a.KeyID, b.KeyID) })
	slices.SortFunc(p.topics, func(a, b parkedTopic) int { return cmp.Compare(a.Topic, b.Topic) })
	p.endPauses(now)
}

// find is the index of a key, and whether it is set aside.
func (p *parked) find(keyID string) (int, bool) {
	return slices.BinarySearchFunc(p.keys, keyID, func(k parkedKey, id string) int { return cmp.Compare(k.KeyID, id) })
}

func (p *parked) add(m store.Marker) {
	i, known := p.find(m.KeyID)
	if !known {
		p.keys = slices.Insert(p.keys, i, parkedKey{})
	}
	p.keys[i] = parkedKey{Marker: m}
	p.surveyed, p.drained = false, false
}

func (p *parked) remove(m store.Marker) {
	p.surveyed = false
	if m.KeyID == "" {
		p.topics = slices.DeleteFunc(p.topics, func(t parkedTopic) bool { return t.Topic == m.Topic })
		return
	}
	p.keys = slices.DeleteFunc(p.keys, func(k parkedKey) bool { return k.KeyID == m.KeyID })
}

// fill notes that a key has rows.
func (p *parked) fill(keyID string) {
	if i, known := p.find(keyID); known {
		p.keys[i].filled = true
	}
}

// aside tells whether a row is to be moved, and under which id. A topic whose
// retry is asked for lets new keys pass: what waits of it becomes only less.
func (p *parked) aside(row *outbox.Row) (keyID string, aside bool) {
	keyID = outbox.ParkedKeyID(&row.Message)
	if _, known := p.find(keyID); known {
		return keyID, true
	}
	i, known := p.topic(row.Message.Topic)
	return keyID, known && !p.topics[i].retried()
}

func (p *parked) topic(name string) (int, bool) {
	return slices.BinarySearchFunc(p.topics, name, func(t parkedTopic, name string) int { return cmp.Compare(t.Topic, name) })
}

// rest lets the retry of a key wait, longer with each failure in a row.
func (p *parked) rest(keyID string, now actors.Instant, first time.Duration) {
	if i, known := p.find(keyID); known {
		k := &p.keys[i]
		k.rested = now.Add(backoff(first, k.failures, maxBackoff))
		k.failures++
	}
}

// wanted is a marker whose retry is asked for and does not rest: a key, in turns, or,
// once none is left of its keys, a whole topic.
func (p *parked) wanted(now actors.Instant) (store.Marker, bool) {
	if p.surveyed {
		return store.Marker{}, false
	}
	next, served := p.find(p.served)
	if served {
		next++
	}
	resting := false
	for i := range p.keys {
		k := &p.keys[(next+i)%len(p.keys)]
		switch {
		case !p.toRetry(k.Marker):
		case k.rested.IsZero() || k.rested.PassedAt(now):
			return k.Marker, true
		default:
			resting = true
		}
	}
	for _, t := range p.topics {
		if t.retried() && !slices.ContainsFunc(p.keys, func(k parkedKey) bool { return k.ofTopic(t.Marker) }) {
			return t.Marker, true
		}
	}
	p.surveyed = !resting
	return store.Marker{}, false
}

// ofTopic: the key was set aside with that topic.
func (k *parkedKey) ofTopic(topic store.Marker) bool {
	return k.Topic == topic.Topic && k.Reason == store.ReasonTopic
}

// toRetry tells whether the retry of a key is asked for: its own, or that of the topic
// that it was set aside with.
func (p *parked) toRetry(key store.Marker) bool {
	if key.RetryAt != 0 {
		return true
	}
	i, known := p.topic(key.Topic)
	return known && p.topics[i].retried() && key.Reason == store.ReasonTopic
}

// doubtful is a key that may have no rows any more.
func (p *parked) doubtful() (store.Marker, bool) {
	for _, k := range p.keys {
		if !k.filled && !p.toRetry(k.Marker) {
			return k.Marker, true
		}
	}
	return store.Marker{}, false
}

// mayRetry tells whether retries may begin: what the tenure before has sent is
// certainly seen as a whole by now, or there was none.
func (c *core) mayRetry() bool { return c.cleanly || c.aged() }

// lookAgain reads the markers once more when the tenure before is certainly seen as a
// whole. A marker of it that nobody knows would stay: rows of its key pass, until the
// next tenure sets them aside for no reason.
func (c *core) lookAgain() {
	if c.parked.known && c.parked.early && c.mayRetry() {
		c.parked.known = false
		c.wake("attention")
	}
}

// aged: the tenure is a LeaseRenewInterval old, by the clock that is never ahead of the
// time that has gone by: a wall clock that is set forward makes nothing visible.
func (c *core) aged() bool {
	return !c.ownedSince.IsZero() && c.now.Mono-c.ownedSince.Mono >= c.cfg.LeaseRenewInterval
}

// retryDue tells whether rows that are set aside are to be delivered now.
func (c *core) retryDue() bool {
	if !c.parked.known || !c.mayRetry() || !c.machine.In(fsm.Owned, fsm.Blocked) {
		return false
	}
	_, wanted := c.parked.wanted(c.now)
	return wanted
}

// checkDue looks for a key without rows: its last one was discarded, or was never
// moved (case M-06). Rows may still have to be moved before the head has been seen
// to its end.
func (c *core) checkDue() bool {
	if !c.parked.known || !c.parked.drained || !c.aged() || c.retryDue() {
		return false
	}
	_, doubtful := c.parked.doubtful()
	return doubtful
}

// checkParked checks what must hold of what is set aside, and of its transactions
// (docs/invariants.md).
func (c *core) checkParked(must func(bool, string)) {
	b := c.batch
	if b == nil {
		return
	}
	must(c.parked.taken || b.machine.In(fsm.Fetching, fsm.BackingOff), "I-38: no row is handled before the tenure has read what is set aside")
	must(c.unanswered == nil || b.machine.In(fsm.Fetching, fsm.Moving, fsm.Deleting, fsm.BackingOff),
		"I-37: nothing is published while a transaction may still take effect")
	must(b.queued == nil || b.token == 0, "I-37: at most one transaction is under way")
	must(len(b.aside) == 0 || b.machine.In(fsm.Moving), "I-37: rows are set aside before those of other keys are published")
	must(slices.IsSortedFunc(b.aside, func(a, b store.Moving) int { return cmp.Or(cmp.Compare(a.Row.Sequence, b.Row.Sequence), -1) }),
		"I-37: rows are moved in order")
	must(!b.letter || len(b.rows) == 1, "I-3: a letter goes alone")
}
