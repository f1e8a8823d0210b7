package simulation_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/simulation"
)

// drawn is the picture of a run, and how many elements of each class it has.
func drawn(t *testing.T, o simulation.Options) (picture string, classes map[string]int, r simulation.Report) {
	t.Helper()
	timeline := simulation.NewTimeline(o)
	o.Observe = timeline.Observe
	r = simulation.Run(o)
	var out strings.Builder
	if err := timeline.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	classes = map[string]int{}
	for decoder := xml.NewDecoder(strings.NewReader(out.String())); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out.String(), classes, r
		}
		if err != nil {
			t.Fatalf("no well-formed XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			for _, attr := range e.Attr {
				if attr.Name.Local == "class" {
					classes[attr.Value]++
				}
			}
			if e.Name.Local == "script" || e.Name.Local == "image" {
				t.Errorf("the picture needs a %s", e.Name.Local)
			}
		}
	}
}

// A timeline shows what has happened: each process, its leases and records, what
// struck it, and where the faults end.
func TestTimelineShowsTheRun(t *testing.T) {
	o := simulation.Options{Seed: 2, Duration: 3 * time.Minute}
	for _, kind := range []simulation.Fault{simulation.Crash, simulation.Stop, simulation.Stall, simulation.Suspend,
		simulation.ClockBack, simulation.BrokerAway, simulation.BrokerCut} {
		o.Faults[kind] = 2
	}
	o.Faults[simulation.RequestLost] = 0.02
	processes := 0
	counting := o
	counting.Observe = func(e simulation.Event) {
		if e.Name == "process.started" {
			processes++
		}
	}
	simulation.Run(counting)
	picture, classes, r := drawn(t, o)
	if !r.OK {
		t.Fatal(r.Violations)
	}
	if classes["life"] != processes {
		t.Errorf("%d lives of %d processes", classes["life"], processes)
	}
	// The legend has one of each.
	for class, least := range map[string]int{"lease": o.Relays + 8, "published": 8, "handover": 2, "pause": 2, "away": 2, "healed": 2, "faults": 1} {
		if classes[class] < least {
			t.Errorf("%d elements of class %s, want %d or more", classes[class], class, least)
		}
	}
	if classes["broken"] != 1 {
		t.Errorf("%d lines for broken promises, and none was broken", classes["broken"]-1)
	}
	for _, text := range []string{"every promise was kept", ">p1</tspan> relay-", "process.died", "process.stopping", "process.clockset",
		"stalled for", "suspended for", "no broker", "reached no broker from", "healed", ">1:00<", "virtual time", r.Digest, "prefers-color-scheme:dark"} {
		if !strings.Contains(picture, text) {
			t.Errorf("the picture does not say %q", text)
		}
	}
}

// A broken promise is a line at its instant, whatever its text has in it.
func TestTimelineShowsBrokenPromises(t *testing.T) {
	o := simulation.Options{Seed: 1, Duration: 5 * time.Second}
	timeline := simulation.NewTimeline(o)
	o.Observe = timeline.Observe
	r := simulation.Run(o)
	v := simulation.Violation{Invariant: "I-4", VirtualTime: 3 * time.Second, Detail: "row 5 <passes> \"row 4\" & \x01", Bucket: 1}
	timeline.Observe(simulation.Event{At: v.VirtualTime, Who: "checker", Name: "promise.broken", Detail: v})
	r.OK, r.Violations = false, []simulation.Violation{v}
	var out strings.Builder
	if err := timeline.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal([]byte(out.String()), new(struct{})); err != nil {
		t.Errorf("no well-formed XML: %v", err)
	}
	for _, text := range []string{">I-4<", "row 5 &lt;passes&gt;", "broken promises: 1"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the picture does not say %q", text)
		}
	}
}
