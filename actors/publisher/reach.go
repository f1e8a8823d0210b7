package publisher

import (
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
)

// reachability is what one producer has said of its brokers.
type reachability uint8

const (
	unheard reachability = iota // nothing yet
	reaches
	reachesNone
)

// answerHolds is how long an answer to one producer speaks against the complaint of
// another one: a client with nothing to do finds out minutes later that nobody answers.
const answerHolds = 30 * time.Second

// reach is whether a broker answers any of the producers, as it was last told.
type reach struct {
	connected bool
	announced bool           // Connected was told since
	told      bool           // disconnected was told since the start or since connected
	since     actors.Instant // of the present state
}

// reached takes a sign of life: a producer's Reached, or an acknowledgement.
func (c *core) reached(number int) {
	if p := c.producer(number); p != nil {
		p.reach, p.answered = reaches, c.now
	}
	if c.reach.connected {
		return
	}
	c.emit(event.BrokerReached{After: actors.Elapsed(c.reach.since, c.now)})
	c.reach = reach{connected: true, since: c.now}
	c.connect()
}

// unreached takes a producer's complaint.
func (c *core) unreached(m Unreached) {
	if p := c.producer(m.Producer); p != nil {
		p.reach = reachesNone
		c.unreachable(m.Producer, m.Reason)
	}
}

// complaintDue looks again at a complaint that another producer's answer spoke against.
func (c *core) complaintDue(m complaintDue) {
	if p := c.producer(m.producer); p != nil && p.state == open && p.reach == reachesNone {
		c.unreachable(m.producer, m.reason)
	}
}

// unreachable tells, once, that no broker answers, as a producer complains, unless one
// has answered another producer lately.
func (c *core) unreachable(number int, reason string) {
	if c.reach.told {
		return
	}
	for _, p := range c.producers {
		if p.state == open && p.reach == reaches && actors.Elapsed(p.answered, c.now) < answerHolds {
			c.wake(answerHolds-actors.Elapsed(p.answered, c.now), complaintDue{number, reason})
			return
		}
	}
	since := c.reach.since
	if c.reach.connected {
		since = c.now
	}
	c.reach = reach{told: true, since: since}
	c.emit(event.BrokerUnreachable{Reason: reason})
	c.do(tell{Disconnected{Reason: reason}})
}
