package picture_test

import (
	"testing"
	"time"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
)

// A clock is off only when it is certainly so: a date has whole seconds.
func TestAClockIsOffOnlyWhenItIsCertain(t *testing.T) {
	for _, c := range []struct {
		least, most, ahead time.Duration
		isOff              bool
	}{
		{-time.Second, 10 * time.Millisecond, 0, false},
		{time.Second, 1900 * time.Millisecond, time.Second, false},
		{1100 * time.Millisecond, 2100 * time.Millisecond, 1100 * time.Millisecond, true},
		{-1900 * time.Millisecond, -time.Second, -time.Second, false},
		{-31 * time.Second, -30 * time.Second, -30 * time.Second, true},
	} {
		clock := picture.Clock{Dated: true, AheadLeast: c.least, AheadMost: c.most, Tolerated: time.Second}
		if clock.Ahead() != c.ahead || clock.IsOff() != c.isOff {
			t.Errorf("between %v and %v: ahead by %v, off: %t", c.least, c.most, clock.Ahead(), clock.IsOff())
		}
	}
}

// Several answers bound the clock together more closely than each alone; one without a
// date says nothing.
func TestDatesAreTakenTogether(t *testing.T) {
	clock := picture.Clock{}.With(noon, noon, at(-700*time.Millisecond))
	clock = clock.With(noon, noon.Add(100*time.Millisecond), at(0)).With(noon, noon, 0)
	if want := (picture.Clock{Dated: true, AheadLeast: -300 * time.Millisecond, AheadMost: 100 * time.Millisecond}); clock != want {
		t.Errorf("%+v", clock)
	}
	if clock := (picture.Clock{}).With(noon, noon, 0); clock != (picture.Clock{}) {
		t.Errorf("%+v of an answer without a date", clock)
	}
}
