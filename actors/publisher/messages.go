package publisher

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/outbox"
)

// Publish asks the publisher to send the rows of one bucket, in order. It is
// answered by exactly one Published, whatever happens, unless the publisher
// itself ends. A bucket sends one Publish at a time; one that comes while rows
// of an earlier tenure of the bucket are still outstanding waits for them, and
// what that tenure had not submitted yet is dropped.
//
// After the first row that is not acknowledged no later row of the batch is
// submitted any more. Rows that are submitted are waited for without a deadline:
// an outage is only slow. A topic without metadata fails its row soon.
type Publish struct {
	Bucket int
	Batch  uint64       // unique among the batches of one actor of the bucket
	Rows   []outbox.Row // ascending; not changed after sending
	// NotAfter is the end of the lease's local validity: no row is submitted
	// after it.
	NotAfter actors.Instant
	ReplyTo  *actor.PID
}

// Extend moves the NotAfter of the bucket's batch, when its lease was kept
// while rows were still waiting to be submitted.
type Extend struct {
	Bucket   int
	NotAfter actors.Instant
}

// Abandon says that the bucket's lease is not valid any more: no further row
// of it is submitted, and if its outstanding rows do not come back within a
// short grace, their producer is retired, lest late copies trail in for hours. In
// fenced mode its transaction is aborted, and its producer closed after that, or
// after the grace: the bucket asks for the fence again when it has a lease.
type Abandon struct{ Bucket int }

// Fence asks for the fence of a bucket, in fenced mode: the right to publish that
// every earlier owner loses. A bucket asks when it has its lease and before it
// fetches, and again when a batch has failed or the publisher was replaced; when
// the fence is still held for the same actor, that costs nothing. It is answered by
// exactly one FenceTaken, unless the publisher itself ends.
//
// The fence is taken only under a lease that was renewed less than one
// LeaseRenewInterval ago, which follows from NotAfter: a zombie does not take it
// back from its successor (kafka.md, Fenced mode).
type Fence struct {
	Bucket   int
	Number   uint64         // unique among those of one actor of the bucket
	NotAfter actors.Instant // the end of the lease's local validity
	ReplyTo  *actor.PID
}

// FenceTaken answers Fence.
type FenceTaken struct {
	Bucket int
	Number uint64
	Fault  *Fault // nil: the fence is held
}

// Published is the outcome of one batch.
type Published struct {
	Bucket int
	Batch  uint64
	// Results has one result for each row, in the rows' order.
	Results []Result
}

// Result is what became of one row.
type Result struct {
	Outcome Outcome
	Fault   *Fault // nil for Acknowledged and NotSubmitted
	// Partition is that which the record was meant for; -1: it was not decided.
	Partition int32
}

// Outcome is what became of one row.
type Outcome uint8

// The outcomes.
const (
	// NotSubmitted: the row was not given to a producer, or came back certainly
	// unsent.
	NotSubmitted Outcome = iota
	// Acknowledged: the broker has it.
	Acknowledged
	// Refused: the row itself was rejected, alone in its request. It counts.
	Refused
	// Failed: not appended, through no fault of the row's.
	Failed
	// Unknown: it may have been appended.
	Unknown
)

func (o Outcome) String() string {
	switch o {
	case Acknowledged:
		return "acknowledged"
	case Refused:
		return "refused"
	case Failed:
		return "failed"
	case Unknown:
		return "unknown"
	default:
		return "not submitted"
	}
}

// Connected tells the coordinator that a broker was reached, for the first
// time or again, and that the dead-letter topic was looked for, if there is to be
// one; Disconnected that no broker answers; Unusable, once and before the first
// Connected, that there is no such topic.
type (
	Connected    struct{}
	Disconnected struct{ Reason string }
	Unusable     struct {
		Topic string
		Fault *Fault
	}
)
