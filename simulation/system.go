package simulation

import (
	"log/slog"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	cmap "github.com/orcaman/concurrent-map"
)

// template is protoactor's actor system as it makes it; processes get copies of
// it with small parts of their own. A whole one takes milliseconds and megabytes
// and starts a goroutine, which a simulation of thousands of processes cannot
// afford, and a relay that simulates nothing need not have.
var template = sync.OnceValue(func() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
})

// newSystem makes an actor system without goroutines.
func newSystem() *actor.ActorSystem {
	template := template()
	system := *template
	system.ID = "simulated"
	system.ProcessRegistry = &actor.ProcessRegistryValue{
		ActorSystem: &system,
		Address:     template.ProcessRegistry.Address,
		LocalPIDs:   &actor.SliceMap{LocalPIDs: []cmap.ConcurrentMap{cmap.New()}},
	}
	system.Root = actor.NewRootContext(&system, actor.EmptyMessageHeader)
	system.Guardians = actor.NewGuardians(&system)
	system.EventStream = eventstream.NewEventStream()
	system.DeadLetter = actor.NewDeadLetter(&system)
	// NewDeadLetter has subscribed a logger with a goroutine and a clock: the
	// stream is made anew, with the one subscriber that matters, who answers a
	// Watch of a dead actor.
	system.EventStream = eventstream.NewEventStream()
	system.EventStream.Subscribe(func(message any) {
		letter, ok := message.(*actor.DeadLetterEvent)
		if !ok {
			return
		}
		if watch, ok := letter.Message.(*actor.Watch); ok {
			watcher, _ := system.ProcessRegistry.Get(watch.Watcher)
			watcher.SendSystemMessage(watch.Watcher, &actor.Terminated{
				Who: letter.PID, Why: actor.TerminatedReason_NotFound,
			})
		}
	})
	return &system
}
