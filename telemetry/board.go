package telemetry

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/bucketbrigade/relay/event"
)

const (
	// boardSeconds is over how long rates are taken.
	boardSeconds = 60
	// boardTroubles is how many of the last troubles are kept.
	boardTroubles = 20
)

// Board is the event.Observer that remembers what Status shows beside the state
// of buckets: how much happened in the last minute, and the last troubles, as the
// log has them, those that are alike together. It is of one relay, and bounded: about
// 20 KB, and a number for each bucket that has one of these troubles.
type Board struct {
	log *Log

	mu       sync.Mutex
	began    time.Time            // of the first event; guarded by mu
	seconds  [boardSeconds]second // by the second's remainder; guarded by mu
	troubles []alike              // the one with the newest line last; guarded by mu
}

// second is what happened in one second.
type second struct {
	unix                         int64
	messages, failures, requests int
	units                        float64
}

// NewBoard makes an empty Board.
func NewBoard() *Board {
	b := &Board{}
	b.log = NewLog(zerolog.New(troubleWriter{b}).Level(zerolog.InfoLevel))
	return b
}

// Observe takes one event into account. It is safe for concurrent use.
func (b *Board) Observe(e event.Envelope) {
	b.log.Observe(e)
	switch v := e.Event.(type) {
	case event.RelayStarted:
		b.at(e.At, func(*second) {})
	case event.RecordAcknowledged:
		b.at(e.At, func(s *second) { s.messages++ })
	case event.PublishFailed:
		b.at(e.At, func(s *second) { s.failures++ })
	case event.RecordRejected:
		if v.Alone {
			b.at(e.At, func(s *second) { s.failures++ })
		}
	case event.RequestCompleted:
		b.at(e.At, func(s *second) {
			s.requests++
			s.units += v.Capacity
		})
	}
}

// at notes something in a second.
func (b *Board) at(t time.Time, note func(*second)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.began.IsZero() {
		b.began = t
	}
	unix := t.Unix()
	s := &b.seconds[unix%boardSeconds]
	if s.unix != unix {
		*s = second{unix: unix}
	}
	note(s)
}

// Fill adds what the board knows at a moment to a status.
func (b *Board) Fill(s *Status, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Troubles = nil
	for _, t := range slices.Backward(b.troubles) {
		s.Troubles = append(s.Troubles, t.line())
	}
	s.Rates = &Rates{LastMinute: make([]int, boardSeconds)}
	if b.began.IsZero() {
		return
	}
	var sum second
	for back := range int64(boardSeconds) { // the present second is not over: it counts in the next
		unix := now.Unix() - 1 - back
		found := b.seconds[unix%boardSeconds]
		if found.unix != unix {
			continue
		}
		s.Rates.LastMinute[boardSeconds-1-back] = found.messages
		sum.messages += found.messages
		sum.failures += found.failures
		sum.requests += found.requests
		sum.units += found.units
	}
	over := min(max(now.Sub(b.began).Seconds(), 1), boardSeconds)
	s.Rates.MessagesPerSecond = float64(sum.messages) / over
	s.Rates.RequestsPerSecond = float64(sum.requests) / over
	s.Rates.UnitsPerSecond = sum.units / over
	s.Rates.FailuresPerMinute = float64(sum.failures) / over * 60
}

// troubleWriter keeps the lines that tell of trouble, or of its end.
type troubleWriter struct{ board *Board }

// Write implements io.Writer, for lines without a level: there are none.
func (w troubleWriter) Write(p []byte) (int, error) { return len(p), nil }

// WriteLevel implements zerolog.LevelWriter.
func (w troubleWriter) WriteLevel(level zerolog.Level, p []byte) (int, error) {
	if level < zerolog.WarnLevel && !bytes.Contains(p, []byte(`"ended":[`)) {
		return len(p), nil
	}
	t, err := newAlike(p)
	if err != nil {
		return 0, err
	}
	b := w.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.troubles, func(known alike) bool { return known.key == t.key }); i >= 0 {
		t = b.troubles[i].with(t)
		b.troubles = slices.Delete(b.troubles, i, i+1)
	}
	if len(b.troubles) == boardTroubles {
		b.troubles = slices.Delete(b.troubles, 0, 1)
	}
	b.troubles = append(b.troubles, t)
	return len(p), nil
}
