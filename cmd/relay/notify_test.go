package main

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/kafka"
)

// manager listens as systemd does.
func manager(t *testing.T) (*net.UnixConn, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, path
}

// told reads what the manager was told, until something has been said that ends it.
func told(t *testing.T, conn *net.UnixConn, end string) []string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var messages []string
	for buffer := make([]byte, 1<<10); ; {
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatalf("after %q: %v", messages, err)
		}
		messages = append(messages, string(buffer[:n]))
		if strings.Contains(messages[len(messages)-1], end) {
			return messages
		}
	}
}

// A service is ready when its first round is completed, not when it has begun; it says
// so once, and when it stops.
func TestRunTellsTheServiceManager(t *testing.T) {
	conn, path := manager(t)
	broker, err := kafka.StartMock(kafka.Topic{Name: "placed", Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	table := newConsole(t).table
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	a := &app{
		args: []string{"run", "--table", "orders", "--brokers", strings.Join(broker.Config().Brokers, ","),
			"--admin-addr", "off", "--lease-duration", "3s", "--lease-renew-interval", "100ms", "--max-clock-skew", "1s"},
		environ: []string{"NOTIFY_SOCKET=" + path},
		stdout:  io.Discard, stderr: &stderrLines{on: func(string) {}}, now: time.Now,
		dial: func(context.Context, *settings.Settings) (clients, error) {
			return clients{messages: table, coordination: table, tables: table, region: "nowhere"}, nil
		},
	}
	ended := make(chan int, 1)
	go func() { ended <- a.execute(ctx) }()
	messages := told(t, conn, "owns 8 buckets; active relays: 1")
	stop()
	messages = append(messages, told(t, conn, "STOPPING=1")...)
	if code := <-ended; code != exitDone {
		t.Errorf("exit %d", code)
	}
	ready := slices.IndexFunc(messages, func(m string) bool { return strings.HasPrefix(m, "READY=1\n") })
	if messages[0] != "STATUS=waiting for the table and a broker\n" || ready < 1 {
		t.Errorf("told %q", messages)
	}
}

// Nothing is repeated, a relay that has withdrawn says why, and a manager that is gone
// holds up nobody.
func TestTheServiceManagerIsToldWhatIsNew(t *testing.T) {
	conn, path := manager(t)
	m, err := openServiceManager(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []event.Event{
		event.RelayReady{}, event.RoundCompleted{Owned: 4, Active: 2}, event.RoundCompleted{Owned: 4, Active: 2},
		event.RelayWithdrawn{Reason: "clock"}, event.RelayStopping{},
	} {
		m.Observe(event.Envelope{Event: e})
	}
	want := []string{"READY=1\nSTATUS=ready\n", "STATUS=owns 4 buckets; active relays: 2\n", "STATUS=withdrawn, because of clock\n", "STOPPING=1\nSTATUS=draining\n"}
	if got := told(t, conn, "STOPPING"); !slices.Equal(got, want) {
		t.Errorf("told %q", got)
	}
	conn.Close()
	m.Observe(event.Envelope{Event: event.RelayStarted{}})
	if err := m.close(); err != nil {
		t.Error(err)
	}
}

// Outside of systemd nobody is told, and that is no error.
func TestWithoutAServiceManager(t *testing.T) {
	if m, err := openServiceManager(""); m != nil || err != nil {
		t.Errorf("%v, %v", m, err)
	}
	if _, err := openServiceManager(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "service manager") {
		t.Errorf("%v", err)
	}
}
