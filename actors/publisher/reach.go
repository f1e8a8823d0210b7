package publisher

import (
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
		p.reach = reaches
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
		c.unreachable(m.Reason)
	}
}

// unreachable tells, once, that no broker answers, unless one answers another
// producer.
func (c *core) unreachable(reason string) {
	for _, p := range c.producers {
		if p.state == open && p.reach == reaches {
			return
		}
	}
	if c.reach.told {
		return
	}
	since := c.reach.since
	if c.reach.connected {
		since = c.now
	}
	c.reach = reach{told: true, since: since}
	c.emit(event.BrokerUnreachable{Reason: reason})
	c.do(tell{Disconnected{Reason: reason}})
}
