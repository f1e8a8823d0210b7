package store_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// The writes of the lease of bucket 3, as relay A's process A1 sends them.
var (
	claim = store.Claim{Bucket: 3, Relay: "A", Incarnation: "A1", Claim: 7, Now: noon, Expires: after(30 * time.Second)}
	keep  = store.Keep{Bucket: 3, Relay: "A", Incarnation: "A1", Claim: 7,
		Seen: after(30 * time.Second), Expires: after(40 * time.Second)}
	release = store.Release{Bucket: 3, Relay: "A", Seen: after(40 * time.Second), Now: after(12 * time.Second)}
)

const lease3 = "LEASE#0000000003"

// lease is a lease item of bucket 3.
func (f fixture) lease(owner, incarnation string, claim int64, expires store.Ticks) item {
	return f.coordination(lease3, item{
		"Owner": str(owner), "ExpiresAtUtc": num(int64(expires)), "Incarnation": str(incarnation), "Claim": num(claim),
	})
}

// A lease's life leaves these very items, with the names and types of section 1;
// what others wrote on it stays.
func TestLeaseItems(t *testing.T) {
	onBoth(t, func(f fixture) {
		f.do(claim, store.Done)
		f.wantTable(f.lease("A", "A1", 7, claim.Expires))

		f.do(keep, store.Done)
		f.wantTable(f.lease("A", "A1", 7, keep.Expires))

		paused := f.lease("A", "A1", 7, keep.Expires)
		paused[outbox.AttrPausedUntilUtc], paused[outbox.AttrPausedBy] = num(1), str("somebody")
		f.put(paused)
		f.do(release, store.Done)
		delete(paused, "Owner")
		paused["ExpiresAtUtc"] = num(int64(release.Now))
		f.wantTable(paused)
	})
}

// A keep under an earlier incarnation of ours is a restart under the same id: it
// takes the lease over, and writes incarnation and claim anew.
func TestKeepResumes(t *testing.T) {
	f := newFixture(t, schemas["default"])
	f.put(f.lease("A", "A0", 99, keep.Seen))
	f.do(keep, store.Done)
	f.wantTable(f.lease("A", "A1", 7, keep.Expires))
}

// Each write of a lease is refused, and changes nothing, unless the lease is as
// the protocol demands; whoever is refused learns of the old lease.
func TestLeaseConditions(t *testing.T) {
	const any = 50 * time.Second
	held := func(owner, incarnation string, claim int64, expires store.Ticks) func(fixture) item {
		return func(f fixture) item { return f.lease(owner, incarnation, claim, expires) }
	}
	without := func(attribute string, expires store.Ticks) func(fixture) item {
		return func(f fixture) item {
			i := f.lease("B", "B1", 1, expires)
			delete(i, attribute)
			return i
		}
	}
	for name, test := range map[string]struct {
		request store.Request
		before  func(fixture) item
		want    store.Class
	}{
		"claim of a live lease":               {claim, held("B", "B1", 1, noon+1), store.Refused},
		"claim of one that expires now":       {claim, held("B", "B1", 1, noon), store.Done},
		"claim of one without an owner":       {claim, without("Owner", after(any)), store.Done},
		"claim of one without an expiry":      {claim, without("ExpiresAtUtc", 0), store.Done},
		"claim of our own, of another claim":  {claim, held("A", "A1", 6, claim.Expires), store.Refused},
		"claim of our own, of another expiry": {claim, held("A", "A1", 7, claim.Expires-1), store.Refused},
		"claim of our own, another start":     {claim, held("A", "A0", 7, claim.Expires), store.Refused},
		"claim that was applied before":       {claim, held("A", "A1", 7, claim.Expires), store.Done},

		"keep of another's":               {keep, held("B", "B1", 1, keep.Seen), store.Refused},
		"keep of nobody's":                {keep, without("Owner", keep.Seen), store.Refused},
		"keep under another expiry":       {keep, held("A", "A1", 7, keep.Seen+1), store.Refused},
		"keep that was applied before":    {keep, held("A", "A1", 7, keep.Expires), store.Done},
		"keep applied by another start":   {keep, held("A", "A0", 7, keep.Expires), store.Refused},
		"keep applied in another tenure":  {keep, held("A", "A1", 6, keep.Expires), store.Refused},
		"keep of what is not there":       {keep, nil, store.Refused},
		"release under another expiry":    {release, held("A", "A1", 7, release.Seen+1), store.Refused},
		"release of another's":            {release, held("B", "B1", 1, release.Seen), store.Done},
		"release that was applied before": {release, without("Owner", release.Now), store.Done},
		"release of what is not there":    {release, nil, store.Done},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, schemas["custom"])
			var before []item
			if test.before != nil {
				before = append(before, test.before(f))
				f.put(before...)
			}
			reply := f.do(test.request, test.want)
			if test.want != store.Refused {
				return
			}
			f.wantTable(before...)
			if !errors.Is(reply.Err, store.ErrConditionFailed) {
				t.Errorf("got %v", reply.Err)
			}
			f.wantOld(reply, before)
		})
	}
}

// wantOld demands that a refusal tells of the lease as it is read, nil for none.
func (f fixture) wantOld(reply store.Reply, before []item) {
	f.Helper()
	got := reply.Result.(store.LeaseResult)
	if got.Repeated {
		f.Error("a refused write is called a repetition")
	}
	var want *store.Lease
	if len(before) > 0 {
		want = &f.do(store.ReadCoordination{}, store.Done).Result.(store.CoordinationPage).Leases[0]
	}
	if !reflect.DeepEqual(got.Old, want) {
		f.Errorf("the old lease is %+v, want %+v", got.Old, want)
	}
}

// Case D-01: the SDK repeats a write whose answer was lost. The repetition is
// refused by the table, and done all the same; nothing is written twice.
func TestOwnRepetitionIsDone(t *testing.T) {
	onBoth(t, func(f fixture) {
		for _, r := range []store.Request{claim, keep, release} {
			f.do(r, store.Done)
			left := f.db.Items(f.schema.Table)
			reply := f.do(r, store.Done)
			if !reply.Result.(store.LeaseResult).Repeated {
				t.Errorf("%s: the repetition is not recognised", r.RequestName())
			}
			f.wantTable(left...)
		}
	})
}

// A lease that another has meanwhile must never be taken for our own write's
// repetition, whatever of it happens to agree.
func TestAnothersLeaseIsNoRepetition(t *testing.T) {
	f := newFixture(t, schemas["default"])
	f.put(f.lease("B", "A1", 7, claim.Expires))
	f.do(claim, store.Refused)
	f.put(f.lease("B", "A1", 7, keep.Expires))
	f.do(keep, store.Refused)
}
