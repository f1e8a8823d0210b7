package simulation

// Fault is a kind of fault. Each has a rate of its own, and is counted when it
// happens.
type Fault uint8

// The kinds. What a rate means stands with each: the probability of one request
// or record, or the mean number of times a virtual minute.
const (
	RequestLost       Fault = iota // of a request to the table: lost before it is applied
	AnswerLost                     // of a request: applied, without an answer; half of the time the SDK repeats it
	AnswerLate                     // of a request: slow on its way, or answered late
	AppliedLate                    // of a request: applied after its sender gave up, stopped, or died
	Throttled                      // of a request: refused for want of capacity
	TableCut                       // a minute: a process hears nothing of the table for up to two lease durations
	PartlyProcessed                // of one item of a batch write: left undone
	StaleRead                      // of an eventually consistent read: answered from up to two seconds ago
	SplitCommit                    // of a fetch: sees a transaction that commits meanwhile in parts
	PageCut                        // of a read: its page ends anywhere
	Abandoned                      // of a writer's transaction: its numbers are never used
	LateCommit                     // of a writer's transaction: committed up to 20 s late
	AmbiguousCommit                // of a writer's transaction: applied without an answer, and tried again
	OptimisticRetry                // of a writer's transaction: refused for its business item, and begun again
	RepeatedPut                    // of a writer's single put: repeated by the SDK, perhaps after it was relayed
	Burst                          // a minute: hundreds of messages within a second
	CounterReset                   // a minute: a bucket's counter is set back
	Crash                          // a minute: a process ends at once, and a successor starts
	Stop                           // a minute: a process stops gracefully, and a successor starts
	StopMissed                     // a minute: the same, and what it has published is held up beyond its deadline
	Stall                          // a minute: nothing of a process runs for up to two lease durations
	Suspend                        // a minute: the same, and its monotonic clock stands still meanwhile
	ClockForward                   // a minute: a wall clock is set forward, within the allowed skew
	ClockBack                      // a minute: a wall clock is set back, within the allowed skew
	ClockLeap                      // a minute: a wall clock is set far beyond the allowed skew, for a while
	ClockDrift                     // of a process: its wall clock drifts across the allowed skew
	BrokerRejects                  // of a record: rejected for its own sake until all is healed
	BrokerDelays                   // of a produce request: on its way for up to a minute
	BrokerTimesOut                 // of a produce request: lost before it is appended
	BrokerAppendsLate              // of a produce request: appended, and the connection breaks before the answer
	BrokerFailsOver                // of a produce request: another broker leads the partition
	BrokerAway                     // a minute: no broker answers for up to two minutes
	QueueFull                      // of a record: the client's queue has no room for it just now
	BrokerMutes                    // of a record in flight when its producer is purged: its report never comes
	BrokerForgets                  // of a produce request: the broker has dropped what it knew of an idle producer
	TopicMissing                   // of a run: one topic does not exist for a while
	TopicLimitChanges              // a minute: a topic's limit falls below some records for a while
	SameID                         // a minute: a second process starts under the id of a living one
	ScaleOut                       // a minute: one more process starts
	ScaleIn                        // a minute: a process stops, and nobody follows
	Replacement                    // a minute: all processes end at once, and as many start
	RollingUpdate                  // a minute: one process after another stops, and has a successor
	Crowd                          // a minute: as many more processes as there are buckets start at once
	Conflicted                     // of a transaction or a lease's keep: another transaction has the item just now
	KeyParked                      // a minute: an operator sets the key of a waiting row aside
	TopicParked                    // a minute: an operator sets a topic aside
	RetryAsked                     // a minute: an operator asks for a retry of half of what is set aside
	RowDiscarded                   // a minute: an operator throws a row away that is set aside
	ModeChanged                    // a minute: a rolling update into the other mode, which may end half way
	TopicPaused                    // a minute: an operator pauses a topic for a while, or gives its pause another end
	BucketPaused                   // a minute: an operator pauses a bucket for a while, or gives its pause another end
	RetryCalledOff                 // a minute: an operator sets half of what is set aside, retried or not, aside anew
	BrokerCut                      // a minute: a process reaches no broker for up to five lease durations and its shutdown timeout
	faultKinds
)

// faultNames are the kinds' stable names, in the order of their constants.
var faultNames = [faultKinds]string{
	"requestLost", "answerLost", "answerLate", "appliedLate", "throttled", "tableCut", "partlyProcessed", "staleRead",
	"splitCommit", "pageCut",
	"abandoned", "lateCommit", "ambiguousCommit", "optimisticRetry", "repeatedPut", "burst", "counterReset",
	"crash", "stop", "stopMissed", "stall", "suspend", "clockForward", "clockBack", "clockLeap", "clockDrift",
	"brokerRejects", "brokerDelays", "brokerTimesOut", "brokerAppendsLate", "brokerFailsOver", "brokerAway",
	"queueFull", "brokerMutes", "brokerForgetsProducer", "topicMissing", "topicLimitChanges",
	"sameId", "scaleOut", "scaleIn", "replacement", "rollingUpdate", "crowd",
	"conflicted", "keyParked", "topicParked", "retryAsked", "rowDiscarded", "modeChanged",
	"topicPaused", "bucketPaused", "retryCalledOff", "brokerCut",
}

func (k Fault) String() string { return faultNames[k] }

// FaultKinds are all kinds.
func FaultKinds() []Fault {
	kinds := make([]Fault, faultKinds)
	for k := range kinds {
		kinds[k] = Fault(k)
	}
	return kinds
}

// Rates are how likely each kind is. The zero value is a world without faults.
type Rates [faultKinds]float64

// Happenings name, for each kind in it, which of its happenings are to be: 1 is
// the first that its rate brings about. A kind with an empty list never happens,
// one that is missing always.
type Happenings map[Fault][]int

// Default is a bad day.
func Default() Rates {
	var rates Rates
	for k, rate := range Storm() {
		rates[k] = rate / 4
	}
	return rates
}

// Storm is much of everything.
func Storm() Rates {
	return Rates{
		RequestLost: 0.01, AnswerLost: 0.02, AnswerLate: 0.02, AppliedLate: 0.01, Throttled: 0.02, TableCut: 0.4,
		PartlyProcessed: 0.05, StaleRead: 0.1, SplitCommit: 0.1, PageCut: 0.05,
		Abandoned: 0.02, LateCommit: 0.03, AmbiguousCommit: 0.02, OptimisticRetry: 0.02, RepeatedPut: 0.02, Burst: 0.2, CounterReset: 0.1,
		Crash: 0.7, Stop: 0.7, StopMissed: 0.2, Stall: 0.7, Suspend: 0.3,
		ClockForward: 0.5, ClockBack: 0.5, ClockLeap: 0.2, ClockDrift: 0.3,
		BrokerRejects: 0.002, BrokerDelays: 0.005, BrokerTimesOut: 0.01, BrokerAppendsLate: 0.01,
		BrokerFailsOver: 0.01, BrokerAway: 0.1, QueueFull: 0.01, BrokerMutes: 0.1, BrokerForgets: 0.3,
		TopicMissing: 0.2, TopicLimitChanges: 0.3,
		SameID: 0.3, ScaleOut: 0.1, ScaleIn: 0.1, Replacement: 0.05, RollingUpdate: 0.1, Crowd: 0.05,
		Conflicted: 0.03, KeyParked: 1, TopicParked: 0.1, RetryAsked: 2, RowDiscarded: 0.2, ModeChanged: 0.2,
	}
}
