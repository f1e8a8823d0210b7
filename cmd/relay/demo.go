package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

const (
	demoTable      = "demo"
	demoPartitions = 6
	// demoWriting is over how long the messages are written, so that relays
	// come and go while they are.
	demoWriting = 3 * time.Second
	// demoPatience is how long nothing may move before the demo gives up.
	demoPatience = 20 * time.Second
)

// demo shows everything at work in one process: the embedded table, a broker,
// the real writer, and relays that come and go. Then it verifies what arrived.
type demo struct {
	app      *app
	messages int
	relays   int
	buckets  int
	keys     int
	keep     bool
	output   format

	began    time.Time
	progress sync.Mutex // guards lines on the screen
	seen     *drained
}

func newDemo(a *app) *cobra.Command {
	c := &demo{app: a, messages: 2000, relays: 2, buckets: 8, keys: 50}
	return a.command(spec{
		use:   "demo",
		short: "Shows writer, table, relays and broker at work in this one process",
		long: "Writes messages while relays move them, stops one relay in the middle, starts another, then\n" +
			"consumes everything and verifies it. Table and broker are in this process; nothing else is needed.",
		arguments: []settings.Argument{
			{Name: "messages", Value: settings.Count(&c.messages), Doc: "messages to write"},
			{Name: "relays", Value: settings.Count(&c.relays), Doc: "relays to begin with"},
			{Name: "buckets", Value: settings.Count(&c.buckets), Doc: "buckets of the outbox"},
			{Name: "keys", Value: settings.Count(&c.keys), Doc: "distinct keys, each in order"},
			{Name: "keep", Value: settings.Switch(&c.keep), Doc: "leave it running, and say what to try"},
			outputArgument(&c.output),
		},
		run: c.run,
	})
}

func (c *demo) run(ctx context.Context, _ *settings.Loader) error {
	if c.buckets > outbox.MaxBucketCount {
		return usageErrorf("--buckets %d: must be at most %d", c.buckets, outbox.MaxBucketCount)
	}
	c.began, c.seen = c.app.now(), newDrained()
	table := memtable.New(memtable.Options{Now: func() time.Duration { return c.app.now().Sub(c.began) }})
	schema := outbox.Schema{Table: demoTable, BucketCount: c.buckets}.WithDefaults()
	if err := store.CreateTable(ctx, table, schema); err != nil {
		return err
	}
	broker, err := kafka.StartMock(kafka.Topic{Name: demoTopic, Partitions: demoPartitions})
	if err != nil {
		return err
	}
	defer broker.Close()
	cluster := broker.Config()
	producers, err := kafka.NewFactory(cluster)
	if err != nil {
		return err
	}
	relays := newFleet(relay.Config{
		Table: demoTable, BucketCount: c.buckets, DynamoDB: table, Coordination: table,
	}, producers, c.observe)
	if c.keep {
		relays.look = c.look
	}
	c.say("a table with %d buckets and a broker are up, in this process", c.buckets)

	enqueued, err := c.play(ctx, table, relays)
	if err != nil || !c.keep {
		err = errors.Join(err, relays.stop())
	}
	if err == nil {
		err = c.judge(ctx, table, schema, cluster, enqueued)
	}
	if c.keep && err == nil {
		c.wait(ctx, cluster, relays)
	}
	return errors.Join(err, relays.stop(), closeProducers(producers))
}

// play writes while relays run, stops one in the middle, and waits until the
// outbox is empty.
func (c *demo) play(ctx context.Context, table *memtable.DB, relays *fleet) ([]outbox.Message, error) {
	for range c.relays {
		if _, err := relays.start(ctx); err != nil {
			return nil, err
		}
	}
	writer, err := outbox.NewWriter(table, outbox.Options{Table: demoTable, BucketCount: c.buckets})
	if err != nil {
		return nil, err
	}
	half, done := make(chan struct{}), make(chan struct{})
	service := &demoWriter{writer: writer, messages: c.messages, keys: c.keys, duration: demoWriting,
		half: func() { close(half) }}
	var enqueued []outbox.Message
	var writeErr error // like enqueued, to be read after done
	writing, stopWriting := context.WithCancel(ctx)
	defer func() { stopWriting(); <-done }()
	go func() {
		defer close(done)
		enqueued, writeErr = service.run(writing)
	}()
	c.say("writing %d messages with %d keys while %d relays run", c.messages, c.keys, c.relays)
	select {
	case <-half:
	case <-done:
		err = writeErr // nil when there was so little to write
	case err = <-relays.failures:
	}
	if err != nil {
		return nil, err
	}
	if err := c.change(ctx, relays); err != nil {
		return nil, err
	}
	<-done
	if writeErr != nil {
		return nil, writeErr
	}
	c.say("all %d messages are written", len(enqueued))
	err = c.seen.wait(ctx, len(enqueued), demoPatience, relays.failures)
	if errors.Is(err, errStalled) {
		err = nil // what is missing is the verdict's to say
	}
	return enqueued, err
}

// change stops the first relay, and starts another in its place.
func (c *demo) change(ctx context.Context, relays *fleet) error {
	first := relays.members[0]
	c.say("half of the messages are written: stopping %s", first.id)
	if err := first.stop(); err != nil {
		return err
	}
	next, err := relays.start(ctx)
	if err != nil {
		return err
	}
	c.say("%s has taken its place", next.id)
	return nil
}

