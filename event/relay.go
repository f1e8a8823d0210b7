package event

import "time"

// RelayStarted: the relay's actors run; nothing has been sent yet.
type RelayStarted struct{ Incarnation string }

// RelayReady: the first coordination round was completed.
type RelayReady struct{ After time.Duration }

// RelayStopping: the relay drains its buckets. Err is why it stops by itself,
// nil when it was asked to.
type RelayStopping struct{ Err error }

// RelayStopped: the last actor has ended. Unreleased is the number of buckets
// whose leases were left to lapse since something may still be published.
type RelayStopped struct {
	Unreleased int
	Err        error
}

// RelayReplaced: another process runs under our id with a higher incarnation;
// this one ends and writes nothing more (protocol.md section 3, Incarnation).
type RelayReplaced struct{ Incarnation, By string }

// RelayWithdrawn: the relay hands all buckets back and waits, since it would do
// harm: its clock is wrong (Reason "clock") or it reaches no broker ("brokers").
// It joins again by itself (protocol.md section 3, Clock guard and Joining).
type RelayWithdrawn struct {
	Reason string
	// Ahead is by how much our clock is ahead, or, negative, behind or went back; 0
	// with the reason "brokers".
	Ahead time.Duration
}

// RelayRenamed: the relay joins, after it has withdrawn or because its clock was
// wrong at its start, as a new one: with another incarnation, and another id unless
// that was configured.
type RelayRenamed struct{ Relay, Incarnation string }

// ClockSkewed: our wall clock differs from the service's by more than half of
// MaxClockSkew. Nothing is claimed meanwhile.
type ClockSkewed struct{ Ahead time.Duration } // negative: behind

// ClockRight: the first round in which our wall clock agrees again.
type ClockRight struct{ Ahead time.Duration } // what is left; negative: behind

// RoundCompleted: one coordination round has read and planned.
type RoundCompleted struct {
	Active      int // relays that count, ourselves included
	Owned       int // buckets with a bucket actor of ours
	StandbyRank int // -1 with a share or anything owned
	Took        time.Duration
	// Ahead is by how much our wall clock is ahead of the service's, negative:
	// behind, as exact as its dates are (half a second); 0 when it says none.
	Ahead time.Duration
}

// FleetSeen: one coordination round has read every relay's record and every lease.
// They are as they were before the round's own writes.
type FleetSeen struct {
	Relays []RelaySeen // ascending by id; not changed after the event was made
	Leases []LeaseSeen // by bucket; not changed after the event was made
}

// Leased is how many buckets have an owner whose time is not over.
func (e FleetSeen) Leased() int {
	count := 0
	for _, l := range e.Leases {
		if l.Owner != "" && !l.Lapsed {
			count++
		}
	}
	return count
}

// RelaySeen is the record of one relay.
type RelaySeen struct {
	Relay    string
	Mode     string // empty on records of the peer
	LastSeen time.Time
	Stopped  time.Time // zero: it has not said that it stopped
	// Active tells that it counts: it has not stopped, and was seen within the lease
	// duration.
	Active bool
}

// LeaseSeen is the lease of one bucket.
type LeaseSeen struct {
	Owner string // empty: nobody
	// Lapsed tells that the owner's time is over, so that the lease is anybody's.
	Lapsed bool
	// Unreadable leases are nobody's to claim.
	Unreadable  bool
	PausedUntil time.Time // zero: not paused
}

// HeartbeatRefused: our record already carries a later timestamp, so this
// round claims nothing. Ahead is by how much the record is ahead of our clock.
type HeartbeatRefused struct{ Ahead time.Duration }

// HeartbeatAccepted: the first heartbeat that was accepted after refused ones.
type HeartbeatAccepted struct{}

// LeaseUnreadable: a lease item cannot be read; nobody may claim its bucket.
type LeaseUnreadable struct {
	Item string // the item's sort key
	Err  error
}

// BucketCountMismatch: a message is stamped with another bucket count; the
// relay stops (protocol.md section 3, Misconfiguration).
type BucketCountMismatch struct {
	Bucket   int
	Sequence int64
	Stamped  int // the writer's count
	Ours     int // the relay's count
}

