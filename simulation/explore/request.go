package explore

import (
	"fmt"

	"github.com/bucketbrigade/relay/store"
)

// requestCode tells requests apart by what they do to a table: until when they may
// leave does not count.
func requestCode(r store.Request) string {
	var e encoder
	e.any(withoutDeadline(r))
	return string(e.out)
}

func withoutDeadline(r store.Request) store.Request {
	switch r := r.(type) {
	case store.Heartbeat:
		r.NotAfter = store.Instant{}
		return r
	case store.ReadCoordination:
		r.NotAfter = store.Instant{}
		return r
	case store.Claim:
		r.NotAfter = store.Instant{}
		return r
	case store.Keep:
		r.NotAfter = store.Instant{}
		return r
	case store.Release:
		r.NotAfter = store.Instant{}
		return r
	case store.StampStopped:
		r.NotAfter = store.Instant{}
		return r
	case store.Prune:
		r.NotAfter = store.Instant{}
		return r
	case store.Discover:
		r.NotAfter = store.Instant{}
		return r
	case store.Fetch:
		r.NotAfter = store.Instant{}
		return r
	case store.Probe:
		r.NotAfter = store.Instant{}
		return r
	case store.Delete:
		r.NotAfter = store.Instant{}
		return r
	case store.ReadMarkers:
		r.NotAfter = store.Instant{}
		return r
	case store.FetchParked:
		r.NotAfter = store.Instant{}
		return r
	}
	return withoutDeadlineAside(r)
}

// withoutDeadlineAside is the same for what changes what is set aside.
func withoutDeadlineAside(r store.Request) store.Request {
	switch r := r.(type) {
	case store.Mark:
		r.NotAfter = store.Instant{}
		return r
	case store.Move:
		r.NotAfter = store.Instant{}
		return r
	case store.RemoveParked:
		r.NotAfter = store.Instant{}
		return r
	case store.Unmark:
		r.NotAfter = store.Instant{}
		return r
	case store.EndRetry:
		r.NotAfter = store.Instant{}
		return r
	case store.SetAside, store.AskRetry, store.CallOff, store.DiscardParked, store.Ring, store.MoveUnreadable: // an operator's have none
		return r
	}
	panic(fmt.Sprintf("explore: unknown request %T", r))
}

// writes tells a write from a read.
func writes(r store.Request) bool {
	switch r.(type) {
	case store.ReadCoordination, store.Discover, store.Fetch, store.Probe, store.ReadMarkers, store.FetchParked:
		return false
	}
	return true
}

// transacts is the tenure and the token of a transaction; the token of anything else
// is empty.
func transacts(r store.Request) (tenure store.Tenure, token string) {
	switch r := r.(type) {
	case store.Mark:
		return r.Tenure, r.Token
	case store.Move:
		return r.Tenure, r.Token
	case store.RemoveParked:
		return r.Tenure, r.Token
	case store.Unmark:
		return r.Tenure, r.Token
	case store.EndRetry:
		return r.Tenure, r.Token
	}
	return store.Tenure{}, ""
}
