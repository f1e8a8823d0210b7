package integration

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// reading is what a process had of something at some time of a run.
type reading struct {
	at    time.Duration
	value float64
}

const (
	// leastReadings is how many are needed to say anything.
	leastReadings = 30
	// tolerance is by how much, as a part of what there is, the line through the readings
	// may rise over the time that is judged. Memory that is collected when there is need
	// never stands quite still.
	tolerance = 0.05
	// wholeUnits is what may come of counting whole things, such as threads.
	wholeUnits = 1.5
)

// trend is what the second half of a run says about something: the first half is for
// caches and pools to fill.
type trend struct {
	name     string
	typical  float64       // the median
	perHour  float64       // how fast it grows; below zero: it shrinks
	growth   float64       // over what was judged
	judged   time.Duration // how long that was
	readings int
}

// trendOf puts the Theil-Sen line through the second half of the readings: its slope is
// the median of the slopes between all pairs, so that neither a burst nor what a restart
// next door does each minute bends it.
func trendOf(name string, readings []reading) trend {
	if len(readings) == 0 {
		return trend{name: name}
	}
	end := readings[len(readings)-1].at
	second := slices.DeleteFunc(slices.Clone(readings), func(r reading) bool { return r.at < end/2 })
	values := make([]float64, len(second))
	var slopes []float64
	for i, r := range second {
		values[i] = r.value
		for _, later := range second[i+1:] {
			if later.at > r.at {
				slopes = append(slopes, (later.value-r.value)/(later.at-r.at).Hours())
			}
		}
	}
	judged := end - second[0].at
	perHour := median(slopes)
	return trend{name: name, typical: median(values), perHour: perHour, growth: perHour * judged.Hours(), judged: judged, readings: len(second)}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.SortFunc(values, cmp.Compare[float64])
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// allowed is by how much it may have grown.
func (t trend) allowed() float64 { return max(wholeUnits, tolerance*t.typical) }

// fault says what is wrong with a trend; empty: nothing.
func (t trend) fault() string {
	switch {
	case t.readings < leastReadings:
		return fmt.Sprintf("%s: %d readings, of at least %d that it takes", t.name, t.readings, leastReadings)
	case math.IsNaN(t.growth) || t.growth > t.allowed():
		return fmt.Sprintf("%v: at most %.1f is allowed", t, t.allowed())
	default:
		return ""
	}
}

func (t trend) String() string {
	return fmt.Sprintf("%-16s %8.1f, %+8.1f an hour, %+6.2f in the %v that were judged, by %d readings",
		t.name, t.typical, t.perHour, t.growth, t.judged.Round(time.Second), t.readings)
}
