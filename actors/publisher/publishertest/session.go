package publishertest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// patience bounds each wait of a backend in real time.
const patience = 30 * time.Second

// nudgeAfter is how long a wait stays quiet before it nudges.
const nudgeAfter = 200 * time.Millisecond

// session is one producer and what it said.
type session struct {
	publisher.Producer
	harness Harness
	number  int

	mu      sync.Mutex // guards queue
	queue   []any
	arrived chan struct{}

	reached   int
	fataled   []*publisher.Fault
	described map[string]publisher.Described
	reports   map[publisher.Token][]*publisher.Fault
	order     []publisher.Token // as reported
	concluded []publisher.Concluded
}

func open(t *testing.T, h Harness, o publisher.Options) *session {
	t.Helper()
	o.Number = 7
	s := &session{
		harness: h, number: o.Number, arrived: make(chan struct{}, 1),
		described: make(map[string]publisher.Described),
		reports:   make(map[publisher.Token][]*publisher.Fault),
	}
	producer, err := h.Factory.Open(o, s.sink)
	if err != nil {
		t.Fatalf("open producer: %v", err)
	}
	s.Producer = producer
	t.Cleanup(producer.Close)
	return s
}

// sink takes a message from any goroutine, without waiting.
func (s *session) sink(msg any) {
	s.mu.Lock()
	s.queue = append(s.queue, msg)
	s.mu.Unlock()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// absorb notes all that has arrived.
func (s *session) absorb(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	queue := s.queue
	s.queue = nil
	s.mu.Unlock()
	for _, msg := range queue {
		if from := numberOf(msg); from != s.number {
			t.Errorf("a message of producer %d came to the sink of producer %d: %#v", from, s.number, msg)
		}
		switch m := msg.(type) {
		case publisher.Reported:
			for _, r := range m.Reports {
				s.reports[r.Token] = append(s.reports[r.Token], r.Fault)
				s.order = append(s.order, r.Token)
			}
		case publisher.Fataled:
			s.fataled = append(s.fataled, m.Fault)
		case publisher.Described:
			s.described[m.Topic] = m
		case publisher.Reached:
			s.reached++
		case publisher.Unreached:
		case publisher.Concluded:
			s.concluded = append(s.concluded, m)
		default:
			t.Errorf("not a message of a producer: %#v", msg)
		}
	}
}

func numberOf(msg any) int {
	switch m := msg.(type) {
	case publisher.Reported:
		return m.Producer
	case publisher.Fataled:
		return m.Producer
	case publisher.Described:
		return m.Producer
	case publisher.Reached:
		return m.Producer
	case publisher.Unreached:
		return m.Producer
	case publisher.Concluded:
		return m.Producer
	default:
		return 0
	}
}

// await absorbs messages until done holds.
func (s *session) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	s.awaitNudging(t, what, done, func() {})
}

// awaitNudging is await that calls nudge whenever nothing arrives for a while.
func (s *session) awaitNudging(t *testing.T, what string, done func() bool, nudge func()) {
	t.Helper()
	var deadline <-chan time.Time
	if s.harness.Step == nil {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		deadline = timer.C
	}
	for nudges := 0; ; {
		s.absorb(t)
		if done() {
			return
		}
		if s.harness.Step != nil {
			if s.harness.Step() {
				continue
			}
			if nudges++; nudges > 10 {
				t.Fatalf("%s: nothing happens any more", what)
			}
			nudge()
			continue
		}
		pause := time.NewTimer(nudgeAfter)
		select {
		case <-s.arrived:
		case <-pause.C:
			nudge()
		case <-deadline:
			t.Fatalf("%s: not within %v; reports of %d records, fatal %v", what, patience, len(s.reports), s.fataled)
		}
		pause.Stop()
	}
}

// token is the token of row n of bucket 1.
func token(n int) publisher.Token {
	return publisher.Token{Bucket: 1, Batch: 1, Sequence: int64(n)}
}

// produce submits records as rows first, first+1 and so on; all must be taken.
func (s *session) produce(t *testing.T, first int, records ...publisher.Record) {
	t.Helper()
	for i, r := range records {
		if err := s.Produce(r, token(first+i)); err != nil {
			t.Fatalf("produce row %d: %v", first+i, err)
		}
	}
}

// acknowledged submits records and waits until all are acknowledged.
func (s *session) acknowledged(t *testing.T, first int, records ...publisher.Record) {
	t.Helper()
	s.produce(t, first, records...)
	s.awaitReports(t, first, len(records), func() {})
	for n := first; n < first+len(records); n++ {
		if fault := s.outcome(t, n); fault != nil {
			t.Fatalf("row %d: %v, want an acknowledgement", n, fault)
		}
	}
}

func (s *session) awaitReports(t *testing.T, first, count int, nudge func()) {
	t.Helper()
	s.awaitNudging(t, fmt.Sprintf("reports of rows %d to %d", first, first+count-1), func() bool {
		for n := first; n < first+count; n++ {
			if len(s.reports[token(n)]) == 0 {
				return false
			}
		}
		return true
	}, nudge)
}

// outcome is the one report of a row.
func (s *session) outcome(t *testing.T, n int) *publisher.Fault {
	t.Helper()
	if reports := s.reports[token(n)]; len(reports) != 1 {
		t.Fatalf("row %d has %d reports, want 1", n, len(reports))
	}
	return s.reports[token(n)][0]
}

// values are the values of records, in order.
func values(records []Record) []string {
	texts := make([]string, len(records))
	for i, r := range records {
		texts[i] = string(r.Value)
	}
	return texts
}

func inPartition(records []Record, partition int32) []Record {
	return slices.DeleteFunc(slices.Clone(records), func(r Record) bool { return r.Partition != partition })
}
