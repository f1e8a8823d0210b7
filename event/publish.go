package event

import "time"

// BucketWoken: the bucket looks for messages, and why.
type BucketWoken struct {
	Bucket int
	Cause  string // "poll", "notification", "full batch"; "attention", "retry", "check", "drain": of what is set aside
}

// BatchFetched: rows of a bucket were read.
type BatchFetched struct {
	Bucket    int
	Rows      int
	Bytes     int
	Refetched int // rows that this actor had fetched before and not removed
}

// GapProbed: one gap in the sequence was probed.
type GapProbed struct {
	Bucket   int
	From, To int64 // the missing numbers, both included
	Filled   bool  // a message had appeared in it
}

// RecordAcknowledged: the broker has one record, and its row may be deleted.
type RecordAcknowledged struct {
	Bucket   int
	Sequence int64
	Topic    string
	Lag      time.Duration // from the message's CreatedAt to now
}

// BatchPublished: a batch has an outcome for each of its rows.
type BatchPublished struct {
	Bucket       int
	Rows         int
	Acknowledged int // rows of the contiguous acknowledged prefix
	Took         time.Duration
}

// BatchTraced: the same as BatchPublished, with the traces that the batch's messages
// were written in. It is emitted only when tracing is on.
type BatchTraced struct {
	Bucket int
	Batch  BatchPublished
	Topic  string // of all its messages; empty when they have several
	// Traces are those of its messages that were sampled, in the order of the rows and
	// each once; of so many that there is a limit, the first.
	Traces []Trace
	// Unlinked is how many traces more there were.
	Unlinked int
	// Class and Code are the fault of the first row without an acknowledgement, as in
	// PublishFailed; empty when all were acknowledged.
	Class, Code string
}

// BatchRemoved: the acknowledged rows of a batch were deleted.
type BatchRemoved struct {
	Bucket int
	Rows   int
	Last   int64 // the highest sequence removed
}

// RecordRejected: the broker refused one record for its own sake.
type RecordRejected struct {
	Bucket   int
	Sequence int64
	Message  string // message id
	Topic    string
	Code     string // the broker's or the client's code and the limit it names
	Alone    bool   // it was the only record of its request, so the rejection counts
}

// PublishFailed: rows of a bucket came back without an acknowledgement.
type PublishFailed struct {
	Bucket int
	Rows   int
	Topic  string // of the first of them, whose fault Class and Code are
	Class  string // rejected, retriable, ambiguous, fatal, fenced
	Code   string
}

// PublishRecovered: the bucket's first acknowledged row after failures.
type PublishRecovered struct {
	Bucket int
	After  time.Duration
}

// DeleteFailed: acknowledged rows could not be deleted; they stay and are
// published again.
type DeleteFailed struct {
	Bucket int
	Rows   int
	Err    error
}

// RecordParked: the broker rejected one record for good, and its topic and key
// are set aside: the row, and all later ones of its key, are moved in order.
type RecordParked struct {
	Bucket   int
	Sequence int64
	Message  string // message id
	Topic    string
	KeyID    string // under which the rows are set aside
	Reason   string // code and limit
	Attempts int    // rejections that were counted
}

// RowsMoved: rows of keys or topics that are set aside were moved out of the way.
type RowsMoved struct {
	Bucket int
	Rows   int
	Last   int64 // the highest sequence among them
}

// MoveFailed: a transaction that sets rows aside, or ends that, was refused, or the
// table does not take it.
type MoveFailed struct {
	Bucket  int
	Request string // its stable name, such as "move"
	Refusal string // which part was refused: "lease", "marker", "row"; "not refused"
	Err     error
}

// MarkersRead: the bucket knows what is set aside.
type MarkersRead struct {
	Bucket int
	Keys   int
	Topics int
}

// TopicsPaused: which topics an operator has paused, as the bucket's owner knows of it:
// when the first is, and when there are others, or their pauses have changed.
type TopicsPaused struct {
	Bucket int
	Topics []PausedTopic // all of them, ascending; shared: nobody changes it
}

// PausedTopic is an operator's pause of one topic.
type PausedTopic struct {
	Topic  string
	Until  time.Time // zero: until it is resumed
	By     string    // who, as they said
	Reason string
}

