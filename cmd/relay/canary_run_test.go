package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/store"
)

// grudging is a table that fails the first requests of each kind, with all that the
// service could tell of the items concerned.
type grudging struct {
	store.API

	mu    sync.Mutex
	asked map[string]int // by operation; guarded by mu
}

func newGrudging(api store.API) *grudging { return &grudging{API: api, asked: map[string]int{}} }

// count is the how-manieth request of its kind this is, from 1.
func (g *grudging) count(operation string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked[operation]++
	return g.asked[operation]
}

func (g *grudging) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	switch g.count("Query") {
	case 1:
		return nil, &types.InternalServerError{Message: aws.String("try again")}
	case 2:
		return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not you"}
	}
	return g.API.Query(ctx, in, opts...)
}

func (g *grudging) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	if g.count("BatchWriteItem") == 1 {
		return nil, &types.ProvisionedThroughputExceededException{Message: aws.String("slower")}
	}
	return g.API.BatchWriteItem(ctx, in, opts...)
}

func (g *grudging) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if g.count("TransactWriteItems") > 1 {
		return g.API.TransactWriteItems(ctx, in, opts...)
	}
	reasons := make([]types.CancellationReason, len(in.TransactItems))
	for i := range reasons {
		reasons[i] = types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Item: canaryRows()[0]}
	}
	reasons[0].Code = aws.String("None")
	return nil, &types.TransactionCanceledException{Message: aws.String("cancelled"), CancellationReasons: reasons}
}

// PutItem is how single messages are enqueued.
func (g *grudging) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if g.count("PutItem") == 1 {
		return nil, &types.ConditionalCheckFailedException{Message: aws.String("refused"), Item: canaryRows()[0]}
	}
	return g.API.PutItem(ctx, in, opts...)
}

// troubles are what a relay goes through on a canaryTable, by the names of its events.
func troubles() []string {
	return []string{"batch.removed", "record.rejected", "record.parked", "rows.moved", "move.failed", "publish.failed", "store.failed",
		"store.throttled", "store.unavailable", "bucket.blocked/3", "bucket.blocked/4", "bucket.blocked/5", "bucket.blocked/6"}
}

// witness knows which of the troubles have not been seen yet.
type witness struct {
	mu      sync.Mutex
	missing []string // guarded by mu
	all     chan struct{}
}

func newWitness(names ...string) *witness { return &witness{missing: names, all: make(chan struct{})} }

func (w *witness) see(names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.missing)
	w.missing = slices.DeleteFunc(w.missing, func(name string) bool { return slices.Contains(names, name) })
	if len(w.missing) == 0 && before > 0 {
		close(w.all)
	}
}

// wait returns when all were seen.
func (w *witness) wait(t *testing.T) {
	t.Helper()
	select {
	case <-w.all:
	case <-time.After(patience):
		w.mu.Lock()
		defer w.mu.Unlock()
		t.Fatalf("never seen: %v", w.missing)
	}
}