// ActorFailed: an actor panicked and was stopped; a bucket is resumed by a
// fresh actor after Pause.
type ActorFailed struct {
	Actor  string
	Bucket int // whose actor it was; -1: no bucket's
	Reason string
	Pause  time.Duration
}

// BacklogSampled: the owner of bucket 0 has measured what waits in all buckets.
type BacklogSampled struct {
	// Pending are the messages that wait, by bucket; not changed after the event was made.
	Pending  []int
	Messages int // their sum
	// Limited is how many buckets have more than was counted: they reach the limit of
	// one bucket's count, or the time was over.
	Limited int
	// Oldest is the age of the oldest of the buckets' first messages; 0 without one.
	Oldest     time.Duration
	ParkedKeys int // keys that are set aside
	ParkedRows int // rows of theirs
	Took       time.Duration
}

// BacklogUnknown: the relay does not know any more what waits. Err is why its sample
// failed; nil when bucket 0, whose owner samples, is not ours any more. Nothing is
// said of it when the relay ends.
type BacklogUnknown struct{ Err error }

// RequestCompleted: one request to the table has ended, whatever its outcome.
type RequestCompleted struct {
	Request  string // the request's stable name, such as "keep"
	Bucket   int    // -1 when it concerns no single bucket
	Outcome  string // done, refused, retriable, ambiguous
	Took     time.Duration
	Capacity float64 // capacity units, as the service reported them
}

// StoreThrottled: the table throttles requests of a lane.
type StoreThrottled struct {
	Lane    string
	Request string
	Bucket  int // -1 when it concerns no single bucket
}

// StoreUnthrottled: the first request of a lane that was applied after
// throttled ones.
type StoreUnthrottled struct{ Lane string }

// StoreUnavailable: a request to the table had no proper answer: none at all, or
// that the service cannot. Err says what there was.
type StoreUnavailable struct {
	Request string
	Err     error
}

// StoreAvailable: the first request that was answered after such.
type StoreAvailable struct{}

// StoreFailed: a request to the table was answered with an error that is neither
// a refused condition nor throttling: a permission is missing, or the table is
// not what it was.
type StoreFailed struct {
	Request string
	Bucket  int // -1 when it concerns no single bucket
	Err     error
}

// StoreRecovered: the first request of that name that was applied, or refused by
// its condition, after failed ones.
type StoreRecovered struct{ Request string }

func (RelayStarted) EventName() string        { return "relay.started" }
func (RelayReady) EventName() string          { return "relay.ready" }
func (RelayStopping) EventName() string       { return "relay.stopping" }
func (RelayStopped) EventName() string        { return "relay.stopped" }
func (RelayReplaced) EventName() string       { return "relay.replaced" }
func (RelayWithdrawn) EventName() string      { return "relay.withdrawn" }
func (RelayRenamed) EventName() string        { return "relay.renamed" }
func (ClockSkewed) EventName() string         { return "clock.skewed" }
func (ClockRight) EventName() string          { return "clock.right" }
func (RoundCompleted) EventName() string      { return "round.completed" }
func (FleetSeen) EventName() string           { return "fleet.seen" }
func (HeartbeatRefused) EventName() string    { return "heartbeat.refused" }
func (HeartbeatAccepted) EventName() string   { return "heartbeat.accepted" }
func (LeaseUnreadable) EventName() string     { return "lease.unreadable" }
func (BucketCountMismatch) EventName() string { return "bucketcount.mismatch" }
func (ActorFailed) EventName() string         { return "actor.failed" }
func (RequestCompleted) EventName() string    { return "request.completed" }
func (BacklogSampled) EventName() string      { return "backlog.sampled" }
func (BacklogUnknown) EventName() string      { return "backlog.unknown" }
func (StoreUnavailable) EventName() string    { return "store.unavailable" }
func (StoreAvailable) EventName() string      { return "store.available" }
func (StoreFailed) EventName() string         { return "store.failed" }
func (StoreRecovered) EventName() string      { return "store.recovered" }
func (StoreThrottled) EventName() string      { return "store.throttled" }
func (StoreUnthrottled) EventName() string    { return "store.unthrottled" }
