package telemetry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/telemetry"
)

// served is an admin address that is asked over real HTTP.
type served struct {
	t      *testing.T
	server *telemetry.AdminServer
	client *http.Client
}

func serve(t *testing.T, o telemetry.AdminOptions) served {
	t.Helper()
	server, err := telemetry.ListenAdmin(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Serve(telemetry.NewAdmin(o))
	s := served{t, server, &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// answer is what came back for a request.
type answer struct {
	code   int
	body   string
	header http.Header
}

func (s served) ask(method, path string, change ...func(*http.Request)) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.server.Address()+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range change {
		c(r)
	}
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, string(body), response.Header}
}

func (s served) want(code int, method, path string, change ...func(*http.Request)) answer {
	s.t.Helper()
	a := s.ask(method, path, change...)
	if a.code != code {
		s.t.Errorf("%s %s: %d %s, want %d", method, path, a.code, a.body, code)
	}
	return a
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// statusNow is a relay at work.
func statusNow() telemetry.Status {
	pending := 12
	return telemetry.Status{
		Relay: "relay-a", Incarnation: "0639000000000000000-0badcafe", State: "ready",
		Since: telemetry.Moment(noon), Mode: "ordered",
		Settings:         map[string]string{"table": "orders", "kafka.sasl.password": "(redacted)"},
		ClockSkewSeconds: -0.25,
		Backlog: &telemetry.Backlog{SampledAt: telemetry.Moment(noon), Pending: 10012, PendingIsLimit: true, OldestAgeSeconds: 90.5,
			ParkedKeys: 1, ParkedRows: 3},
		Fleet: telemetry.NewFleet(noon, fleetSeen()),
		Buckets: []telemetry.BucketStatus{
			{Bucket: 0, State: "owned", BatchState: "publishing", Since: telemetry.Moment(noon), LastSequence: 17, Pending: &pending},
			{Bucket: 5, State: "blocked", LastError: "rejected: message too large"},
		},
	}
}

// fleetSeen is a fleet in which one relay stopped, one is silent, and one has left
// nothing but its leases.
func fleetSeen() event.FleetSeen {
	return event.FleetSeen{
		Relays: []event.RelaySeen{
			{Relay: "relay-a", Mode: "ordered", LastSeen: noon, Active: true},
			{Relay: "relay-b", LastSeen: noon.Add(-time.Hour), Stopped: noon.Add(-time.Hour)},
			{Relay: "relay-c", Mode: "ordered", LastSeen: noon.Add(-time.Minute)},
		},
		Leases: []event.LeaseSeen{
			{Owner: "relay-a"}, {Owner: "relay-c", Lapsed: true}, {}, {Unreadable: true},
			{Owner: "relay-d"}, {Owner: "relay-a", PausedUntil: noon.Add(time.Hour)}, {Owner: "relay-a"},
		},
	}
}

// Probes and scripts depend on what is served, and on nothing else being.
func TestAdminServes(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("at work", func(t *testing.T) {
		s := serve(t, telemetry.AdminOptions{Status: statusNow, Metrics: http.NotFoundHandler()})
		if got := s.want(http.StatusOK, "GET", "/livez"); got.body != "ok\n" {
			t.Errorf("livez says %q", got.body)
		}
		if got := s.want(http.StatusOK, "GET", "/readyz"); got.body != "ready\n" {
			t.Errorf("readyz says %q", got.body)
		}
		s.want(http.StatusOK, "HEAD", "/status")
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/status/", "/nothing"} {
			s.want(http.StatusNotFound, "GET", path)
		}
		for _, path := range []string{"/status", "/livez", "/metrics"} {
			s.want(http.StatusMethodNotAllowed, "POST", path)
		}
	})
}

// A relay takes no share before its first round, while it stops, and while it has
// withdrawn: a rolling update waits for it. It is alive all the same.
func TestReadiness(t *testing.T) {
	for state, want := range map[string]int{
		"new": 503, "starting": 503, "ready": 200, "withdrawn": 503, "stopping": 503, "stopped": 503,
	} {
		s := serve(t, telemetry.AdminOptions{Status: func() telemetry.Status { return telemetry.Status{State: state} }})
		if got := s.want(want, "GET", "/readyz"); got.body != state+"\n" {
			t.Errorf("readyz says %q", got.body)
		}
		s.want(http.StatusOK, "GET", "/livez")
	}
}

// The names and forms of /status are a contract.
func TestStatusDocument(t *testing.T) {
	s := serve(t, telemetry.AdminOptions{Status: statusNow})
	got := s.want(http.StatusOK, "GET", "/status")
	if kind := got.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("its type is %s", kind)
	}
	golden(t, "status.json", got.body)

	idle := serve(t, telemetry.AdminOptions{Status: func() telemetry.Status { return telemetry.Status{Relay: "relay-a", State: "new"} }})
	got = idle.want(http.StatusOK, "GET", "/status")
	for _, part := range []string{`"buckets": []`, `"since": null`} {
		if !strings.Contains(got.body, part) {
			t.Errorf("no %s in\n%s", part, got.body)
		}
	}
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func password(token string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth("anybody", token) }
}

