package simulation_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/simulation"
)

// seeds is how many seeds a test runs: SIMULATION_SEEDS, or the number that
// fits `make test`.
func seeds(t *testing.T, few int) uint64 {
	text := os.Getenv("SIMULATION_SEEDS")
	if text == "" {
		return uint64(few)
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("SIMULATION_SEEDS %q: must be a number", text)
	}
	return n
}

func demandOK(t *testing.T, r simulation.Report) {
	t.Helper()
	for _, v := range r.Violations {
		t.Errorf("seed %d: %v", r.Seed, v)
	}
	if r.Messages.Pending > 0 || r.Messages.Published < r.Messages.Enqueued {
		t.Errorf("seed %d: %+v", r.Seed, r.Messages)
	}
}

// A fleet without faults delivers each message once, refuses no write once it
// has settled, and hands nothing over but at its start.
func TestCalm(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		r := simulation.Run(simulation.Options{Seed: seed})
		demandOK(t, r)
		if r.Messages.Duplicates > 0 {
			t.Errorf("seed %d: %d duplicates without a fault", seed, r.Messages.Duplicates)
		}
	}
}

// Whatever happens to requests, processes and the broker: nothing is lost,
// reordered or owned twice, and when it is over the fleet settles.
func TestStorm(t *testing.T) {
	for seed := uint64(1); seed <= seeds(t, 200); seed++ {
		demandOK(t, simulation.Run(stormOptions(seed)))
		if t.Failed() {
			return
		}
	}
}

func stormOptions(seed uint64) simulation.Options {
	leases := []time.Duration{3 * time.Second, 6 * time.Second, 15 * time.Second, 30 * time.Second}
	return simulation.Options{
		Seed:          seed,
		Relays:        1 + int(seed%5),
		Faults:        simulation.Storm(),
		LeaseDuration: leases[seed%4],
		MaxClockSkew:  leases[seed%4] / 15,
		BatchSize:     []int{3, 40, 500}[seed%3],
	}
}

// The same seed and options give the same run, byte for byte.
func TestSameSeedSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		a, b := simulation.Run(stormOptions(seed)), simulation.Run(stormOptions(seed))
		if a.Digest != b.Digest {
			t.Errorf("seed %d: digests %s and %s", seed, a.Digest, b.Digest)
		}
	}
}
