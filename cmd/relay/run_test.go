package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store/memtable"
)

// patience bounds tests that would otherwise wait for ever when they fail.
const patience = 30 * time.Second

// stderrLines collects what a command logs, and calls on for each line.
type stderrLines struct {
	mu   sync.Mutex
	text bytes.Buffer
	on   func(event string)
}

func (l *stderrLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(p) {
		var logged struct{ Event string }
		if json.Unmarshal(line, &logged) == nil {
			l.on(logged.Event)
		}
	}
	return l.text.Write(p)
}

func (l *stderrLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// runRelay runs `relay run` on the table and a mock cluster, stops it as soon
// as it has logged the event until, and returns how it ended.
func runRelay(t *testing.T, table *memtable.DB, until string, args ...string) outcome {
	t.Helper()
	broker, err := kafka.StartMock(kafka.Topic{Name: "placed", Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stderr := &stderrLines{on: func(event string) {
		if event == until {
			cancel()
		}
	}}
	a := &app{
		args: append([]string{"run", "--table", "orders", "--brokers", strings.Join(broker.Config().Brokers, ","),
			"--poll-interval", "50ms", "--relay-id", "one", "--admin-addr", "127.0.0.1:0"}, args...),
		environ: []string{"RELAY_KAFKA_SASL_PASSWORD=hunter2"},
		stdout:  io.Discard, stderr: stderr, now: time.Now,
		dial: func(context.Context, *settings.Settings) (clients, error) {
			return clients{messages: table, coordination: table, tables: table, region: "nowhere"}, nil
		},
	}
	code := a.execute(ctx)
	return outcome{code: code, stderr: stderr.String()}
}

func TestRunMovesMessagesAndLogsNoContent(t *testing.T) {
	c := newConsole(t)
	c.run("message", "enqueue", "--table", "orders", "--topic", "placed", "--key", "secret key", "--value", "secret value")
	c.waitingRow(t)
	got := runRelay(t, c.table, "batch.removed", "--log-level", "trace")
	if got.code != exitDone || !strings.Contains(got.stderr, `"relay.stopped"`) || strings.Contains(got.stderr, "secret") {
		t.Errorf("exit %d:\n%s", got.code, got.stderr)
	}
	if n := pendingRows(c.table, schema); n != 0 {
		t.Errorf("%d messages left in the table", n)
	}
}

func TestRunLogsTheEffectiveSettingsOnceWithoutSecrets(t *testing.T) {
	got := runRelay(t, newConsole(t).table, "relay.ready")
	if strings.Count(got.stderr, "settings.effective") != 1 || strings.Contains(got.stderr, "hunter2") {
		t.Errorf("%s", got.stderr)
	}
	for _, want := range []string{`"kafka.sasl.password":"(redacted)"`, `"poll-interval":"50ms"`, `"region":"nowhere"`, `"relay-id":"one"`} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %s in\n%s", want, got.stderr)
		}
	}
}

func TestRunEndsAtOnceWithoutATable(t *testing.T) {
	got := runRelay(t, memtable.New(memtable.Options{}), "never")
	if got.code != exitFailed || !strings.Contains(got.stderr, "create it with: relay table create --table orders") {
		t.Errorf("exit %d:\n%s", got.code, got.stderr)
	}
}

func TestRunEndsAtOnceOnATableWithOtherKeys(t *testing.T) {
	got := runRelay(t, newConsole(t).table, "never", "--partition-key", "Hash")
	if got.code != exitFailed || !strings.Contains(got.stderr, "must have the string keys Hash (partition) and SK (sort)") {
		t.Errorf("exit %d:\n%s", got.code, got.stderr)
	}
}

// A row that was written with another bucket count stops the relay; both
// counts are named and nothing is deleted (issue 3, point 11).
func TestRunEndsWithThreeOnAnotherBucketCount(t *testing.T) {
	c := newConsole(t)
	sixteen := outbox.Schema{Table: "orders", BucketCount: 16}
	c.put(t, sixteen.EncodeMessage(outbox.NewMessage("placed", nil, nil), 2, 1))
	got := runRelay(t, c.table, "never")
	if got.code != exitBucketCount || !strings.Contains(got.stderr, "16") || !strings.Contains(got.stderr, "8") {
		t.Errorf("exit %d:\n%s", got.code, got.stderr)
	}
	c.waitingRow(t) // it is still there
}

// The first signal drains, the second ends at once, and one that comes with the
// first is no second one.
func TestTheSecondSignalEndsAtOnce(t *testing.T) {
	for sent, want := range map[os.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		clock := []time.Duration{0, 20 * time.Millisecond, time.Second} // of the first, of its echo, of the second
		now := func() time.Time {
			at := noon.Add(clock[0])
			clock = clock[1:]
			return at
		}
		signals, exited := make(chan os.Signal), make(chan int, 1)
		ctx, cancel := context.WithCancel(context.Background())
		go watchSignals(signals, now, cancel, func(code int) { exited <- code })
		signals <- syscall.SIGTERM
		<-ctx.Done()
		signals <- syscall.SIGTERM
		signals <- sent
		if got := <-exited; got != want || len(clock) != 0 {
			t.Errorf("%v as the second signal: exit %d, want %d", sent, got, want)
		}
	}
}

func TestASignalEndsTheContext(t *testing.T) {
	ctx, stop := untilSignalled(context.Background(), func(code int) { t.Errorf("exit %d at the first signal", code) })
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}
