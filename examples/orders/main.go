// Command orders is an example: an order service that keeps its orders in
// DynamoDB and says what happens to them on a Kafka topic, with the relay in the
// same process.
//
//	go run ./examples/orders
//
// needs nothing installed: table and broker are in the process. With real ones:
//
//	go run ./examples/orders -table orders -dynamodb-endpoint http://localhost:8000 -brokers localhost:9092
//
// service.go is what a service does; world.go is what it stands on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/telemetry"
)

// closing is how long the producers may take to close.
const closing = 5 * time.Second

// options are the example's flags.
type options struct {
	table    string
	endpoint string
	brokers  string // empty: table and broker in this process
	orders   int
}

func main() {
	var o options
	flag.StringVar(&o.table, "table", "orders", "table of orders and outbox; it is created")
	flag.StringVar(&o.endpoint, "dynamodb-endpoint", "", "address of an emulator; with -brokers")
	flag.StringVar(&o.brokers, "brokers", "", "Kafka brokers, comma separated; none: table and broker in this process")
	flag.IntVar(&o.orders, "orders", 5, "orders to place and pay")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

// run places and pays orders, waits until the relay has moved their messages,
// and prints what a consumer then sees.
func run(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	w, err := connect(ctx, o)
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.createTable(ctx, o.table); err != nil {
		return err
	}
	moved := newCounter(2 * o.orders)
	r, err := startRelay(w, o.table, telemetry.NewLog(zerolog.New(zerolog.SyncWriter(stderr)).Level(zerolog.WarnLevel)), moved)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()

	// Notify lets the relay look at once at what was just committed.
	writer, err := outbox.NewWriter(w.messages, outbox.Options{Table: o.table, Notify: r.relay.Notify})
	if err != nil {
		return err
	}
	service := &orders{db: w.messages, name: o.table, writer: writer}
	ids := make(map[string]bool)
	for i := range o.orders {
		id := uuid.NewString()
		ids[id] = true
		if err := errors.Join(service.place(ctx, id, 10*(i+1)), service.pay(ctx, id)); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "%d orders placed and paid\n", o.orders)
	select {
	case <-moved.reached:
	case <-r.ended: // by itself; stop says why
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	return printEvents(ctx, stdout, w.cluster, ids)
}

func connect(ctx context.Context, o options) (world, error) {
	switch {
	case o.brokers != "":
		return deployed(ctx, o.endpoint, strings.Split(o.brokers, ","))
	case o.endpoint != "":
		return world{}, errors.New("-dynamodb-endpoint needs -brokers too")
	default:
		return embedded()
	}
}

// running is a relay in this process.
type running struct {
	relay     *relay.Relay
	producers *kafka.Factory
	cancel    context.CancelFunc
	ended     chan struct{}
	err       error // how it ended; read only after ended
}

// startRelay runs a relay as a service embeds it.
func startRelay(w world, table string, observers ...event.Observer) (*running, error) {
	producers, err := kafka.NewFactory(w.cluster)
	if err != nil {
		return nil, err
	}
	r, err := relay.New(relay.Config{
		Table:        table,
		DynamoDB:     w.messages,
		Coordination: w.coordination,
		Producers:    producers,
		Observers:    observers,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	run := &running{relay: r, producers: producers, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(run.ended)
		run.err = r.Run(ctx)
	}()
	return run, nil
}

// stop drains the relay, which hands its buckets back, then closes the
// producers. It returns how the relay ended.
func (r *running) stop() error {
	r.cancel()
	<-r.ended
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_, err := r.producers.Close(ctx)
	return errors.Join(r.err, err)
}

// counter is an observer that tells when enough messages were moved.
type counter struct {
	reached chan struct{}

	mu        sync.Mutex
	remaining int
}

func newCounter(messages int) *counter {
	return &counter{reached: make(chan struct{}), remaining: messages}
}

// Observe implements event.Observer.
func (c *counter) Observe(e event.Envelope) {
	removed, ok := e.Event.(event.BatchRemoved)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.remaining > 0 && c.remaining <= removed.Rows {
		close(c.reached)
	}
	c.remaining -= removed.Rows
}

// printEvents prints the events of these orders as a consumer of the topic sees
// them. Each has the header x-outbox-message-id, by which consumers recognise
// what they have seen before.
func printEvents(ctx context.Context, stdout io.Writer, cluster kafka.Config, ids map[string]bool) error {
	records, err := kafka.ReadTopic(ctx, cluster, topic)
	if err != nil {
		return err
	}
	for _, r := range records {
		if ids[string(r.Key)] {
			fmt.Fprintf(stdout, "partition %d  order %s  %s\n", r.Partition, r.Key, r.Value)
		}
	}
	return nil
}
