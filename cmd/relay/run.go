package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/telemetry"
)

// runGroups are the settings that a running relay reads: all.
const runGroups = settings.Table | settings.Brokers | settings.Relay | settings.Admin | settings.Log

// producersGrace is how long the producers may take to close after the relay
// has stopped.
const producersGrace = 5 * time.Second

// runCommand runs one relay until it is told to stop.
type runCommand struct{ app *app }

func newRun(a *app) *cobra.Command {
	c := &runCommand{app: a}
	return a.command(spec{
		use:   "run",
		short: "Runs one relay until SIGTERM or SIGINT",
		long: "Runs one relay until SIGTERM or SIGINT, which it answers by draining for at most\n" +
			"shutdown-timeout. Run several of them: they share the buckets.\n\n" +
			"Each flag can be set by a variable RELAY_... and in the YAML file of --config too: flags win\n" +
			"over variables, variables over the file. Credentials are those of the AWS SDK's chain.",
		example: "  relay run --table orders --brokers kafka-1:9092,kafka-2:9092\n" +
			"  RELAY_KAFKA_SASL_PASSWORD_FILE=/run/secrets/kafka relay run --config relay.yaml",
		groups: runGroups,
		run:    c.run,
	})
}

// collectAfter is by how much of what is live the heap grows, in percent, before Go
// collects it; GOGC in the environment wins. A relay has little live and makes much
// that is soon gone, so that Go's own 100 % would keep as much again of nothing.
const collectAfter = 30

func (c *runCommand) run(ctx context.Context, loaded *settings.Loader) error {
	if !slices.ContainsFunc(c.app.environ, func(entry string) bool { return strings.HasPrefix(entry, "GOGC=") }) {
		defer debug.SetGCPercent(debug.SetGCPercent(collectAfter))
	}
	s := &loaded.Settings
	dynamo, err := c.app.dial(ctx, s)
	if err != nil {
		return err
	}
	producers, err := kafka.NewFactory(s.Kafka)
	if err != nil {
		return usageError{err}
	}
	logger := c.app.newLogger(s)
	outlook, err := c.app.openOutlook(ctx, s, logger)
	if err != nil {
		return err
	}
	config := s.Relay
	config.DynamoDB, config.Coordination = dynamo.messages, dynamo.coordination
	config.Producers, config.Region = producers, dynamo.region
	config.MetricsInterval, config.TraceLinks = outlook.interval(s.MetricsInterval), outlook.traceLinks()
	config.Observers = append(outlook.observers(), telemetry.NewLog(logger))
	manager, err := openServiceManager(c.app.variable("NOTIFY_SOCKET"))
	switch {
	case err != nil:
		line(logger, zerolog.WarnLevel, c.app.now(), "systemd.unreachable").Err(err).Msg("The service manager cannot be told how the relay is.")
	case manager != nil:
		defer manager.close()
		config.Observers = append(config.Observers, manager)
	}
	r, err := relay.New(config)
	if err != nil {
		return errors.Join(usageError{err}, outlook.close())
	}
	s.Region, s.Relay.RelayID = dynamo.region, r.Status().Relay // as they are in effect
	s.Relay.TransactionalIDPrefix = config.WithDefaults().TransactionalIDPrefix
	effective := s.Effective(runGroups)
	logSettings(logger, c.app.now(), effective)
	outlook.show(r, effective)
	err = r.Run(ctx)
	return errors.Join(advised(err, s), closeProducers(producers), outlook.close())
}

// closeProducers waits for the producers' end. Records without a report are no
// failure: their rows are in the table, and the relay has said so.
func closeProducers(producers *kafka.Factory) error {
	ctx, cancel := context.WithTimeout(context.Background(), producersGrace)
	defer cancel()
	if _, err := producers.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("close producers: %w", err)
	}
	return nil
}

// newLogger writes to stderr in the format and from the level of the settings.
// Lines carry the time of their event, so the logger adds none.
func (a *app) newLogger(s *settings.Settings) zerolog.Logger {
	level, err := zerolog.ParseLevel(s.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel // the settings allow only zerolog's names
	}
	console := s.LogFormat == "console" || s.LogFormat == "auto" && isTerminal(a.stderr)
	if !console {
		return zerolog.New(zerolog.SyncWriter(a.stderr)).Level(level)
	}
	return zerolog.New(zerolog.SyncWriter(zerolog.ConsoleWriter{
		Out: a.stderr, NoColor: !a.coloured(a.stderr), TimeFormat: time.TimeOnly,
	})).Level(level)
}

// logSettings writes the effective settings once, secrets redacted.
func logSettings(logger zerolog.Logger, now time.Time, effective []settings.Shown) {
	shown := zerolog.Dict()
	for _, setting := range effective {
		shown.Str(setting.Name, setting.Value)
	}
	line(logger, zerolog.InfoLevel, now, "settings.effective").Dict("settings", shown).Msg("These settings are in effect.")
}

// line begins a line of the command's own, in the form of those of events.
func line(logger zerolog.Logger, level zerolog.Level, now time.Time, name string) *zerolog.Event {
	return logger.WithLevel(level).Str("time", now.UTC().Format("2006-01-02T15:04:05.000Z07:00")).Str("event", name)
}
