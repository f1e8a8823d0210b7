package telemetry

import (
	"reflect"
	"time"

	"github.com/rs/zerolog"

	"github.com/bucketbrigade/relay/event"
)

// timeLayout is RFC 3339 in milliseconds; times are converted to UTC first.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// Log is the event.Observer that writes lines for people: docs/events.md has
// all of them. Each line is one JSON object with
//
//   - level, and time: the relay's wall clock when it happened, RFC 3339 UTC;
//   - relay: the relay's id, and event: the event's stable name;
//   - the event's facts in lowerCamelCase, durations in seconds;
//   - message: a sentence that is always the same for one event.
//
// A quiet fleet logs nothing at info and above. A lasting fault has a line when
// it starts, further ones at a slowing pace (after 1 minute, 2, 4 … up to every
// hour) that carry lasted and repeated, how often it was reported since the
// line before, and one when it ends, with ended and lasted. What is held back
// is still written, at debug level.
//
// Events have no record keys, values, headers or secrets, so lines have none.
type Log struct {
	logger zerolog.Logger
	lines  map[reflect.Type]line
	pacer  *pacer
}

// NewLog returns a Log that writes to logger, at the logger's level. The logger
// must not add a timestamp, since lines have the time of their event, and its
// writer must be safe for concurrent use (os.Stderr is; zerolog.SyncWriter
// makes one so).
func NewLog(logger zerolog.Logger) *Log {
	return &Log{logger: logger, lines: lineTable(), pacer: newPacer(faultTable())}
}

// Observe writes what there is to say about one event. It is safe for
// concurrent use; it blocks only as long as the logger's writer does.
func (l *Log) Observe(e event.Envelope) {
	verdict := l.pacer.observe(e)
	for _, r := range verdict.reminders {
		r.envelope.At = e.At // a reminder is of now; lasted says since when
		l.write(r.envelope, verdictOn{lasted: r.lasted, repeated: r.repeated})
	}
	l.write(e, verdict.on)
}

// write puts one event into words. What the pacer holds back goes to debug
// level; what ends a fault that people were told of is raised to info level.
func (l *Log) write(e event.Envelope, on verdictOn) {
	line, known := l.lines[reflect.TypeOf(e.Event)]
	if !known {
		line = unknownLine()
	}
	level := line.level(e.Event)
	switch {
	case on.heldBack && level > zerolog.DebugLevel:
		level = zerolog.DebugLevel
	case len(on.ended) > 0 && level < zerolog.InfoLevel:
		level = zerolog.InfoLevel
	}
	z := l.logger.WithLevel(level)
	if !z.Enabled() {
		return
	}
	z.Str("time", e.At.UTC().Format(timeLayout))
	z.Str("relay", e.Relay)
	z.Str("event", e.Event.EventName())
	line.fields(facts{z}, e.Event)
	if len(on.ended) > 0 {
		z.Strs("ended", on.ended)
	}
	if on.lasted > 0 {
		z.Float64("lasted", seconds(on.lasted))
	}
	if on.repeated > 0 {
		z.Int("repeated", on.repeated)
	}
	z.Msg(line.sentence)
}

// seconds is a duration as it stands in lines, exact to the microsecond.
func seconds(d time.Duration) float64 {
	return d.Round(time.Microsecond).Seconds()
}
