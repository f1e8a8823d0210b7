package store

import "github.com/bucketbrigade/relay/outbox"

// Class is what the answer to a request means (design.md section 5).
type Class uint8

// The classes.
const (
	// Done: the request was applied.
	Done Class = iota
	// Refused: the condition failed, and the old item is not what this request
	// writes.
	Refused
	// Retriable: the request was not applied: throttled, unavailable, in conflict
	// with a transaction, or not sent. An SDK that repeats requests may hide that
	// an earlier attempt was applied, when the last one was answered with an error
	// that it does not repeat; the next read then tells.
	Retriable
	// Ambiguous: the request was sent and may have been applied.
	Ambiguous
)

func (c Class) String() string {
	switch c {
	case Done:
		return "done"
	case Refused:
		return "refused"
	case Retriable:
		return "retriable"
	default:
		return "ambiguous"
	}
}

// Reply is the end of one request.
type Reply struct {
	Class Class
	// Err says why the class is not Done; nil when it is. It wraps one of the
	// sentinels of this package where one fits.
	Err error
	// Result is the request's typed result, as its doc names it; nil where the
	// class leaves nothing to say.
	Result any
	// Capacity is what the service says the request consumed, in units.
	Capacity float64
	// Date is the service's own time when it answered a heartbeat or a read of the
	// coordination partition, in whole seconds, rounded downwards; 0: it did not say.
	Date Ticks
}

// HeartbeatResult is the result of a Heartbeat, done or refused.
type HeartbeatResult struct {
	// Previous is the record as it was before, or as it refused us; nil when
	// there was none.
	Previous *RelayRecord
}

// CoordinationPage is the result of ReadCoordination.
type CoordinationPage struct {
	Leases []Lease       // ascending by bucket
	Relays []RelayRecord // ascending by id
	// Unreadable are the items of the partition that could not be read, one
	// error each. Those that are leases stand in Leases too, with Unreadable set.
	Unreadable []error
	// Next is the After of the next page; empty on the last.
	Next string
}

// LeaseResult is the result of Claim, Keep and Release.
type LeaseResult struct {
	// Old is the lease that refused the write; nil when it was applied, or when
	// the item does not exist.
	Old *Lease
	// Repeated tells that the write was applied before and this answer belongs
	// to the SDK's repetition of it.
	Repeated bool
}

// Discovered is the result of Discover.
type Discovered struct{ Waiting bool }

// Fetched is the result of Fetch.
type Fetched struct {
	Rows []outbox.Row // ascending; up to the first row that cannot be read
	// Malformed is why the row after Rows cannot be read; nil when all can. It
	// is an *outbox.ItemError.
	Malformed error
	// More tells that there may be rows after the last one of this page.
	More bool
}

// Probed is the result of Probe.
type Probed struct{ Filled bool }

// Deleted is the result of Delete.
type Deleted struct {
	Unprocessed []int64 // sequences that the service did not process, ascending
}

// Lease is a lease item as it was read (protocol.md section 1).
type Lease struct {
	Bucket      int
	Owner       string // empty: no owner
	Expires     Ticks  // 0: no expiry
	Incarnation string // empty on leases of the peer
	Claim       int64
	Attention   Ticks
	PausedUntil Ticks // 0: not paused
	PausedBy    string
	PauseReason string
	// Unreadable: owner or expiry is of the wrong type, so the lease is nobody's to
	// claim.
	Unreadable bool
}

// RelayRecord is a relay's heartbeat item as it was read.
type RelayRecord struct {
	ID          string
	LastSeen    Ticks
	Stopped     Ticks  // 0: not stopped
	Incarnation string // empty on records of the peer
	Mode        string
}
