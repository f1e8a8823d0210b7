package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// Inspector asks a cluster about itself, for who checks it before a relay depends
// on it. It publishes nothing and changes no setting; what it leaves behind are a
// producer id, as each producer takes one, and what Transactions says. It is safe
// for concurrent use until Close.
//
// Each call is bounded by its context alone. Its error is a *Trouble.
type Inspector struct {
	config Config
	client *ck.Producer
	admin  *ck.AdminClient
	read   chan struct{} // closed when the reader has ended

	mu sync.Mutex // guards what follows
	// versions are the requests that each broker takes, by its address, as it said
	// when the client connected.
	versions map[string]map[int16]Versions
	listing  map[string]map[int16]Versions // those that are being said
	told     chan struct{}                 // closed and replaced when versions has more
	// last is the last complaint that belongs to no call: most often why there is no
	// connection.
	last *Trouble
	// granted is closed when the producer has an id, or can get none: fatal says why.
	granted chan struct{}
	fatal   *Trouble
}

// OpenInspector makes an inspector and connects in the background. Its error is
// that of Config.Validate, or of librdkafka about the properties together.
func OpenInspector(c Config) (*Inspector, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	s := settingsFor(c, publisher.Options{})
	logs := make(chan ck.LogEvent, logsBuffered)
	for name, value := range map[string]ck.ConfigValue{
		"client.id":              "bucket-brigade-doctor",
		"go.logs.channel.enable": true,
		"go.logs.channel":        logs,
		"log_level":              7,
		"debug":                  "feature", // says which requests a broker takes
		"statistics.interval.ms": statisticsMillis,
	} {
		s.properties[name] = value
	}
	client, err := ck.NewProducer(&s.properties)
	if err != nil {
		return nil, fmt.Errorf("open inspector: %s", scrub(err.Error(), c.Properties))
	}
	admin, err := ck.NewAdminClientFromProducer(client)
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("open inspector: %s", scrub(err.Error(), c.Properties))
	}
	i := &Inspector{config: c, client: client, admin: admin,
		read: make(chan struct{}), granted: make(chan struct{}), told: make(chan struct{}),
		versions: make(map[string]map[int16]Versions), listing: make(map[string]map[int16]Versions)}
	go func() {
		defer close(i.read)
		listen(client, logs, i.take, i.note)
	}()
	return i, nil
}

// Close ends the client; without a broker that answers it takes about a second.
func (i *Inspector) Close() {
	i.admin.Close()
	i.client.Close() // closes the events, which ends the reader
	<-i.read
}

// ProducerID waits until the brokers have given this client a producer id, as each
// producer of a relay needs one before its first record.
func (i *Inspector) ProducerID(ctx context.Context) error {
	select {
	case <-i.granted:
		if i.fatal != nil {
			return i.fatal
		}
		return nil
	case <-ctx.Done():
		return i.trouble(ctx.Err())
	}
}

// Transactions initializes a producer with a transactional id and closes it. Whoever
// else uses that id is fenced by this, so it must be one that nobody uses. The
// brokers remember an id for a week by default.
func (i *Inspector) Transactions(ctx context.Context, id string) error {
	s := settingsFor(i.config, publisher.Options{TransactionalID: id})
	logs := make(chan ck.LogEvent, logsBuffered)
	s.properties["go.logs.channel.enable"], s.properties["go.logs.channel"] = true, logs
	client, err := ck.NewProducer(&s.properties)
	if err != nil {
		return &Trouble{Kind: Refused, Code: "CLIENT", Text: scrub(err.Error(), i.config.Properties)}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		listen(client, logs, func(ck.Event) {}, func(ck.LogEvent) {})
	}()
	err = client.InitTransactions(ctx)
	client.Close()
	<-ended
	if trouble := i.trouble(err); trouble != nil {
		return trouble
	}
	return nil
}

// faultOfResult is a result's own error; nil for none.
func faultOfResult(e ck.Error) error {
	if e.Code() == ck.ErrNoError {
		return nil
	}
	return e
}

// trouble takes an error apart; nil for nil. A call that had no answer is explained
// by what the client complained of meanwhile, if it did.
func (i *Inspector) trouble(err error) *Trouble {
	if err == nil {
		return nil
	}
	var e ck.Error
	if !unanswered(err) && errors.As(err, &e) {
		return troubleOf(e.Code())
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.last != nil {
		return i.last
	}
	return &Trouble{Kind: Unanswered, Code: "_TIMED_OUT", Text: "no answer in time"}
}

// unanswered tells whether a call ended without an answer of a broker.
func unanswered(err error) bool {
	var e ck.Error
	return !errors.As(err, &e) || troubleOf(e.Code()).Kind == Unanswered
}
