package telemetry_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bucketbrigade/relay/telemetry"
)

// pipes is a listener whose connections are pipes in this process, so that their
// deadlines run in virtual time.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func newPipes() *pipes {
	return &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 1)} }

// dial connects; the other end may have to wait for its turn.
func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	go func() {
		select {
		case p.accepted <- theirs:
		case <-p.closed:
			_ = theirs.Close()
		}
	}()
	return ours
}

// inVirtualTime serves an admin address in virtual time.
func inVirtualTime(t *testing.T, test func(t *testing.T, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		server := telemetry.NewAdminServer(p)
		server.Serve(telemetry.NewAdmin(telemetry.AdminOptions{Status: statusNow, Metrics: http.NotFoundHandler()}))
		test(t, p)
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// Who sends slowly, or never asks again, is cut off, so that a handful of such clients
// cannot hold the address for good.
func TestSlowClientsAreCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		begin string
		drips bool // and goes on, with one byte a second
		after time.Duration
	}{
		"who says nothing":  {"", false, 5 * time.Second},
		"a slow header":     {"GET /status HTTP/1.1\r\nHost: a\r\nX-Slow: ", true, 5 * time.Second},
		"a slow body":       {"GET /status HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", true, 10 * time.Second},
		"who asks once":     {"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", false, 0},
		"a slow second one": {"GET /livez HTTP/1.1\r\nHost: a\r\n\r\nGET /livez HTTP/1.1\r\nX-Slow: ", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, p *pipes) {
				conn, began := p.dial(), time.Now()
				defer conn.Close()
				ended := make(chan time.Duration, 1)
				go func() {
					_, _ = io.Copy(io.Discard, conn) // until the server closes it
					ended <- time.Since(began).Truncate(time.Second)
				}()
				if _, err := io.WriteString(conn, c.begin); err != nil {
					t.Fatal(err)
				}
				for c.drips {
					time.Sleep(time.Second)
					if _, err := io.WriteString(conn, "x"); err != nil {
						break
					}
				}
				if took := <-ended; took != c.after {
					t.Errorf("cut off after %v, want %v", took, c.after)
				}
			})
		})
	}
}

// Who asks and does not read the answer is cut off, too.
func TestWhoDoesNotReadIsCutOff(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, p *pipes) {
		conn := p.dial()
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + time.Second)
		if rest, err := io.ReadAll(conn); len(rest) > 0 || err != nil {
			t.Errorf("the answer was still to be had after a minute: %d bytes, %v", len(rest), err)
		}
	})
}

// No request is large; what is, is not taken in.
func TestLargeRequestsAreRefused(t *testing.T) {
	for name, head := range map[string]string{
		"a header":      "GET /livez HTTP/1.1\r\nHost: a\r\nX-Large: ",
		"many headers":  "GET /livez HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-Many: 1\r\n", 10_000),
		"an address":    "GET /",
		"a body":        "GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n",
		"a chunked one": "GET /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3b9aca00\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, p *pipes) {
				conn := p.dial()
				defer conn.Close()
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				taken, _ := io.WriteString(conn, head)
				block := strings.Repeat("x", 1<<10)
				for taken < 4<<20 {
					n, err := io.WriteString(conn, block)
					if taken += n; err != nil {
						break
					}
				}
				if taken > 1<<20 { // net/http itself takes some of what nobody reads
					t.Errorf("%d bytes were taken", taken)
				}
			})
		})
	}
}

// The number of connections is bounded, and one that waits has its turn when a slow one
// is cut off.
func TestTooManyClientsWait(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, p *pipes) {
		for range 64 {
			idle := p.dial()
			defer idle.Close()
		}
		synctest.Wait()
		conn, began := p.dial(), time.Now()
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if waited := time.Since(began).Truncate(time.Second); response.StatusCode != http.StatusOK || waited != 5*time.Second {
			t.Errorf("answered with %d after %v, want 200 after 5s", response.StatusCode, waited)
		}
	})
}
