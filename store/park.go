package store

import (
	"fmt"

	"github.com/bucketbrigade/relay/outbox"
)

// Limits of one transaction that sets rows aside (protocol.md section 7). A
// transaction has at most 100 items, the lease among them.
const (
	MaxMoves     = 40      // rows, and markers
	MaxMoveBytes = 3 << 20 // of rows, by DynamoDB's rules
	// MaxMovedRowBytes is the size of one row that can be moved: what a writer takes.
	MaxMovedRowBytes = 408_576
)

// ReasonTopic is the Reason of a key that was set aside with its whole topic.
const ReasonTopic = "topic set aside"

// Tenure is one owner's hold of one lease. Every transaction that changes what is
// set aside has a check of it, so that what an earlier tenure sent is refused, even
// one of the same process (protocol.md section 7, Lease check).
type Tenure struct {
	Bucket      int
	Relay       string
	Incarnation string
	Claim       int64
}

// Marker is the item that says that a topic and key, or a whole topic, is set
// aside (protocol.md section 7).
type Marker struct {
	// KeyID is that of the topic and key; empty: the whole topic.
	KeyID    string
	Topic    string
	Reason   string // names code and limit, never content
	Attempts int    // rejections that were counted; of a key only
	ParkedAt Ticks
	RetryAt  Ticks // when an operator asked for a retry; 0: not asked
	// PausedUntil is when a topic that was set aside for a while is retried by itself;
	// NoEnd: not before somebody asks; 0: it is not paused, but set aside. PausedBy is
	// who has paused it. A key has neither.
	PausedUntil Ticks
	PausedBy    string
}

// ReadMarkers reads one page of a bucket's markers, strongly consistent. Its result
// is a MarkersPage.
type ReadMarkers struct {
	Bucket   int
	After    string // sort key of the last item of the page before; empty for the first page
	NotAfter Instant
}

// FetchParked reads one page of the rows of one key that are set aside, strongly
// consistent, ascending, from after a sequence on. Its result is a Fetched.
type FetchParked struct {
	Bucket   int
	KeyID    string
	After    int64 // 0: from the first
	Limit    int   // rows, 1 to 1,000,000
	NotAfter Instant
}

// Mark writes the markers of keys that have none yet, in one transaction with the
// lease check. Its result, also when refused, is a MoveResult. Token makes the
// SDK's repetition, and ours, one and the same transaction.
type Mark struct {
	Tenure   Tenure
	Markers  []Marker // of keys, 1 to MaxMoves, each another one; not changed after the request was made
	Token    string   // 1 to 36 characters, of this transaction alone
	NotAfter Instant
}

// Moving is one row on its way to the parked partition.
type Moving struct {
	KeyID string
	Row   outbox.Row // with its Item
}

// String names the row, without its content: traces print requests, and the same
// request twice must read the same.
func (m Moving) String() string { return fmt.Sprintf("%s#%d", m.KeyID, m.Row.Sequence) }

// Move moves rows to the parked partition of their bucket, in one transaction
// with the lease check; each key's marker has the ParkedAt that is known here. A row
// whose number another message has there is refused; the same message is replaced. Its
// result, also when refused, is a MoveResult.
type Move struct {
	Tenure Tenure
	// Markers are those of the rows' keys. 1 + len(Markers) + 2·len(Rows) is at most 100.
	Markers  []Marker
	Rows     []Moving // ascending, 1 to MaxMoves
	Token    string
	NotAfter Instant
}

// RemoveParked deletes rows of one key that were acknowledged, in one transaction
// with the lease check. Its result, also when refused, is a MoveResult.
type RemoveParked struct {
	Tenure    Tenure
	KeyID     string
	Sequences []int64 // ascending, 1 to MaxMoves
	Token     string
	NotAfter  Instant
}

// Unmark deletes a marker whose ParkedAt, RetryAt and Attempts are still those of Marker, in
// one transaction with the lease check. Its result, also when refused, is a
// MoveResult.
type Unmark struct {
	Tenure   Tenure
	Marker   Marker
	Token    string
	NotAfter Instant
}

// EndRetry takes the wish for a retry from a marker whose ParkedAt, RetryAt and Attempts
// are still those of Marker, in one transaction with the lease check; Reason and
// Attempts are those of the new rejection. Its result, also when refused, is a
// MoveResult.
type EndRetry struct {
	Tenure   Tenure
	Marker   Marker
	Reason   string
	Attempts int // of the marker, from now on: more than before
	Token    string
	NotAfter Instant
}

// MarkersPage is the result of ReadMarkers.
type MarkersPage struct {
	Markers []Marker // topics first, then keys, each ascending
	// Unreadable are the markers that could not be read, an *outbox.ItemError each.
	Unreadable []error
	// Next is the After of the next page; empty on the last.
	Next string
}

// MoveResult is the result of Mark, Move, RemoveParked, Unmark and EndRetry.
type MoveResult struct {
	// Refusal is what was not as the transaction requires; NotRefused when it was
	// applied.
	Refusal Refusal
}

// Refusal is which part of a transaction was refused; the first in this order
// where several were.
type Refusal uint8

// The refusals.
const (
	NotRefused    Refusal = iota
	LeaseRefused          // the lease is not, or not any more, that tenure's
	MarkerRefused         // a marker is not as it was read, or there already, or gone
	RowRefused            // a row is gone, or is set aside already
)

func (r Refusal) String() string {
	switch r {
	case LeaseRefused:
		return "lease"
	case MarkerRefused:
		return "marker"
	case RowRefused:
		return "row"
	default:
		return "not refused"
	}
}

// RequestName implements Request.
func (ReadMarkers) RequestName() string  { return "readMarkers" }
func (FetchParked) RequestName() string  { return "fetchParked" }
func (Mark) RequestName() string         { return "mark" }
func (Move) RequestName() string         { return "move" }
func (RemoveParked) RequestName() string { return "removeParked" }
func (Unmark) RequestName() string       { return "unmark" }
func (EndRetry) RequestName() string     { return "endRetry" }

// Lane implements Request.
func (ReadMarkers) Lane() Lane  { return Messages }
func (FetchParked) Lane() Lane  { return Messages }
func (Mark) Lane() Lane         { return Messages }
func (Move) Lane() Lane         { return Messages }
func (RemoveParked) Lane() Lane { return Messages }
func (Unmark) Lane() Lane       { return Messages }
func (EndRetry) Lane() Lane     { return Messages }

// Deadline implements Request.
func (r ReadMarkers) Deadline() Instant  { return r.NotAfter }
func (r FetchParked) Deadline() Instant  { return r.NotAfter }
func (r Mark) Deadline() Instant         { return r.NotAfter }
func (r Move) Deadline() Instant         { return r.NotAfter }
func (r RemoveParked) Deadline() Instant { return r.NotAfter }
func (r Unmark) Deadline() Instant       { return r.NotAfter }
func (r EndRetry) Deadline() Instant     { return r.NotAfter }

// ConcernsBucket implements Request.
func (r ReadMarkers) ConcernsBucket() int  { return r.Bucket }
func (r FetchParked) ConcernsBucket() int  { return r.Bucket }
func (r Mark) ConcernsBucket() int         { return r.Tenure.Bucket }
func (r Move) ConcernsBucket() int         { return r.Tenure.Bucket }
func (r RemoveParked) ConcernsBucket() int { return r.Tenure.Bucket }
func (r Unmark) ConcernsBucket() int       { return r.Tenure.Bucket }
func (r EndRetry) ConcernsBucket() int     { return r.Tenure.Bucket }
