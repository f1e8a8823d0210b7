//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/bucketbrigade/relay/outbox"
)

const (
	// memoryRows is how many rows wait in `make integration`; `make memory` has a
	// million wait. What a relay holds does not depend on it.
	memoryRows = 20_000
	// memoryBytes is what a relay may have resident, peak, in its default settings,
	// with small rows (issue: at most 64 MB).
	memoryBytes = 60_000_000
	smallValue  = 300
)

// A relay with very many rows waiting holds a few batches of them, however many
// there are. What is measured is the process itself: the most that it ever had
// resident, by the kernel. It has seen enough when it has removed a number of rows
// that is many times what it holds at once.
func TestMemoryWithManyRowsWaiting(t *testing.T) {
	rows := memoryRows
	if text := os.Getenv("INTEGRATION_MEMORY_ROWS"); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			t.Fatalf("INTEGRATION_MEMORY_ROWS: %v", err)
		}
	}
	client := dynamo(t)
	schema := freshTable(t, client, outbox.Schema{})
	topic := uniqueTopic(t)
	createTopic(t, topic, 8, 0)
	began := time.Now()
	fill(t, client, schema, topic, rows, smallValue)
	t.Logf("%d rows of %d bytes written in %.0f s", rows, smallValue, time.Since(began).Seconds())

	relay := start(t, "relay", "run", "--table", schema.Table, "--relay-id", "relay",
		"--dynamodb-endpoint", endpoint(t), "--brokers", brokers(t).String(), "--log-level", "trace", "--log-format", "json")
	began = time.Now()
	removed, enough := 0, min(rows, 100_000)
	relay.awaitLine(0, fmt.Sprintf("that it has removed %d rows", enough), func(l line) bool {
		if l.Event == "batch.removed" {
			removed += l.Rows
		}
		return removed >= enough
	})
	took := time.Since(began)
	resident := peakResident(t, relay.cmd.Process.Pid)
	relay.stop()
	t.Logf("%d rows removed in %.1f s; resident at most %.1f MB", removed, took.Seconds(), float64(resident)/1e6)
	if resident > memoryBytes {
		t.Errorf("resident at most %d bytes, want %d at most", resident, memoryBytes)
	}
}

// Methods that nobody calls are not in the program, of which half of what is resident
// consists. One call of a method by its name, in whatever package, and all are
// (docs/adr/0005-methods.md).
func TestTheProgramHasOnlyWhatIsCalled(t *testing.T) {
	program, err := os.ReadFile(setting(t, "INTEGRATION_RELAY", "build it and name it: make build && export INTEGRATION_RELAY=$PWD/bin/relay"))
	if err != nil {
		t.Fatal(err)
	}
	const called, notCalled = "dynamodb.(*Client).Query", "dynamodb.(*Client).CreateGlobalTable"
	if !bytes.Contains(program, []byte(called)) {
		t.Fatalf("it does not name its functions: %s is not in it", called)
	}
	if bytes.Contains(program, []byte(notCalled)) {
		t.Errorf("%s is in it, though nobody calls it: was it built with make build?", notCalled)
	}
}

// fill writes rows as writers would have, spread over all buckets, without their
// ceremony: it is the relay that is measured.
func fill(t *testing.T, client *dynamodb.Client, schema outbox.Schema, topic string, rows, valueBytes int) {
	t.Helper()
	const chunk, writers = 25, 32
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(writers)
	keys := make([][]byte, schema.BucketCount)
	for b := range keys {
		keys[b] = inBucket(topic, b, schema.BucketCount).Key
	}
	value := make([]byte, valueBytes)
	for first := 0; first < rows; first += chunk {
		group.Go(func() error {
			var puts []types.WriteRequest
			for n := first; n < min(rows, first+chunk); n++ {
				bucket := n % schema.BucketCount
				m := outbox.NewMessage(topic, keys[bucket], value)
				item := schema.EncodeMessage(m, bucket, int64(n/schema.BucketCount+1))
				puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
			}
			out, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{schema.Table: puts}})
			if err == nil && len(out.UnprocessedItems) > 0 {
				err = fmt.Errorf("%d rows were not written", len(out.UnprocessedItems[schema.Table]))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// peakResident is the most that a process ever had resident, in bytes.
func peakResident(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("this system does not tell what a process has resident: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		var kilobytes int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10
		}
	}
	t.Fatalf("no VmHWM in\n%s", status)
	return 0
}
