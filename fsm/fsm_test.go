package fsm_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bucketbrigade/relay/fsm"
)

// machines are the two machines, each with a way to every state.
var machines = []struct {
	name  string
	table []fsm.Row
	make  func() *fsm.Machine
	paths map[fsm.State][]fsm.Event
}{
	{"bucket", fsm.BucketTable(), fsm.NewBucket, map[fsm.State][]fsm.Event{
		fsm.Claiming:  {},
		fsm.Owned:     {fsm.Claimed},
		fsm.Withheld:  {fsm.Claimed, fsm.Withhold},
		fsm.Blocked:   {fsm.Claimed, fsm.Block},
		fsm.Paused:    {fsm.Claimed, fsm.Pause},
		fsm.Draining:  {fsm.Claimed, fsm.Drain},
		fsm.Releasing: {fsm.Claimed, fsm.Drain, fsm.Release},
		fsm.Released:  {fsm.Claimed, fsm.Drain, fsm.Release, fsm.Unlease},
		fsm.Lost:      {fsm.Lose},
	}},
	{"batch", fsm.BatchTable(), fsm.NewBatch, map[fsm.State][]fsm.Event{
		fsm.Fetching:   {},
		fsm.Probing:    {fsm.Fetched},
		fsm.Publishing: {fsm.Fetched, fsm.Probed},
		fsm.Deleting:   {fsm.Fetched, fsm.Probed, fsm.Published},
		fsm.Moving:     {fsm.Clear},
		fsm.BackingOff: {fsm.Fail},
		fsm.Removed:    {fsm.Empty},
	}},
}

// Every pair of state and event does what the table says, and a pair that the
// table does not have is an error that names both and changes nothing.
func TestEveryStateAndEvent(t *testing.T) {
	for _, m := range machines {
		for state, path := range m.paths {
			for _, row := range m.table {
				machine := m.make()
				for _, e := range path {
					if err := machine.Fire(e); err != nil {
						t.Fatalf("%s: path to %s: %v", m.name, state, err)
					}
				}
				if machine.State() != state {
					t.Fatalf("%s: path leads to %s, not to %s", m.name, machine.State(), state)
				}
				err := machine.Fire(row.Event)
				if slices.Contains(row.From, state) {
					if err != nil || machine.State() != row.To {
						t.Errorf("%s: %s in %s: got %s, %v; want %s", m.name, row.Event, state, machine.State(), err, row.To)
					}
					continue
				}
				if err == nil || machine.State() != state {
					t.Errorf("%s: %s in %s was accepted and led to %s", m.name, row.Event, state, machine.State())
				} else if !strings.Contains(err.Error(), string(row.Event)) || !strings.Contains(err.Error(), string(state)) {
					t.Errorf("%s: error %q names neither event nor state", m.name, err)
				}
			}
		}
	}
}

// The tables are whole: each state can be reached, each event stands once, and
// only the ends have no way out.
func TestTablesAreWhole(t *testing.T) {
	ends := []fsm.State{fsm.Released, fsm.Lost, fsm.Removed}
	for _, m := range machines {
		events := map[fsm.Event]bool{}
		leaves := map[fsm.State]bool{}
		for _, row := range m.table {
			if events[row.Event] {
				t.Errorf("%s: event %s stands twice; the later one would win silently", m.name, row.Event)
			}
			events[row.Event] = true
			if row.Doc == "" {
				t.Errorf("%s: event %s says nothing", m.name, row.Event)
			}
			for _, state := range append(slices.Clone(row.From), row.To) {
				if _, known := m.paths[state]; !known {
					t.Errorf("%s: state %s is tested nowhere", m.name, state)
				}
			}
			for _, from := range row.From {
				leaves[from] = true
			}
		}
		for state := range m.paths {
			if leaves[state] == slices.Contains(ends, state) {
				t.Errorf("%s: state %s: has a way out: %v", m.name, state, leaves[state])
			}
		}
	}
}

// docs/states.md carries the diagram of the tables as they are.
func TestDiagramIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "```mermaid\n"+fsm.Mermaid()+"```\n") {
		t.Errorf("docs/states.md does not have the present diagram; it is:\n%s", fsm.Mermaid())
	}
	for _, m := range machines {
		for _, row := range m.table {
			if !strings.Contains(string(doc), "| `"+string(row.Event)+"` |") || !strings.Contains(string(doc), row.Doc) {
				t.Errorf("docs/states.md lacks %s's event %s", m.name, row.Event)
			}
		}
	}
}
