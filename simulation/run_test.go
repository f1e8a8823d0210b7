package simulation_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	m := r.Messages
	// Nothing is promised for numbers that a counter has given out again.
	lost := m.Published-m.Duplicates+m.Parked < m.Enqueued && r.Faults["counterReset"] == 0
	if r.OK && (m.Pending > 0 || lost || m.Enqueued == 0) {
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

// enoughSeeds is how many seeds of the storm see everything.
const enoughSeeds = 200

// stormOptions are a run of one to five relays with settings that the seed
// draws, and all faults on.
func stormOptions(seed uint64) simulation.Options {
	buckets := 8
	if seed%7 == 0 {
		buckets = 2 // more relays than buckets
	}
	return simulation.Options{Seed: seed, Relays: 1 + int(seed%5), Buckets: buckets, Faults: simulation.Storm()}.Draw()
}

// Whatever happens to requests, processes and the broker: nothing is lost,
// reordered or owned twice, and when it is over the fleet settles.
func TestStorm(t *testing.T) {
	seeds, began := number(t, "SIMULATION_SEEDS", fewSeeds), time.Now()
	seen := storm(t, number(t, "SIMULATION_FIRST", 1), seeds)
	if seeds >= enoughSeeds {
		demandSeen(t, seen)
	}
	took := time.Since(began).Seconds()
	t.Logf("faults %v", seen.faults)
	t.Logf("transitions %v", seen.transitions)
	t.Logf("%d seeds, %v of virtual time in %.0f s, %.0f virtual seconds a second",
		seeds, seen.virtual.Round(time.Second), took, seen.virtual.Seconds()/took)
}

// Relays of both modes in one fleet keep every promise that does not need all of them:
// while a fleet changes its mode, and goes back, under all faults. Buckets go from each
// mode to each.
func TestModesChange(t *testing.T) {
	handovers := map[string]int{} // "ordered to fenced"
	mode := regexp.MustCompile(`Mode:(\w+)`)
	for seed := uint64(1); seed <= 4; seed++ {
		modes, owners := map[string]string{}, map[int]string{} // of processes; of buckets
		o := stormOptions(seed)
		o.Relays, o.Faults[simulation.ModeChanged] = 3, 3
		o.Observe = func(e simulation.Event) {
			switch e.Name {
			case "process.started":
				modes[e.Who] = mode.FindStringSubmatch(e.String())[1]
			case "bucket.claimed":
				if before := owners[e.Bucket()]; before != "" && before != e.Who {
					handovers[modes[before]+" to "+modes[e.Who]]++
				}
				owners[e.Bucket()] = e.Who
			}
		}
		demandOK(t, simulation.Run(o))
	}
	for _, pair := range []string{"ordered to ordered", "ordered to fenced", "fenced to ordered", "fenced to fenced"} {
		if handovers[pair] < 5 {
			t.Errorf("%d handovers from %s, want more", handovers[pair], pair)
		}
	}
	t.Logf("handovers %v", handovers)
}

// Operators pause topics and buckets, and call retries off, while all else goes wrong:
// every promise holds, and what they did comes to its end.
func TestOperatorsPauseAndCallOff(t *testing.T) {
	seen := map[string]int{}
	for seed := uint64(1); seed <= 4; seed++ {
		o := stormOptions(seed)
		o.Faults[simulation.TopicPaused], o.Faults[simulation.BucketPaused], o.Faults[simulation.RetryCalledOff] = 0.5, 0.5, 1
		o.Observe = func(e simulation.Event) { seen[e.Name]++ }
		r := simulation.Run(o)
		demandOK(t, r)
		seen["calledOff"] += r.Faults[simulation.RetryCalledOff.String()]
	}
	for _, name := range []string{"topics.paused", "topics.resumed", "bucket.paused", "key.retried", "topic.retried", "calledOff"} {
		if seen[name] < 3 {
			t.Errorf("%s was seen %d times, want more", name, seen[name])
		}
	}
}

// One process reaches no broker while its peers do, and all else goes wrong: it withdraws
// and keeps nothing, its peers take over what it had, and it comes back.
func TestOneProcessReachesNoBroker(t *testing.T) {
	seen := map[string]int{}
	for seed := uint64(1); seed <= 6; seed++ {
		away, owners := map[string]bool{}, map[int]string{} // processes; of buckets
		o := stormOptions(seed)
		o.Relays, o.Faults[simulation.BrokerCut] = max(3, o.Relays), 2
		o.Observe = func(e simulation.Event) {
			seen[e.Name]++
			switch e.Name {
			case "relay.withdrawn":
				away[e.Who] = strings.Contains(e.String(), "Reason:brokers")
			case "relay.renamed":
				if away[e.Who] {
					seen["came back"]++
				}
				delete(away, e.Who)
			case "bucket.claimed":
				if before := owners[e.Bucket()]; away[before] && before != e.Who {
					seen["taken over"]++
				}
				owners[e.Bucket()] = e.Who
			}
		}
		demandOK(t, simulation.Run(o))
	}
	for _, name := range []string{"process.cut", "process.connected", "relay.withdrawn", "taken over", "came back"} {
		if seen[name] < 3 {
			t.Errorf("%s was seen %d times, want more", name, seen[name])
		}
	}
}

// sights are what was seen over many seeds, with counts.
type sights struct {
	faults, transitions map[string]int
	virtual             time.Duration
}

// storm runs n seeds from the first on, as many at once as there are processors: a run has no
// goroutine, and nothing that it shares with others.
func storm(t *testing.T, first, n uint64) sights {
	seen := sights{faults: map[string]int{}, transitions: map[string]int{}}
	var mu sync.Mutex
	var next atomic.Uint64
	next.Store(first - 1)
	var runs sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		runs.Go(func() {
			for seed := next.Add(1); seed < first+n && !t.Failed(); seed = next.Add(1) {
				r := simulation.Run(stormOptions(seed))
				mu.Lock()
				demandOK(t, r)
				seen.virtual += r.Virtual
				for kind, count := range r.Faults {
					seen.faults[kind] += count
				}
				for transition, count := range r.Coverage {
					seen.transitions[transition] += count
				}
				mu.Unlock()
			}
		})
	}
	runs.Wait()
	return seen
}

