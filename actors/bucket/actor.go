package bucket

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/publisher"
)

// New makes the producer of one tenure's actor.
func New(cfg Config, runtime actors.Runtime) actor.Producer {
	return func() actor.Actor {
		return &bucket{runtime: runtime, core: newCore(cfg), publisher: cfg.Publisher, coordinator: cfg.Coordinator}
	}
}

// bucket performs the core's effects.
type bucket struct {
	runtime     actors.Runtime
	core        *core
	rand        *rand.Rand
	publisher   *actor.PID
	coordinator *actor.PID
	cancel      [timerKinds]func()
}

// Receive implements actor.Actor.
func (b *bucket) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		b.rand = b.runtime.Rand(ctx.Self().Id)
	case *actor.Stopping:
		b.disarmAll()
	case actor.SystemMessage, actor.AutoReceiveMessage:
	case Rebind:
		b.publisher = m.Publisher
		b.step(ctx, m)
	default:
		b.step(ctx, m)
	}
}

func (b *bucket) step(ctx actor.Context, message any) {
	defer func() {
		if reason := recover(); reason != nil {
			failed := Failed{Bucket: b.core.cfg.Bucket, Tenure: b.core.cfg.Claim, Reason: fmt.Sprint(reason)}
			ctx.Send(b.coordinator, failed)
			panic(reason)
		}
	}()
	for _, e := range b.core.step(b.runtime.Now(), message) {
		b.perform(ctx, e)
	}
}

func (b *bucket) perform(ctx actor.Context, e effect) {
	switch e := e.(type) {
	case do:
		b.runtime.Do(ctx.Self(), e.request, e.token)
	case arm:
		b.disarm(e.timer)
		b.cancel[e.timer] = b.runtime.After(ctx.Self(), e.after-b.jitter(e.spread), e.timer.message(e.number))
	case disarm:
		b.disarm(e.timer)
	case tellCoordinator:
		ctx.Send(b.coordinator, e.message)
	case tellPublisher:
		ctx.Send(b.publisher, addressed(e.message, ctx.Self()))
	case emit:
		b.runtime.Emit(e.event)
	case stop:
		ctx.Stop(ctx.Self())
	}
}

// addressed is a message to the publisher with whom it is to answer.
func addressed(message any, self *actor.PID) any {
	switch m := message.(type) {
	case publisher.Publish:
		m.ReplyTo = self
		return m
	case publisher.Fence:
		m.ReplyTo = self
		return m
	}
	return message
}

// jitter is a random part of spread.
func (b *bucket) jitter(spread time.Duration) time.Duration {
	if spread <= 0 {
		return 0
	}
	return time.Duration(b.rand.Int64N(int64(spread)))
}

func (b *bucket) disarm(t timer) {
	if b.cancel[t] != nil {
		b.cancel[t]()
		b.cancel[t] = nil
	}
}

func (b *bucket) disarmAll() {
	for t := range timerKinds {
		b.disarm(t)
	}
}
