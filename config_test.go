package relay_test

import (
	"strings"
	"testing"
	"time"

	relay "github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/store/memtable"
)

// valid is a configuration with all that has no default.
func valid() relay.Config { return config(memtable.New(memtable.Options{}), newBroker()) }

// Each fault is told with its field and its value, and a valid configuration has
// none: what a field's limit is, is allowed itself.
func TestValidate(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatalf("a valid configuration: %v", err)
	}
	for _, test := range []struct {
		change func(*relay.Config)
		want   []string // in the error; nil: valid
	}{
		{func(c *relay.Config) { c.Table = " " }, []string{"Table", `" "`}},
		{func(c *relay.Config) { c.PartitionKey = "Owner" }, []string{"PartitionKey", "Owner"}},
		{func(c *relay.Config) { c.SortKey = "PK" }, []string{"SortKey", "PK"}},
		{func(c *relay.Config) { c.KeyPrefix = "\t" }, []string{"KeyPrefix"}},
		{func(c *relay.Config) { c.BucketCount = 10_001 }, []string{"BucketCount", "10001"}},
		{func(c *relay.Config) { c.BucketCount = 10_000 }, nil},
		{func(c *relay.Config) { c.BucketCount = -1 }, []string{"BucketCount", "-1"}},
		{func(c *relay.Config) { c.RelayID = "é" }, []string{"RelayID", "é"}},
		{func(c *relay.Config) { c.RelayID = strings.Repeat("x", 129) }, []string{"RelayID"}},
		{func(c *relay.Config) { c.RelayID = strings.Repeat("x", 128) }, nil},
		{func(c *relay.Config) { c.RelayID = "a\n" }, []string{"RelayID", `"a\n"`}},
		{func(c *relay.Config) { c.Mode = "fast" }, []string{"Mode", "fast"}},
		{func(c *relay.Config) { c.Mode = relay.ModeFenced }, nil},
		{func(c *relay.Config) { c.TransactionalIDPrefix = " " }, []string{"TransactionalIDPrefix", `" "`}},
		{func(c *relay.Config) { c.Poison = "drop" }, []string{"Poison", "drop"}},
		{func(c *relay.Config) { c.Poison = relay.PoisonDeadLetter }, []string{"DeadLetterTopic", "required"}},
		{func(c *relay.Config) { c.PoisonAfter = -1 }, []string{"PoisonAfter", "-1"}},
		{func(c *relay.Config) { c.BatchSize = -1 }, []string{"BatchSize", "-1"}},
		{func(c *relay.Config) { c.MaxBatchBytes = -1 }, []string{"MaxBatchBytes", "-1"}},
		{func(c *relay.Config) { c.MaxConcurrency = -2 }, []string{"MaxConcurrency", "-2"}},
		{func(c *relay.Config) { c.MessageIDHeader = " " }, []string{"MessageIDHeader"}},
		{func(c *relay.Config) { c.PollInterval = -time.Second }, []string{"PollInterval", "-1s"}},
		{func(c *relay.Config) { c.ErrorBackoff = -time.Second }, []string{"ErrorBackoff", "-1s"}},
		{func(c *relay.Config) { c.ShutdownTimeout = -time.Second }, []string{"ShutdownTimeout", "-1s"}},
		{func(c *relay.Config) { c.LeaseRenewInterval = 11 * time.Second }, []string{"LeaseRenewInterval", "11s", "30s"}},
		{func(c *relay.Config) { c.LeaseDuration = -1 }, []string{"LeaseDuration"}},
		{func(c *relay.Config) { c.DynamoDB = nil }, []string{"DynamoDB"}},
		{func(c *relay.Config) { c.Coordination = nil }, []string{"Coordination"}},
		{func(c *relay.Config) { c.Producers = nil }, []string{"Producers"}},
		// Case X-11: the message lists the sum.
		{func(c *relay.Config) { c.MaxClockSkew = 15 * time.Second }, []string{"MaxClockSkew", "15s", "10s", "5s", "30s"}},
		{func(c *relay.Config) { c.MaxClockSkew = 15*time.Second - 1 }, nil},
	} {
		cfg := valid()
		test.change(&cfg)
		err := cfg.Validate()
		if (err == nil) != (test.want == nil) {
			t.Errorf("%v: got %v", test.want, err)
			continue
		}
		for _, word := range test.want {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q is not in %v", word, err)
			}
		}
	}
}

// New tells of all faults at once, and makes nothing.
func TestNewJoinsFaults(t *testing.T) {
	r, err := relay.New(relay.Config{BatchSize: -1, RelayID: "ü", PollInterval: -1})
	if r != nil || err == nil {
		t.Fatalf("got %v, %v", r, err)
	}
	for _, field := range []string{"Table", "BatchSize", "RelayID", "PollInterval", "DynamoDB", "Coordination", "Producers"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not among %v", field, err)
		}
	}
}

// Zero values mean the defaults of the protocol's section 6; what is set stays.
func TestWithDefaults(t *testing.T) {
	cfg := relay.Config{PollInterval: time.Minute}.WithDefaults()
	if cfg.PartitionKey != "PK" || cfg.SortKey != "SK" || cfg.KeyPrefix != "OUTBOX" || cfg.BucketCount != 8 ||
		cfg.BatchSize != 500 || cfg.MaxBatchBytes != 8<<20 || cfg.ErrorBackoff != time.Second ||
		cfg.LeaseDuration != 30*time.Second || cfg.LeaseRenewInterval != 10*time.Second || cfg.MaxClockSkew != 2*time.Second ||
		cfg.MaxConcurrency != 8 || cfg.MessageIDHeader != "x-outbox-message-id" || cfg.ShutdownTimeout != 25*time.Second ||
		cfg.Mode != relay.ModeOrdered || cfg.TransactionalIDPrefix != "" || cfg.Poison != relay.PoisonPark || cfg.PoisonAfter != 3 || cfg.RelayID != "" {
		t.Errorf("the defaults are %+v", cfg)
	}
	if cfg.PollInterval != time.Minute {
		t.Errorf("a value was replaced by %v", cfg.PollInterval)
	}
}

// Two relays never share an id by accident.
func TestRelayIDsDiffer(t *testing.T) {
	ids := map[string]bool{}
	for range 100 {
		r, err := relay.New(valid())
		if err != nil {
			t.Fatal(err)
		}
		ids[r.Status().Relay] = true
	}
	if len(ids) != 100 {
		t.Errorf("100 relays have %d ids", len(ids))
	}
}

// Two tables on one cluster must not fence each other, and all relays of one must.
func TestTransactionalIDsNameTheTable(t *testing.T) {
	for _, c := range []struct {
		cfg  relay.Config
		want string
	}{
		{relay.Config{Mode: relay.ModeFenced, Table: "orders", Region: "eu-central-1"}, "outbox-eu-central-1-orders-OUTBOX"},
		{relay.Config{Mode: relay.ModeFenced, Table: "orders", KeyPrefix: "SHOP"}, "outbox-orders-SHOP"},
		{relay.Config{Mode: relay.ModeFenced, Table: "orders", TransactionalIDPrefix: "mine"}, "mine"},
		{relay.Config{Mode: relay.ModeFenced}, ""}, // until there is a table
		{relay.Config{Table: "orders"}, ""},
	} {
		if got := c.cfg.WithDefaults().TransactionalIDPrefix; got != c.want {
			t.Errorf("%+v: %q, want %q", c.cfg, got, c.want)
		}
	}
}
