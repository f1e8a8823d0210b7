package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// checker is the observer outside the relays. It sees each request at the
// instant at which the table applies it, and each record that the broker
// appends, and holds them against the promises of docs/invariants.md. Of the
// relays it hears only what they believe of their own leases.
type checker struct {
	fleet      *fleet
	violations []Violation

	read      int // records of the broker's log that were checked
	again     int // rows that were written once more, as far as they were seen
	delivered []int
	keys      map[string]*keyOrder
	rows      map[rowName]int // index into the commits

	witnesses map[*process]*witness
	named     []naming  // by bucket: whom its lease names
	won       []victory // by bucket: its last claim that was applied
	rowsOf    [][]int64 // by bucket: the rows in the table, ascending
	lanes     map[lanePlace]*laneRows
	tenures   tenures
	firstRead map[readBy]time.Duration

	aside     []asideRows     // by bucket
	tokens    map[string]bool // of transactions that were applied
	discarded map[int]bool    // commits that an operator threw away
	// everAside are the rows that were ever set aside.
	everAside map[rowName]bool
	moved     int // rows that were set aside

	beliefs  map[int][]belief // by bucket: who holds its lease valid
	requests map[string]int
	units    map[string]float64 // of capacity, by request
	refused  map[string]int
	coverage map[string]int
	moves    int // claims that were applied
	failures int // of producers
	// overtaken are refused heartbeats that their own relay's stamp came before: it
	// stopped while they were under way.
	overtaken int
	lastMove  time.Duration // of the last lease that changed hands, or of a process that may cause it
	lastFuss  time.Duration // of the last refused write
}

// rowName names a row of the outbox.
type rowName struct {
	bucket   int
	sequence int64
}

// keyOrder is the commit order of one topic and key.
type keyOrder struct {
	commits []int // indexes into the commits
	next    int   // the first one that was not delivered yet
}

// victory is a claim that was applied, and what it was planned on.
type victory struct{ relay, plan string }

func newChecker(f *fleet) *checker {
	aside := make([]asideRows, f.o.Buckets)
	for b := range aside {
		aside[b].keys = map[string][]int64{}
	}
	return &checker{
		aside: aside, tokens: map[string]bool{}, discarded: map[int]bool{}, everAside: map[rowName]bool{},
		witnesses: map[*process]*witness{}, named: make([]naming, f.o.Buckets), won: make([]victory, f.o.Buckets),
		rowsOf: make([][]int64, f.o.Buckets), lanes: map[lanePlace]*laneRows{}, tenures: newTenures(), firstRead: map[readBy]time.Duration{},
		fleet: f, keys: map[string]*keyOrder{}, rows: map[rowName]int{}, beliefs: map[int][]belief{},
		requests: map[string]int{}, units: map[string]float64{}, refused: map[string]int{}, coverage: map[string]int{},
	}
}

// violated notes a broken promise.
func (c *checker) violated(invariant, format string, args ...any) {
	c.about("", -1).violated(invariant, format, args...)
}

// about names the process and the bucket that a violation is about.
func (c *checker) about(process string, bucket int) subject { return subject{c, process, bucket} }

type subject struct {
	checker *checker
	process string // empty: none
	bucket  int    // -1: none
}

func (s subject) violated(invariant, format string, args ...any) {
	c := s.checker
	v := Violation{Invariant: invariant, VirtualTime: c.fleet.now, Detail: fmt.Sprintf(format, args...),
		Process: s.process, Bucket: s.bucket}
	c.violations = append(c.violations, v)
	c.fleet.record("checker", promiseBroken, v)
}

// applied checks a request around the instant at which the table applies it.
func (c *checker) applied(p *process, r store.Request, apply func() store.Reply) store.Reply {
	c.requests[r.RequestName()]++
	c.catchUp()
	w, writes := c.written(r)
	var before item
	if writes {
		before = c.item(w.sort)
	}
	if r, deletes := r.(store.Delete); deletes {
		c.deleting(p, r)
	}
	if t, is := c.asideWriteOf(r); is {
		carryOut := apply
		apply = func() store.Reply { return c.transacted(p, r, t, carryOut) }
	}
	reply := apply()
	c.units[r.RequestName()] += reply.Capacity
	if writes {
		c.compare(p, r, w, before, reply)
	}
	switch r := r.(type) {
	case store.Keep, store.Claim, store.Release:
		c.leaseWritten(p, r, before, reply)
	case store.Delete:
		c.deleted(p, r, reply)
	case store.Discover, store.Probe, store.Fetch:
		c.shown(p, r, reply)
	}
	if reply.Class == store.Refused {
		c.refused[r.RequestName()]++
		c.lastFuss = c.fleet.now
		if _, beats := r.(store.Heartbeat); beats && c.witness(p).stop.stamped {
			c.overtaken++
		}
	}
	return reply
}

