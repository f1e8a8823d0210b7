package telemetry

import (
	"fmt"
	"hash/fnv"
	"reflect"

	"github.com/bucketbrigade/relay/event"
)

// fault is one kind of trouble: the event that reports it, as often as it
// likes, and those that end it. One without an end is not known to last: its
// reports are only held back, and its pace is forgotten once they stop.
type fault struct {
	begins beginning
	ends   []ending
}

// subject is what a fault is about, within a relay and a kind of fault. The zero
// value is the relay itself.
type subject struct {
	bucket int
	name   string
}

// beginning reads the event that reports a fault.
type beginning struct {
	kind    reflect.Type
	fault   string
	lasts   bool
	tried   bool // it is reported whenever what fails is tried, and else not known to last
	applies func(event.Event) bool
	subject func(event.Event) subject
	variant func(event.Event) int64
}

// ending reads an event that ends a fault.
type ending struct {
	kind    reflect.Type
	fault   string
	subject func(event.Event) subject
	// variant is the row whose fault ends; 0: whichever it is.
	variant func(event.Event) int64
}

// faultTable says which events begin and end which fault. Whatever ends a
// tenure ends the faults of its bucket: they are the next owner's to report. So
// does what begins one: a bucket's fresh actor knows nothing of the one before,
// and reports again what still lasts.
func faultTable() []fault {
	return []fault{
		{begins[event.HeartbeatRefused](ofRelay), []ending{
			endedBy[event.HeartbeatAccepted](ofRelay)}},
		{begins[event.ClockSkewed](ofRelay), []ending{
			endedBy[event.ClockRight](ofRelay)}},
		{begins[event.RelayWithdrawn](ofRelay), []ending{
			endedBy[event.RelayRenamed](ofRelay)}},
		{begins[event.StoreUnavailable](ofRelay), []ending{
			endedBy[event.StoreAvailable](ofRelay)}},
		{begins(func(e event.StoreFailed) subject { return subject{name: e.Request} }).whenTried(), []ending{
			endedBy(func(e event.StoreRecovered) subject { return subject{name: e.Request} })}},
		{begins[event.BacklogUnknown](ofRelay).
			when(func(e event.Event) bool { return e.(event.BacklogUnknown).Err != nil }), andTenure( // of bucket 0
			endedBy[event.BacklogSampled](ofRelay),
		)},
		{begins(func(e event.LeaseUnreadable) subject { return subject{name: e.Item} }), nil},
		{begins(func(e event.StoreThrottled) subject { return subject{name: e.Lane} }).whenTried(), []ending{
			endedBy(func(e event.StoreUnthrottled) subject { return subject{name: e.Lane} })}},
		{begins(func(e event.BucketWithheld) subject { return subject{bucket: e.Bucket} }), andTenure(
			byBucketResumed(),
		)},
		{begins(func(e event.BucketPaused) subject { return subject{bucket: e.Bucket} }), andTenure(
			byBucketResumed(),
		)},
		{begins(func(e event.TopicsPaused) subject { return subject{bucket: e.Bucket} }).
			ofRow(func(e event.Event) int64 { return digestOf(e.(event.TopicsPaused)) }), andTenure(
			endedBy(func(e event.TopicsResumed) subject { return subject{bucket: e.Bucket} }),
		)},
		{begins(func(e event.BucketBlocked) subject { return subject{bucket: e.Bucket} }).
			ofRow(func(e event.Event) int64 { return e.(event.BucketBlocked).Sequence }), andTenure(
			endedBy(func(e event.BucketUnblocked) subject { return subject{bucket: e.Bucket} }),
		)},
		{begins(func(e event.ClockBehind) subject { return subject{bucket: e.Bucket} }), andTenure(
			endedBy(func(e event.ClockAgreed) subject { return subject{bucket: e.Bucket} }),
		)},
		{begins(func(e event.RecordRejected) subject { return subject{bucket: e.Bucket} }).
			ofRow(func(e event.Event) int64 { return e.(event.RecordRejected).Sequence }).
			when(func(e event.Event) bool { return e.(event.RecordRejected).Alone }), andTenure(
			byRecordAcknowledged(),
			endedBy(func(e event.BucketUnblocked) subject { return subject{bucket: e.Bucket} }),
			endedBy(func(e event.RecordParked) subject { return subject{bucket: e.Bucket} }),
			endedBy(func(e event.RetryRejected) subject { return subject{bucket: e.Bucket} }),
			endedBy(func(e event.LetterPublished) subject { return subject{bucket: e.Bucket} }),
		)},
		{begins(func(e event.PublishFailed) subject { return subject{bucket: e.Bucket} }).whenTried(), andTenure(
			endedBy(func(e event.PublishRecovered) subject { return subject{bucket: e.Bucket} }),
		)},
		{begins(func(e event.FenceFailed) subject { return subject{bucket: e.Bucket} }), andTenure(
			endedBy(func(e event.FenceTaken) subject { return subject{bucket: e.Bucket} }),
		)},
		{begins(func(e event.DeleteFailed) subject { return subject{bucket: e.Bucket} }), andTenure(
			endedBy(func(e event.BatchRemoved) subject { return subject{bucket: e.Bucket} }),
		)},
		{begins(func(e event.MoveFailed) subject { return subject{bucket: e.Bucket} }), andTenure(
			endedBy(func(e event.RowsMoved) subject { return subject{bucket: e.Bucket} }),
			endedBy(func(e event.RecordParked) subject { return subject{bucket: e.Bucket} }),
			endedBy(func(e event.KeyRetried) subject { return subject{bucket: e.Bucket} }),
			endedBy(func(e event.RetryRejected) subject { return subject{bucket: e.Bucket} }),
			endedBy(func(e event.KeyCleared) subject { return subject{bucket: e.Bucket} }),
			endedBy(func(e event.TopicRetried) subject { return subject{bucket: e.Bucket} }),
		)},
		{begins[event.BrokerUnreachable](ofRelay), []ending{
			endedBy[event.BrokerReached](ofRelay)}},
		{begins[event.ProducerFailed](ofRelay), nil},
		{begins[event.ProducerRetired](ofRelay), nil},
	}
}

