package fsm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/looplab/fsm"
)

// State is a state of a machine.
type State string

// Event is what a machine is told.
type Event string

// Row is one event of a machine: the states in which it may happen and where
// it leads.
type Row struct {
	Event Event
	From  []State
	To    State
	Doc   string // what has happened
}

// Machine is one state machine. It is not safe for concurrent use.
type Machine struct {
	name string
	fsm  *fsm.FSM
}

// NewBucket makes the machine of a bucket, in Claiming.
func NewBucket() *Machine { return newMachine("bucket", Claiming, bucketEvents) }

// NewBatch makes the machine of a batch, in Fetching.
func NewBatch() *Machine { return newMachine("batch", Fetching, batchEvents) }

// The tables in looplab's form, made once and never changed.
var (
	bucketEvents = looplabEvents(BucketTable())
	batchEvents  = looplabEvents(BatchTable())
)

func looplabEvents(table []Row) fsm.Events {
	var events fsm.Events
	for _, row := range table {
		from := make([]string, len(row.From))
		for i, state := range row.From {
			from[i] = string(state)
		}
		events = append(events, fsm.EventDesc{Name: string(row.Event), Src: from, Dst: string(row.To)})
	}
	return events
}

func newMachine(name string, initial State, events fsm.Events) *Machine {
	return &Machine{name: name, fsm: fsm.NewFSM(string(initial), events, nil)}
}

// Name is "bucket" or "batch".
func (m *Machine) Name() string { return m.name }

// State is the present state.
func (m *Machine) State() State { return State(m.fsm.Current()) }

// In tells whether the present state is one of these.
func (m *Machine) In(states ...State) bool { return slices.Contains(states, m.State()) }

// Fire takes the transition of an event. An event that the table does not allow
// in the present state is an error and changes nothing.
func (m *Machine) Fire(e Event) error {
	err := m.fsm.Event(context.Background(), string(e))
	var same fsm.NoTransitionError
	if err == nil || errors.As(err, &same) && same.Err == nil {
		return nil
	}
	return fmt.Errorf("%s: event %s in state %s: %w", m.name, e, m.State(), err)
}
