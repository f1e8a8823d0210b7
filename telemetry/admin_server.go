package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// Limits of an admin server, against whoever is slow or many: probes and scrapes
// are small and soon over. Profiles take up to half a minute by themselves.
const (
	adminConnections   = 64
	adminHeaderBytes   = 16 << 10
	adminHeaderTimeout = 5 * time.Second
	adminReadTimeout   = 10 * time.Second
	adminWriteTimeout  = 60 * time.Second
	// adminStopTimeout is how long answers that are under way may take when the
	// server is closed.
	adminStopTimeout = time.Second
)

// AdminServer serves an admin address. Its zero value is not usable.
type AdminServer struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}
	err      error // how it ended; read only after done
}

// ListenAdmin takes an address, as "127.0.0.1:9464", and answers nothing yet:
// connections wait for Serve. Port 0 takes a free one. At most 64 connections are
// served at once. The error is net.Listen's, such as syscall.EADDRINUSE.
func ListenAdmin(ctx context.Context, address string) (*AdminServer, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on the admin address: %w", err)
	}
	return newAdminServer(listener), nil
}

func newAdminServer(listener net.Listener) *AdminServer {
	return &AdminServer{listener: listener, done: make(chan struct{})}
}

// Address is what it listens on, with the port that it got.
func (s *AdminServer) Address() string { return s.listener.Addr().String() }

// Exposed tells whether other hosts can reach it.
func (s *AdminServer) Exposed() bool { return !isLoopback(s.listener.Addr()) }

// Serve begins to answer, until Close. It is called once.
func (s *AdminServer) Serve(handler http.Handler) {
	s.server = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: adminHeaderTimeout,
		ReadTimeout:       adminReadTimeout,
		WriteTimeout:      adminWriteTimeout,
		MaxHeaderBytes:    adminHeaderBytes,
		ErrorLog:          log.New(io.Discard, "", 0), // broken connections are not our trouble
	}
	// A connection is for one request: kept ones would be places that a probe does not
	// get, and a probe that gets none has the relay restarted.
	s.server.SetKeepAlivesEnabled(false)
	go func() {
		defer close(s.done)
		if err := s.server.Serve(netutil.LimitListener(s.listener, adminConnections)); !errors.Is(err, http.ErrServerClosed) {
			s.err = fmt.Errorf("serve the admin address: %w", err)
		}
	}()
}

// Close ends it, and waits a second at most for answers that are under way. It
// returns why it had ended before, if it had.
func (s *AdminServer) Close() error {
	if s.server == nil {
		return s.listener.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminStopTimeout)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close() // what is under way is cut off: it has had its second
	}
	<-s.done
	return s.err
}
