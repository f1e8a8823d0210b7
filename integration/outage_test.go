//go:build integration

package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/outbox"
)

// stage is a table and a topic, with one message waiting.
type stage struct {
	schema  outbox.Schema
	topic   string
	waiting outbox.Message
}

func newStage(t *testing.T) stage {
	t.Helper()
	client := dynamo(t)
	s := stage{schema: freshTable(t, client, outbox.Schema{}), topic: uniqueTopic(t)}
	createTopic(t, s.topic, 1, 0)
	s.waiting = outbox.NewMessage(s.topic, []byte("key"), []byte("value"))
	enqueue(t, client, s.schema, s.waiting)
	return s
}

// wantDelivered waits until the relay has removed the waiting message, and finds
// it in the topic.
func (s stage) wantDelivered(t *testing.T, p *process) {
	t.Helper()
	p.await("batch.removed", nil)
	records := readTopic(t, s.topic)
	if len(records) != 1 || string(records[0].Value) != "value" {
		t.Errorf("the topic has %d records, want the one that was waiting", len(records))
	}
	if left := inspect(scan(t, dynamo(t), s.schema.Table)).messages; left != 0 {
		t.Errorf("%d messages are left in the table", left)
	}
}

// wantOnce wants an event told once to people, whatever was held back, and the
// event that ends it told with how long it lasted.
func wantOnce(t *testing.T, p *process, fault, end string) {
	t.Helper()
	p.await(end, func(l line) bool { return len(l.Ended) == 1 && l.Ended[0] == fault && l.Level == "info" })
	told := p.said(func(l line) bool { return l.Event == fault && (l.Level == "warn" || l.Level == "error") })
	if len(told) != 1 {
		t.Errorf("%s was told %d times, want once", fault, len(told))
	}
	for _, l := range append(told, p.said(func(l line) bool { return l.Event == end })...) {
		t.Log(l.text)
	}
}

func wantNotReady(t *testing.T, p *process) {
	t.Helper()
	if ready := p.said(func(l line) bool { return l.Event == "relay.ready" }); len(ready) != 0 {
		t.Errorf("the relay says that it is ready: %s", ready[0].text)
	}
}

// DynamoDB is not up when the relay starts. The relay goes on trying, says so
// once, and works as soon as it is there.
func TestDynamoDBThatComesUpLaterIsUsed(t *testing.T) {
	s := newStage(t)
	port := reservePort(t)
	p := start(t, "relay", relayArgs(t, s.schema.Table, "relay",
		"--dynamodb-endpoint", "http://"+port.address, "--log-level", "trace")...)
	p.await("store.unavailable", nil)
	p.await("store.unavailable", func(l line) bool { return l.Level == "debug" }) // tried again, held back
	wantNotReady(t, p)
	port.open(strings.TrimPrefix(endpoint(t), "http://"))
	p.await("relay.ready", nil)
	s.wantDelivered(t, p)
	wantOnce(t, p, "store.unavailable", "store.available")
	p.stop()
}

// No broker is up when the relay starts. It is not ready, takes no share of the
// buckets from relays that could work, says so once, and works as soon as one is
// there. What comes up late is the address that the relay was given; behind it
// is the real broker.
func TestBrokerThatComesUpLaterIsUsed(t *testing.T) {
	s := newStage(t)
	port := reservePort(t)
	p := start(t, "relay", relayArgs(t, s.schema.Table, "relay", "--brokers", port.address, "--log-level", "trace")...)
	p.await("broker.unreachable", func(l line) bool { return l.Level == "error" })
	wantNotReady(t, p)
	if items := inspect(scan(t, dynamo(t), s.schema.Table)); len(items.relays)+len(items.leases) != 0 {
		t.Errorf("a relay without a broker has written: %v", &items)
	}
	port.open(brokers(t)[0])
	p.await("relay.ready", nil)
	s.wantDelivered(t, p)
	wantOnce(t, p, "broker.unreachable", "broker.reached")
	p.stop()
}

