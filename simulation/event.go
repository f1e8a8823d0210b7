package simulation

import (
	"fmt"
	"reflect"
	"time"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/store"
)

// Event is one observable event of a run. The digest of a Report is over all of
// them, whether somebody observes or not.
type Event struct {
	At time.Duration // virtual time, since the run began
	// Who is the process in which it happened ("p3", the third that started), or
	// "writer", "broker", "world", "scenario" or "checker".
	Who string
	// Name is the event's stable name: that of a relay's own event, such as
	// "bucket.claimed", or one of this package, such as "process.started".
	Name string
	// Detail is an event of package event, a value of the types below, or nil. It
	// must not be changed.
	Detail any
}

// The events of the world around the relays; those without a type have no detail.
const (
	processStarted   = "process.started"   // started
	processStopping  = "process.stopping"  // was asked to stop, as by SIGTERM
	processEnded     = "process.ended"     // ended: by itself, after it was asked or for a fault
	processDied      = "process.died"      // at once, or some time after it has ended
	processStalled   = "process.stalled"   // paused: nothing of it runs
	processSuspended = "process.suspended" // paused: the same, and its monotonic clock stands still
	processResumed   = "process.resumed"
	processClockSet  = "process.clockset"  // clockSet
	processCut       = "process.cut"       // it reaches no broker, whatever its peers do
	processConnected = "process.connected" // it reaches them again
	faultHappened    = "fault.happened"    // faultOf
	requestApplied   = "request.applied"   // applied: the table has executed a request
	operatorActed    = "operator.acted"    // applied: the table has executed a person's request
	messagesWritten  = "messages.committed"
	recordAppended   = "record.appended"
	brokerLeft       = "broker.left"
	brokerReturned   = "broker.returned"
	worldHealed      = "world.healed"
	promiseBroken    = "promise.broken" // a Violation
)

type started struct {
	Relay string
	Mode  relay.Mode
	Ahead time.Duration // of the wall clock, ahead of virtual time
	Drift float64       // seconds a second
}

type ended struct{ Err error }

type paused struct{ For time.Duration }

type clockSet struct{ By time.Duration }

// faultOf says of what kind a fault is, and the request or topic that it struck;
// empty for one that struck a process or all.
type faultOf struct {
	Kind Fault
	Of   string
}

type applied struct {
	Request string
	Outcome store.Class
	Of      store.Request
}

type committed struct {
	Bucket   int
	First    int64 // of the sequences
	Messages int
}

type appended struct {
	Topic     string
	Partition int32
	Offset    int64
	Bucket    int
	Sequence  int64
	Process   string // whose producer it was
	Producer  int
}

// Bucket is the bucket that the event is about, -1 for none.
func (e Event) Bucket() int {
	switch d := e.Detail.(type) {
	case nil:
		return -1
	case applied:
		return d.Of.ConcernsBucket()
	case Violation:
		return d.Bucket
	}
	v := reflect.ValueOf(e.Detail)
	if v.Kind() != reflect.Struct {
		return -1
	}
	if field := v.FieldByName("Bucket"); field.IsValid() && field.CanInt() {
		return int(field.Int())
	}
	return -1
}

// String is one line for people.
func (e Event) String() string {
	if e.Detail == nil {
		return fmt.Sprintf("%-12v %-7s %s", e.At, e.Who, e.Name)
	}
	return fmt.Sprintf("%-12v %-7s %s %+v", e.At, e.Who, e.Name, e.Detail)
}

// LastEvents runs again what has broken a promise, and returns the last n events
// before that about the violation's bucket or process; about anything when it
// names neither.
func LastEvents(o Options, v Violation, n int) []Event {
	return lastEvents(v, n, func(observe func(Event)) {
		o.Observe = observe
		Run(o)
	})
}

// LastEvents is the same of a scenario.
func (s *Scenario) LastEvents(v Violation, n int) []Event {
	return lastEvents(v, n, func(observe func(Event)) {
		again := *s
		again.Options.Observe = observe
		again.Run()
	})
}

func lastEvents(v Violation, n int, run func(observe func(Event))) []Event {
	var last []Event
	over := false
	run(func(e Event) {
		switch {
		case over:
		case e.Name == promiseBroken:
			over = e.Detail == v
		case v.concerns(e):
			if len(last) == n {
				last = append(last[:0], last[1:]...)
			}
			last = append(last, e)
		}
	})
	return last
}

// concerns tells whether an event may have to do with the violation.
func (v Violation) concerns(e Event) bool {
	switch {
	case v.Bucket >= 0:
		return e.Bucket() == v.Bucket
	case v.Process != "":
		return e.Who == v.Process
	}
	return true
}
