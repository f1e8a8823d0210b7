package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bucketbrigade/relay/outbox"
)

// demoTopic is where the demo's orders go.
const demoTopic = "orders.events"

// writersAtOnce is how many goroutines of the demo write; each has keys of its
// own, since the order of a key is the order of its commits.
const writersAtOnce = 4

// demoWriter is the service of the demo: it enqueues messages with the writer
// that services use, and remembers what it has enqueued, to be compared later.
type demoWriter struct {
	writer   *outbox.Writer
	messages int
	keys     int
	duration time.Duration // over which the messages are spread
	half     func()        // called once, when half of the messages are enqueued

	mu       sync.Mutex
	enqueued []outbox.Message // those of one key in the order of their commits
}

// run enqueues all messages and returns them.
func (w *demoWriter) run(ctx context.Context) ([]outbox.Message, error) {
	failures := make(chan error, writersAtOnce)
	var writers sync.WaitGroup
	for i := range writersAtOnce {
		writers.Go(func() {
			if err := w.writeShare(ctx, i); err != nil {
				failures <- err
			}
		})
	}
	writers.Wait()
	close(failures)
	return w.enqueued, <-failures
}

// writeShare enqueues the messages whose key's number, modulo the number of
// writers, is share: message n has the key n modulo keys.
func (w *demoWriter) writeShare(ctx context.Context, share int) error {
	start := time.Now()
	for n := range w.messages {
		if n%w.keys%writersAtOnce != share {
			continue
		}
		due := start.Add(w.duration * time.Duration(n) / time.Duration(w.messages))
		if err := pause(ctx, time.Until(due)); err != nil {
			return err
		}
		m := demoMessage(n, n%w.keys)
		if err := w.writer.Enqueue(ctx, m); err != nil {
			return fmt.Errorf("enqueue message %d: %w", n, err)
		}
		w.remember(m)
	}
	return nil
}

func (w *demoWriter) remember(m outbox.Message) {
	w.mu.Lock()
	w.enqueued = append(w.enqueued, m)
	isHalf := len(w.enqueued) == (w.messages+1)/2
	w.mu.Unlock()
	if isHalf {
		w.half()
	}
}

// demoMessage is the n-th message: an event of an order, in all the shapes that
// must arrive as they are, such as no value, an empty one, and headers twice.
func demoMessage(n, key int) outbox.Message {
	value := fmt.Appendf(nil, `{"order":%d,"event":%d,"note":%q}`, key, n, strings.Repeat("=", n%97))
	switch n % 23 {
	case 7:
		value = nil
	case 11:
		value = []byte{}
	}
	m := outbox.NewMessage(demoTopic, fmt.Appendf(nil, "order-%d", key), value)
	if n%5 == 0 {
		m.Headers = []outbox.Header{
			{Key: "source", Value: []byte("demo")}, {Key: "trace"}, {Key: "source", Value: []byte{}},
		}
	}
	return m
}

// pause waits, or returns the context's error when it ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