// demandSeen: over enough seeds each kind of fault and each way through the
// machines has been seen.
func demandSeen(t *testing.T, seen sights) {
	t.Helper()
	for _, kind := range simulation.FaultKinds() {
		if simulation.Storm()[kind] > 0 && seen.faults[kind.String()] == 0 {
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
		if seen.transitions[transition] == 0 {
			t.Errorf("transition %s was never seen", transition)
		}
	}
}

// digestsWanted names the variable under which TestSameSeedSameRun starts its own
// binary, to print digests instead.
const digestsWanted = "SIMULATION_DIGESTS"

// The same seed and options give the same run, byte for byte: again, in another
// process, and with any number of processors.
func TestSameSeedSameRun(t *testing.T) {
	digests := func() string {
		var text strings.Builder
		for seed := uint64(1); seed <= 5; seed++ {
			fmt.Fprintf(&text, "seed %d: %s\n", seed, simulation.Run(stormOptions(seed)).Digest)
		}
		return text.String()
	}
	if os.Getenv(digestsWanted) != "" {
		fmt.Print(digests())
		return
	}
	want := digests()
	if got := digests(); got != want {
		t.Errorf("again:\n%swant:\n%s", got, want)
	}
	for _, processors := range []string{"1", "3"} {
		other := exec.Command(os.Args[0], "-test.run", "^TestSameSeedSameRun$")
		other.Env = append(os.Environ(), digestsWanted+"=1", "GOMAXPROCS="+processors)
		out, err := other.CombinedOutput()
		if got, _, _ := strings.Cut(string(out), "PASS"); err != nil || got != want {
			t.Errorf("in another process with GOMAXPROCS=%s:\n%swant:\n%s(%v)", processors, out, want, err)
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
		o.Observe = func(e simulation.Event) { fmt.Fprintln(trace, e) }
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
