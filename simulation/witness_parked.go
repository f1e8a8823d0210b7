package simulation

import (
	"slices"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// asideWitness is what one tenure was shown of what is set aside of its bucket.
type asideWitness struct {
	since   actors.Instant // when the tenure began
	clean   bool           // the one before had ended
	reading []store.Marker // of the read under way
	markers []store.Marker // as they were read, and changed since by the tenure itself
	over    []string       // topics among them whose pause has ended, as the process has it
	// unanswered is the token of a transaction whose effect the tenure does not know.
	unanswered string
	// repeating: it was sent before, so that what ends this attempt says nothing of the
	// one before.
	repeating bool

	asked, heard store.Ticks // the bell that was shown before the read under way, and before the last one
	deaf         int         // rounds that have shown another bell since
	missed       int         // batches that were begun all the same
}

// A tenure is deaf when it begins so many batches after so many rounds have shown
// it a bell that it has not heard. Some may pass: a round is not heard while a write of
// the lease is under way, and a batch reads the head more than once.
const (
	deafRounds  = 3
	deafBatches = 4
)

// bells takes what a round was shown of the bells.
func (w *witness) bells() {
	for _, l := range w.view.leases {
		if l.Bucket >= len(w.buckets) {
			continue
		}
		b := &w.buckets[l.Bucket]
		b.bell = l.Attention
		switch aside := &b.drain.aside; {
		case b.bell == aside.heard:
			aside.deaf, aside.missed = 0, 0
		case b.writes == 0 && b.wrote < w.view.at:
			aside.deaf++
		}
	}
}

// cleanly tells whether a claim follows a release, or is the first of its bucket.
func (w *witness) cleanly(bucket int) bool {
	return !slices.ContainsFunc(w.view.leases, func(l store.Lease) bool { return l.Bucket == bucket && l.Owner != "" })
}

// asks checks a request that has to do with what is set aside, on its way.
func (w *witness) asks(c *checker, p *process, r store.Request) {
	b := &w.buckets[r.ConcernsBucket()]
	aside, about := &b.drain.aside, c.about(p.name, r.ConcernsBucket())
	aside.endPauses(p.Now().Ticks())
	if t, is := c.asideWriteOf(r); aside.unanswered != "" && !(is && t.token == aside.unanswered) {
		about.violated("I-37", "%s sends a %s of bucket %d although a transaction of it has no answer yet", p.name, r.RequestName(), r.ConcernsBucket())
	} else if is {
		aside.unanswered, aside.repeating = t.token, aside.unanswered != ""
	}
	switch r := r.(type) {
	case store.ReadMarkers:
		if r.After == "" {
			aside.asked, aside.reading = b.bell, nil
		}
	case store.Fetch:
		if r.After == 0 && aside.deaf >= deafRounds {
			if aside.missed++; aside.missed == deafBatches {
				about.violated("I-39", "%s reads bucket %d on, and not what is set aside of it, although %d rounds have shown that somebody rang", p.name, r.Bucket, aside.deaf)
			}
		}
	case store.FetchParked:
		if r.After == 0 {
			w.retries(c, p, r.Bucket, store.Marker{KeyID: r.KeyID}, r.Limit == 1)
		}
	case store.Unmark:
		w.retries(c, p, r.Tenure.Bucket, r.Marker, true)
	case store.Mark:
		for _, m := range r.Markers {
			w.condemns(c, p, r.Tenure.Bucket, m)
		}
	case store.EndRetry:
		if w.rejected(c, r.Tenure.Bucket, r.Marker.KeyID) == 0 {
			about.violated("I-45", "%s ends the retry of key %s of bucket %d, of which no row was rejected", p.name, r.Marker.KeyID, r.Tenure.Bucket)
		}
	}
}

// answered follows what a tenure knows.
func (a *asideWitness) answered(r store.Request, reply store.Reply, token string) {
	certain := reply.Class == store.Done || reply.Class == store.Refused || reply.Class == store.Retriable && !a.repeating
	if token != "" && token == a.unanswered && certain {
		a.unanswered = ""
	}
	if page, is := reply.Result.(store.MarkersPage); is {
		a.reading = append(a.reading, page.Markers...)
		if page.Next == "" && len(page.Unreadable) == 0 {
			a.markers, a.reading, a.heard, a.over = a.reading, nil, a.asked, nil
			a.deaf, a.missed = 0, 0
		}
		return
	}
	if reply.Class != store.Done {
		return
	}
	switch r := r.(type) {
	case store.Mark:
		a.markers = append(a.markers, r.Markers...)
	case store.Unmark:
		a.markers = slices.DeleteFunc(a.markers, func(m store.Marker) bool { return m == r.Marker })
	case store.EndRetry:
		for i, m := range a.markers {
			if m == r.Marker {
				a.markers[i].RetryAt, a.markers[i].Reason, a.markers[i].Attempts = 0, r.Reason, r.Attempts
			}
		}
	}
}

// marker is the one of a key, or, without a key id, of a topic.
func (a *asideWitness) marker(keyID, topic string) (store.Marker, bool) {
	i := slices.IndexFunc(a.markers, func(m store.Marker) bool { return m.KeyID == keyID && (keyID != "" || m.Topic == topic) })
	if i < 0 {
		return store.Marker{}, false
	}
	return a.markers[i], true
}

// endPauses notes which pauses of topics have ended by a process's clock. That it is set
// back does not bring them back.
func (a *asideWitness) endPauses(now store.Ticks) {
	for _, m := range a.markers {
		if m.PausedUntil != 0 && m.PausedUntil <= now && !slices.Contains(a.over, m.Topic) {
			a.over = append(a.over, m.Topic)
		}
	}
}

// retried tells whether a whole topic is to be delivered again.
func (a *asideWitness) retried(topic store.Marker) bool {
	return topic.RetryAt != 0 || slices.Contains(a.over, topic.Topic)
}

// wanted tells whether a retry is due: somebody has asked for it, for the marker or for
// the whole topic that the key was set aside with, or that topic's pause is over.
func (a *asideWitness) wanted(m store.Marker) bool {
	topic, set := a.marker("", m.Topic)
	return m.RetryAt != 0 || m.KeyID == "" && a.retried(m) || m.KeyID != "" && set && a.retried(topic) && m.Reason == store.ReasonTopic
}

// retries: rows that are set aside are read only because an operator wants it, or to
// see whether there are any; neither in the first moments of a tenure that does not
// follow a clean end.
func (w *witness) retries(c *checker, p *process, bucket int, m store.Marker, looks bool) {
	a := &w.buckets[bucket].drain.aside
	known, set := a.marker(m.KeyID, m.Topic)
	aged := actors.Elapsed(a.since, p.Now()) >= c.fleet.o.LeaseRenewInterval
	switch about := c.about(p.name, bucket); {
	case !set:
		about.violated("I-40", "%s looks for rows of bucket %d under key %s, of which it knows no marker", p.name, bucket, m.KeyID)
	case !a.wanted(known) && !looks:
		about.violated("I-40", "%s retries key %s of bucket %d, which nobody has asked for", p.name, m.KeyID, bucket)
	case !aged && !(a.clean && a.wanted(known)):
		about.violated("I-40", "%s retries or clears key %s of bucket %d %v after its tenure began", p.name, m.KeyID, bucket, actors.Elapsed(a.since, p.Now()))
	}
}

// condemns: a key is set aside with its topic, or for a row that was rejected
// often enough, alone in its request each time.
func (w *witness) condemns(c *checker, p *process, bucket int, m store.Marker) {
	if m.Reason == store.ReasonTopic {
		if _, set := w.buckets[bucket].drain.aside.marker("", m.Topic); !set {
			c.about(p.name, bucket).violated("I-45", "%s sets key %s of bucket %d aside for its topic, which is not set aside", p.name, m.KeyID, bucket)
		}
		return
	}
	if n, must := w.rejected(c, bucket, m.KeyID), max(m.Attempts, c.fleet.o.PoisonAfter); n < must {
		c.about(p.name, bucket).violated("I-45", "%s sets key %s of bucket %d aside after %d rejections, must be %d", p.name, m.KeyID, bucket, n, must)
	}
}

// rejected is how often the row of a key that was rejected most was, alone in its
// request.
func (w *witness) rejected(c *checker, bucket int, keyID string) int {
	most := 0
	for i, n := range w.buckets[bucket].rejected { // the order does not matter
		if outbox.ParkedKeyID(&c.fleet.writers.committed[i].message) == keyID {
			most = max(most, n)
		}
	}
	return most
}

// passes checks a row on its way to a producer: it is not of what its tenure knows to
// be set aside, and a letter is of a row that was rejected often enough.
func (w *witness) passes(c *checker, p *process, bucket int, sequence int64, topic string) {
	b, row := &w.buckets[bucket], rowName{bucket, sequence}
	i, known := c.rows[row]
	if !known || c.everAside[row] {
		return
	}
	if n := b.rejected[i]; topic == letterTopic && n < c.fleet.o.PoisonAfter {
		c.about(p.name, bucket).violated("I-45", "%s sends a letter of row %d of bucket %d after %d rejections", p.name, sequence, bucket, n)
	}
	m := &c.fleet.writers.committed[i].message
	b.drain.aside.endPauses(p.Now().Ticks())
	_, keySet := b.drain.aside.marker(outbox.ParkedKeyID(m), "")
	whole, topicSet := b.drain.aside.marker("", m.Topic)
	if keySet || topicSet && !b.drain.aside.retried(whole) {
		c.about(p.name, bucket).violated("I-39", "%s submits row %d of bucket %d, whose key or topic is set aside", p.name, sequence, bucket)
	}
}

// unmarked: with a marker goes nothing that it was for. No rows are left under it (I-38);
// those that were there when an operator set it were moved, or are published; and a
// topic's goes after those of its keys.
func (c *checker) unmarked(p *process, bucket int, m store.Marker) {
	about := c.about(p.name, bucket)
	if rows := c.aside[bucket].keys[m.KeyID]; m.KeyID != "" && len(rows) > 0 {
		about.violated("I-38", "%s: the marker of key %s is removed while %d of its rows are set aside", p.name, m.KeyID, len(rows))
	}
	if m.KeyID == "" {
		for _, other := range c.fleet.markers() {
			is := c.marker(bucket, other.Marker)
			if other.bucket == bucket && is[outbox.AttrReason] == text(store.ReasonTopic) && is[outbox.AttrTopic] == text(m.Topic) {
				about.violated("I-40", "%s: the marker of topic %s is removed while its key %s is set aside", p.name, m.Topic, other.KeyID)
			}
		}
	}
	if m.KeyID == "" || m.Reason != operatorReason || m.RetryAt != 0 {
		return
	}
	for _, sequence := range c.rowsOf[bucket] {
		i := c.rows[rowName{bucket, sequence}]
		row := c.fleet.writers.committed[i]
		ofKey := outbox.ParkedKeyID(&row.message) == m.KeyID && !row.misnumbered
		if before := (store.Instant{Wall: epoch + row.at}).Ticks() < m.ParkedAt; before && ofKey && c.delivered[i] == 0 && !c.everAside[rowName{bucket, sequence}] {
			about.violated("I-40", "%s: the marker of key %s is removed although row %d of bucket %d, for which it was set, still waits", p.name, m.KeyID, sequence, bucket)
		}
	}
}
