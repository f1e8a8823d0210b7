//go:build integration

package integration

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
)

// wantEnd waits for the end of a process, and wants the exit code, and all of
// the texts on stderr.
func wantEnd(t *testing.T, p *process, code int, texts ...string) {
	t.Helper()
	if got := p.exit(); got != code {
		t.Errorf("%s ended with %d, want %d", p.name, got, code)
	}
	for _, want := range texts {
		if !strings.Contains(p.output(), want) {
			t.Errorf("no %q in\n%s", want, p.output())
		}
	}
	t.Logf("exit %d: %s", p.exit(), strings.Join(complaint(p), "\n"))
}

// complaint is what the process has said that is no log line.
func complaint(p *process) []string {
	var texts []string
	for _, l := range p.said(func(l line) bool { return l.Event == "" }) {
		texts = append(texts, l.text)
	}
	return texts
}

// A process that cannot work says which table and what to do, and ends at once
// instead of taking a share of the buckets.
func TestMissingTableEndsTheRelay(t *testing.T) {
	p := start(t, "relay", relayArgs(t, "no-such-table", "relay")...)
	wantEnd(t, p, 1, "no-such-table", "relay table create --table no-such-table")
}

func TestOtherKeySchemaEndsTheRelay(t *testing.T) {
	client := dynamo(t)
	schema := freshTable(t, client, outbox.Schema{PartitionKey: "Hash", SortKey: "Range"})
	p := start(t, "relay", relayArgs(t, schema.Table, "relay")...)
	wantEnd(t, p, 1, schema.Table, "PK (partition)", "SK (sort)")
	if items := scan(t, client, schema.Table); len(items) != 0 {
		t.Errorf("the table has %d items, want none", len(items))
	}
}

// The emulator takes any credentials, so what refuses them is a stand-in that
// answers as DynamoDB does.
func TestRefusedCredentialsEndTheRelay(t *testing.T) {
	for code, message := range map[string]string{
		"UnrecognizedClientException": "The security token included in the request is invalid.",
		"AccessDeniedException":       "User is not authorized to perform: dynamodb:PutItem",
	} {
		t.Run(code, func(t *testing.T) {
			dynamo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"__type":"com.amazon.coral.service#%s","message":"%s"}`, code, message)
			}))
			t.Cleanup(dynamo.Close)
			p := start(t, "relay", relayArgs(t, "orders", "relay", "--dynamodb-endpoint", dynamo.URL)...)
			wantEnd(t, p, 1, "credentials", "orders", message)
		})
	}
}

// A row that was written with another bucket count: both counts are named, that
// bucket keeps all its rows, and the relay leaves as it does when asked to.
func TestForeignBucketCountEndsTheRelay(t *testing.T) {
	client := dynamo(t)
	schema := freshTable(t, client, outbox.Schema{})
	topic := uniqueTopic(t)
	createTopic(t, topic, 1, 0)
	ours := outbox.NewMessage(topic, []byte("key"), []byte("ours"))
	enqueue(t, client, schema, ours)
	sixteen := schema
	sixteen.BucketCount = 16
	theirs := inBucket(topic, ours.Bucket(schema.BucketCount), sixteen.BucketCount)
	enqueue(t, client, sixteen, theirs)

	p := start(t, "relay", relayArgs(t, schema.Table, "relay")...)
	wantEnd(t, p, 3, "16", "8", `"event":"bucketcount.mismatch"`)
	s := inspect(scan(t, client, schema.Table))
	if s.messages != 2 {
		t.Errorf("%d messages are left, want both", s.messages)
	}
	for bucket, owner := range s.leases {
		if owner != "" {
			t.Errorf("bucket %d: %s still holds the lease", bucket, owner)
		}
	}
	if s.relays["relay"] == "" {
		t.Error("the relay's record does not say that it stopped")
	}
}

// inBucket is a message that lands in the given bucket of count buckets.
func inBucket(topic string, bucket, count int) outbox.Message {
	for {
		m := outbox.NewMessage(topic, []byte(uuid.NewString()), nil)
		if m.Bucket(count) == bucket {
			return m
		}
	}
}

// Every wrong setting is named with its value, all together, before anything is
// sent to anybody.
func TestWrongSettingsAreNamedTogether(t *testing.T) {
	dynamo, kafka := silentService(t), silentService(t)
	p := start(t, "relay", "run", "--table", " ", "--bucket-count", "0", "--batch-size", "many",
		"--lease-duration", "30", "--lease-renew-interval", "20s", "--relay-id", "naïve", "--mode", "loose",
		"--kafka", "acks=1", "--kafka", "sasl.password=hunter2", "--kafka", "no.such.property=1", "--poll-intervall", "1s",
		"--dynamodb-endpoint", "http://"+dynamo.Addr().String(), "--brokers", kafka.Addr().String()+",:9092")
	wantEnd(t, p, 2, `table: " "`, `bucket-count "0"`, `batch-size "many"`, `lease-duration "30"`, `relay-id "naïve"`,
		`mode "loose"`, "kafka acks=1", "no.such.property", "--poll-intervall", "the nearest is --poll-interval", `":9092"`)
	if strings.Contains(p.output(), "hunter2") {
		t.Error("a secret is shown")
	}
}

// silentService listens, and fails the test when anybody connects.
func silentService(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			c.Close()
			t.Errorf("%v was connected to", listener.Addr())
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener
}
