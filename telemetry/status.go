package telemetry

import (
	"encoding/json"
	"strings"
	"time"
)

// Status is what one relay is doing, as /status of the admin address has it:
// JSON with stable names, times in RFC 3339 and UTC, durations in seconds.
type Status struct {
	Relay       string `json:"relay"`
	Incarnation string `json:"incarnation"` // empty until the relay runs
	// State is new, starting, ready, withdrawn, stopping or stopped; Since is when
	// that began, nil before the relay runs.
	State string     `json:"state"`
	Since *time.Time `json:"since"`
	Mode  string     `json:"mode"`
	// Settings are those in effect, by name, secrets replaced.
	Settings map[string]string `json:"settings"`
	// ClockSkewSeconds is by how much the relay's clock is ahead of the table's,
	// negative: behind.
	ClockSkewSeconds float64        `json:"clockSkewSeconds"`
	Buckets          []BucketStatus `json:"buckets"` // owned ones, ascending; never nil
	// Backlog is what waits in all buckets; nil when this relay does not sample it,
	// which the owner of bucket 0 does.
	Backlog *Backlog `json:"backlog"`
	// Fleet is nil before the first coordination round.
	Fleet *Fleet `json:"fleet"`
	// Rates are of the last minute, and Troubles the last lines of the log that tell of
	// trouble or of its end, the newest first, those that are alike as one; see Board.
	Rates    *Rates            `json:"rates"`
	Troubles []json.RawMessage `json:"troubles"`
}

// Rates are how much happens, over the last minute or since the start if that is
// less.
type Rates struct {
	MessagesPerSecond float64 `json:"messagesPerSecond"` // acknowledged
	FailuresPerMinute float64 `json:"failuresPerMinute"` // batches, and records rejected for their own sake
	RequestsPerSecond float64 `json:"requestsPerSecond"` // to the table
	UnitsPerSecond    float64 `json:"unitsPerSecond"`    // of capacity
	// LastMinute is messages in each second, the newest last.
	LastMinute []int `json:"lastMinute"`
}

// Backlog is what waited in all buckets when it was sampled.
type Backlog struct {
	SampledAt *time.Time `json:"sampledAt"`
	Pending   int        `json:"pending"` // messages
	// PendingIsLimit tells that there may be more than were counted.
	PendingIsLimit   bool    `json:"pendingIsLimit"`
	OldestAgeSeconds float64 `json:"oldestAgeSeconds"` // when it was sampled; 0 without a message
	ParkedKeys       int     `json:"parkedKeys"`
	ParkedRows       int     `json:"parkedRows"`
}

// BucketStatus is what one owned bucket is doing.
type BucketStatus struct {
	Bucket     int    `json:"bucket"`
	State      string `json:"state"`
	BatchState string `json:"batchState"` // empty without a batch
	// Since is when State began; nil when it is not known.
	Since *time.Time `json:"since"`
	// LastSequence is the highest one that this relay removed; 0: none yet.
	LastSequence int64 `json:"lastSequence"`
	// Pending is how many messages wait; nil when this relay does not sample the
	// backlog, which the owner of bucket 0 does.
	Pending   *int   `json:"pending"`
	LastError string `json:"lastError"` // empty when there is none
	Paused    *Pause `json:"paused"`    // by an operator; nil when it is not
	// PausedTopics are those that an operator has paused, as this bucket's owner knows
	// of it; ascending, nil without any.
	PausedTopics []TopicPause `json:"pausedTopics,omitempty"`
}

// TopicPause is an operator's pause of a topic.
type TopicPause struct {
	Topic string `json:"topic"`
	Pause
}

// Pause is an operator's pause of a bucket, or of a topic.
type Pause struct {
	Until  *time.Time `json:"until"` // nil: until it is resumed
	By     string     `json:"by"`
	Reason string     `json:"reason"`
}

// ready is the state in which a relay takes its share of the work.
const ready = "ready"

// Moment is a time as Status has it: nil for the zero one.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// readiness is the body of /readyz.
func (s Status) readiness() string {
	if strings.TrimSpace(s.State) == "" {
		return "unknown"
	}
	return s.State
}
