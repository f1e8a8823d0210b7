package simulation_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage more rarely than Go's own 100: a run keeps some ten
// megabytes and makes a hundred times as much garbage, so that collecting it took
// a quarter of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
