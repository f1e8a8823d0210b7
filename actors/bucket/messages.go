package bucket

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/store"
)

// Config is what one bucket actor is told at its birth.
type Config struct {
	Bucket      int
	BucketCount int
	Relay       string // our relay id
	Incarnation string // of this process
	Claim       int64  // the tenure's number, unique within the incarnation, from 1

	BatchSize     int           // rows
	MaxBatchBytes int           // bytes, by DynamoDB's rules; at least one row
	PollInterval  time.Duration // between two looks at an idle bucket
	ErrorBackoff  time.Duration // the first pause after a failure; doubled up to maxBackoff

	Poison          Poison // what becomes of a record that is rejected for good; default Block
	PoisonAfter     int    // so many counted rejections are for good; for Park and DeadLetter
	DeadLetterTopic string // of DeadLetter

	LeaseDuration      time.Duration
	LeaseRenewInterval time.Duration
	MaxClockSkew       time.Duration

	// Fenced: the publisher is in fenced mode, and the bucket asks it for its fence
	// before it fetches.
	Fenced bool

	// TraceLinks is how many traces of one batch's messages are told of at most, as
	// event.BatchTraced; 0: tracing is off.
	TraceLinks int

	Coordinator *actor.PID
	Publisher   *actor.PID
}

// Poison is what becomes of a record that the broker rejects for its own sake, when
// that has been counted PoisonAfter times (protocol.md section 7).
type Poison string

// The policies.
const (
	Park       Poison = "park"        // its key is set aside; other keys go on
	Block      Poison = "block"       // the bucket stays at the row
	DeadLetter Poison = "dead-letter" // it goes to the dead-letter topic, and its key goes on
)

// Round is what a coordination round means for lease writes.
type Round struct {
	// Now is the instant at which the round began: expiries and local validity
	// count from it.
	Now actors.Instant
	// ReadAt is the instant at which the round's read was sent. A lease write
	// that was under way at or after it may be missing from what was read.
	ReadAt actors.Instant
	// Off: the relay's clock is wrong, or nobody knows. A keep does not extend local
	// validity, and none is sent while the clock is, or may be, Ahead (protocol.md
	// section 3, Clock guard).
	Off, Ahead bool
}

// Commands.
type (
	// Claim begins a tenure by claiming a free lease; Lease is nil when there is
	// no lease item yet.
	Claim struct {
		Round Round
		Lease *store.Lease
	}

	// Resume begins a tenure by keeping a lease that names us already.
	Resume struct {
		Round Round
		Lease store.Lease
		// Elder is until when the lease was that of an older process of our id, which may
		// still live; 0: it never was. It may be long ago that it began to be ours.
		Elder store.Ticks
	}

	// Attend tells of a round and of the lease that it read; Lease is nil when
	// there is no lease item.
	Attend struct {
		Round   Round
		Lease   *store.Lease
		Verdict Verdict
	}

	// Carry tells of a round whose read failed: the lease is kept under the
	// expiry that was last written.
	Carry struct{ Round Round }

	// Quiesce ends fetching for good, since the relay stops. What is in flight
	// ends, the lease is kept, and Quiesced is answered. The lease is handed back
	// when a later Attend says Yield, or Leave.
	Quiesce struct{}

	// Wake says that a message was committed to the bucket.
	Wake struct{}

	// Rebind says that the publisher died and who stands in its place. What it
	// was asked to publish has an unknown outcome.
	Rebind struct{ Publisher *actor.PID }
)

// Verdict is what the plan has for a bucket that we own.
type Verdict uint8

// The verdicts.
const (
	Hold  Verdict = iota // keep it
	Yield                // hand it back when nothing is in flight; keep it until then
	// Leave: the same, but it is not kept for what the publisher has: the relay takes no
	// part any more, and while it reaches no broker that may never end. It is given up
	// when the lease has lapsed.
	Leave
)

func (v Verdict) String() string {
	switch v {
	case Yield:
		return "yield"
	case Leave:
		return "leave"
	default:
		return "hold"
	}
}

// What the coordinator is told. Tenure is the Claim of the actor's Config: it
// tells a late word of an earlier tenure from news.
type (
	// Quiesced: nothing is in flight, and nothing more will be sent.
	Quiesced struct {
		Bucket int
		Tenure int64
	}

	// Mismatched: a row is stamped with another bucket count.
	Mismatched struct {
		Bucket   int
		Sequence int64
		Stamped  int
	}

	// Ended: the lease was released, lost, or never got; the actor stops. Err is
	// why a claim could not be written; nil for any other end.
	Ended struct {
		Bucket int
		Tenure int64
		Err    error
	}

	// Failed: the actor panicked and is being stopped.
	Failed struct {
		Bucket int
		Tenure int64
		Reason string
	}
)

// Timers of the actor. Each carries the number that it was armed with.
type (
	pollDue  struct{ number uint64 }
	retryDue struct{ number uint64 } // a failed batch or a delete may be tried again
	lapseDue struct{ number uint64 } // local validity may have lapsed

)
