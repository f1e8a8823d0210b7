package publisher

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
)

// New makes the publisher's actor, to be spawned with r.Props. The configuration
// must be valid; zero values become the defaults. It takes Publish, Extend, Abandon
// and Fence, and from its producers Reported, Fataled, Concluded, Described, Reached
// and Unreached; it sends Published and FenceTaken to ReplyTo, and Connected and
// Disconnected to the listener. It opens its first producer when it starts, so
// that it is known whether a broker can be reached before there is a message.
func New(cfg Config, r actors.Runtime) actor.Producer {
	return func() actor.Actor { return &shell{cfg: cfg.WithDefaults(), runtime: r} }
}

// shell is the actor around the core.
type shell struct {
	cfg       Config
	runtime   actors.Runtime
	performer *performer // nil until started
}

// Receive never blocks: producers take records into a queue, and everything that
// they have to say comes as a message.
func (s *shell) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.performer = s.newPerformer(ctx)
		s.performer.handle(start{})
	case *actor.Stopping:
		s.stop()
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		s.performer.handle(m)
	}
}

func (s *shell) newPerformer(ctx actor.Context) *performer {
	self, root := ctx.Self(), ctx.ActorSystem().Root
	return &performer{
		step:      newCore(s.cfg, s.runtime.Rand("publisher")).step,
		factory:   s.cfg.Factory,
		listener:  s.cfg.Listener,
		sink:      func(message any) { root.Send(self, message) },
		now:       s.runtime.Now,
		after:     func(d time.Duration, message any) { s.runtime.After(self, d, message) },
		send:      func(to *actor.PID, message any) { root.Send(to, message) },
		observe:   func(e event.Event) { s.runtime.Emit(e) },
		producers: map[int]Producer{},
	}
}

// stop closes the producers. A panic here would leave an actor that neither lives
// nor dies, with its watchers waiting; what it did not close the runtime's
// factory still knows.
func (s *shell) stop() {
	defer func() { _ = recover() }()
	if s.performer != nil {
		s.performer.closeAll()
	}
}
