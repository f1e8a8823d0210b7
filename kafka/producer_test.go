package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
)

const patience = 30 * time.Second

// inbox is a sink that a test reads. It holds more than any test sends.
type inbox chan any

func newInbox() inbox { return make(inbox, 1<<18) }

func (b inbox) sink(msg any) { b <- msg }

// next returns the next message of type M, and drops others before it.
func next[M any](t testing.TB, b inbox) M {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		select {
		case msg := <-b:
			if m, is := msg.(M); is {
				return m
			}
		case <-deadline.C:
			var want M
			t.Fatalf("no %T within %v", want, patience)
		}
	}
}

func open(t testing.TB, f *kafka.Factory, o publisher.Options, sink publisher.Sink) publisher.Producer {
	t.Helper()
	o.Number = 1
	p, err := f.Open(o, sink)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// send produces one record and returns its report.
func send(t testing.TB, p publisher.Producer, b inbox, r publisher.Record) *publisher.Fault {
	t.Helper()
	if err := p.Produce(r, publisher.Token{}); err != nil {
		t.Fatal(err)
	}
	return next[publisher.Reported](t, b).Reports[0].Fault
}

var record = publisher.Record{Topic: "t", Value: []byte("v")}

// proven is a producer that has a record acknowledged, on a cluster of its own.
func proven(t *testing.T, careful bool) (*kfake.Cluster, publisher.Producer, inbox) {
	t.Helper()
	cluster := startKfake(t, kfake.SeedTopics(1, "t"))
	b := newInbox()
	p := open(t, newFactory(t, kafka.Config{Brokers: cluster.ListenAddrs()}), publisher.Options{Careful: careful}, b.sink)
	if fault := send(t, p, b, record); fault != nil {
		t.Fatal(fault)
	}
	return cluster, p, b
}

// answerProduce makes the broker answer the next count produce requests with an
// error code.
func answerProduce(cluster *kfake.Cluster, code int16, count int32) {
	var answered atomic.Int32
	cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if answered.Add(1) > count {
			return nil, nil, false
		}
		cluster.KeepControl()
		request := req.(*kmsg.ProduceRequest)
		response := request.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range request.Topics {
			answer := kmsg.NewProduceResponseTopic()
			answer.Topic, answer.TopicID = topic.Topic, topic.TopicID
			for _, partition := range topic.Partitions {
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.ErrorCode = partition.Partition, code
				answer.Partitions = append(answer.Partitions, p)
			}
			response.Topics = append(response.Topics, answer)
		}
		return response, nil, true
	})
}

// TestAnyRefusalEndsAGaplessProducer: whatever the broker refuses a record for, its own
// fault or not, ends a shared producer; a careful one goes on.
func TestAnyRefusalEndsAGaplessProducer(t *testing.T) {
	for name, code := range map[string]int16{"invalid": 87, "not authorized": 29, "wrong clock": 32, "policy": 44, "no reason": -1} {
		for _, careful := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", careful ", careful), func(t *testing.T) {
				t.Parallel()
				cluster, p, b := proven(t, careful)
				answerProduce(cluster, code, 1)
				if err := p.Produce(record, publisher.Token{}); err != nil {
					t.Fatal(err)
				}
				if !careful {
					next[publisher.Fataled](t, b)
					return
				}
				if fault := next[publisher.Reported](t, b).Reports[0].Fault; fault == nil {
					t.Error("acknowledged, though the broker refused it")
				}
				p.Describe("t") // a missing permission sticks to the topic until its metadata come anew
				next[publisher.Described](t, b)
				if fault := send(t, p, b, record); fault != nil {
					t.Errorf("the next record: %v", fault)
				}
			})
		}
	}
}

// TestBrokerAnswers: what becomes of one record for what a broker may say.
func TestBrokerAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		code  int16
		count int32
		want  publisher.Class // 0: acknowledged in the end
	}{
		"corrupt":              {87, 1, publisher.Rejected},
		"too large":            {10, 1, publisher.Rejected},
		"not authorized":       {29, 1, publisher.Retriable},
		"leader moved":         {6, 1, 0},
		"too few replicas":     {19, 1, 0},
		"timed out once":       {7, 1, 0},
		"policy of the broker": {44, 1, publisher.Retriable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, p, b := proven(t, true)
			answerProduce(cluster, c.code, c.count)
			fault := send(t, p, b, record)
			if c.want == 0 && fault != nil || c.want != 0 && (fault == nil || fault.Class != c.want) {
				t.Errorf("%v, want %v", fault, c.want)
			}
			// A missing permission sticks to the topic until its metadata come anew.
			p.Describe("t")
			next[publisher.Described](t, b)
			if fault := send(t, p, b, record); fault != nil {
				t.Errorf("the record after it: %v", fault)
			}
		})
	}
}

