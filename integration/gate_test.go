//go:build integration

package integration

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// traffic is everything that the relays of one test have asked of the table, in
// the order in which it passed by. It is the table's side of the story: nothing
// in it is what a relay says of itself.
type traffic struct {
	mu       sync.Mutex
	requests []request     // guarded by mu
	changed  chan struct{} // guarded by mu; closed and replaced with each arrival and answer
	wrote    chan struct{} // guarded by mu; likewise with each applied write to the coordination partition
}

func newTraffic() *traffic {
	return &traffic{changed: make(chan struct{}), wrote: make(chan struct{})}
}

// arrived notes a request and returns its place.
func (tr *traffic) arrived(r request) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	r.sent = time.Now()
	tr.requests = append(tr.requests, r)
	tr.tell()
	return len(tr.requests) - 1
}

// answered notes the answer to the request at that place; nil: there is none.
func (tr *traffic) answered(place int, response *http.Response, text []byte) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	r := &tr.requests[place]
	if response == nil {
		r.answer(time.Now(), 0, nil, nil)
	} else {
		r.answer(time.Now(), response.StatusCode, response.Header, text)
	}
	tr.tell()
	if r.coordinates() && r.kind != coordination && r.applied() {
		close(tr.wrote)
		tr.wrote = make(chan struct{})
	}
}

// tell is called under mu.
func (tr *traffic) tell() {
	close(tr.changed)
	tr.changed = make(chan struct{})
}

// mark is the place behind all that has passed by.
func (tr *traffic) mark() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.requests)
}

// since is a copy of what has passed by from a mark on.
func (tr *traffic) since(mark int) []request {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([]request(nil), tr.requests[mark:]...)
}

// await waits until what has passed by from a mark on is enough.
func (tr *traffic) await(t testing.TB, what string, mark int, enough func([]request) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		tr.mu.Lock()
		is, changed := enough(tr.requests[mark:]), tr.changed
		tr.mu.Unlock()
		if is {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("not seen within %v: %s", patience, what)
		}
	}
}

// nextWrite is closed at the next applied write to the coordination partition.
func (tr *traffic) nextWrite() <-chan struct{} {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.wrote
}

// gate stands between one relay process and the table: an endpoint of its own,
// so that requests are told apart by who has sent them. What has come so far is
// carried out, whether its sender still waits or not, as at the service.
type gate struct {
	relay     string
	target    string // the emulator's host and port
	traffic   *traffic
	transport *http.Transport
	server    *httptest.Server

	mu    sync.Mutex
	holds func(request) bool // guarded by mu; nil: nothing is held
	open  chan struct{}      // guarded by mu; closed when what is held may go on
}

// newGate opens a gate for a process of that name. It is closed when the test has
// ended; a process that uses it is to be started later, so that it ends before.
func newGate(t testing.TB, relay string, tr *traffic) *gate {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	g := &gate{relay: relay, target: strings.TrimPrefix(endpoint(t), "http://"), traffic: tr, transport: transport}
	g.server = httptest.NewServer(g)
	t.Cleanup(func() {
		g.letGo()
		g.server.Close()
		transport.CloseIdleConnections()
	})
	return g
}

// hold keeps back the requests that match, on their way to the table, until
// letGo is called.
func (g *gate) hold(matches func(request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds, g.open = matches, make(chan struct{})
}

// letGo sends on what is held, and holds nothing more.
func (g *gate) letGo() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holds != nil {
		g.holds = nil
		close(g.open)
	}
}

// pass waits as long as the request is held.
func (g *gate) pass(r request) {
	g.mu.Lock()
	held, open := g.holds != nil && g.holds(r), g.open
	g.mu.Unlock()
	if held {
		<-open
	}
}

// ServeHTTP carries one request to the table and its answer back.
func (g *gate) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	text, err := io.ReadAll(in.Body)
	if err != nil {
		return // its sender has gone before it was sent
	}
	r := nameRequest(in.Header.Get("X-Amz-Target"), text)
	r.relay = g.relay
	r.belong(in.Header)
	place := g.traffic.arrived(r)
	g.pass(r)
	response, answer, err := g.ask(in, text)
	g.traffic.answered(place, response, answer)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	w.Write(answer) // its sender may have gone
}

func (g *gate) ask(in *http.Request, text []byte) (*http.Response, []byte, error) {
	out := in.Clone(context.WithoutCancel(in.Context()))
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", g.target, ""
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	response, err := g.transport.RoundTrip(out)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil, err
	}
	return response, answer, nil
}
