//go:build integration

package integration

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// brokerGate stands between one relay process and the broker. It names itself
// where the broker names its own address, so that all connections lead through
// it, and can keep back acknowledgements: the records are in the topic then, and
// their producer does not know; or produce requests, so that they land late.
type brokerGate struct {
	t        testing.TB
	target   string
	listener net.Listener
	tasks    sync.WaitGroup

	closed chan struct{} // closed when the test has ended

	requests, acknowledgements hold

	mu    sync.Mutex
	conns map[net.Conn]struct{} // guarded by mu; nil when the test has ended
}

// hold keeps back frames of one kind.
type hold struct {
	mu   sync.Mutex
	open chan struct{} // guarded by mu; closed when what is held may go on; nil: nothing is held
}

// set holds what comes from now on, and with it whatever a connection has to say
// behind it.
func (h *hold) set() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = make(chan struct{})
}

// lift lets all that is held go on.
func (h *hold) lift() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.open)
	h.open = nil
}

// pass waits while frames are held, until the test has ended at the latest.
func (h *hold) pass(ended <-chan struct{}) {
	h.mu.Lock()
	open := h.open
	h.mu.Unlock()
	if open == nil {
		return
	}
	select {
	case <-open:
	case <-ended:
	}
}

func newBrokerGate(t testing.TB) *brokerGate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &brokerGate{t: t, target: brokers(t)[0], listener: listener,
		conns: map[net.Conn]struct{}{}, closed: make(chan struct{})}
	g.tasks.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed: the test has ended
			}
			g.tasks.Go(func() { g.serve(client) })
		}
	})
	t.Cleanup(g.close)
	return g
}

func (g *brokerGate) address() string { return g.listener.Addr().String() }

func (g *brokerGate) serve(client net.Conn) {
	broker, err := net.Dial("tcp", g.target)
	if err != nil {
		client.Close()
		return
	}
	if !g.own(client, broker) {
		return
	}
	defer g.disown(client, broker)
	asked := &questions{versions: map[int32]question{}}
	g.tasks.Go(func() {
		defer broker.Close()
		for {
			frame, err := readFrame(client)
			if err != nil || len(frame) < 8 {
				return
			}
			if asked.note(frame) == kmsg.Produce.Int16() {
				g.requests.pass(g.closed)
			}
			if writeFrame(broker, frame) != nil {
				return
			}
		}
	})
	for {
		frame, err := readFrame(broker)
		if err != nil || len(frame) < 4 {
			return
		}
		switch q := asked.of(frame); q.api {
		case kmsg.Produce.Int16():
			g.acknowledgements.pass(g.closed)
		case kmsg.Metadata.Int16():
			frame = g.rename(frame, q.version)
		}
		if writeFrame(client, frame) != nil {
			return
		}
	}
}

// rename puts our address into an answer that lists the brokers.
func (g *brokerGate) rename(frame []byte, version int16) []byte {
	answer := kmsg.NewPtrMetadataResponse()
	answer.SetVersion(version)
	header := 4 // the correlation id
	if answer.IsFlexible() {
		header++ // no tags
	}
	if err := answer.ReadFrom(frame[header:]); err != nil {
		g.t.Errorf("read an answer that lists the brokers: %v", err)
		return frame
	}
	host, port, _ := net.SplitHostPort(g.address())
	number, _ := strconv.Atoi(port)
	for i := range answer.Brokers {
		answer.Brokers[i].Host, answer.Brokers[i].Port = host, int32(number)
	}
	return answer.AppendTo(frame[:header:header])
}

// question is what an answer is the answer to.
type question struct{ api, version int16 }

// questions are those of one connection that have no answer yet.
type questions struct {
	mu       sync.Mutex
	versions map[int32]question // guarded by mu; by correlation id
}

// note remembers a question, and returns what is asked.
func (q *questions) note(frame []byte) (api int16) {
	q.mu.Lock()
	defer q.mu.Unlock()
	asked := question{api: int16(binary.BigEndian.Uint16(frame)), version: int16(binary.BigEndian.Uint16(frame[2:]))}
	q.versions[int32(binary.BigEndian.Uint32(frame[4:]))] = asked
	return asked.api
}

func (q *questions) of(frame []byte) question {
	q.mu.Lock()
	defer q.mu.Unlock()
	id := int32(binary.BigEndian.Uint32(frame))
	asked, known := q.versions[id]
	if !known {
		return question{api: -1}
	}
	delete(q.versions, id)
	return asked
}

// readFrame reads one request or answer, without its length.
func readFrame(from io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(from, frame)
	return frame, err
}

func writeFrame(to io.Writer, frame []byte) error {
	_, err := to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}

func (g *brokerGate) own(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		if g.conns == nil {
			c.Close()
			continue
		}
		g.conns[c] = struct{}{}
	}
	return g.conns != nil
}

func (g *brokerGate) disown(conns ...net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(g.conns, c)
	}
}

func (g *brokerGate) close() {
	g.listener.Close()
	close(g.closed)
	g.mu.Lock()
	for c := range g.conns {
		c.Close()
	}
	g.conns = nil
	g.mu.Unlock()
	g.tasks.Wait()
}