// Whatever happens to a message, the log at its most talkative, metrics, spans, status and
// page say nothing of its key, value and headers, and of no secret (design.md section 8).
func TestCanariesOfARunningRelay(t *testing.T) {
	c, sent := canaryTable(t), startCollector(t, http.StatusOK)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization="+canaryToken)
	broker, err := kafka.StartMock(kafka.Topic{Name: "placed", Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(canaryToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(canaryPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := newWitness(append(troubles(), "admin.listening", "relay.ready")...)
	stderr := &canaryLog{on: seen.see}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a := &app{
		args: []string{"run", "--table", "orders", "--brokers", strings.Join(broker.Config().Brokers, ","), "--relay-id", "one",
			"--admin-addr", "127.0.0.1:0", "--admin-token-file", token, "--poll-interval", "50ms", "--error-backoff", "50ms",
			"--poison-after", "1", "--log-level", "trace", "--log-format", "json"},
		environ: append(sent.environ(), "RELAY_KAFKA_SASL_PASSWORD="+canaryPassword, "RELAY_KAFKA_SSL_KEY_PASSWORD_FILE="+password),
		stdout:  io.Discard, stderr: stderr, now: time.Now,
		dial: func(context.Context, *settings.Settings) (clients, error) {
			return clients{messages: newGrudging(c.table), coordination: c.table, tables: c.table, region: "nowhere"}, nil
		},
	}
	code := make(chan int, 1)
	go func() { code <- a.execute(ctx) }()
	seen.wait(t)

	w := &watched{t: t, address: loggedAddress(t, stderr.String())}
	for _, path := range []string{"/", "/status", "/metrics", "/livez", "/readyz", "/nothing"} {
		status, body := w.ask(path, canaryToken)
		mustNotLeak(t, path, body)
		if status == http.StatusNotFound && path != "/nothing" {
			t.Errorf("%s: %d", path, status)
		}
		_, body = w.ask(path, canaryToken+", wrong")
		mustNotLeak(t, path+" without the token", body)
	}
	cancel()
	if got := <-code; got != exitDone {
		t.Errorf("exit %d", got)
	}
	mustNotLeak(t, "the log", stderr.String())
	for _, path := range []string{"/v1/traces", "/v1/metrics"} {
		if body := string(sent.at(path)); body == "" {
			t.Errorf("the collector was sent nothing at %s", path)
		} else {
			mustNotLeak(t, "what the collector was sent at "+path, body)
		}
	}
}

// canaryLog is stderr, and tells of each line's event, and its bucket.
type canaryLog struct {
	mu   sync.Mutex
	text strings.Builder
	on   func(names ...string)
}

func (l *canaryLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var line struct {
		Event  string
		Bucket int
	}
	if json.Unmarshal(p, &line) == nil {
		l.on(line.Event, fmt.Sprintf("%s/%d", line.Event, line.Bucket))
	}
	return l.text.Write(p)
}

func (l *canaryLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// clumsy are producers of which the first that gets a record panics over it.
type clumsy struct {
	publisher.Factory
	once *sync.Once
}

func (c clumsy) Open(o publisher.Options, sink publisher.Sink) (publisher.Producer, error) {
	p, err := c.Factory.Open(o, sink)
	return clumsyProducer{p, c.once}, err
}

type clumsyProducer struct {
	publisher.Producer
	once *sync.Once
}

func (p clumsyProducer) Produce(r publisher.Record, token publisher.Token) error {
	p.once.Do(func() { _ = r.Value[len(r.Value)] })
	return p.Producer.Produce(r, token)
}

// The events themselves, which anybody may observe, have no content to begin with:
// not as JSON, and in none of the errors that they carry.
func TestCanariesOfEvents(t *testing.T) {
	c := canaryTable(t)
	broker, err := kafka.StartMock(kafka.Topic{Name: "placed", Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	cluster := broker.Config()
	cluster.Properties = map[string]string{"sasl.password": canaryPassword}
	producers, err := kafka.NewFactory(cluster)
	if err != nil {
		t.Fatal(err)
	}
	seen := newWitness(append(troubles(), "batch.traced", "actor.failed")...)
	var mu sync.Mutex
	var said strings.Builder
	r, err := relay.New(relay.Config{
		Table: "orders", RelayID: "one", PollInterval: 50 * time.Millisecond, ErrorBackoff: 50 * time.Millisecond, PoisonAfter: 1,
		LeaseDuration: 3 * time.Second, LeaseRenewInterval: 500 * time.Millisecond, MaxClockSkew: 200 * time.Millisecond,
		TraceLinks: 128, DynamoDB: newGrudging(c.table), Coordination: c.table, Producers: clumsy{producers, new(sync.Once)},
		Observers: []event.Observer{event.ObserverFunc(func(e event.Envelope) {
			mu.Lock()
			defer mu.Unlock()
			said.WriteString(toldInFull(e.Event))
			seen.see(namesOf(e.Event)...)
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	seen.wait(t)
	mustNotLeak(t, "the status", fmt.Sprintf("%+v", r.Status()))
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the relay ended with %v", err)
	}
	if err := closeProducers(producers); err != nil {
		t.Error(err)
	}
	mustNotLeak(t, "events", said.String())
}

func namesOf(e event.Event) []string {
	if blocked, ok := e.(event.BucketBlocked); ok {
		return []string{e.EventName(), fmt.Sprintf("%s/%d", e.EventName(), blocked.Bucket)}
	}
	return []string{e.EventName()}
}

// toldInFull is an event in each of the forms in which an observer may write it.
func toldInFull(e event.Event) string {
	document, err := json.Marshal(e)
	if err != nil {
		document = []byte(err.Error())
	}
	return fmt.Sprintf("%s\n%s\n%+v\n%#v\n", e.EventName(), document, e, e)
}

// Credentials that brokers, DynamoDB or a collector refuse are in no complaint about it.
func TestCanariesOfRefusedCredentials(t *testing.T) {
	broker, err := kafka.StartMock(kafka.Topic{Name: "placed", Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	c, collector := newConsole(t), startCollector(t, http.StatusUnauthorized)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "100") // milliseconds
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization="+canaryToken)
	stderr := &canaryLog{}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	unreachable := make(chan struct{})
	var once sync.Once
	stderr.on = func(names ...string) {
		if slices.Contains(names, "broker.unreachable") {
			once.Do(func() { close(unreachable) })
		}
	}
	a := &app{
		args: []string{"run", "--table", "orders", "--brokers", strings.Join(broker.Config().Brokers, ","), "--admin-addr", "off",
			"--kafka", "security.protocol=SASL_PLAINTEXT", "--kafka", "sasl.mechanisms=PLAIN", "--kafka", "sasl.username=relay",
			"--log-level", "trace", "--log-format", "json"},
		environ: append(collector.environ(), "RELAY_KAFKA_SASL_PASSWORD="+canaryPassword),
		stdout:  io.Discard, stderr: stderr, now: time.Now,
		dial: func(context.Context, *settings.Settings) (clients, error) {
			return clients{messages: c.table, coordination: c.table, tables: c.table, region: "nowhere"}, nil
		},
	}
	code := make(chan int, 1)
	go func() { code <- a.execute(ctx) }()
	select {
	case <-unreachable:
	case got := <-code:
		t.Fatalf("exit %d:\n%s", got, stderr.String())
	}
	cancel()
	<-code
	if !strings.Contains(stderr.String(), "metrics.unsent") {
		t.Errorf("the collector's refusal was not said:\n%s", stderr.String())
	}
	mustNotLeak(t, "the log", stderr.String())
}
