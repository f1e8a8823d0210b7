package store

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// The requests of whoever operates an outbox (protocol.md section 7). An operator
// holds no lease: what it writes is conditional on the item alone, and the owner of
// the bucket learns of it when it is rung for, after the change.

// SetAside writes a marker that does not exist yet: of a topic and key, or of a whole
// topic. Rows that are set aside already are not touched. Its result, also when
// refused, is a SetAsideResult.
type SetAside struct {
	Bucket   int
	Marker   Marker
	NotAfter Instant
}

// AskRetry asks for a retry of what a marker stands for; the last one asked for
// counts. Refused when there is no such marker. It has no result.
type AskRetry struct {
	Bucket   int
	KeyID    string // empty: of the topic
	Topic    string // not looked at when KeyID is given
	At       Ticks
	NotAfter Instant
}

// DiscardParked deletes one row that is set aside. Refused when it is not there, also
// because the SDK repeated a delete that was applied. It has no result.
type DiscardParked struct {
	Bucket   int
	KeyID    string
	Sequence int64
	NotAfter Instant
}

// Ring tells the owner of a bucket, whoever it is, that something was changed: it sets
// Attention of the lease item, without a condition. The owner hears it when the value
// differs from the one before. It has no result.
type Ring struct {
	Bucket   int
	At       Ticks
	NotAfter Instant
}

// CountParked counts one page of the rows of one key that are set aside, strongly
// consistent. Its result is a Counted.
type CountParked struct {
	Bucket   int
	KeyID    string
	After    int64 // 0: from the first
	Limit    int   // rows, 1 to 1,000,000
	NotAfter Instant
}

// ReadRow reads one waiting row, readable or not, strongly consistent. Its result is a
// RowRead.
type ReadRow struct {
	Bucket   int
	Sequence int64
	NotAfter Instant
}

// MoveUnreadable moves a row that cannot be read to the parked partition, in one
// transaction with the marker that it is set aside under (outbox.ParkedIdentity). It
// is refused (RowRefused) unless the row still is what was read in all attributes that
// a message has: a row that somebody has repaired meanwhile may be published already.
// An existing marker keeps its reason, its attempts and a retry that was asked for, but
// not its ParkedAt: an owner that has found no row under it may be about to remove it,
// and must be refused. Its result, also when refused, is a MoveResult.
type MoveUnreadable struct {
	Bucket   int
	Sequence int64
	// Item is the row as it was read. It is shared and not changed.
	Item     map[string]types.AttributeValue
	Marker   Marker // of a key
	Token    string // 1 to 36 characters, of this transaction alone
	NotAfter Instant
}

// String names the row, without its content, for the same reasons as Moving.String.
func (r MoveUnreadable) String() string {
	return fmt.Sprintf("{Bucket:%d Sequence:%d Marker:%+v Token:%s NotAfter:%+v}", r.Bucket, r.Sequence, r.Marker, r.Token, r.NotAfter)
}

// SetAsideResult is the result of SetAside, PauseTopic and CallOff.
type SetAsideResult struct {
	// Existing is the marker that is there already; nil when the write was applied, or
	// when that marker cannot be read, or is gone.
	Existing *Marker
	// Repeated tells that the write was applied before and this answer belongs to the
	// SDK's repetition of it.
	Repeated bool
}

// Counted is the result of CountParked.
type Counted struct {
	Rows int
	// Next is the After of the next page; 0 on the last. A page ends at its limit, and
	// at 1 MB of rows.
	Next int64
}

// RowRead is the result of ReadRow.
type RowRead struct {
	// Item is the whole item; nil when there is none.
	Item map[string]types.AttributeValue
	// Row is the item as a message, if it can be read.
	Row outbox.Row
	// Malformed is why it cannot; nil when it can. It is an *outbox.ItemError.
	Malformed error
}

// RequestName implements Request.
func (SetAside) RequestName() string       { return "setAside" }
func (AskRetry) RequestName() string       { return "askRetry" }
func (DiscardParked) RequestName() string  { return "discardParked" }
func (Ring) RequestName() string           { return "ring" }
func (CountParked) RequestName() string    { return "countParked" }
func (ReadRow) RequestName() string        { return "readRow" }
func (MoveUnreadable) RequestName() string { return "moveUnreadable" }

// Lane implements Request.
func (SetAside) Lane() Lane       { return Messages }
func (AskRetry) Lane() Lane       { return Messages }
func (DiscardParked) Lane() Lane  { return Messages }
func (Ring) Lane() Lane           { return Messages }
func (CountParked) Lane() Lane    { return Messages }
func (ReadRow) Lane() Lane        { return Messages }
func (MoveUnreadable) Lane() Lane { return Messages }

// Deadline implements Request.
func (r SetAside) Deadline() Instant       { return r.NotAfter }
func (r AskRetry) Deadline() Instant       { return r.NotAfter }
func (r DiscardParked) Deadline() Instant  { return r.NotAfter }
func (r Ring) Deadline() Instant           { return r.NotAfter }
func (r CountParked) Deadline() Instant    { return r.NotAfter }
func (r ReadRow) Deadline() Instant        { return r.NotAfter }
func (r MoveUnreadable) Deadline() Instant { return r.NotAfter }

// ConcernsBucket implements Request.
func (r SetAside) ConcernsBucket() int       { return r.Bucket }
func (r AskRetry) ConcernsBucket() int       { return r.Bucket }
func (r DiscardParked) ConcernsBucket() int  { return r.Bucket }
func (r Ring) ConcernsBucket() int           { return r.Bucket }
func (r CountParked) ConcernsBucket() int    { return r.Bucket }
func (r ReadRow) ConcernsBucket() int        { return r.Bucket }
func (r MoveUnreadable) ConcernsBucket() int { return r.Bucket }
