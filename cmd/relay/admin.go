package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// outlook is what a running relay shows to those who operate it: metrics, spans and the
// admin address.
type outlook struct {
	logger  zerolog.Logger
	now     func() time.Time
	export  *telemetry.Export
	traces  *telemetry.SpanExport
	metrics *telemetry.Metrics     // nil: nobody would read them
	board   *telemetry.Board       // nil: likewise
	spans   *telemetry.Spans       // nil: nobody asks for them
	server  *telemetry.AdminServer // nil: the admin address is off
	options telemetry.AdminOptions
}

// outlookGrace is how long the last metrics and spans may take to be sent.
const outlookGrace = 2 * time.Second

// openOutlook takes the admin address, before anything is started. Nothing is answered
// until show.
func (a *app) openOutlook(ctx context.Context, s *settings.Settings, logger zerolog.Logger) (*outlook, error) {
	o := &outlook{logger: logger, now: a.now}
	who := telemetry.ExportOptions{
		Environment: a.variable, Service: "relay", Instance: cmp.Or(s.Relay.RelayID, uuid.NewString()),
	}
	export, metricsErr := telemetry.NewExport(ctx, who)
	traces, err := telemetry.NewSpanExport(ctx, who)
	o.export, o.traces = export, traces
	if err = errors.Join(metricsErr, err); err != nil {
		return nil, errors.Join(usageError{err}, o.close())
	}
	o.options.Metrics, o.options.Profiles = export.Handler(), s.Pprof
	if export.Sends() || traces.Sends() {
		otel.SetErrorHandler(newUnsent(logger, a.now))
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
	if traces.Sends() {
		o.spans = telemetry.NewSpans(traces.Provider(), s.MetricsName)
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
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("admin-addr %s is no address of this host:\n  give one that it has, 127.0.0.1:9464, :9464 for all of them, or off", s.AdminAddr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("admin-addr %s may not be taken by this user:\n  give a port above 1023, or off", s.AdminAddr)
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
	content, err := settings.ReadSecret(path)
	if err != nil {
		return "", fmt.Errorf("admin-token-file: %w", err)
	}
	token := strings.TrimSpace(content)
	if token == "" {
		return "", errors.New("admin-token-file: the file has no token in it")
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

// traceLinks is of how many traces the relay is to tell with each batch: none when
// nobody asks for spans.
func (o *outlook) traceLinks() int {
	if o.spans == nil {
		return 0
	}
	return telemetry.DefaultTraceLinks
}

// observers are what the relay is to tell.
func (o *outlook) observers() (all []event.Observer) {
	if o.metrics != nil {
		all = append(all, o.metrics)
	}
	if o.board != nil {
		all = append(all, o.board)
	}
	if o.spans != nil {
		all = append(all, o.spans)
	}
	return all
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

// close ends it all: the last metrics and spans are sent if somebody takes them.
func (o *outlook) close() error {
	var errs []error
	if o.server != nil {
		errs = append(errs, o.server.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), outlookGrace)
	defer cancel()
	// A collector that is away is no failure of the relay.
	if o.export != nil {
		_ = o.export.Close(ctx)
	}
	if o.traces != nil {
		_ = o.traces.Close(ctx)
	}
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
		for _, t := range b.PausedTopics {
			bucket.PausedTopics = append(bucket.PausedTopics, telemetry.TopicPause{
				Topic: t.Topic, Pause: telemetry.Pause{Until: telemetry.Moment(t.Until), By: t.By, Reason: t.Reason}})
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

// unsent logs what OpenTelemetry could not send, at a slowing pace for metrics and
// spans each.
type unsent struct {
	logger zerolog.Logger
	now    func() time.Time

	mu    sync.Mutex
	paces map[string]*pace // by the line's event; guarded by mu
}

// pace is when the next line of its kind may be written.
type pace struct {
	next  time.Time
	pause time.Duration
}

func newUnsent(logger zerolog.Logger, now func() time.Time) *unsent {
	return &unsent{logger: logger, now: now, paces: map[string]*pace{"metrics.unsent": {}, "spans.unsent": {}}}
}

// Handle implements otel.ErrorHandler.
func (u *unsent) Handle(err error) {
	name, sentence := "metrics.unsent", "Metrics could not be sent."
	if errors.Is(err, telemetry.ErrSpansUnsent) {
		name, sentence = "spans.unsent", "Spans could not be sent, and are lost."
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now, p := u.now(), u.paces[name]
	if now.Before(p.next) {
		return
	}
	p.pause = min(max(2*p.pause, time.Minute), time.Hour)
	p.next = now.Add(p.pause)
	line(u.logger, zerolog.WarnLevel, now, name).Err(err).Msg(sentence)
}
