package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func costJSON(t *testing.T, args ...string) monthDocument {
	t.Helper()
	got := (&console{}).run(append([]string{"cost", "--output=json"}, args...)...)
	var d monthDocument
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != exitDone || got.stderr != "" {
		t.Fatalf("%v: %v, %+v", args, err, got)
	}
	return d
}

// What is printed is a contract, and needs neither table nor net.
func TestCostIsPrinted(t *testing.T) {
	loaded := []string{"--rate=100", "--size=2KB", "--relays=4", "--buckets=64", "--read-price=0.125", "--write-price=0.625", "--currency=USD"}
	for name, args := range map[string][]string{
		"cost_idle.txt": nil, "cost.txt": loaded, "cost.json": append([]string{"--output=json"}, loaded...),
		"cost_crowded.txt": {"--rate=8000", "--relays=20", "--size=9KB", "--lease-renew-interval=10s"},
	} {
		c := &console{}
		got := c.run(append([]string{"cost"}, args...)...)
		if got.code != exitDone || got.stderr != "" || c.dialed != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		fitsWidth(t, name, got.stdout)
		golden(t, name, got.stdout)
	}
}

// An idle fleet's requests are easily reckoned by hand.
func TestCostOfAnIdleFleet(t *testing.T) {
	const month = 730 * 3600.0
	d := costJSON(t, "--relays=2", "--buckets=10", "--poll-interval=2s", "--lease-duration=60s", "--lease-renew-interval=20s", "--metrics-interval=1m")
	want := map[string]float64{"heartbeat": 2 * month / 20, "readCoordination": 2 * month / 20, "keep": 10 * month / 20,
		"discover": 10 * month / 2, "readHead": 10 * month / 60, "count": 10 * month / 60}
	sum := 0.0
	for _, l := range d.Idle.Requests {
		if l.Requests != math.Round(want[l.Request]) {
			t.Errorf("%s: got %v, want %v", l.Request, l.Requests, want[l.Request])
		}
		sum += l.Requests
	}
	if len(d.Idle.Requests) != len(want) || math.Abs(d.Total.Requests-sum) > 3 || d.Load != nil || d.Writers != nil || d.Currency != nil || d.Total.Cost != nil {
		t.Errorf("got %+v", d)
	}
}

// The settings are those of a relay, from its own file, and the flags win.
func TestCostTakesTheSettingsOfARelay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "relay.yaml")
	if err := os.WriteFile(file, []byte("table: orders\nbucket-count: 32\npoll-interval: 3s\nbatch-size: 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := costJSON(t, "--config", file, "--batch-size=7")
	if w := d.Workload; w.Buckets != 32 || w.PollInterval != 3 || w.BatchSize != 7 || w.LeaseDuration != 30 {
		t.Errorf("got %+v", w)
	}
	if d = costJSON(t, "--config", file, "--buckets=4"); d.Workload.Buckets != 4 {
		t.Errorf("got %+v", d.Workload)
	}
}

func TestCostByThePricesOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte("read-price: 0.1\nwrite-price: 0.5\ncurrency: EUR\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := costJSON(t, "--prices", file, "--rate=10")
	if want := math.Round((d.Total.ReadUnits*0.1+d.Total.WriteUnits*0.5)/1e4) / 100; d.Currency == nil || *d.Currency != "EUR" || math.Abs(*d.Total.Cost-want) > 0.011 {
		t.Errorf("got %v, want %v", *d.Total.Cost, want)
	}
	if d2 := costJSON(t, "--prices", file, "--rate=10", "--read-price=0.2"); *d2.Total.Cost <= *d.Total.Cost {
		t.Errorf("the flag does not win: %v, then %v", *d.Total.Cost, *d2.Total.Cost)
	}
}

// What is advised, and when.
func TestCostAdvises(t *testing.T) {
	for id, args := range map[string][]string{
		"bucketCount.capacity":   {"--rate=3000"},
		"bucketCount.relays":     {"--relays=9"},
		"bucketCount.fewer":      {"--relays=2", "--buckets=64"},
		"pollInterval":           nil,
		"pollInterval.largeRows": {"--rate=5", "--size=40KB"},
		"leaseRenewInterval":     {"--relays=100", "--buckets=8000"},
	} {
		advised := func(d monthDocument) bool {
			for _, a := range d.Advice {
				if a.ID == id {
					return true
				}
			}
			return false
		}
		if !advised(costJSON(t, args...)) {
			t.Errorf("%v: no advice %s", args, id)
		}
		if id != "pollInterval" && advised(costJSON(t, "--rate=20")) {
			t.Errorf("the defaults get the advice %s", id)
		}
	}
}

// What a flag has by default, and what its text says it takes, it takes.
func TestCostTakesItsDefaultsAndBounds(t *testing.T) {
	run := func(args ...string) string {
		got := (&console{}).run(append([]string{"cost"}, args...)...)
		if got.code != exitDone {
			t.Errorf("%v: %+v", args, got)
		}
		return got.stdout
	}
	if given, left := run("--rate=0", "--notified=0", "--per-transaction=1"), run(); given != left {
		t.Errorf("the defaults, given:\n%s\nnot given:\n%s", given, left)
	}
	run("--rate=-0", "--notified=1", "--per-transaction=100")
}

func TestCostRefusesWhatMakesNoSense(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, args := range map[string][]string{
		`--rate "-1": must be a number from 0`:           {"--rate=-1"},
		`--rate "NaN": must be a number from 0`:          {"--rate=NaN"},
		`--notified "1.5": must be a number from 0 to 1`: {"--notified=1.5"},
		`--per-transaction "101"`:                        {"--per-transaction=101"},
		"--per-transaction 100: its rows would have":     {"--per-transaction=100", "--size=100KB"},
		"--buckets":                                         {"--buckets=10001"},
		`--relays "10001": must be at most`:                 {"--relays=10001"},
		"--size 1000000: its row would have":                {"--size=1MB"},
		"give both, or neither":                             {"--read-price=1"},
		"no such file":                                      {"--prices", filepath.Join(folder, "none.yaml")},
		"field reads-price not found":                       {"--prices", file("a.yaml", "reads-price: 1\n")},
		"write-price -1: must be a number above 0":          {"--prices", file("b.yaml", "read-price: 1\nwrite-price: -1\n")},
		"lease-renew-interval 20s":                          {"--lease-renew-interval=20s"},
		`"orders": takes no such argument`:                  {"orders"},
		"--table: no such flag":                             {"--table"},
		`poll-interval "1": needs a unit, such as 1s (from`: {"--poll-interval=1"},
	} {
		got := (&console{}).run(append([]string{"cost"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
}
