package simulation

import (
	"maps"
	"slices"
	"strings"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// asideRows are the rows of one bucket that are set aside, as the observer has seen
// it come about.
type asideRows struct {
	keys map[string][]int64 // by key id: the rows, ascending
}

// has tells whether a row is set aside.
func (a *asideRows) has(sequence int64) bool {
	for _, rows := range a.keys { // the order does not matter
		if _, found := slices.BinarySearch(rows, sequence); found {
			return true
		}
	}
	return false
}

func (a *asideRows) add(keyID string, sequence int64) {
	a.keys[keyID] = insert(a.keys[keyID], sequence)
}

func (a *asideRows) remove(keyID string, sequence int64) {
	rows := a.keys[keyID]
	if i, found := slices.BinarySearch(rows, sequence); found {
		a.keys[keyID] = slices.Delete(rows, i, i+1)
	}
}

// parkedItem is an item of a bucket's parked partition; nil: there is none.
func (c *checker) parkedItem(bucket int, sortKey string) item {
	return c.itemOf(c.fleet.schema.ParkedKey(bucket), sortKey)
}

// marker is a marker as it stands in the table; nil: there is none.
func (c *checker) marker(bucket int, m store.Marker) item {
	if m.KeyID == "" {
		return c.parkedItem(bucket, outbox.ParkedTopicSortKey(m.Topic))
	}
	return c.parkedItem(bucket, outbox.ParkedKeySortKey(m.KeyID))
}

// asideWrite is a transaction that changes what is set aside, as the protocol has it.
type asideWrite struct {
	tenure store.Tenure
	token  string
	holds  bool
	rows   []item // of a Move: what its rows are, before
}

// asideWriteOf tells what a request does, given the table as it is; false: it is
// none of those transactions (protocol.md, section 7).
func (c *checker) asideWriteOf(r store.Request) (t asideWrite, is bool) {
	switch r := r.(type) {
	case store.Mark:
		t = asideWrite{tenure: r.Tenure, token: r.Token, holds: true}
		for _, m := range r.Markers {
			t.holds = t.holds && c.marker(r.Tenure.Bucket, m) == nil
		}
	case store.Move:
		t = asideWrite{tenure: r.Tenure, token: r.Token, holds: true}
		for _, m := range r.Markers {
			t.holds = t.holds && c.marker(r.Tenure.Bucket, m)[outbox.AttrParkedAtUtc] == number(m.ParkedAt)
		}
		for _, m := range r.Rows {
			row := c.itemOf(c.fleet.schema.MessagesKey(r.Tenure.Bucket), outbox.SequenceSortKey(m.Row.Sequence))
			t.rows = append(t.rows, row)
			there := c.parkedItem(r.Tenure.Bucket, outbox.ParkedRowSortKey(m.KeyID, m.Row.Sequence))
			t.holds = t.holds && row != nil && (there == nil || there[outbox.AttrMessageId] == row[outbox.AttrMessageId])
		}
	case store.RemoveParked:
		t = asideWrite{tenure: r.Tenure, token: r.Token, holds: true}
	case store.Unmark:
		t = asideWrite{tenure: r.Tenure, token: r.Token, holds: c.isStill(r.Tenure.Bucket, r.Marker)}
	case store.EndRetry:
		t = asideWrite{tenure: r.Tenure, token: r.Token, holds: c.isStill(r.Tenure.Bucket, r.Marker)}
	default:
		return t, false
	}
	lease := c.item(outbox.LeaseSortKey(t.tenure.Bucket))
	t.holds = t.holds && lease[outbox.AttrOwner] == text(t.tenure.Relay) &&
		lease[outbox.AttrIncarnation] == text(t.tenure.Incarnation) && lease[outbox.AttrClaim] == number(t.tenure.Claim)
	return t, true
}

// isStill tells whether a marker is as it was read.
func (c *checker) isStill(bucket int, m store.Marker) bool {
	is := c.marker(bucket, m)
	retryAt, asked := is.ticks(outbox.AttrRetryAtUtc)
	attempts, _ := is.ticks(outbox.AttrAttempts)
	return is[outbox.AttrParkedAtUtc] == number(m.ParkedAt) && asked == (m.RetryAt != 0) && retryAt == m.RetryAt &&
		(m.KeyID == "" || int(attempts) == m.Attempts)
}

// transacted checks a transaction around the instant at which it is applied: it
// holds what the protocol demands, and does what it is to do. One that was applied
// before, under the same token, is answered as applied, and does nothing.
func (c *checker) transacted(p *process, r store.Request, t asideWrite, apply func() store.Reply) store.Reply {
	repeated := c.tokens[t.token]
	if !repeated {
		c.imagine(p, r, t)
	}
	reply := apply()
	want := store.Refused
	if t.holds || repeated {
		want = store.Done
	}
	if reply.Class != want {
		c.about(p.name, t.tenure.Bucket).violated("I-37", "%s: a %s is %v, must be %v: %v", p.name, r.RequestName(), reply.Class, want, reply.Err)
	}
	if reply.Class == store.Done && !repeated {
		c.tokens[t.token] = true
		c.follow(p, r, t)
	}
	return reply
}

// follow takes note of what a transaction has done.
func (c *checker) follow(p *process, r store.Request, t asideWrite) {
	b := t.tenure.Bucket
	about := c.about(p.name, b)
	switch r := r.(type) {
	case store.Move:
		for i, m := range r.Rows {
			c.setAside(p, b, m, t.rows[i])
		}
	case store.RemoveParked:
		for _, sequence := range r.Sequences {
			c.aside[b].remove(r.KeyID, sequence)
			if c.parkedItem(b, outbox.ParkedRowSortKey(r.KeyID, sequence)) != nil {
				about.violated("I-37", "%s: row %d of bucket %d is still set aside after it was removed", p.name, sequence, b)
			}
		}
	case store.Unmark:
		c.unmarked(p, b, r.Marker)
	}
}

// setAside: the row has left the messages, and is set aside as it was.
func (c *checker) setAside(p *process, b int, m store.Moving, before item) {
	about, sequence := c.about(p.name, b), m.Row.Sequence
	after := c.parkedItem(b, outbox.ParkedRowSortKey(m.KeyID, sequence))
	for _, name := range []string{c.fleet.schema.PartitionKey, c.fleet.schema.SortKey} {
		delete(before, name)
		delete(after, name)
	}
	if !maps.Equal(before, after) {
		about.violated("I-37", "%s: row %d of bucket %d is set aside as %v, was %v", p.name, sequence, b, after, before)
	}
	if c.itemOf(c.fleet.schema.MessagesKey(b), outbox.SequenceSortKey(sequence)) != nil {
		about.violated("I-37", "%s: row %d of bucket %d is set aside and waits as well", p.name, sequence, b)
	}
	if c.marker(b, store.Marker{KeyID: m.KeyID}) == nil {
		about.violated("I-38", "%s: row %d of bucket %d is set aside without a marker", p.name, sequence, b)
	}
	if i, found := slices.BinarySearch(c.rowsOf[b], sequence); found {
		c.rowsOf[b] = slices.Delete(c.rowsOf[b], i, i+1)
	}
	row := rowName{b, sequence}
	if !c.aside[b].has(sequence) { // it is when a writer's put was repeated after it was moved
		c.aside[b].add(m.KeyID, sequence)
	}
	c.everAside[row] = true
	c.moved++
	if i, known := c.rows[row]; known {
		commit := c.fleet.writers.committed[i]
		c.lane(commit).leave(sequence)
		if want := outbox.ParkedKeyID(&commit.message); want != m.KeyID && !c.fleet.writers.reused[row] {
			about.violated("I-37", "%s: row %d of bucket %d is set aside under key %s, must be %s", p.name, sequence, b, m.KeyID, want)
		}
	}
}

// removesParked: a row that was set aside goes only after its own acknowledgement.
func (c *checker) removesParked(p *process, r store.RemoveParked) {
	w := c.witness(p)
	for _, sequence := range r.Sequences {
		if !w.buckets[r.Tenure.Bucket].acked[sequence] {
			c.about(p.name, r.Tenure.Bucket).violated("I-3", "%s removes row %d of bucket %d, which was set aside and not acknowledged to it", p.name, sequence, r.Tenure.Bucket)
		}
	}
}

// isLetter tells whether a record is in the dead-letter topic.
func isLetter(r BrokerRecord) bool { return r.Topic == letterTopic }

// letterDiffers says how a letter is not the message that was committed, with what
// is known of its rejection in further headers.
func letterDiffers(r BrokerRecord, m outbox.Message) string {
	headers := slices.Clone(r.Record.Headers)
	if len(headers) == 0 {
		return "without headers"
	}
	own := map[string]string{}
	rest := slices.DeleteFunc(headers, func(h outbox.Header) bool {
		if strings.HasPrefix(h.Key, "x-outbox-original-") || h.Key == "x-outbox-reason" || h.Key == "x-outbox-attempts" {
			own[h.Key] = string(h.Value)
			return true
		}
		return false
	})
	for _, name := range []string{"x-outbox-original-topic", "x-outbox-original-bucket", "x-outbox-original-sequence", "x-outbox-reason", "x-outbox-attempts"} {
		if own[name] == "" {
			return "without the header " + name
		}
	}
	if own["x-outbox-original-topic"] != m.Topic {
		return "of the topic " + own["x-outbox-original-topic"]
	}
	m.Topic, m.Partition = letterTopic, nil
	r.Record.Headers = rest
	return differs(r, m)
}

// letterTopic is where rejected records go with the policy dead-letter.
const letterTopic = "letters"

// skip passes over what will not be delivered any more: an operator has discarded
// it.
func (k *keyOrder) skip(c *checker) {
	for k.next < len(k.commits) && (c.delivered[k.commits[k.next]] > 0 || c.discarded[k.commits[k.next]]) {
		k.next++
	}
}

func (l *laneRows) leave(sequence int64) {
	if i, waits := slices.BinarySearch(l.undelivered, sequence); waits {
		l.undelivered = slices.Delete(l.undelivered, i, i+1)
	}
}

// moves checks a move on its way, as one checks a row that is submitted: no row is
// set aside behind a gap that was not probed empty after the row was read.
func (w *witness) moves(c *checker, p *process, r store.Move) {
	d := &w.buckets[r.Tenure.Bucket].drain
	if d.tenure != r.Tenure.Claim {
		return
	}
	for _, m := range r.Rows {
		if at := d.gapBefore(publisher.Token{Batch: ^d.head, Sequence: m.Row.Sequence}); at != 0 {
			c.about(p.name, r.Tenure.Bucket).violated("I-4", "%s sets row %d of bucket %d aside behind the gap at %d, which was not probed empty after the row was read", p.name, m.Row.Sequence, r.Tenure.Bucket, at)
		}
	}
}
