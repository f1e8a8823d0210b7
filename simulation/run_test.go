package simulation_test

import (
	"bufio"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/simulation"
)

// number is an environment variable's number, or the default without it.
func number(t *testing.T, variable string, without uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return without
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s %q: must be a number", variable, text)
	}
	return n
}

// demandOK fails for each broken promise, and says how to see it again.
func demandOK(t *testing.T, r simulation.Report) {
	t.Helper()
	for _, v := range r.Violations {
		t.Errorf("seed %d: %v\n\tSIMULATION_SEED=%d SIMULATION_TRACE=trace.txt go test -count=1 -run TestReplay ./simulation",
			r.Seed, v, r.Seed)
	}
	if r.OK && (r.Messages.Pending > 0 || r.Messages.Published < r.Messages.Enqueued || r.Messages.Enqueued == 0) {
		t.Errorf("seed %d: %+v", r.Seed, r.Messages)
	}
}

// A fleet without faults delivers each message once, refuses no write once it
// has settled, and moves no bucket but at its start.
func TestCalm(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		r := simulation.Run(simulation.Options{Seed: seed})
		demandOK(t, r)
		if r.Messages.Duplicates > 0 {
			t.Errorf("seed %d: %d duplicates without a fault", seed, r.Messages.Duplicates)
		}
	}
}

// stormOptions are the settings that a seed draws, with all faults on.
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

// Whatever happens to requests, processes and the broker: nothing is lost,
// reordered or owned twice, and when it is over the fleet settles. Over all
// seeds, each fault and each state has been seen.
func TestStorm(t *testing.T) {
	faults, coverage := map[string]int{}, map[string]int{}
	for seed := uint64(1); seed <= number(t, "SIMULATION_SEEDS", fewSeeds); seed++ {
		r := simulation.Run(stormOptions(seed))
		demandOK(t, r)
		if t.Failed() {
			return
		}
		for kind, n := range r.Faults {
			faults[kind] += n
		}
		for transition, n := range r.Coverage {
			coverage[transition] += n
		}
	}
	for _, kind := range simulation.FaultKinds() {
		if faults[kind.String()] == 0 {
			t.Errorf("fault %s was never seen", kind)
		}
	}
	for _, transition := range []string{
		"bucket.claiming/claimed", "bucket.owned/withhold", "bucket.withheld/confirm", "bucket.owned/block",
		"bucket.blocked/unblock", "bucket.owned/drain", "bucket.draining/release", "bucket.releasing/released",
		"bucket.withheld/lose", "bucket.claiming/lose",
		"batch.fetching/fetched", "batch.fetching/empty", "batch.probing/probed", "batch.probing/filled",
		"batch.publishing/published", "batch.publishing/fail", "batch.deleting/deleted", "batch.deleting/advance",
		"batch.backing_off/retry", "batch.publishing/drop", "batch.deleting/drop",
	} {
		if coverage[transition] == 0 {
			t.Errorf("transition %s was never seen", transition)
		}
	}
	t.Logf("faults %v", faults)
	t.Logf("transitions %v", coverage)
}

// The same seed and options give the same run, byte for byte.
func TestSameSeedSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		a, b := simulation.Run(stormOptions(seed)), simulation.Run(stormOptions(seed))
		if a.Digest != b.Digest {
			t.Errorf("seed %d: digests %s and %s", seed, a.Digest, b.Digest)
		}
	}
}

// One seed of the storm again, with a trace of all that happened.
func TestReplay(t *testing.T) {
	seed := number(t, "SIMULATION_SEED", 0)
	if seed == 0 {
		t.Skip("SIMULATION_SEED names no seed")
	}
	o := stormOptions(seed)
	if path := os.Getenv("SIMULATION_TRACE"); path != "" {
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		trace := bufio.NewWriter(file)
		defer trace.Flush()
		o.Trace = trace
	}
	r := simulation.Run(o)
	demandOK(t, r)
	t.Logf("%+v", r)
}

// How many virtual seconds a second of three relays and eight buckets.
func BenchmarkStorm(b *testing.B) {
	var virtual time.Duration
	for seed := uint64(1); b.Loop(); seed++ {
		virtual += simulation.Run(simulation.Options{Seed: seed, Faults: simulation.Storm()}).Virtual
	}
	b.ReportMetric(virtual.Seconds()/b.Elapsed().Seconds(), "virtual-s/s")
}
