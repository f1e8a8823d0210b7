package simulation

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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
	delivered []int
	keys      map[string]*keyOrder
	rows      map[rowName]int // index into the commits

	beliefs  map[int][]belief // by bucket: who holds its lease valid
	requests map[string]int
	refused  map[string]int
	coverage map[string]int
	moves    int // claims that were applied
	lastMove time.Duration
	lastFuss time.Duration // of the last refused write
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

// belief is that one process holds a bucket's lease valid until an instant of
// its own clocks.
type belief struct {
	process *process
	until   store.Instant
}

// holds tells whether it does so now.
func (b belief) holds() bool { return !b.until.PassedAt(b.process.Now()) }

func newChecker(f *fleet) *checker {
	return &checker{
		fleet: f, keys: map[string]*keyOrder{}, rows: map[rowName]int{}, beliefs: map[int][]belief{},
		requests: map[string]int{}, refused: map[string]int{}, coverage: map[string]int{},
	}
}

// violated notes a broken promise.
func (c *checker) violated(invariant, format string, args ...any) {
	v := Violation{Invariant: invariant, VirtualTime: c.fleet.now, Detail: fmt.Sprintf(format, args...)}
	c.violations = append(c.violations, v)
	c.fleet.record("checker", "VIOLATION %s: %s", v.Invariant, v.Detail)
}

// applied checks a request around the instant at which the table applies it.
func (c *checker) applied(p *process, r store.Request, apply func() store.Reply) store.Reply {
	c.requests[r.RequestName()]++
	c.catchUp()
	var before store.Ticks
	switch r := r.(type) {
	case store.Keep:
		before = c.expiry(r.Bucket)
	case store.Delete:
		c.deleting(p, r)
	}
	reply := apply()
	switch r := r.(type) {
	case store.Keep:
		if after := c.expiry(r.Bucket); reply.Class == store.Done && after < before {
			c.violated("I-7", "%s: a keep moved the expiry of bucket %d from %d to %d", p.name, r.Bucket, before, after)
		}
	case store.Claim:
		if reply.Class == store.Done {
			c.moves, c.lastMove = c.moves+1, c.fleet.now
		}
	}
	if reply.Class == store.Refused {
		c.refused[r.RequestName()]++
		c.lastFuss = c.fleet.now
	}
	return reply
}

// deleting: a row goes only after the broker has its message.
func (c *checker) deleting(p *process, r store.Delete) {
	for _, sequence := range r.Sequences {
		i, known := c.rows[rowName{r.Bucket, sequence}]
		switch {
		case !known:
			c.violated("I-3", "%s deletes row %d of bucket %d, which was never committed", p.name, sequence, r.Bucket)
		case c.delivered[i] == 0:
			c.violated("I-3", "%s deletes row %d of bucket %d before it was delivered", p.name, sequence, r.Bucket)
		}
	}
}

// expiry is a lease's expiry as it stands in the table.
func (c *checker) expiry(b int) store.Ticks {
	s := c.fleet.schema
	out, err := c.fleet.db.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: &s.Table, Key: s.Key(s.CoordinationKey(), outbox.LeaseSortKey(b)),
	})
	if err != nil {
		panic(err)
	}
	n, ok := out.Item[outbox.AttrExpiresAtUtc].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	ticks, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		panic(err)
	}
	return store.Ticks(ticks)
}

// catchUp takes note of new commits and checks the records appended since.
func (c *checker) catchUp() {
	committed := c.fleet.writers.committed
	for i := len(c.delivered); i < len(committed); i++ {
		c.delivered = append(c.delivered, 0)
		m := committed[i]
		c.rows[rowName{m.bucket, m.sequence}] = i
		if m.message.Key != nil {
			k := c.order(m.message.Topic, m.message.Key)
			k.commits = append(k.commits, i)
		}
	}
	log := c.fleet.broker.Log()
	for ; c.read < len(log); c.read++ {
		c.appended(log[c.read])
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
		c.violated("I-2", "a record that nobody committed: %v", r)
		return
	}
	m := c.fleet.writers.committed[i].message
	if fault := differs(r, m); fault != "" {
		c.violated("I-2", "message %s: %s", id, fault)
	}
	c.delivered[i]++
	if c.delivered[i] > 1 || m.Key == nil {
		return
	}
	k := c.order(m.Topic, m.Key)
	if k.commits[k.next] != i {
		late := c.fleet.writers.committed[k.commits[k.next]]
		c.violated("I-4", "row %d of bucket %d passes row %d of the same topic and key", r.Token.Sequence, r.Token.Bucket, late.sequence)
	}
	for k.next < len(k.commits) && c.delivered[k.commits[k.next]] > 0 {
		k.next++
	}
}