// leaseWritten follows a lease from one write to the next.
func (c *checker) leaseWritten(p *process, r store.Request, before item, reply store.Reply) {
	b := r.ConcernsBucket()
	after := c.item(outbox.LeaseSortKey(b))
	was, _ := before.ticks(outbox.AttrExpiresAtUtc)
	is, _ := after.ticks(outbox.AttrExpiresAtUtc)
	_, keeps := r.(store.Keep)
	c.tenureBegins(p, r, reply)
	if keeps && is < was {
		c.about(p.name, b).violated("I-7", "%s: a keep moved the expiry of bucket %d from %d to %d", p.name, b, was, is)
	}
	incarnation := after[outbox.AttrIncarnation]
	if after[outbox.AttrOwner] == "" {
		incarnation = ""
	}
	if c.named[b].incarnation != incarnation {
		c.named[b] = naming{incarnation, c.fleet.now}
	}
	if _, claims := r.(store.Claim); !claims {
		if reply.Class == store.Done && !keeps {
			c.lastMove = c.fleet.now
		}
		return
	}
	mine := victory{p.relay, c.witness(p).buckets[b].plan}
	switch reply.Class {
	case store.Done:
		c.moves, c.lastMove = c.moves+1, c.fleet.now
		c.won[b] = mine
	case store.Refused:
		if won := c.won[b]; won.relay != mine.relay && won.plan == mine.plan {
			c.about(p.name, b).violated("I-28", "%s and relay %s planned on the same and both claimed bucket %d", p.name, won.relay, b)
		}
	}
}

// deleting: a row goes only after the broker has its message.
func (c *checker) deleting(p *process, r store.Delete) {
	for _, sequence := range r.Sequences {
		i, known := c.rows[rowName{r.Bucket, sequence}]
		switch {
		case !known:
			c.about(p.name, r.Bucket).violated("I-3", "%s deletes row %d of bucket %d, which was never committed", p.name, sequence, r.Bucket)
		case c.delivered[i] == 0 && !c.fleet.writers.committed[i].misnumbered && !c.unseen(i):
			c.about(p.name, r.Bucket).violated("I-3", "%s deletes row %d of bucket %d before it was delivered", p.name, sequence, r.Bucket)
		}
	}
}

// expiry is a lease's expiry as it stands in the table; 0: it has none.
func (c *checker) expiry(b int) store.Ticks {
	expires, _ := c.item(outbox.LeaseSortKey(b)).ticks(outbox.AttrExpiresAtUtc)
	return expires
}

// catchUp takes note of new commits and checks the records appended since.
func (c *checker) catchUp() {
	committed := c.fleet.writers.committed
	for i := len(c.delivered); i < len(committed); i++ {
		c.delivered = append(c.delivered, 0)
		m := committed[i]
		c.rows[rowName{m.bucket, m.sequence}] = i
		c.rowsOf[m.bucket] = insert(c.rowsOf[m.bucket], m.sequence)
		if m.misnumbered {
			c.forget(m.bucket, m.sequence)
			continue
		}
		c.lane(m).wait(m.sequence)
		if m.message.Key != nil {
			k := c.order(m.message.Topic, m.message.Key)
			k.commits = append(k.commits, i)
		}
	}
	for ; c.again < len(c.fleet.writers.again); c.again++ {
		row := c.fleet.writers.again[c.again]
		c.rowsOf[row.bucket] = insert(c.rowsOf[row.bucket], row.sequence)
		c.forget(row.bucket, row.sequence)
	}
	log := c.fleet.broker.Log()
	for ; c.read < len(log); c.read++ {
		c.appended(log[c.read])
	}
}

// forget: a row is in the table that is not the one of before under its number.
func (c *checker) forget(bucket int, sequence int64) {
	for _, w := range c.witnesses { // the order does not matter
		b := &w.buckets[bucket]
		delete(b.shared, sequence)
		b.undeleted = slices.DeleteFunc(b.undeleted, func(acked int64) bool { return acked == sequence })
	}
}

