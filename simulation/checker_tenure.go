package simulation

import (
	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/store"
)

// tenures are the tenures of all buckets, in the order in which they began: by the
// first claim, or keep, of each that the table applied.
type tenures struct {
	began map[ownership]int
	// unaware are the records that a process submitted which could not know yet of a
	// younger one under its id. They may be seen long after.
	unaware map[submittedBy]bool
	// superseded are processes under whose id a younger one has begun.
	superseded map[string]bool
	// last is the last tenure of which consumers saw a record on a partition, and
	// lastFenced the last one in fenced mode.
	last, lastFenced map[lanePlace]int
}

// ownership is one process's time with one bucket. Its number is also in the batches
// that the bucket gives to the publisher.
type ownership struct {
	process string
	bucket  int
	number  int64
}

// submittedBy is one submission of a record.
type submittedBy struct {
	process string
	token   publisher.Token
}

func newTenures() tenures {
	return tenures{
		began: map[ownership]int{}, unaware: map[submittedBy]bool{}, superseded: map[string]bool{},
		last: map[lanePlace]int{}, lastFenced: map[lanePlace]int{},
	}
}

// submits notes a record on its way.
func (c *checker) submits(p *process, t publisher.Token) {
	if p.fenced() && c.unaware(p) {
		c.tenures.unaware[submittedBy{p.name, t}] = true
	}
}

// tenureBegins notes a lease write that begins a tenure.
func (c *checker) tenureBegins(p *process, r store.Request, reply store.Reply) {
	t := ownership{process: p.name, bucket: r.ConcernsBucket()}
	switch r := r.(type) {
	case store.Claim:
		t.number = r.Claim
	case store.Keep:
		t.number = r.Claim
	default:
		return
	}
	if _, known := c.tenures.began[t]; !known && reply.Class == store.Done {
		c.tenures.began[t] = len(c.tenures.began) + 1
	}
}

// inTenure: of an old owner in fenced mode a consumer of committed records sees nothing
// after the first record of a later owner, partition by partition. A later owner in
// fenced mode has taken the fence, whoever owned the bucket between the two. One in
// ordered mode has not; but the old one commits under a valid lease only, and when its
// records are there already.
//
// An old owner in ordered mode is held to nothing: no fence stops what it has on its way.
// Nor is a process that cannot know yet of a younger one under its id: for that while
// there are two owners, as with I-5, and only a fence tells them apart.
func (c *checker) inTenure(r BrokerRecord) {
	began := c.tenures.began[tenureOf(r.Owner, r.Token)]
	at := lanePlace{r.Token.Bucket, r.Topic, r.Partition}
	if r.Fenced {
		fencedOff := began < c.tenures.lastFenced[at] && !c.tenures.unaware[submittedBy{r.Owner, r.Token}]
		if fencedOff || began < c.tenures.last[at] && !c.tenures.superseded[r.Owner] {
			c.about(r.Owner, r.Token.Bucket).violated("I-41", "row %d of bucket %d, of an old owner, is seen after a record of its successor's", r.Token.Sequence, r.Token.Bucket)
		}
		c.tenures.lastFenced[at] = max(c.tenures.lastFenced[at], began)
	}
	c.tenures.last[at] = max(c.tenures.last[at], began)
}

func tenureOf(process string, t publisher.Token) ownership {
	return ownership{process, t.Bucket, int64(t.Batch >> 32)}
}

// unseen tells whether the broker has a message for good that no consumer sees
// yet, since a transaction is open before it on its partition.
func (c *checker) unseen(i int) bool {
	id := c.fleet.writers.committed[i].message.ID
	return c.fleet.broker.Unseen(func(r BrokerRecord) bool {
		of, ok := messageID(r.Record)
		return ok && of == id
	})
}

// together tells whether the order of two messages of one key, or of one partition,
// shows. On one partition it does, and a letter is on another one. On two it does
// unless there were transactions since the first of them was committed: what a consumer
// sees first is a matter of these then, whosever they are.
func (c *checker) together(i, j int) bool {
	committed := c.fleet.writers.committed
	letters := c.fleet.o.Poison == relay.PoisonDeadLetter &&
		(c.fleet.writers.guilty(committed[i].message) || c.fleet.writers.guilty(committed[j].message))
	onOne := !letters && partitionOf(committed[i].message) == partitionOf(committed[j].message)
	return onOne || min(committed[i].at, committed[j].at) >= c.fleet.broker.OpenUntil()
}