// differs says how a record is not the message that was committed.
func differs(r BrokerRecord, m outbox.Message) string {
	headers := r.Record.Headers[:len(r.Record.Headers)-1] // the last is the id
	switch {
	case r.Topic != m.Topic:
		return "in topic " + r.Topic
	case !same(r.Record.Key, m.Key):
		return "with another key"
	case !same(r.Record.Value, m.Value):
		return "with another value"
	case len(headers) != len(m.Headers):
		return "with other headers"
	}
	for i, h := range headers {
		if h.Key != m.Headers[i].Key || !same(h.Value, m.Headers[i].Value) {
			return "with other headers"
		}
	}
	if m.Key != nil {
		for _, t := range topics {
			want := int32(outbox.Murmur2(m.Key)&0x7fffffff) % int32(t.partitions)
			if t.name == m.Topic && r.Partition != want {
				return fmt.Sprintf("in partition %d, not %d", r.Partition, want)
			}
		}
	}
	return ""
}

// same tells whether two values are equal and absent alike.
func same(a, b []byte) bool { return string(a) == string(b) && (a == nil) == (b == nil) }

// observe hears what a relay believes.
func (c *checker) observe(p *process, e event.Event) {
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
	case event.ActorFailed:
		c.violated("I-9", "%s: actor %s panicked: %s", p.name, e.Actor, e.Reason)
	}
}

func (c *checker) believesNot(p *process, b int) {
	kept := c.beliefs[b][:0]
	for _, other := range c.beliefs[b] {
		if other.process != p {
			kept = append(kept, other)
		}
	}
	c.beliefs[b] = kept
}

// believes: a process holds a lease valid. Nobody else may at this instant, but
// for an older process under the same id, which has a round and a request's time
// to learn of its successor.
func (c *checker) believes(p *process, b int, until store.Instant) {
	c.believesNot(p, b)
	mine := belief{p, until}
	if p.held == 0 {
		p.held = c.fleet.now
	}
	for _, other := range c.beliefs[b] {
		if mine.holds() && other.holds() && !c.succeeds(p, other.process) {
			c.violated("I-5", "%s and %s both hold the lease of bucket %d valid", p.name, other.process.name, b)
		}
	}
	c.beliefs[b] = append(c.beliefs[b], mine)
}

// succeeds tells whether one of two processes has a short while ago begun to
// hold leases under the other's id. Until then nothing could tell the other.
func (c *checker) succeeds(p, other *process) bool {
	younger := p
	if other.born > p.born {
		younger = other
	}
	stalled := max(p.stalledUntil, other.stalledUntil)
	grace := 2*c.fleet.o.LeaseRenewInterval + requestTimeout
	return p.relay == other.relay && c.fleet.now-max(younger.held, stalled) <= grace
}

func (c *checker) died(p *process) {
	for b := range c.fleet.o.Buckets {
		c.believesNot(p, b)
	}
}

// holds tells whether a process holds a lease valid by its own reckoning.
func (c *checker) holds(p *process, b int) bool {
	for _, other := range c.beliefs[b] {
		if other.process == p && other.holds() {
			return true
		}
	}
	return false
}

// watch is a factory whose producers are watched: no relay submits a record of a
// bucket whose lease is not valid.
func (c *checker) watch(p *process, f publisher.Factory) publisher.Factory {
	return watchedFactory{c, p, f}
}

type watchedFactory struct {
	checker *checker
	process *process
	publisher.Factory
}

// Open opens a watched producer.
func (f watchedFactory) Open(o publisher.Options, sink publisher.Sink) (publisher.Producer, error) {
	producer, err := f.Factory.Open(o, sink)
	return watchedProducer{f.checker, f.process, producer}, err
}

type watchedProducer struct {
	checker *checker
	process *process
	publisher.Producer
}

// Produce checks the lease and passes the record on.
func (w watchedProducer) Produce(r publisher.Record, t publisher.Token) error {
	if !w.checker.holds(w.process, t.Bucket) {
		w.checker.violated("I-6", "%s submits row %d of bucket %d without a valid lease", w.process.name, t.Sequence, t.Bucket)
	}
	return w.Producer.Produce(r, t)
}

// undelivered are the committed messages that the broker does not have.
func (c *checker) undelivered() []uuid.UUID {
	var ids []uuid.UUID
	for i, n := range c.delivered {
		if n == 0 {
			ids = append(ids, c.fleet.writers.committed[i].message.ID)
		}
	}
	return ids
}
