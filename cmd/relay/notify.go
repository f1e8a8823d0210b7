package main

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/bucketbrigade/relay/event"
)

// notifyTimeout bounds one message to the service manager: it comes from inside the
// relay's actors, and a manager that does not read must not hold them up.
const notifyTimeout = 50 * time.Millisecond

// serviceManager tells systemd how the relay is, as a service of Type=notify does: ready
// after the first completed round, stopping from when it drains, and a line of status
// whenever it changes. It is an event.Observer. There is no watchdog: a relay whose
// table does not answer is slow, not stuck, and a restart would not help it.
//
// The library for this dials for each message, reads the process's environment, and
// waits for a manager that does not read.
type serviceManager struct {
	conn *net.UnixConn

	mu     sync.Mutex
	status string // guarded by mu: what was told last
}

// openServiceManager is nil, without an error, when nobody asked to be notified.
func openServiceManager(socket string) (*serviceManager, error) {
	if socket == "" {
		return nil, nil
	}
	// A name that begins with @ is an abstract one, as the net package writes it too.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("notify the service manager: %w", err)
	}
	return &serviceManager{conn: conn}, nil
}

// Observe implements event.Observer.
func (m *serviceManager) Observe(e event.Envelope) {
	switch e := e.Event.(type) {
	case event.RelayStarted:
		m.tell("", "waiting for the table and a broker")
	case event.RelayReady:
		m.tell("READY=1\n", "ready")
	case event.RoundCompleted:
		m.tell("", fmt.Sprintf("owns %d buckets; active relays: %d", e.Owned, e.Active))
	case event.RelayWithdrawn:
		m.tell("", "withdrawn, because of "+e.Reason)
	case event.RelayStopping:
		m.tell("STOPPING=1\n", "draining")
	}
}

// tell sends a change of state, which may be none, and the status if it is another one.
// What cannot be sent is lost: the log has it too.
func (m *serviceManager) tell(change, status string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if change == "" && status == m.status {
		return
	}
	m.status = status
	_ = m.conn.SetWriteDeadline(time.Now().Add(notifyTimeout))
	_, _ = m.conn.Write([]byte(change + "STATUS=" + status + "\n"))
}

func (m *serviceManager) close() error { return m.conn.Close() }
