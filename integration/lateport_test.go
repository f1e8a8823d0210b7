//go:build integration

package integration

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
)

// latePort is a port that is ours but refuses connections, like that of a
// service that is not up, until it is opened. From then on it forwards to the
// real service, until it is frozen: then it takes what it is sent and answers
// nothing, like a service behind a network that drops packets.
type latePort struct {
	t       testing.TB
	address string
	socket  *os.File // bound; listening once open was called

	mu       sync.Mutex
	listener net.Listener          // guarded by mu; nil until open
	frozen   bool                  // guarded by mu
	conns    map[net.Conn]struct{} // guarded by mu; nil when the test has ended
	tasks    sync.WaitGroup
}

// reservePort takes a free port of 127.0.0.1 without listening on it.
func reservePort(t testing.TB) *latePort {
	t.Helper()
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	p := &latePort{t: t, socket: os.NewFile(uintptr(fd), "late port"), conns: map[net.Conn]struct{}{}}
	t.Cleanup(p.close)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	p.address = fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	return p
}

// open begins to listen, and forwards to the address target.
func (p *latePort) open(target string) {
	p.t.Helper()
	if err := syscall.Listen(int(p.socket.Fd()), 128); err != nil {
		p.t.Fatal(err)
	}
	listener, err := net.FileListener(p.socket)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.listener = listener
	p.mu.Unlock()
	p.tasks.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // closed: the test has ended
			}
			p.tasks.Go(func() { p.forward(from, target) })
		}
	})
}

// freeze ends all answers, thaw the freezing. What was sent meanwhile is lost.
func (p *latePort) freeze() { p.setFrozen(true) }
func (p *latePort) thaw()   { p.setFrozen(false) }

func (p *latePort) setFrozen(frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
}

func (p *latePort) isFrozen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

func (p *latePort) forward(from net.Conn, target string) {
	defer p.own(from)()
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer p.own(to)()
	p.tasks.Go(func() { p.pump(from, to) })
	p.pump(to, from)
}

// own closes the connection when the returned function is called, or when the
// test ends.
func (p *latePort) own(c net.Conn) (disown func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		c.Close()
		return func() {}
	}
	p.conns[c] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		c.Close()
		delete(p.conns, c)
	}
}

// pump copies from one connection to the other; while frozen it drops what it
// reads. When one side ends, so does the other.
func (p *latePort) pump(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !p.isFrozen() {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *latePort) close() {
	p.mu.Lock()
	if p.listener != nil {
		p.listener.Close()
	}
	p.socket.Close()
	for c := range p.conns {
		c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.tasks.Wait()
}
