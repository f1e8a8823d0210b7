package relay

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
)

// Status is what a relay is doing, at one moment.
type Status struct {
	Relay       string
	Incarnation string    // empty before Run
	State       string    // "new", "starting", "ready", "withdrawn", "stopping", "stopped"
	Since       time.Time // of State; zero before Run
	Mode        Mode
	// ClockAhead is by how much our clock is ahead of the table's, negative:
	// behind, in the last round; as exact as the dates of its answers, half a second.
	ClockAhead time.Duration
	Buckets    []BucketStatus // owned ones, ascending
	// Backlog is what waits in all buckets; nil unless this relay samples it (see
	// Config.MetricsInterval).
	Backlog *Backlog
	// Fleet is all relays and leases as the last coordination round has read them; nil
	// before the first.
	Fleet *Fleet
}

// Ready tells whether the relay has completed a round, and neither stops nor has
// withdrawn.
func (s Status) Ready() bool { return s.State == "ready" }

// Fleet is what one coordination round has read. It is shared: nobody changes it.
type Fleet struct {
	At time.Time
	event.FleetSeen
}

// Backlog is what waited in all buckets, at one moment.
type Backlog struct {
	At       time.Time
	Messages int
	// Limited is how many buckets may have more than was counted.
	Limited    int
	Oldest     time.Duration // age of the oldest message, at At
	ParkedKeys int           // keys that are set aside
	ParkedRows int           // rows of theirs
}

// BucketStatus is what one owned bucket is doing.
type BucketStatus struct {
	Bucket       int
	State        fsm.State // of the bucket's machine
	BatchState   fsm.State // of its batch's; empty without a batch
	Since        time.Time // of State
	LastSequence int64     // the highest one removed by this relay; 0: none yet
	Pending      int       // messages that wait, by the last sample; -1 unless this relay samples
	LastError    string    // why it is blocked, withheld, or not acknowledged; empty when it is not
	Paused       *Pause    // by an operator; nil when it is not
	// PausedTopics are those that an operator has paused, ascending; nobody changes it.
	PausedTopics []event.PausedTopic
}

// Pause is an operator's pause of a bucket.
type Pause struct {
	Until  time.Time // zero: until it is resumed
	By     string    // who, as they said
	Reason string
}

// status is the reader of events that Status is made of.
type status struct {
	mu      sync.Mutex
	present Status                // guarded by mu, but for Buckets
	buckets map[int]*BucketStatus // guarded by mu
	pending []int                 // by bucket; nil unless it is known; guarded by mu
}

func newStatus(cfg Config) *status {
	return &status{
		present: Status{Relay: cfg.RelayID, Mode: cfg.Mode, State: "new"},
		buckets: map[int]*BucketStatus{},
	}
}

func (s *status) snapshot() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot := s.present
	for _, b := range slices.Sorted(maps.Keys(s.buckets)) {
		bucket := *s.buckets[b]
		bucket.Pending = -1
		if s.pending != nil {
			bucket.Pending = s.pending[b]
		}
		snapshot.Buckets = append(snapshot.Buckets, bucket)
	}
	return snapshot
}

// Observe implements event.Observer.
func (s *status) Observe(e event.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v := e.Event.(type) {
	case event.RelayStarted:
		s.present.Incarnation = v.Incarnation
		s.enter("starting", e.At)
	case event.RelayReady:
		s.enter("ready", e.At)
	case event.RelayWithdrawn:
		s.enter("withdrawn", e.At)
	case event.RelayRenamed:
		s.present.Relay, s.present.Incarnation = v.Relay, v.Incarnation
		s.enter("starting", e.At)
	case event.RelayStopping:
		s.enter("stopping", e.At)
	case event.RelayStopped:
		s.enter("stopped", e.At)
		s.clear()
	case event.StateChanged:
		s.changed(v, e.At)
	case event.BatchRemoved:
		b := s.bucket(v.Bucket)
		b.LastSequence = max(b.LastSequence, v.Last)
	case event.ActorFailed:
		delete(s.buckets, v.Bucket) // until a fresh actor has found out whose it is
		if v.Actor == coordinatorName {
			s.enter("stopped", e.At)
			s.clear()
		}
	case event.BacklogSampled:
		s.pending = v.Pending
		s.present.Backlog = &Backlog{At: e.At, Messages: v.Messages, Limited: v.Limited, Oldest: v.Oldest,
			ParkedKeys: v.ParkedKeys, ParkedRows: v.ParkedRows}
	case event.BacklogUnknown:
		s.pending, s.present.Backlog = nil, nil
	case event.FleetSeen:
		s.present.Fleet = &Fleet{At: e.At, FleetSeen: v}
	case event.RoundCompleted:
		s.present.ClockAhead = v.Ahead
	case event.ClockSkewed:
		s.present.ClockAhead = v.Ahead
	case event.PublishFailed:
		s.bucket(v.Bucket).LastError = "publish to " + v.Topic + ": " + v.Code
	case event.PublishRecovered:
		s.bucket(v.Bucket).LastError = ""
	case event.BucketPaused:
		s.bucket(v.Bucket).Paused = &Pause{Until: v.Until, By: v.By, Reason: v.Reason}
	case event.TopicsPaused:
		s.bucket(v.Bucket).PausedTopics = v.Topics
	case event.TopicsResumed:
		s.bucket(v.Bucket).PausedTopics = nil
	case event.BucketBlocked:
		s.bucket(v.Bucket).LastError = v.Reason
	case event.BucketWithheld:
		s.bucket(v.Bucket).LastError = v.Reason
	}
}

// clear forgets what ends with the relay.
func (s *status) clear() {
	clear(s.buckets)
	s.pending, s.present.Backlog, s.present.Fleet = nil, nil, nil
}

func (s *status) enter(state string, at time.Time) {
	s.present.State, s.present.Since = state, at
}

func (s *status) bucket(b int) *BucketStatus {
	if s.buckets[b] == nil {
		s.buckets[b] = &BucketStatus{Bucket: b}
	}
	return s.buckets[b]
}

func (s *status) changed(v event.StateChanged, at time.Time) {
	to := fsm.State(v.To)
	if to == fsm.Released || to == fsm.Lost {
		delete(s.buckets, v.Bucket)
		return
	}
	b := s.bucket(v.Bucket)
	if v.Machine == "batch" {
		b.BatchState = to
		if to == fsm.Removed {
			b.BatchState = ""
		}
		return
	}
	b.State, b.Since = to, at
	b.Paused = nil // what pauses it is said after the state
	if to == fsm.Owned || to == fsm.Paused {
		b.LastError = ""
	}
}
