package main

import (
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// leasesExample is an outbox with leases of every kind.
func leasesExample(t *testing.T) *console {
	c := newConsole(t)
	claim := func(bucket int, relay string, claim int64, expires store.Ticks) {
		c.do(t, store.Claim{Bucket: bucket, Relay: relay, Incarnation: relay + "-1", Claim: claim, Now: 1, Expires: expires})
	}
	for relay, seen := range map[string]store.Ticks{"active": ago(4 * time.Second), "stopped": ago(7 * time.Second), "silent": ago(2 * time.Minute)} {
		c.do(t, store.Heartbeat{Relay: relay, Incarnation: relay + "-1", LastSeen: seen})
	}
	c.do(t, store.StampStopped{Relay: "stopped", Incarnation: "stopped-1", At: ago(6 * time.Second)})
	claim(0, "active", 1, inFuture(26*time.Second))
	claim(1, "stopped", 2, inFuture(20*time.Second))
	claim(2, "silent", 3, ago(90*time.Second))
	claim(3, "silent", 4, inFuture(time.Second))
	claim(4, "gone", 5, inFuture(10*time.Second))
	claim(5, "active", 6, inFuture(26*time.Second))
	c.do(t, store.Pause{Bucket: 5, Until: store.NoEnd, By: "ann@desk", Reason: "migration"})
	c.do(t, store.Pause{Bucket: 6, Until: ago(time.Hour), By: "bob", Reason: "over"})
	claim(9, "active", 7, inFuture(26*time.Second))
	return c
}

func TestLeaseListShowsEveryBucket(t *testing.T) {
	c := leasesExample(t)
	for name, args := range map[string][]string{"lease_list.txt": nil, "lease_list.json": {"--output=json"}} {
		got := c.run(append([]string{"lease", "list", "--table", "orders"}, args...)...)
		if got.code != exitDone || got.stderr != "" {
			t.Errorf("%s: %+v", name, got)
		}
		fitsWidth(t, name, got.stdout)
		golden(t, name, got.stdout)
	}
}

// One command pauses many buckets: it is told of once.
func TestLeaseListOfManyPauses(t *testing.T) {
	c := newConsole(t)
	c.run("pause", "--table", "orders", "--all", "--reason", "upgrade", "--by", "ann", "--yes")
	c.run("pause", "--table", "orders", "--bucket=2", "--reason", "a look", "--by", "bob", "--for=1h", "--yes")
	got := c.run("lease", "list", "--table", "orders")
	if want := "buckets 0-1, 3-7 are paused until resumed, by ann: upgrade\nbucket 2 is paused until 2026-03-01T13:00:00Z, by bob: a look\n"; !strings.HasSuffix(got.stdout, want) {
		t.Errorf("%+v", got)
	}
}

// An item that cannot be read is shown as what it is, and said at the end.
func TestLeaseListOfAnUnreadableLease(t *testing.T) {
	c := newConsole(t)
	item := schema.Key(schema.CoordinationKey(), outbox.LeaseSortKey(2))
	item[outbox.AttrOwner], item[outbox.AttrExpiresAtUtc] = text("a"), text("soon")
	c.put(t, item)
	got := c.run("lease", "list", "--table", "orders")
	if got.code != exitFailed || !strings.Contains(got.stdout, "     2  unreadable") || !strings.Contains(got.stderr, "1 item of the coordination partition cannot be read") {
		t.Errorf("%+v", got)
	}
	if got = c.run("lease", "release", "--table", "orders", "--bucket=2", "--yes"); got.code != exitFailed || !strings.Contains(got.stderr, "nobody's to free") {
		t.Errorf("%+v", got)
	}
}

// Only the lease of an owner that is gone is freed, and only after the question.
func TestLeaseReleaseFreesWhatNobodyHolds(t *testing.T) {
	for bucket, fact := range map[string]string{
		"1": "the lease of bucket 1 expires in 20s; its owner stopped has stopped",
		"2": "the lease of bucket 2 has lapsed 1m30s ago; its owner silent is silent",
		"3": "make sure that its process has ended",
		"4": "its owner gone has no record",
	} {
		c := leasesExample(t)
		got := c.runWith("y\n", nil, "lease", "release", "--table", "orders", "--bucket="+bucket)
		if got.code != exitDone || !strings.Contains(got.stderr, fact) || !strings.HasPrefix(got.stdout, "done: free the lease of bucket "+bucket) {
			t.Errorf("%s: %+v", bucket, got)
		}
		lease := c.leaseOf(t, int(bucket[0]-'0'))
		if lease.Owner != "" || lease.Expires != ago(0) || lease.Claim == 0 {
			t.Errorf("%s: got %+v", bucket, lease)
		}
	}
}

func TestLeaseReleaseLeavesALivingOwnerAlone(t *testing.T) {
	c := leasesExample(t)
	got := c.run("lease", "release", "--table", "orders", "--bucket=0", "--yes")
	if got.code != exitFailed || !strings.Contains(got.stderr, "relay active, which was seen 4s ago") || c.leaseOf(t, 0).Owner != "active" {
		t.Errorf("%+v", got)
	}
	// By its own lease duration it is silent: the settings decide, as for relays.
	got = c.run("lease", "release", "--table", "orders", "--bucket=0", "--lease-duration=3s", "--dry-run")
	if got.code != exitDone || !strings.Contains(got.stdout, "release of OUTBOX#COORDINATION LEASE#0000000000") || c.leaseOf(t, 0).Owner != "active" {
		t.Errorf("%+v", got)
	}
	if got = c.run("lease", "release", "--table", "orders", "--bucket=7", "--yes"); got.code != exitDone || got.stdout != "there is nothing to do\n" {
		t.Errorf("%+v", got)
	}
	if got = c.runWith("n\n", nil, "lease", "release", "--table", "orders", "--bucket=2"); got.code != exitFailed || c.leaseOf(t, 2).Owner != "silent" {
		t.Errorf("%+v", got)
	}
}

// The owner was silent, and keeps its lease before the release comes: it is left alone.
// Or a peer claims it first: there is nothing left to do.
func TestLeaseReleaseComesTooLate(t *testing.T) {
	c := leasesExample(t)
	c.through = func(api store.API) store.API {
		return &overtaken{api, func() {
			c.do(t, store.Keep{Bucket: 3, Relay: "silent", Incarnation: "silent-1", Claim: 4, Seen: inFuture(time.Second), Expires: inFuture(31 * time.Second)})
		}}
	}
	got := c.run("lease", "release", "--table", "orders", "--bucket=3", "--yes")
	if got.code != exitFailed || !strings.Contains(got.stderr, "has renewed it meanwhile") || c.leaseOf(t, 3).Owner != "silent" {
		t.Errorf("%+v", got)
	}
	c.through = func(api store.API) store.API {
		return &overtaken{api, func() {
			c.do(t, store.Claim{Bucket: 2, Relay: "active", Incarnation: "active-1", Claim: 8, Now: ago(0), Expires: inFuture(30 * time.Second)})
		}}
	}
	got = c.run("lease", "release", "--table", "orders", "--bucket=2", "--yes")
	if got.code != exitDone || !strings.HasPrefix(got.stdout, "already: free the lease of bucket 2") || c.leaseOf(t, 2).Owner != "active" {
		t.Errorf("%+v", got)
	}
}
