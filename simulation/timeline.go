package simulation

import (
	"io"
	"time"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
)

// Timeline collects from the events of one run what its picture shows, and draws
// it as one SVG that needs neither scripts nor other files.
type Timeline struct {
	options Options
	scale   float64 // pixels a virtual second

	lives   []*life // in the order of their starts
	byName  map[string]*life
	tenures [][]*tenure // by bucket, in the order of their starts

	commits, appends          counts
	tableFaults, brokerFaults counts

	away       []span
	healed     time.Duration // -1: not yet
	violations []promise
	end        time.Duration // of the last event
}

// span is a part of virtual time. One that is still open ends with the run.
type span struct {
	from, to time.Duration
	open     bool
}

// life is what one process did.
type life struct {
	name, relay string
	span
	pauses  []pause
	cuts    []span // it reached no broker
	marks   []mark
	appends map[int]map[int]bool // by bucket: the pixels at which records were appended
	last    time.Duration        // of its last append: it may come after its end
}

type pause struct {
	span
	name string // processStalled or processSuspended
}

// mark is what happened to a process at an instant.
type mark struct {
	at   time.Duration
	name string // the event's
}

// tenure is for how long a process held a bucket's lease valid.
type tenure struct {
	life *life
	span
}

// promise is a broken promise.
type promise struct {
	at time.Duration
	Violation
}

// counts are how many of something happened, by column of the picture.
type counts []int

func (c *counts) add(column, n int) {
	for len(*c) <= column {
		*c = append(*c, 0)
	}
	(*c)[column] += n
}

// The width of the picture: so many pixels a second, within limits of the whole.
const (
	preferredScale = 10.0
	mostScale      = 20.0
	leastWidth     = 1200.0
	mostWidth      = 3600.0
	columnWidth    = 2.0 // of what is counted
)

// NewTimeline makes the timeline of a run that will have the options. Give its
// Observe to the run's options.
func NewTimeline(o Options) *Timeline {
	o = o.WithDefaults()
	seconds := o.Duration.Seconds()
	return &Timeline{
		options: o, scale: min(mostScale, max(leastWidth, min(mostWidth, preferredScale*seconds))/seconds),
		byName: map[string]*life{}, tenures: make([][]*tenure, o.Buckets), healed: -1,
	}
}

// Observe takes note of one event.
func (t *Timeline) Observe(e Event) {
	t.end = max(t.end, e.At)
	if l := t.byName[e.Who]; l != nil {
		t.observeProcess(l, e)
		return
	}
	switch d := e.Detail.(type) {
	case started:
		l := &life{name: e.Who, relay: d.Relay, span: span{from: e.At, open: true}, appends: map[int]map[int]bool{}}
		t.lives, t.byName[e.Who] = append(t.lives, l), l
	case committed:
		t.commits.add(t.column(e.At), d.Messages)
	case appended:
		t.appended(e.At, d)
	case faultOf:
		switch d.Kind {
		case BrokerRejects, BrokerDelays, BrokerTimesOut, BrokerAppendsLate, BrokerFailsOver, QueueFull, BrokerMutes, BrokerForgets:
			t.brokerFaults.add(t.column(e.At), 1)
		case PartlyProcessed:
			t.tableFaults.add(t.column(e.At), 1)
		}
	case Violation:
		t.violations = append(t.violations, promise{e.At, d})
	}
	switch e.Name {
	case brokerLeft:
		t.away = append(t.away, span{from: e.At, open: true})
	case brokerReturned:
		t.away[len(t.away)-1].close(e.At)
	case worldHealed:
		t.healed = e.At
	}
}

func (s *span) close(at time.Duration) {
	if s.open {
		s.to, s.open = at, false
	}
}

func (t *Timeline) column(at time.Duration) int { return int(at.Seconds() * t.scale / columnWidth) }

func (t *Timeline) appended(at time.Duration, d appended) {
	t.appends.add(t.column(at), 1)
	l := t.byName[d.Process]
	if l.appends[d.Bucket] == nil {
		l.appends[d.Bucket] = map[int]bool{}
	}
	l.appends[d.Bucket][int(at.Seconds()*t.scale)] = true
	l.last = at
}

// observeProcess takes note of what happens in a process.
func (t *Timeline) observeProcess(l *life, e Event) {
	switch e.Name {
	case processStopping, processClockSet, processEnded:
		l.marks = append(l.marks, mark{e.At, e.Name})
	case processStalled, processSuspended:
		l.pauses = append(l.pauses, pause{span{from: e.At, open: true}, e.Name})
	case processResumed:
		l.pauses[len(l.pauses)-1].close(e.At)
	case processCut:
		l.cuts = append(l.cuts, span{from: e.At, open: true})
	case processConnected:
		l.cuts[len(l.cuts)-1].close(e.At)
	case processDied:
		t.died(l, e.At)
	}
	switch d := e.Detail.(type) {
	case faultOf:
		t.tableFaults.add(t.column(e.At), 1)
	case event.BucketKept:
		t.kept(l, d.Bucket, e.At, e.At+d.ValidFor)
	case event.BucketWithheld:
		t.lost(l, d.Bucket, e.At)
	case event.StateChanged:
		if to := fsm.State(d.To); d.Machine == "bucket" && (to == fsm.Releasing || to == fsm.Released || to == fsm.Lost) {
			t.lost(l, d.Bucket, e.At)
		}
	}
}

func (t *Timeline) died(l *life, at time.Duration) {
	l.close(at)
	if n := len(l.marks); n == 0 || l.marks[n-1].name != processEnded {
		l.marks = append(l.marks, mark{at, processDied})
	}
	for b := range t.tenures {
		t.lost(l, b, at)
	}
	l.closeSpans(at)
}

// closeSpans ends what lasts still.
func (l *life) closeSpans(at time.Duration) {
	for i := range l.pauses {
		l.pauses[i].close(at)
	}
	for i := range l.cuts {
		l.cuts[i].close(at)
	}
}

// kept: a process holds a bucket's lease valid until an instant.
func (t *Timeline) kept(l *life, b int, at, until time.Duration) {
	if last := t.latest(l, b); last != nil && last.to >= at {
		last.to = until
		return
	}
	t.tenures[b] = append(t.tenures[b], &tenure{l, span{from: at, to: until}})
}

// lost: it does so no more.
func (t *Timeline) lost(l *life, b int, at time.Duration) {
	if last := t.latest(l, b); last != nil {
		last.to = min(last.to, at)
	}
}

// latest is a process's latest tenure of a bucket, nil for none.
func (t *Timeline) latest(l *life, b int) *tenure {
	for i := len(t.tenures[b]) - 1; i >= 0; i-- {
		if t.tenures[b][i].life == l {
			return t.tenures[b][i]
		}
	}
	return nil
}

// Write draws the picture of a run that has ended with a report.
func (t *Timeline) Write(w io.Writer, r Report) error {
	for _, l := range t.lives {
		l.close(t.end)
		l.closeSpans(t.end)
	}
	for i := range t.away {
		t.away[i].close(t.end)
	}
	for _, tenures := range t.tenures {
		for _, held := range tenures {
			held.to = min(held.to, t.end)
		}
	}
	p := newPicture(t)
	p.draw(r)
	_, err := io.WriteString(w, p.text.String())
	return err
}