// judge consumes everything, compares, and prints the summary. A mismatch is an
// error.
func (c *demo) judge(ctx context.Context, table *memtable.DB, schema outbox.Schema, cluster kafka.Config, enqueued []outbox.Message) error {
	consumed, err := kafka.ReadTopic(ctx, cluster, demoTopic)
	if err != nil {
		return err
	}
	v := verify(enqueued, consumed)
	pending := pendingRows(table, schema)
	if err := c.summarize(v, pending); err != nil {
		return err
	}
	if !v.sound() || pending > 0 {
		return fmt.Errorf("the demo found a mismatch: %d lost, %d out of order, %d altered, %d left in the outbox",
			v.Lost, v.Disordered, v.Altered, pending)
	}
	return nil
}

// pendingRows counts the messages in the raw table: the relays' own counters
// prove nothing.
func pendingRows(table *memtable.DB, schema outbox.Schema) int {
	buckets := map[string]bool{}
	for bucket := range schema.BucketCount {
		buckets[schema.MessagesKey(bucket)] = true
	}
	pending := 0
	for _, item := range table.Items(schema.Table) {
		if key, ok := item[schema.PartitionKey].(*types.AttributeValueMemberS); ok && buckets[key.Value] {
			pending++
		}
	}
	return pending
}

// demoDocument is the JSON of the command.
type demoDocument struct {
	Enqueued      int      `json:"enqueued"`
	Delivered     int      `json:"delivered"`
	Lost          int      `json:"lost"`
	Duplicates    int      `json:"duplicates"`
	Keys          int      `json:"keys"`
	OrderVerified bool     `json:"orderVerified"`
	Pending       int      `json:"pending"`
	Seconds       float64  `json:"seconds"`
	Problems      []string `json:"problems,omitempty"`
}

func (c *demo) summarize(v verdict, pending int) error {
	seconds := c.app.now().Sub(c.began).Round(time.Millisecond).Seconds()
	ordered := v.Disordered == 0
	if c.output == formatJSON {
		return printJSON(c.app.stdout, demoDocument{
			Enqueued: v.Enqueued, Delivered: v.Delivered, Lost: v.Lost, Duplicates: v.Duplicates, Keys: v.Keys,
			OrderVerified: ordered, Pending: pending, Seconds: seconds, Problems: v.Problems,
		})
	}
	out := c.app.stdout
	fmt.Fprintf(out, "\n%d messages delivered, %d lost, %d duplicates\n", v.Delivered, v.Lost, v.Duplicates)
	if ordered {
		fmt.Fprintf(out, "order verified for %d keys\n", v.Keys)
	} else {
		fmt.Fprintf(out, "order broken: %d messages came after later ones of their key\n", v.Disordered)
	}
	if v.Altered == 0 {
		fmt.Fprintln(out, "keys, values and headers arrived byte for byte")
	} else {
		fmt.Fprintf(out, "%d records are not what was enqueued\n", v.Altered)
	}
	fmt.Fprintf(out, "%d messages left in the outbox, after %.1f s\n", pending, seconds)
	for _, p := range v.Problems {
		fmt.Fprintln(out, "  "+p)
	}
	return nil
}

// wait leaves everything running until the command is told to stop.
func (c *demo) wait(ctx context.Context, cluster kafka.Config, relays *fleet) {
	c.say("everything keeps running; Ctrl-C ends it. In another terminal, try:")
	for _, m := range relays.members {
		if m.outlook != nil && !m.stopped() {
			fmt.Fprintf(c.screen(), "  curl http://%s/status   # %s; also /metrics, /readyz\n", m.outlook.server.Address(), m.id)
		}
	}
	brokers := strings.Join(cluster.Brokers, ",")
	fmt.Fprintf(c.screen(), "  kcat -b %s -t %s -C -o beginning -f '%%p/%%o %%k %%s %%h\\n'\n", brokers, demoTopic)
	fmt.Fprintf(c.screen(), "  kafka-console-consumer.sh --bootstrap-server %s --topic %s --from-beginning\n", brokers, demoTopic)
	<-ctx.Done()
}

// look opens a relay's admin address, on a free port of this host.
func (c *demo) look(ctx context.Context) (*outlook, error) {
	s := settings.Defaults()
	s.AdminAddr = "127.0.0.1:0"
	return c.app.openOutlook(ctx, &s, zerolog.Nop())
}

// screen is where progress goes: where the result goes, unless that is a
// document for a program.
func (c *demo) screen() io.Writer {
	if c.output == formatJSON {
		return c.app.stderr
	}
	return c.app.stdout
}

func (c *demo) say(format string, args ...any) {
	c.progress.Lock()
	defer c.progress.Unlock()
	fmt.Fprintf(c.screen(), "%5.1fs  %s\n", c.app.now().Sub(c.began).Seconds(), fmt.Sprintf(format, args...))
}

// observe tells what happens in the relays, in so far as it can be read as it
// goes by.
func (c *demo) observe(e event.Envelope) {
	c.seen.observe(e)
	switch e.Event.(type) {
	case event.RelayReady:
		c.say("%s is ready", e.Relay)
	case event.RelayStopped:
		c.say("%s has stopped", e.Relay)
	case event.BucketLost, event.BucketBlocked, event.ActorFailed, event.PublishFailed:
		c.say("%s: %s %+v", e.Relay, e.Event.EventName(), e.Event)
	}
}