// TopicsResumed: none of the bucket's topics is paused any more.
type TopicsResumed struct{ Bucket int }

// KeyRetried: all rows of a key that were set aside are delivered, in order, and
// newer ones pass.
type KeyRetried struct {
	Bucket int
	KeyID  string
	Topic  string
}

// RetryRejected: a row of a key that was retried was rejected again; the key stays
// set aside.
type RetryRejected struct {
	Bucket   int
	KeyID    string
	Topic    string
	Sequence int64
	Reason   string // code and limit
}

// KeyCleared: nothing is left of a key that was set aside.
type KeyCleared struct {
	Bucket int
	KeyID  string
	Topic  string
}

// TopicRetried: a topic that was set aside as a whole is not any more.
type TopicRetried struct {
	Bucket int
	Topic  string
}

// LetterPublished: a record that the broker rejected for good is in the
// dead-letter topic.
type LetterPublished struct {
	Bucket      int
	Sequence    int64
	Message     string // message id
	Topic       string // that it was meant for
	LetterTopic string
	Reason      string // code and limit
}

// BrokerUnreachable: no broker answers.
type BrokerUnreachable struct{ Reason string }

// BrokerReached: a broker answered, for the first time or again.
type BrokerReached struct{ After time.Duration }

// ProducerOpened: a producer was created.
type ProducerOpened struct {
	Producer int
	Careful  bool
}

// ProducerFailed: a producer met a fatal error and is swapped for a new one.
type ProducerFailed struct {
	Producer    int
	Code        string
	Outstanding int
}

// ProducerRetired: a producer takes no more records and is closed.
type ProducerRetired struct {
	Producer    int
	Reason      string
	Outstanding int // records without a report; they may still be appended
}

// FenceTaken: the bucket's transactional producer has taken the fence; every earlier
// one is refused by the brokers from now on.
type FenceTaken struct {
	Bucket   int
	Producer int
	Took     time.Duration // since its producer was opened
}

// FenceFailed: the bucket's fence was asked for and not taken. It is asked for
// again.
type FenceFailed struct {
	Bucket int
	Code   string
}

// TransactionAborted: records of a bucket were dropped by the brokers, unseen by
// consumers that read committed records. Their rows are published again.
type TransactionAborted struct {
	Bucket int
	Rows   int
	Code   string // why
}

func (BucketWoken) EventName() string        { return "bucket.woken" }
func (BatchFetched) EventName() string       { return "batch.fetched" }
func (GapProbed) EventName() string          { return "gap.probed" }
func (RecordAcknowledged) EventName() string { return "record.acknowledged" }
func (BatchPublished) EventName() string     { return "batch.published" }
func (BatchTraced) EventName() string        { return "batch.traced" }
func (BatchRemoved) EventName() string       { return "batch.removed" }
func (RecordRejected) EventName() string     { return "record.rejected" }
func (PublishFailed) EventName() string      { return "publish.failed" }
func (PublishRecovered) EventName() string   { return "publish.recovered" }
func (DeleteFailed) EventName() string       { return "delete.failed" }
func (RecordParked) EventName() string       { return "record.parked" }
func (RowsMoved) EventName() string          { return "rows.moved" }
func (MoveFailed) EventName() string         { return "move.failed" }
func (MarkersRead) EventName() string        { return "markers.read" }
func (TopicsPaused) EventName() string       { return "topics.paused" }
func (TopicsResumed) EventName() string      { return "topics.resumed" }
func (KeyRetried) EventName() string         { return "key.retried" }
func (RetryRejected) EventName() string      { return "retry.rejected" }
func (KeyCleared) EventName() string         { return "key.cleared" }
func (TopicRetried) EventName() string       { return "topic.retried" }
func (LetterPublished) EventName() string    { return "letter.published" }
func (BrokerUnreachable) EventName() string  { return "broker.unreachable" }
func (BrokerReached) EventName() string      { return "broker.reached" }
func (ProducerOpened) EventName() string     { return "producer.opened" }
func (ProducerFailed) EventName() string     { return "producer.failed" }
func (ProducerRetired) EventName() string    { return "producer.retired" }
func (FenceTaken) EventName() string         { return "fence.taken" }
func (FenceFailed) EventName() string        { return "fence.failed" }
func (TransactionAborted) EventName() string { return "transaction.aborted" }
