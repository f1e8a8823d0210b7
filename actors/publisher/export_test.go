package publisher

import (
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
)

// Ports are what a publisher without its actor is driven through.
type Ports struct {
	Now     func() actors.Instant
	After   func(time.Duration, any)
	Send    func(*actor.PID, any)
	Observe func(event.Event)
	Broken  func(error) // invariants, checked after each step
}

// Desk is a publisher without its actor.
type Desk struct {
	core *core
	*performer
}

func NewDesk(cfg Config, random *rand.Rand, ports Ports) *Desk {
	d := &Desk{core: newCore(cfg.WithDefaults(), random)}
	d.performer = &performer{
		factory:   cfg.Factory,
		listener:  cfg.Listener,
		now:       ports.Now,
		after:     ports.After,
		send:      ports.Send,
		observe:   ports.Observe,
		producers: map[int]Producer{},
		step: func(now actors.Instant, message any) []effect {
			effects := d.core.step(now, message)
			if err := d.core.checkInvariants(); err != nil {
				ports.Broken(err)
			}
			return effects
		},
	}
	return d
}

func (d *Desk) SinkTo(sink Sink)   { d.sink = sink }
func (d *Desk) Start()             { d.handle(start{}) }
func (d *Desk) Handle(m any)       { d.handle(m) }
func (d *Desk) ProducerCount() int { return len(d.producers) }

// OutstandingBytes is what the budget counts, over all buckets.
func (d *Desk) OutstandingBytes() (n int) {
	for _, b := range d.core.buckets {
		n += b.bytes
	}
	return n
}

// SkipPriming plants a bug: the producer counts as primed everywhere.
func (d *Desk) SkipPriming(number int, topic string, partitions int32) {
	for i := range partitions {
		*d.core.producer(number).path(place{topic, i}) = path{primed: true, lastSent: d.now(), era: d.core.topic(topic).era}
	}
}
