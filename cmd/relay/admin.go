package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/telemetry"
)

// outlook is what a running relay shows to those who operate it: metrics and the
// admin address.
type outlook struct {
	logger  zerolog.Logger
	now     func() time.Time
	export  *telemetry.Export
	metrics *telemetry.Metrics     // nil: nobody would read them
	board   *telemetry.Board       // nil: likewise
	server  *telemetry.AdminServer // nil: the admin address is off
	options telemetry.AdminOptions
}

// outlookGrace is how long the last metrics may take to be sent.
const outlookGrace = 2 * time.Second

// openOutlook takes the admin address, before anything is started. Nothing is answered
// until show.
func (a *app) openOutlook(ctx context.Context, s *settings.Settings, logger zerolog.Logger) (*outlook, error) {
	o := &outlook{logger: logger, now: a.now}
	export, err := telemetry.NewExport(ctx, telemetry.ExportOptions{
		Environment: a.variable, Service: "relay", Instance: cmp.Or(s.Relay.RelayID, uuid.NewString()),
	})
	if err != nil {
		return nil, usageError{err}
	}
	o.export, o.options.Metrics, o.options.Profiles = export, export.Handler(), s.Pprof
	if export.Sends() {
		otel.SetErrorHandler(&unsent{logger: logger, now: a.now})
	}
	if s.AdminAddr != settings.AdminOff {
		if err := o.listen(ctx, s); err != nil {
			return nil, errors.Join(err, o.close())
		}
		o.board = telemetry.NewBoard()
	}
	if o.server != nil || export.Sends() {
		if o.metrics, err = telemetry.NewMetrics(export.Provider(), s.MetricsName); err != nil {
			return nil, errors.Join(err, o.close())
		}
	}
	return o, nil
}

// listen takes the admin address. That an address cannot be had is no bad usage: another
// process may be about to leave it, or an interface to get it, so that whoever restarts
// relays must try again, as it must not with settings that are wrong.
func (o *outlook) listen(ctx context.Context, s *settings.Settings) (err error) {
	if o.options.Token, err = readToken(s.AdminTokenFile); err != nil {
		return usageError{err}
	}
	o.server, err = telemetry.ListenAdmin(ctx, s.AdminAddr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("admin-addr %s is in use, perhaps by another relay of this host:\n  give one of them another port, 127.0.0.1:0 for a free one, or off", s.AdminAddr)
	case err != nil:
		return fmt.Errorf("admin-addr %s: %w", s.AdminAddr, err)
	}
	return nil
}

// readToken reads the token that a file has, blanks around it left out.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("admin-token-file: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("admin-token-file %s: has no token in it", path)
	}
	return token, nil
}

// announce logs the address, which has the port that was taken, and warns when
// anybody may ask there.
func (o *outlook) announce() {
	address := o.server.Address()
	line(o.logger, zerolog.InfoLevel, o.now(), "admin.listening").Str("address", address).
		Msg("The admin address is open.")
	if o.server.Exposed() && o.options.Token == "" {
		line(o.logger, zerolog.WarnLevel, o.now(), "admin.exposed").Str("address", address).
			Msg("Other hosts can reach the admin address, and no token is asked for: set admin-token-file, or bind it to loopback.")
	}
}

// interval is the one between samples of the backlog: none when nobody would read
// them.
func (o *outlook) interval(wanted time.Duration) time.Duration {
	if o.metrics == nil {
		return 0
	}
	return wanted
}

// observers are what the relay is to tell.
func (o *outlook) observers() []event.Observer {
	if o.metrics == nil {
		return nil
	}
	if o.board == nil {
		return []event.Observer{o.metrics}
	}
	return []event.Observer{o.metrics, o.board}
}

// show begins to answer for a relay.
func (o *outlook) show(r *relay.Relay, effective []settings.Shown) {
	if o.server == nil {
		return
	}
	o.options.Status = func() telemetry.Status {
		status := statusOf(r.Status(), effective)
		o.board.Fill(&status, o.now())
		return status
	}
	o.server.Serve(telemetry.NewAdmin(o.options))
	o.announce()
}

// close ends it all: the last metrics are sent if somebody takes them.
func (o *outlook) close() error {
	var errs []error
	if o.server != nil {
		errs = append(errs, o.server.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), outlookGrace)
	defer cancel()
	_ = o.export.Close(ctx) // a collector that is away is no failure of the relay
	return errors.Join(errs...)
}

// statusOf puts what a relay does into the form of /status.
func statusOf(s relay.Status, effective []settings.Shown) telemetry.Status {
	status := telemetry.Status{
		Relay: s.Relay, Incarnation: s.Incarnation, State: s.State, Since: telemetry.Moment(s.Since),
		Mode: string(s.Mode), ClockSkewSeconds: s.ClockAhead.Seconds(), Settings: map[string]string{},
	}
	for _, setting := range effective {
		status.Settings[setting.Name] = setting.Value
	}
	for _, b := range s.Buckets {
		bucket := telemetry.BucketStatus{
			Bucket: b.Bucket, State: string(b.State), BatchState: string(b.BatchState), Since: telemetry.Moment(b.Since),
			LastSequence: b.LastSequence, LastError: b.LastError,
		}
		if b.Paused != nil {
			bucket.Paused = &telemetry.Pause{Until: telemetry.Moment(b.Paused.Until), By: b.Paused.By, Reason: b.Paused.Reason}
		}
		if b.Pending >= 0 {
			bucket.Pending = &b.Pending
		}
		status.Buckets = append(status.Buckets, bucket)
	}
	if s.Fleet != nil {
		status.Fleet = telemetry.NewFleet(s.Fleet.At, s.Fleet.FleetSeen)
	}
	if b := s.Backlog; b != nil {
		status.Backlog = &telemetry.Backlog{
			SampledAt: telemetry.Moment(b.At), Pending: b.Messages, PendingIsLimit: b.Limited > 0, OldestAgeSeconds: b.Oldest.Seconds(),
			ParkedKeys: b.ParkedKeys, ParkedRows: b.ParkedRows,
		}
	}
	return status
}

// unsent logs what OpenTelemetry could not send, at a slowing pace.
type unsent struct {
	logger zerolog.Logger
	now    func() time.Time

	mu    sync.Mutex
	next  time.Time     // guarded by mu
	pause time.Duration // guarded by mu
}

// Handle implements otel.ErrorHandler.
func (u *unsent) Handle(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if now.Before(u.next) {
		return
	}
	u.pause = min(max(2*u.pause, time.Minute), time.Hour)
	u.next = now.Add(u.pause)
	line(u.logger, zerolog.WarnLevel, now, "metrics.unsent").Err(err).Msg("Metrics could not be sent.")
}
