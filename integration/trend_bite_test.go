package integration

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// run makes readings of a run of that many minutes, one every two seconds.
func runOf(minutes int, value func(minute float64) float64) []reading {
	var readings []reading
	for at := time.Duration(0); at <= time.Duration(minutes)*time.Minute; at += 2 * time.Second {
		readings = append(readings, reading{at, value(at.Minutes())})
	}
	return readings
}

// What is judged finds what grows, however slowly a run of half an hour can show it, and
// takes nothing for growth that is none.
func TestTrendsBite(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(size float64) float64 { return size * (2*random.Float64() - 1) }
	sawtooth := func(minute float64) float64 { return 5 * (minute - float64(int(minute))) } // a restart each minute
	for name, c := range map[string]struct {
		minutes int
		value   func(minute float64) float64
		grows   bool
	}{
		"steady":                               {30, func(float64) float64 { return 40 }, false},
		"memory under a collector":             {30, func(float64) float64 { return 60 + noise(6) }, false},
		"what a restart does each minute":      {30, func(m float64) float64 { return 40 + sawtooth(m) + noise(1) }, false},
		"a start that settles":                 {30, func(m float64) float64 { return 40 + min(m, 10) + noise(1) }, false},
		"one burst":                            {30, func(m float64) float64 { return 40 + map[bool]float64{true: 400}[m > 20 && m < 21] }, false},
		"what shrinks":                         {30, func(m float64) float64 { return 80 - m }, false},
		"a thread that is lost once":           {30, func(m float64) float64 { return 20 + map[bool]float64{true: 1}[m > 20] }, false},
		"one more each minute":                 {30, func(m float64) float64 { return 40 + float64(int(m)) + noise(1) }, true},
		"one more each minute, in a short run": {5, func(m float64) float64 { return 20 + float64(int(m)) }, true},
		"one more every five minutes":          {30, func(m float64) float64 { return 20 + float64(int(m/5)) }, true},
		"a quarter of a megabyte a minute":     {30, func(m float64) float64 { return 50 + m/4 + noise(2) }, true},
		"growth beneath a sawtooth":            {30, func(m float64) float64 { return 40 + sawtooth(m) + m/2 }, true},
	} {
		if got := trendOf(name, runOf(c.minutes, c.value)); (got.fault() != "") != c.grows {
			t.Errorf("%v; fault %q", got, got.fault())
		}
	}
}

// A run that was too short to say anything is no success.
func TestTooFewReadingsAreAFault(t *testing.T) {
	for _, readings := range [][]reading{nil, runOf(1, func(float64) float64 { return 1 })[:10]} {
		if fault := trendOf("few", readings).fault(); !strings.Contains(fault, "of at least") {
			t.Errorf("%d readings: fault %q", len(readings), fault)
		}
	}
}

// The slope of a line is the line's.
func TestTrendOfALine(t *testing.T) {
	got := trendOf("a line", runOf(60, func(m float64) float64 { return 10 + 2*m }))
	if got.perHour < 119.9 || got.perHour > 120.1 || got.growth < 59.9 || got.growth > 60.1 || got.judged != 30*time.Minute {
		t.Errorf("%v", got)
	}
}
