package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/telemetry"
)

// watched is a relay that runs as `relay run`, until the test has seen enough.
type watched struct {
	t       *testing.T
	address string // of its admin address
	stop    context.CancelFunc
	ended   chan outcome
}

// watch runs `relay run` on an empty table, and returns when it is ready.
func watch(t *testing.T, args ...string) *watched {
	t.Helper()
	broker, err := kafka.StartMock(kafka.Topic{Name: "placed", Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	table := newConsole(t).table
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	addresses, ready := make(chan string, 1), make(chan struct{}, 1)
	stderr := &stderrLines{}
	stderr.on = func(event string) {
		switch event {
		case "admin.listening":
			addresses <- ""
		case "relay.ready":
			ready <- struct{}{}
		}
	}
	a := &app{
		args: append([]string{"run", "--table", "orders", "--brokers", strings.Join(broker.Config().Brokers, ","),
			"--admin-addr", "127.0.0.1:0", "--log-format", "json"}, args...),
		environ: []string{"RELAY_KAFKA_SASL_PASSWORD=hunter2"},
		stdout:  io.Discard, stderr: stderr, now: time.Now,
		dial: func(context.Context, *settings.Settings) (clients, error) {
			return clients{messages: table, coordination: table, tables: table, region: "nowhere"}, nil
		},
	}
	w := &watched{t: t, stop: cancel, ended: make(chan outcome, 1)}
	go func() {
		code := a.execute(ctx)
		w.ended <- outcome{code: code, stderr: stderr.String()}
		close(w.ended)
	}()
	t.Cleanup(func() { cancel(); <-w.ended })
	for range 2 {
		select {
		case <-addresses:
		case <-ready:
		case got := <-w.ended:
			t.Fatalf("ended with %d:\n%s", got.code, got.stderr)
		}
	}
	w.address = loggedAddress(t, stderr.String())
	return w
}

// loggedAddress is what admin.listening names.
func loggedAddress(t *testing.T, log string) string {
	t.Helper()
	for line := range strings.Lines(log) {
		var l struct{ Event, Address string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Event == "admin.listening" {
			return l.Address
		}
	}
	t.Fatalf("no address in\n%s", log)
	return ""
}

func (w *watched) ask(path, token string) (code int, body string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), "GET", "http://"+w.address+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// A relay that runs answers probes, scrapes and people, and gives no secret away.
func TestRunServesItsAdminAddress(t *testing.T) {
	w := watch(t, "--relay-id", "one", "--metrics-name", "shop")
	if code, body := w.ask("/readyz", ""); code != http.StatusOK {
		t.Errorf("readyz: %d %s", code, body)
	}
	_, body := w.ask("/status", "")
	var status telemetry.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	if status.Relay != "one" || status.State != "ready" || status.Mode != "ordered" || status.Since == nil ||
		status.Settings["table"] != "orders" || status.Settings["kafka.sasl.password"] != "(redacted)" {
		t.Errorf("%s", body)
	}
	_, scrape := w.ask("/metrics", "")
	if !strings.Contains(scrape, `outbox_requests_total{outbox_name="shop",outcome="done",request="heartbeat"} 1`) {
		t.Errorf("no heartbeat in\n%s", scrape)
	}
	if strings.Contains(body+scrape, "hunter2") {
		t.Error("a secret is shown")
	}
	if code, _ := w.ask("/debug/pprof/", ""); code != http.StatusNotFound {
		t.Errorf("profiles without being asked: %d", code)
	}
	w.stop()
	if got := <-w.ended; got.code != exitDone || strings.Contains(got.stderr, "admin.exposed") {
		t.Errorf("exit %d:\n%s", got.code, got.stderr)
	}
}

// What others can reach without a token is warned of; with one, it is asked for.
func TestRunWarnsOfAnExposedAdminAddress(t *testing.T) {
	w := watch(t, "--admin-addr", ":0")
	w.stop()
	if got := <-w.ended; strings.Count(got.stderr, "admin.exposed") != 1 {
		t.Errorf("no warning in\n%s", got.stderr)
	}
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("open sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w = watch(t, "--admin-addr", ":0", "--admin-token-file", path, "--pprof")
	_, port, err := net.SplitHostPort(w.address)
	if err != nil {
		t.Fatal(err)
	}
	w.address = "127.0.0.1:" + port
	for _, path := range []string{"/status", "/metrics", "/debug/pprof/"} {
		without, _ := w.ask(path, "")
		with, _ := w.ask(path, "open sesame")
		if without != http.StatusUnauthorized || with != http.StatusOK {
			t.Errorf("%s: %d without the token, %d with it", path, without, with)
		}
	}
	w.stop()
	if got := <-w.ended; strings.Contains(got.stderr, "admin.exposed") || strings.Contains(got.stderr, "sesame") {
		t.Errorf("log:\n%s", got.stderr)
	}
}

// Without its admin address a relay is not started, and the operator reads what to do.
// What only another start can tell, such as whether the process before is gone by then,
// is no fault of the settings: systemd tries 1 again, and 2 never.
func TestRunEndsWithoutItsAdminAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	empty := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--admin-addr", taken.Addr().String()}, exitFailed, "admin-addr " + taken.Addr().String() + " is in use, perhaps by another relay of this host"},
		{[]string{"--admin-addr", "203.0.113.7:9464"}, exitFailed, "admin-addr 203.0.113.7:9464 is no address of this host:\n  give one that it has"},
		{[]string{"--admin-token-file", empty}, exitUsage, "admin-token-file: the file is empty"},
		{[]string{"--admin-token-file", empty + ".none"}, exitUsage, "admin-token-file: the file cannot be read: no such file"},
	} {
		got := runRelay(t, newConsole(t).table, "relay.started", c.args...)
		if got.code != c.code || !strings.Contains(got.stderr, c.want) || strings.Contains(got.stderr, "relay.started") {
			t.Errorf("%v: exit %d:\n%s", c.args, got.code, got.stderr)
		}
	}
}

// Without an admin address, nothing listens, and nothing is measured.
func TestRunWithoutAnAdminAddress(t *testing.T) {
	got := runRelay(t, newConsole(t).table, "relay.ready", "--admin-addr", "off")
	if got.code != exitDone || strings.Contains(got.stderr, "admin.") {
		t.Errorf("exit %d:\n%s", got.code, got.stderr)
	}
}
