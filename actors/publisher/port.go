package publisher

import (
	"time"

	"github.com/bucketbrigade/relay/outbox"
)

// Record is one Kafka record, with its partition decided. Its slices belong to
// the batch that they came with and are not changed.
type Record struct {
	Topic     string
	Partition int32
	Key       []byte // nil: null
	Value     []byte // nil: null (tombstone)
	Headers   []outbox.Header
}

// Token identifies one submission of one row. It comes back with the record's
// report.
type Token struct {
	Bucket   int
	Batch    uint64
	Sequence int64
}

// Producer is one Kafka producer. Produce, Purge, Describe and Close are called
// by one actor, never concurrently, and never block.
type Producer interface {
	// Produce queues one record. An error is a synchronous refusal: nothing of
	// the record was or will be sent. It is a *Fault; with CodeQueueFull it is
	// backpressure.
	Produce(Record, Token) error
	// Purge drops all that is queued and in flight; each dropped record gets a
	// report, though some of those in flight may never come (kafka.md).
	Purge()
	// Describe asks for a topic's metadata; a Described comes to the sink.
	Describe(topic string)
	// Close ends the producer in the background. Records without a report may
	// still be appended. Nothing comes to the sink after Close has returned.
	Close()
}

// Transactional is a producer with a transactional id, which fenced mode uses. A
// record is produced within a transaction only, and consumers that read committed
// records see it once the transaction is committed.
//
// Initialize, Commit and Abort take their time; each returns at once and is
// answered by one Concluded. One of them is under way at a time, and nothing is
// produced meanwhile.
type Transactional interface {
	Producer
	// Initialize takes the fence: every earlier producer with the same id is
	// refused from then on, and what it had open is aborted. Once in a producer's
	// life, and before anything else.
	Initialize(timeout time.Duration)
	// Begin begins a transaction. It asks no broker. An error is a *Fault.
	Begin() error
	// Commit makes the transaction's records visible, all of them or none. After a
	// timeout only Commit may be called again.
	Commit(timeout time.Duration)
	// Abort drops the transaction's records, those without a report too.
	Abort(timeout time.Duration)
}

// Call is one of the calls of a Transactional that take their time.
type Call uint8

// The calls.
const (
	Initialize Call = iota + 1
	Commit
	Abort
)

func (c Call) String() string {
	switch c {
	case Initialize:
		return "initialize"
	case Commit:
		return "commit"
	case Abort:
		return "abort"
	default:
		return "none"
	}
}

// Concluded is the end of a Transactional's call.
type Concluded struct {
	Producer int
	Call     Call
	// Fault is why the call failed; nil: it is done. Fatal and Fenced: the producer
	// is of no use any more. Of any other class: the call may be made again, unless
	// MustAbort.
	Fault *Fault
	// MustAbort: the transaction cannot be committed, only aborted.
	MustAbort bool
}

// Factory opens producers. It must be safe for concurrent use.
type Factory interface {
	// Open makes a producer, a Transactional one when the options name a
	// transactional id. Its messages (Reported, Fataled, Described, Reached,
	// Unreached, Concluded) go to the sink, from any goroutine, in order for one
	// producer.
	Open(Options, Sink) (Producer, error)
}

// Options are those of one producer.
type Options struct {
	// Number is the producer's number within the publisher, from 1; messages to
	// the sink carry it.
	Number int
	// MaxMessageBytes is the limit of one record and of one request to one
	// partition, in bytes, at or below the topics' max.message.bytes; 0: the
	// client's default of 1,000,000.
	MaxMessageBytes int
	// Careful producers are not gap-less: one rejected record fails alone. They have
	// one record outstanding at a time, so lingering would only slow them.
	Careful bool
	// TransactionalID is the id of a transactional producer; "": it has none. Such a
	// producer is not gap-less: a rejected record fails its whole transaction.
	TransactionalID string
}

// Sink takes a producer's messages. It never blocks.
type Sink func(msg any)

// Reported is the end of records: a burst of one producer's delivery reports,
// in the order in which they came; ordered per partition.
type Reported struct {
	Producer int
	Reports  []Report
}

// Report is the end of one record.
type Report struct {
	Token Token
	Fault *Fault // nil: acknowledged
}

// Fataled says that a producer met a fatal error and takes no more records.
type Fataled struct {
	Producer int
	Fault    *Fault
}

// Described answers Describe.
type Described struct {
	Producer        int
	Topic           string
	Partitions      int32  // 0 when Fault is set
	MaxMessageBytes int    // the topic's max.message.bytes; 0: unknown
	Compressed      bool   // the producer compresses, so that sizes cannot be foreseen
	Fault           *Fault // nil: known
}

// Reached says that a broker has answered this producer's client.
type Reached struct{ Producer int }

// Unreached says that no broker answers this producer's client.
type Unreached struct {
	Producer int
	Reason   string
}

// Fault is why a record, a request for metadata, or a producer failed.
type Fault struct {
	Class Class
	Code  string // the client's stable code, such as "MSG_SIZE_TOO_LARGE"
	Text  string // for people; names limits, never content
}

func (f *Fault) Error() string { return f.Code + ": " + f.Text }

// Codes that the publisher itself tells apart or gives; a Factory uses them with
// the same meaning, which are librdkafka's names.
const (
	// CodeQueueFull: Produce found the client's queue full. It is backpressure:
	// the record is offered again, and no attempt is counted.
	CodeQueueFull = "_QUEUE_FULL"
	// CodeTooLarge: the record does not fit its topic's max.message.bytes.
	CodeTooLarge = "MSG_SIZE_TOO_LARGE"
	// CodeUnknownTopic: there is no such topic.
	CodeUnknownTopic = "UNKNOWN_TOPIC_OR_PART"
	// CodeUnknownPartition: the topic does not have the record's partition.
	CodeUnknownPartition = "_UNKNOWN_PARTITION"
	// CodePurgedInFlight and CodePurgedQueue: the record went down with its producer.
	CodePurgedInFlight = "_PURGE_INFLIGHT"
	CodePurgedQueue    = "_PURGE_QUEUE"
	// CodeTimedOut: no answer, or no report, came in time.
	CodeTimedOut = "_TIMED_OUT"
	// CodeNotOpened: the Factory could not open a producer.
	CodeNotOpened = "PRODUCER_NOT_OPENED"
	// CodeNotFenced: the bucket's fence is not held, so nothing of it is sent.
	CodeNotFenced = "NOT_FENCED"
	// CodeLeaseTooOld: the fence is not taken under a lease that was not renewed
	// lately.
	CodeLeaseTooOld = "LEASE_TOO_OLD"
	// CodeAbandoned: the transaction was aborted since its bucket's lease ended.
	CodeAbandoned = "ABANDONED"
)

// Class is what a failure of a record means (design.md section 5).
type Class uint8

// The classes.
const (
	// Rejected: the broker or the client refuses the record for its own sake.
	Rejected Class = iota + 1
	// Retriable: not appended; never the record's fault.
	Retriable
	// Ambiguous: it may have been appended.
	Ambiguous
	// Fatal: the producer is unusable; the record may have been appended.
	Fatal
	// Fenced: another producer took over this one's transactional id.
	Fenced
)

func (c Class) String() string {
	switch c {
	case Rejected:
		return "rejected"
	case Retriable:
		return "retriable"
	case Ambiguous:
		return "ambiguous"
	case Fatal:
		return "fatal"
	case Fenced:
		return "fenced"
	default:
		return "acknowledged"
	}
}