func (c *checker) order(topic string, key []byte) *keyOrder {
	name := topic + "\x00" + string(key)
	if c.keys[name] == nil {
		c.keys[name] = &keyOrder{}
	}
	return c.keys[name]
}

// appended checks one record: it is a committed message, byte for byte, where it
// belongs, and not before an earlier one of its topic and key.
func (c *checker) appended(r BrokerRecord) {
	id, ok := messageID(r.Record)
	i, known := c.fleet.writers.byID[id]
	if !ok || !known {
		c.about(r.Owner, r.Token.Bucket).violated("I-2", "a record that nobody committed: %v", r)
		return
	}
	m := c.fleet.writers.committed[i].message
	differ := differs
	if isLetter(r) {
		differ = letterDiffers
	}
	if fault := differ(r, m); fault != "" {
		c.about(r.Owner, r.Token.Bucket).violated("I-2", "message %s: %s", id, fault)
	}
	c.inTenure(r)
	c.delivered[i]++
	if c.delivered[i] > 1 {
		return
	}
	if c.fleet.writers.committed[i].misnumbered {
		return
	}
	c.firstInLane(i, r)
	if m.Key == nil {
		return
	}
	k := c.order(m.Topic, m.Key)
	k.skip(c)
	if c.discarded[i] {
		return
	}
	if k.next < len(k.commits) && k.commits[k.next] < i && c.together(k.commits[k.next], i) {
		late := c.fleet.writers.committed[k.commits[k.next]]
		c.about(r.Owner, r.Token.Bucket).violated("I-4", "row %d of bucket %d passes row %d of the same topic and key", r.Token.Sequence, r.Token.Bucket, late.sequence)
	}
}

// differs says how a record is not the message that was committed.
func differs(r BrokerRecord, m outbox.Message) string {
	headers := r.Record.Headers[:len(r.Record.Headers)-1] // the last is the id
	wanted := slices.DeleteFunc(slices.Clone(m.Headers), func(h outbox.Header) bool {
		return h.Key == publisher.DefaultMessageIDHeader // replaced by ours
	})
	switch {
	case r.Topic != m.Topic:
		return "in topic " + r.Topic
	case !same(r.Record.Key, m.Key):
		return "with another key"
	case !same(r.Record.Value, m.Value):
		return "with another value"
	case len(headers) != len(wanted):
		return "with other headers"
	}
	for i, h := range headers {
		if h.Key != wanted[i].Key || !same(h.Value, wanted[i].Value) {
			return "with other headers"
		}
	}
	if want := partitionOf(m); r.Partition != want {
		return fmt.Sprintf("in partition %d, not %d", r.Partition, want)
	}
	return ""
}

// same tells whether two values are equal and absent alike.
func same(a, b []byte) bool { return string(a) == string(b) && (a == nil) == (b == nil) }

// observe hears what a relay believes.
func (c *checker) observe(p *process, e event.Event) {
	c.witness(p).told(c, p, e)
	switch e := e.(type) {
	case event.BucketKept:
		c.believes(p, e.Bucket, store.Instant{Wall: e.Wall, Mono: e.Mono})
	case event.BucketWithheld:
		c.believesNot(p, e.Bucket)
	case event.StateChanged:
		c.coverage[e.Machine+"."+e.From+"/"+e.Event]++
		if to := fsm.State(e.To); e.Machine == "bucket" && (to == fsm.Releasing || to == fsm.Released || to == fsm.Lost) {
			c.believesNot(p, e.Bucket)
		}
	case event.ProducerFailed:
		c.failures++
	case event.ActorFailed:
		c.about(p.name, -1).violated("I-9", "%s: actor %s panicked: %s", p.name, e.Actor, e.Reason)
	}
}

// lost are the committed messages that the broker does not have, nor the table.
func (c *checker) lost() []uuid.UUID {
	var ids []uuid.UUID
	for i, n := range c.delivered {
		m := c.fleet.writers.committed[i]
		if n == 0 && !m.misnumbered && !c.present(m.bucket, m.sequence) && !c.aside[m.bucket].has(m.sequence) && !c.discarded[i] {
			ids = append(ids, m.message.ID)
		}
	}
	return ids
}