// With a token, only who has it sees anything; probes need none, and learn no more
// than whether the relay is there.
func TestAdminToken(t *testing.T) {
	s := serve(t, telemetry.AdminOptions{Status: statusNow, Metrics: http.NotFoundHandler(), Token: "sesame", Profiles: true})
	s.want(http.StatusOK, "GET", "/livez")
	s.want(http.StatusOK, "GET", "/readyz")
	for _, path := range []string{"/status", "/metrics", "/debug/pprof/", "/debug/pprof/heap", "/nothing"} {
		got := s.want(http.StatusUnauthorized, "GET", path)
		if len(got.header.Values("WWW-Authenticate")) != 2 || strings.Contains(got.body, "relay-a") {
			t.Errorf("%s: %v %s", path, got.header, got.body)
		}
	}
	for _, wrong := range []func(*http.Request){bearer("sesam"), bearer(""), password(""), password("Sesame")} {
		s.want(http.StatusUnauthorized, "GET", "/status", wrong)
	}
	s.want(http.StatusOK, "GET", "/status", bearer("sesame"))
	s.want(http.StatusOK, "GET", "/status", password("sesame"))
	s.want(http.StatusOK, "GET", "/debug/pprof/", bearer("sesame"))
}

// A page of a stranger's that was opened beside must learn nothing: not by a name
// of its own for our address, and not by embedding us.
func TestAdminKeepsStrangersPagesOut(t *testing.T) {
	s := serve(t, telemetry.AdminOptions{Status: statusNow})
	_, port, _ := strings.Cut(s.server.Address(), ":")
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for _, name := range []string{"evil.example", "evil.example:" + port, "localhost.evil.example", "127.0.0.1.nip.io:80"} {
		s.want(http.StatusMisdirectedRequest, "GET", "/status", host(name))
	}
	for _, name := range []string{"localhost", "localhost:" + port, "127.0.0.1", "[::1]:" + port} {
		got := s.want(http.StatusOK, "GET", "/status", host(name))
		for header, want := range map[string]string{
			"Cross-Origin-Resource-Policy": "same-origin", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Access-Control-Allow-Origin": "", "Referrer-Policy": "no-referrer",
		} {
			if got.header.Get(header) != want {
				t.Errorf("%s is %q, want %q", header, got.header.Get(header), want)
			}
		}
	}
}

// An address that is taken is told as such before anything is started; loopback is
// told from what others can reach.
func TestListenAdmin(t *testing.T) {
	first := serve(t, telemetry.AdminOptions{Status: statusNow})
	if _, err := telemetry.ListenAdmin(context.Background(), first.server.Address()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second listener: %v", err)
	}
	if first.server.Exposed() {
		t.Error("loopback counts as exposed")
	}
	everywhere, err := telemetry.ListenAdmin(context.Background(), ":0")
	if err != nil {
		t.Fatal(err)
	}
	if !everywhere.Exposed() {
		t.Error("all interfaces do not count as exposed")
	}
	if err := everywhere.Close(); err != nil {
		t.Error(err)
	}
}

// golden compares a text with the file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}