// TestFatalErrorIsTold (case F-06): the publisher hears of it once, and can have
// a new producer while the old one is closed aside.
func TestFatalErrorIsTold(t *testing.T) {
	t.Parallel()
	cluster := startKfake(t, kfake.SeedTopics(1, "t"))
	factory := newFactory(t, kafka.Config{Brokers: cluster.ListenAddrs()})
	b := newInbox()
	p := open(t, factory, publisher.Options{}, b.sink)
	if fault := send(t, p, b, record); fault != nil {
		t.Fatal(fault)
	}
	answerProduce(cluster, 45, 1) // OUT_OF_ORDER_SEQUENCE_NUMBER
	if err := p.Produce(record, publisher.Token{}); err != nil {
		t.Fatal(err)
	}
	if fatal := next[publisher.Fataled](t, b); fatal.Producer != 1 || fatal.Fault.Class != publisher.Fatal {
		t.Errorf("%+v: %v", fatal, fatal.Fault)
	}
	var fault *publisher.Fault
	if err := p.Produce(record, publisher.Token{}); !errors.As(err, &fault) || fault.Class != publisher.Fatal {
		t.Errorf("after the fatal error: %v, want fatal", err)
	}
	p.Close()
	second := newInbox()
	if fault := send(t, open(t, factory, publisher.Options{}, second.sink), second, record); fault != nil {
		t.Errorf("the new producer: %v", fault)
	}
}

// TestBrokerThatComesUpLaterIsUsed: the relay starts before its broker.
func TestBrokerThatComesUpLaterIsUsed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()

	b := newInbox()
	config := kafka.Config{Brokers: []string{fmt.Sprintf("127.0.0.1:%d", port)}}
	p := open(t, newFactory(t, config), publisher.Options{}, b.sink)
	if un := next[publisher.Unreached](t, b); !strings.Contains(un.Reason, fmt.Sprint(port)) {
		t.Errorf("the reason %q does not name the broker", un.Reason)
	}
	if err := p.Produce(record, publisher.Token{}); err != nil {
		t.Fatal(err)
	}
	startKfake(t, kfake.Ports(port), kfake.SeedTopics(1, "t"))
	next[publisher.Reached](t, b)
	if r := next[publisher.Reported](t, b); r.Reports[0].Fault != nil {
		t.Errorf("the record that waited: %v", r.Reports[0].Fault)
	}
}

// TestOutageIsNoticedAndItsEnd (case P-01): a record waits for as long as the
// outage lasts, and is never given up.
func TestOutageIsNoticedAndItsEnd(t *testing.T) {
	t.Parallel()
	mock := startMock(t, kafka.Topic{Name: "t", Partitions: 1})
	b := newInbox()
	p := open(t, newFactory(t, mock.Config()), publisher.Options{}, b.sink)
	next[publisher.Reached](t, b)
	if fault := send(t, p, b, record); fault != nil {
		t.Fatal(fault)
	}
	if err := mock.Down(); err != nil {
		t.Fatal(err)
	}
	if err := p.Produce(record, publisher.Token{}); err != nil {
		t.Fatal(err)
	}
	if un := next[publisher.Unreached](t, b); un.Reason == "" {
		t.Error("no reason")
	}
	if err := mock.Up(); err != nil {
		t.Fatal(err)
	}
	next[publisher.Reached](t, b)
	if r := next[publisher.Reported](t, b); r.Reports[0].Fault != nil {
		t.Errorf("the record that waited: %v", r.Reports[0].Fault)
	}
}

// TestCloseIsBounded (case F-01): with the broker away and a full queue the
// process still ends in time, and says how many records had no report.
func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	factory, err := kafka.NewFactory(kafka.Config{Brokers: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, factory, publisher.Options{}, func(any) {})
	accepted := 0
	var fault *publisher.Fault
	for {
		if err := p.Produce(record, publisher.Token{}); err != nil {
			if !errors.As(err, &fault) || fault.Code != "_QUEUE_FULL" || fault.Class != publisher.Retriable {
				t.Errorf("%v, want _QUEUE_FULL, retriable", err)
			}
			break
		}
		accepted++
	}
	p.Describe("t")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	unreported, err := factory.Close(ctx)
	if err != nil || unreported != accepted {
		t.Errorf("Close: %d records, %v; want %d", unreported, err, accepted)
	}
	t.Logf("closed with %d records queued in %v", accepted, time.Since(began))
	if _, err := factory.Open(publisher.Options{}, func(any) {}); !errors.Is(err, kafka.ErrFactoryClosed) {
		t.Errorf("Open after Close: %v", err)
	}
}

// TestCloseGivesUpWithItsContext: what still hangs then ends by itself.
func TestCloseGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	mock := startMock(t, kafka.Topic{Name: "t", Partitions: 1})
	factory := newFactory(t, mock.Config())
	open(t, factory, publisher.Options{}, func(any) {})
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("no more time")
	cancel(reason)
	if _, err := factory.Close(ctx); err != nil && !errors.Is(err, reason) {
		t.Errorf("Close: %v", err)
	}
}

