package coordinator

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/store"
)

// New makes the producer of a relay's coordinator.
func New(cfg Config, runtime actors.Runtime) actor.Producer {
	return func() actor.Actor { return &coordinator{cfg: cfg, runtime: runtime, buckets: map[int64]*actor.PID{}} }
}

// coordinator performs the core's effects.
type coordinator struct {
	cfg       Config
	runtime   actors.Runtime
	core      *core
	rand      *rand.Rand
	buckets   map[int64]*actor.PID // by tenure
	publisher *actor.PID
	cancel    [timerKinds]func()
	finished  *finish // nil: it has not come to its end by itself
}

// Names of children. A name is unique in the process's life, lest a stale PID
// reach a successor.
const (
	bucketName    = "bucket"
	publisherName = "publisher"
)

// Receive implements actor.Actor.
func (c *coordinator) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.rand = c.runtime.Rand(ctx.Self().Id)
		c.core = newCore(c.cfg, c.incarnation(c.runtime.Now().Ticks()))
		c.core.rename = c.rename
		c.perform(ctx, c.core.start(c.runtime.Now()))
	case *actor.Stopping:
		c.cancelAll()
	case *actor.Stopped: // and so has every child: nothing more is sent
		if c.finished != nil {
			c.cfg.Ended(c.finished.err)
		}
	case *actor.Terminated:
		c.terminated(ctx, m.Who)
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		c.perform(ctx, c.core.step(c.runtime.Now(), m))
	}
}

// incarnation names this start of the process: when, and a random part
// (protocol.md section 3, Incarnation).
func (c *coordinator) incarnation(began store.Ticks) string {
	return fmt.Sprintf("%019d-%08x", began, c.rand.Uint32())
}

// rename is the core's: a higher incarnation, also when our clock was ahead before.
func (c *coordinator) rename(now actors.Instant, before identity) identity {
	var began store.Ticks
	fmt.Sscanf(before.incarnation, "%d", &began)
	next := identity{relay: before.relay, incarnation: c.incarnation(max(now.Ticks(), began+1))}
	if c.cfg.NewID != nil {
		next.relay = c.cfg.NewID(c.rand)
	}
	return next
}

// terminated tells the core of a dead child through our own mailbox, behind what
// the child itself has sent before it died: system messages overtake others.
func (c *coordinator) terminated(ctx actor.Context, who *actor.PID) {
	name := who.Id[strings.LastIndexByte(who.Id, '/')+1:]
	var died childDied
	if _, err := fmt.Sscanf(name, bucketName+"-%d-%d", &died.bucket, &died.tenure); err == nil {
		ctx.Send(ctx.Self(), died)
		return
	}
	var publisher publisherDied
	if _, err := fmt.Sscanf(name, publisherName+"-%d", &publisher.number); err == nil {
		ctx.Send(ctx.Self(), publisher)
	}
}

func (c *coordinator) perform(ctx actor.Context, effects []effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case do:
			c.runtime.Do(ctx.Self(), e.request, e.token)
		case arm:
			c.arm(ctx, e)
		case spawn:
			c.spawnBucket(ctx, e)
		case tell:
			ctx.Send(c.buckets[e.tenure], e.message)
		case forget:
			delete(c.buckets, e.tenure)
		case openPublisher:
			c.spawnPublisher(ctx, e.number)
		case tellPublisher:
			ctx.Send(c.publisher, e.message)
		case emit:
			c.runtime.Emit(e.event)
		case finish:
			c.finished = &e
			ctx.Stop(ctx.Self())
		}
	}
}

func (c *coordinator) spawnBucket(ctx actor.Context, e spawn) {
	cfg := c.cfg.Bucket
	cfg.Bucket, cfg.Claim = e.bucket, e.tenure
	cfg.BucketCount, cfg.Relay, cfg.Incarnation = c.cfg.BucketCount, c.core.id.relay, c.core.id.incarnation
	cfg.Coordinator, cfg.Publisher = ctx.Self(), c.publisher
	pid := c.spawn(ctx, bucket.New(cfg, c.runtime), fmt.Sprintf("%s-%d-%d", bucketName, e.bucket, e.tenure))
	c.buckets[e.tenure] = pid
	ctx.Send(pid, e.first)
}

func (c *coordinator) spawnPublisher(ctx actor.Context, number int) {
	cfg := c.cfg.Publisher
	cfg.Listener = ctx.Self()
	c.publisher = c.spawn(ctx, publisher.New(cfg, c.runtime), fmt.Sprintf("%s-%d", publisherName, number))
	for b := range c.core.children {
		if tenure := c.core.children[b].tenure; tenure != 0 {
			ctx.Send(c.buckets[tenure], bucket.Rebind{Publisher: c.publisher})
		}
	}
}

func (c *coordinator) spawn(ctx actor.Context, producer actor.Producer, name string) *actor.PID {
	props := c.runtime.Props(producer, actor.WithSupervisor(actors.StopOnPanic()))
	pid, err := ctx.SpawnNamed(props, name)
	if err != nil {
		panic(fmt.Sprintf("coordinator: spawn %s: %v", name, err))
	}
	return pid
}

func (c *coordinator) arm(ctx actor.Context, e arm) {
	if c.cancel[e.timer] != nil {
		c.cancel[e.timer]()
	}
	c.cancel[e.timer] = c.runtime.After(ctx.Self(), e.after, e.timer.message(e.number))
}

func (c *coordinator) cancelAll() {
	for _, cancel := range c.cancel {
		if cancel != nil {
			cancel()
		}
	}
}