// digestOf tells which topics are paused, and how: one more is not held back for the
// sake of those that people know of.
func digestOf(e event.TopicsPaused) int64 {
	sum := fnv.New64a()
	_, _ = fmt.Fprint(sum, e.Topics) // a hash takes all that is written
	return int64(sum.Sum64())
}

// isOver tells the last event of a relay: nothing of it lasts beyond.
func isOver(e event.Event) bool {
	switch e.(type) {
	case event.RelayStopped, event.RelayReplaced:
		return true
	}
	return false
}

// andTenure adds the endings that all faults of a bucket have.
func andTenure(ends ...ending) []ending {
	return append(ends,
		endedBy(func(e event.BucketClaimed) subject { return subject{bucket: e.Bucket} }),
		endedBy(func(e event.BucketReleased) subject { return subject{bucket: e.Bucket} }),
		endedBy(func(e event.BucketLost) subject { return subject{bucket: e.Bucket} }),
	)
}

func byBucketResumed() ending {
	return endedBy(func(e event.BucketResumed) subject { return subject{bucket: e.Bucket} })
}

func byRecordAcknowledged() ending {
	end := endedBy(func(e event.RecordAcknowledged) subject { return subject{bucket: e.Bucket} })
	end.variant = func(e event.Event) int64 { return e.(event.RecordAcknowledged).Sequence }
	return end
}

// ofRelay is the subject of faults that a relay has once.
func ofRelay[E event.Event](E) subject { return subject{} }

func anyVariant(event.Event) int64 { return 0 }

// begins makes the beginning of a fault that events of type E report.
func begins[E event.Event](of func(E) subject) beginning {
	var zero E
	return beginning{
		kind:    reflect.TypeFor[E](),
		fault:   zero.EventName(),
		applies: func(event.Event) bool { return true },
		subject: func(e event.Event) subject { return of(e.(E)) },
		variant: anyVariant,
	}
}

// ofRow makes the fault one of a row: when another row of the bucket has it, it
// is another fault.
func (b beginning) ofRow(sequence func(event.Event) int64) beginning {
	b.variant = sequence
	return b
}

// whenTried makes the fault one that each attempt reports: without any it is not told
// again. A relay that has withdrawn asks the table for some things no more, and a bucket that
// is paused publishes nothing.
func (b beginning) whenTried() beginning {
	b.tried = true
	return b
}

// when limits the fault to some of the events.
func (b beginning) when(applies func(event.Event) bool) beginning {
	b.applies = applies
	return b
}

// endedBy makes an ending by events of type E.
func endedBy[E event.Event](of func(E) subject) ending {
	return ending{
		kind:    reflect.TypeFor[E](),
		subject: func(e event.Event) subject { return of(e.(E)) },
		variant: anyVariant,
	}
}