// TestHeaderNamesWithZeroBytesAreRefused: the client would cut them there.
func TestHeaderNamesWithZeroBytesAreRefused(t *testing.T) {
	t.Parallel()
	mock := startMock(t, kafka.Topic{Name: "t", Partitions: 1})
	p := open(t, newFactory(t, mock.Config()), publisher.Options{}, func(any) {})
	var fault *publisher.Fault
	err := p.Produce(publisher.Record{Topic: "t", Headers: []outbox.Header{{Key: "a\x00b"}}}, publisher.Token{})
	if !errors.As(err, &fault) || fault.Class != publisher.Rejected {
		t.Errorf("%v, want rejected", err)
	}
}

// TestNothingGoesToStderr: not even a fatal error, which librdkafka likes to
// print. It runs TestFatalErrorIsTold and one outage in a process of their own.
func TestNothingGoesToStderr(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^(TestFatalErrorIsTold|TestOutageIsNoticedAndItsEnd)$")
	var stderr bytes.Buffer
	child.Stderr = &stderr
	if out, err := child.Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if stderr.Len() > 0 {
		t.Errorf("stderr has: %s", stderr.String())
	}
}

// TestNothingIsKeptPerRecord (case F-03): neither tokens nor the client's own
// entries stay behind. A round that had more under way at once than those before it
// leaves larger buffers, once; a leak grows in each.
func TestNothingIsKeptPerRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("sends hundreds of thousands of records")
	}
	mock := startMock(t, kafka.Topic{Name: "t", Partitions: 1})
	p, drain := pump(t, newFactory(t, mock.Config()))
	round := func() uint64 {
		for range 100_000 {
			for p.Produce(record, publisher.Token{}) != nil {
				drain(1) // the queue is full
			}
		}
		drain(0)
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	sizes := []uint64{round()}
	for range 3 {
		before, after := sizes[len(sizes)-1], round()
		if after <= before+before/20+1<<20 {
			return
		}
		sizes = append(sizes, after)
	}
	t.Errorf("the heap grew with each 100,000 records: %d bytes", sizes)
}

// pump opens a producer whose reports are counted. drain(n) waits until n more
// reports came, drain(0) until all did.
func pump(t testing.TB, factory *kafka.Factory) (counting, func(n int)) {
	bursts := make(chan int, 1<<16)
	p := open(t, factory, publisher.Options{}, func(msg any) {
		if m, is := msg.(publisher.Reported); is {
			bursts <- len(m.Reports)
		}
	})
	c := counting{p, new(int)}
	return c, func(n int) {
		for want := *c.outstanding - n; *c.outstanding > 0 && (n == 0 || *c.outstanding > want); {
			*c.outstanding -= <-bursts
		}
	}
}

type counting struct {
	publisher.Producer
	outstanding *int
}

func (c counting) Produce(r publisher.Record, token publisher.Token) error {
	err := c.Producer.Produce(r, token)
	if err == nil {
		*c.outstanding++
	}
	return err
}

// BenchmarkProduce is the whole way of a record: into the client, to the mock
// cluster, and its report to the sink.
func BenchmarkProduce(b *testing.B) {
	for name, headers := range map[string][]outbox.Header{
		"no headers": nil,
		"one header": {{Key: "x-outbox-message-id", Value: bytes.Repeat([]byte{'i'}, 36)}},
	} {
		b.Run(name, func(b *testing.B) {
			mock := startMock(b, kafka.Topic{Name: "t", Partitions: 4})
			p, drain := pump(b, newFactory(b, mock.Config()))
			r := publisher.Record{Topic: "t", Key: []byte("key"), Value: bytes.Repeat([]byte{'v'}, 300), Headers: headers}
			b.ReportAllocs()
			b.ResetTimer()
			for n := range b.N {
				r.Partition = int32(n % 4)
				for p.Produce(r, publisher.Token{Sequence: int64(n)}) != nil {
					drain(1)
				}
			}
			drain(0)
		})
	}
}

// TestDescribeKeepsItsTime: a question that no broker answers ends when it should, or its
// answer would be taken for that to a later one.
func TestDescribeKeepsItsTime(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	b := newInbox()
	factory := newFactory(t, kafka.Config{Brokers: []string{silent.Addr().String()}, DescribeTimeout: limit})
	p := open(t, factory, publisher.Options{}, b.sink)
	began := time.Now()
	p.Describe("t")
	if d := next[publisher.Described](t, b); d.Fault == nil || d.Fault.Class != publisher.Retriable {
		t.Errorf("%+v, want a retriable fault", d)
	}
	if took := time.Since(began); took > limit+time.Second {
		t.Errorf("it took %v, of %v at most", took, limit)
	}
}
