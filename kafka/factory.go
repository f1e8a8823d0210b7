package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// ErrFactoryClosed is Open's answer after Close. Nothing can be published any
// more; the process is ending.
var ErrFactoryClosed = errors.New("kafka: factory is closed")

// Factory opens producers that share one configuration. It is safe for
// concurrent use, and owns the end of every producer that it opened.
type Factory struct {
	config Config
	codes  codebook

	mu     sync.Mutex // guards what follows
	closed bool
	// Invariant: live has every producer that is not completely freed yet.
	live map[*producer]struct{}
	// lost are the records of freed producers that never had a report.
	lost int
}

// NewFactory validates the configuration and connects to nothing yet. Its error
// is Validate's.
func NewFactory(c Config) (*Factory, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Factory{config: c.withDefaults(), codes: newCodebook(), live: make(map[*producer]struct{})}, nil
}

// Open implements publisher.Factory. It waits for no broker: one that comes up
// later is simply used.
func (f *Factory) Open(o publisher.Options, sink publisher.Sink) (publisher.Producer, error) {
	s := settingsFor(f.config, o)
	logs := make(chan ck.LogEvent, logsBuffered)
	s.properties["go.logs.channel.enable"] = true
	s.properties["go.logs.channel"] = logs

	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrFactoryClosed
	}
	client, err := ck.NewProducer(&s.properties)
	if err != nil {
		return nil, fmt.Errorf("open producer %d: %s", o.Number, scrub(err.Error(), f.config.Properties))
	}
	p := f.newProducer(o.Number, client, s, sink)
	f.live[p] = struct{}{}
	p.start(logs)
	if o.TransactionalID != "" {
		return transactional{p}, nil
	}
	return p, nil
}

func (f *Factory) freed(p *producer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.live, p)
	f.lost += p.unreported()
}

// Close closes every producer that is still open and waits until all are freed,
// or until ctx ends, which is an error; what is left then ends by itself or with
// the process. With unreachable brokers it takes one to three seconds, and as long as
// the call of a transactional producer that is under way.
//
// It returns how many records were accepted by Produce and had no report before
// their producer was closed, over the whole life of the factory. They may have
// been appended, or may be still; their rows are in the table.
func (f *Factory) Close(ctx context.Context) (unreported int, err error) {
	f.mu.Lock()
	f.closed = true
	open := make([]*producer, 0, len(f.live))
	for p := range f.live {
		open = append(open, p)
	}
	f.mu.Unlock()

	for _, p := range open {
		p.Close()
	}
	for _, p := range open {
		select {
		case <-p.done:
		case <-ctx.Done():
			err = fmt.Errorf("close producers: %w", context.Cause(ctx))
		}
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	unreported = f.lost
	for p := range f.live {
		unreported += p.unreported()
	}
	return unreported, err
}
