package event

import "time"

// BucketClaimed: the lease of a bucket is ours from now on.
type BucketClaimed struct {
	Bucket  int
	Claim   int64 // the tenure's number within our incarnation
	Resumed bool  // the lease named us already, as after a restart under the same id
}

// BucketRefused: a peer was first to claim the bucket.
type BucketRefused struct{ Bucket int }

// BucketKept: a keep of the bucket's lease was confirmed.
type BucketKept struct {
	Bucket int
	// ValidFor is for how long the lease is valid locally from now, by the clock
	// that ends it first.
	ValidFor time.Duration
	// Wall and Mono are when it ends by each clock: since the Unix epoch, and since
	// the process began.
	Wall, Mono time.Duration
}

// BucketUnsettled: it is not known whether a lease write was applied; the next
// read tells.
type BucketUnsettled struct {
	Bucket  int
	Request string
	Err     error
}

// BucketWithheld: nothing is sent for the bucket until a keep is confirmed.
type BucketWithheld struct {
	Bucket int
	Reason string // "lease lapsed", "clock behind"
}

// BucketResumed: a withheld or paused bucket is worked on again.
type BucketResumed struct {
	Bucket int
	After  time.Duration
}

// BucketDraining: the bucket fetches nothing new and is released when nothing
// of it is in flight.
type BucketDraining struct{ Bucket int }

// BucketReleased: the lease was handed back.
type BucketReleased struct{ Bucket int }

// BucketLost: the lease is not ours any more. Owner is who holds it, empty
// when nobody does or it is unknown.
type BucketLost struct {
	Bucket int
	Owner  string
}

// BucketBlocked: the bucket stays at one row, which cannot be read or is
// rejected by the broker.
type BucketBlocked struct {
	Bucket   int
	Sequence int64 // 0 when the row's sort key itself cannot be read
	Reason   string
}

// BucketUnblocked: the row that blocked the bucket is out of the way.
type BucketUnblocked struct {
	Bucket int
	After  time.Duration
}

// BucketPaused: an operator paused the bucket, or has changed the pause; the lease is
// kept.
type BucketPaused struct {
	Bucket int
	Until  time.Time // zero: until it is resumed
	By     string    // who, as they said
	Reason string
}

// ClockBehind: our clock is behind what we last wrote to the lease, so that a
// keep would move its expiry backwards. By is the distance.
type ClockBehind struct {
	Bucket int
	By     time.Duration
}

// ClockAgreed: the first keep that was sent after the clock had been behind.
type ClockAgreed struct{ Bucket int }

// StateChanged: a bucket's or a batch's machine took a transition.
type StateChanged struct {
	Bucket  int
	Machine string // "bucket" or "batch"
	Event   string
	From    string
	To      string
}

func (BucketClaimed) EventName() string   { return "bucket.claimed" }
func (BucketRefused) EventName() string   { return "bucket.refused" }
func (BucketKept) EventName() string      { return "bucket.kept" }
func (BucketUnsettled) EventName() string { return "bucket.unsettled" }
func (BucketWithheld) EventName() string  { return "bucket.withheld" }
func (BucketResumed) EventName() string   { return "bucket.resumed" }
func (BucketDraining) EventName() string  { return "bucket.draining" }
func (BucketReleased) EventName() string  { return "bucket.released" }
func (BucketLost) EventName() string      { return "bucket.lost" }
func (BucketBlocked) EventName() string   { return "bucket.blocked" }
func (BucketUnblocked) EventName() string { return "bucket.unblocked" }
func (BucketPaused) EventName() string    { return "bucket.paused" }
func (ClockBehind) EventName() string     { return "clock.behind" }
func (ClockAgreed) EventName() string     { return "clock.agreed" }
func (StateChanged) EventName() string    { return "state.changed" }