// DynamoDB stops to answer while rows are deleted, for longer than the lease
// lasts. The relay publishes nothing under a lease that it cannot renew, and goes
// on by itself afterwards; nothing is lost and the order holds.
func TestDynamoDBThatIsAwayForAWhileIsUsedAgain(t *testing.T) {
	s := newStage(t)
	client := dynamo(t)
	workload := newWorkload(t, client, s.schema, []topic{{s.topic, 1}})
	if err := workload.write(t.Context(), 4_000); err != nil {
		t.Fatal(err)
	}
	messages, _ := workload.committed()
	messages = append([]sent{{message: s.waiting}}, messages...)
	port := reservePort(t)
	port.open(strings.TrimPrefix(endpoint(t), "http://"))
	p := start(t, "relay", relayArgs(t, s.schema.Table, "relay", "--dynamodb-endpoint", "http://"+port.address, "--log-level", "trace")...)
	p.await("batch.published", nil)
	port.freeze()
	p.await("bucket.withheld", func(l line) bool { return l.Level == "warn" })
	withheld := p.now()
	p.await("store.unavailable", func(l line) bool { return l.Level == "warn" })
	port.thaw()
	p.awaitFrom(withheld, "bucket.resumed", nil)
	awaitDelivery(t, messages, map[string]int{s.topic: 1})
	p.stop()
	verdict := check(messages, readTopic(t, s.topic), map[string]int{s.topic: 1}, time.Now())
	t.Logf("%v", &verdict)
	if !verdict.sound() {
		t.Errorf("%v", &verdict)
	}
	if left := inspect(scan(t, client, s.schema.Table)).messages; left != 0 {
		t.Errorf("%d messages are left in the table", left)
	}
}

// A relay that waits for the world to come up stops when asked to.
func TestStopWhileNothingIsReachable(t *testing.T) {
	for name, flag := range map[string]string{"DynamoDB": "--dynamodb-endpoint", "brokers": "--brokers"} {
		t.Run(name, func(t *testing.T) {
			address := reservePort(t).address
			if flag == "--dynamodb-endpoint" {
				address = "http://" + address
			}
			p := start(t, "relay", relayArgs(t, newStage(t).schema.Table, "relay", flag, address, "--log-level", "debug")...)
			told := map[string]string{"DynamoDB": "store.unavailable", "brokers": "broker.unreachable"}
			p.await(told[name], nil)
			began := time.Now()
			p.stop()
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v to stop", took)
			}
		})
	}
}

// Rows of a topic that does not exist wait, and go when it exists; the relay
// names the trouble, and rows of other topics pass meanwhile.
func TestTopicThatIsCreatedLaterIsUsed(t *testing.T) {
	s := newStage(t)
	client := dynamo(t)
	missing := uniqueTopic(t) + "-later"
	early := inBucket(missing, (s.waiting.Bucket(8)+1)%8, 8)
	enqueue(t, client, s.schema, early)
	p := start(t, "relay", relayArgs(t, s.schema.Table, "relay", "--log-level", "trace")...)
	failed := p.await("publish.failed", func(l line) bool { return l.Level == "warn" })
	t.Log(failed.text)
	p.await("batch.removed", nil)
	createTopic(t, missing, 1, 0)
	p.await("publish.recovered", nil)
	p.stop()
	if records := readTopic(t, missing); len(records) != 1 || string(records[0].Key) != string(early.Key) {
		t.Errorf("the late topic has %d records, want the one that was waiting", len(records))
	}
	if left := inspect(scan(t, client, s.schema.Table)).messages; left != 0 {
		t.Errorf("%d messages are left in the table", left)
	}
}

// A second SIGTERM ends a drain that cannot end by itself, at once, with the
// status of a process that the signal has killed.
func TestSecondSIGTERMEndsAtOnce(t *testing.T) {
	s := newStage(t)
	port := reservePort(t)
	port.open(strings.TrimPrefix(endpoint(t), "http://"))
	p := start(t, "relay", relayArgs(t, s.schema.Table, "relay",
		"--dynamodb-endpoint", "http://"+port.address, "--shutdown-timeout", "60s", "--log-level", "trace")...)
	s.wantDelivered(t, p)
	port.freeze()
	p.signal(syscall.SIGTERM)
	p.await("relay.stopping", nil)
	// A signal within 50 ms of the first is the same one. What is sent after the
	// first, and has no answer, is given up later than that.
	p.await("request.completed", func(l line) bool { return l.Request == "stampStopped" && l.Outcome != "done" })
	began := time.Now()
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 143 {
		t.Errorf("it ended with %d, want 143", code)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v after the second SIGTERM", took)
	}
}
