package simulation

import "testing"

// What goes round in circles without time going on is noticed, once a second.
func TestCirclesAreNoticed(t *testing.T) {
	w, told := newWorld(1, nil), 0
	w.circles = func(int) { told++ }
	var again func()
	again = func() { w.At(0, again) }
	again()
	for range mostSteps + 10 {
		w.step()
	}
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}
