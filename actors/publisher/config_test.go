package publisher

import (
	"strings"
	"testing"
	"time"
)

// Every wrong setting is named with its value, all together.
func TestValidateJoinsAllFaults(t *testing.T) {
	err := Config{Buckets: -1, Producers: -2, CarefulProducers: -3, MaxBytes: 10, AbandonGrace: -1, PurgeInterval: -1,
		PurgeDeadline: -2, PrimeAfter: time.Hour, DescribeTimeout: -1, RefreshInterval: -1}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"Factory = ", "Buckets = -1", "Producers = -2", "CarefulProducers = -3", "MaxBytes = 10",
		"AbandonGrace = -1ns", "PurgeInterval = -1ns", "PurgeDeadline = -2ns", "PrimeAfter = 1h0m0s", "DescribeTimeout = -1ns", "RefreshInterval = -1ns"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	err = Config{Factory: &stage{}, Fencing: &Fencing{LeaseValidity: 10, LeaseRenewInterval: 10, CallTimeout: -1}}.Validate()
	for _, want := range []string{"Fencing.TransactionalIDPrefix = :", "Fencing.LeaseValidity = 10ns", "Fencing.CallTimeout = -1ns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	if err := (Config{Factory: &stage{}}).Validate(); err != nil {
		t.Errorf("the defaults are wrong: %v", err)
	}
}

// However many limits a cluster's topics have, the pools stay few: a topic with
// yet another one uses the next smaller pool, or goes carefully.
func TestPoolsAreBounded(t *testing.T) {
	c := newCore(Config{}.WithDefaults(), nil)
	for limit := 20_000; limit < 400_000; limit += 10_000 {
		s := c.slotFor(limit, 0)
		if s == nil || s.limit > limit {
			t.Fatalf("limit %d: slot %v", limit, s)
		}
	}
	if len(c.pools) != maxPools {
		t.Errorf("%d pools, want %d", len(c.pools), maxPools)
	}
	if s := c.slotFor(15_000, 0); s != nil {
		t.Errorf("a limit below all pools got the pool of %d", s.limit)
	}
}
