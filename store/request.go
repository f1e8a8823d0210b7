package store

// Request is one round trip to the table, as an immutable value. The types of
// this package are the only ones.
type Request interface {
	// RequestName is the request's stable name, for events, metrics and traces.
	RequestName() string
	// Lane is the client that it is sent through.
	Lane() Lane
	// Deadline is the instant after which it must not be sent any more; zero
	// for none. It is checked when the request is really sent, not when it was
	// queued.
	Deadline() Instant
	// ConcernsBucket is the bucket that the request is about, -1 for none.
	ConcernsBucket() int
}

// Lane separates the requests that must never wait behind others: each lane
// has its own SDK client, retryer and limits (case D-11).
type Lane uint8

// The lanes.
const (
	Messages     Lane = iota // discovery, fetches, probes, deletes, setting rows aside, an operator's requests
	Coordination             // heartbeats, leases, the coordination read
)

func (l Lane) String() string {
	if l == Coordination {
		return "coordination"
	}
	return "messages"
}

// Heartbeat writes our relay record. It only moves LastSeen forward: refused
// when the record already carries a later one. Its result, also when refused,
// is a HeartbeatResult. (protocol.md section 3, step 1)
type Heartbeat struct {
	Relay       string
	Incarnation string
	Mode        string // absent in the item when empty
	LastSeen    Ticks
	NotAfter    Instant
}

// ReadCoordination reads one page of the coordination partition, strongly
// consistent. Its result is a CoordinationPage. (protocol.md section 3, step 2)
type ReadCoordination struct {
	After    string // sort key of the last item of the page before; empty for the first page
	NotAfter Instant
}

// Claim takes a lease that has no owner, no expiry, or has expired at Now. Its
// result, also when refused, is a LeaseResult. (protocol.md section 3, step 3)
type Claim struct {
	Bucket      int
	Relay       string
	Incarnation string
	Claim       int64 // the tenure's number, from 1, rising within an incarnation
	Now         Ticks
	Expires     Ticks
	NotAfter    Instant
}

// Keep extends our lease under the expiry that was last seen. Its result, also
// when refused, is a LeaseResult. (protocol.md section 3, step 3)
type Keep struct {
	Bucket      int
	Relay       string
	Incarnation string
	Claim       int64
	Seen        Ticks
	Expires     Ticks // never less than Seen
	NotAfter    Instant
}

// Release hands our lease back under the expiry that was last seen. A release
// that finds another owner, or none, is done. Its result is a LeaseResult.
// (protocol.md section 3, steps 3 and 4)
type Release struct {
	Bucket   int
	Relay    string
	Seen     Ticks
	Now      Ticks
	NotAfter Instant
}

// StampStopped marks our relay record as stopped, unless it belongs to another
// incarnation. It has no result. (protocol.md section 3, Graceful stop)
type StampStopped struct {
	Relay       string
	Incarnation string
	At          Ticks
	NotAfter    Instant
}

// Prune deletes the record of a relay that stopped before Stopped or was last
// seen before Dead. It has no result. (protocol.md section 3, step 5)
type Prune struct {
	Relay    string
	Stopped  Ticks
	Dead     Ticks
	NotAfter Instant
}

// Discover asks, eventually consistent and for one key, whether a bucket has a
// message. Its result is a Discovered. (protocol.md section 5, Discovery)
type Discover struct {
	Bucket   int
	NotAfter Instant
}

// Fetch reads one page of a bucket's rows, strongly consistent, ascending, from
// after a sequence on. Its result is a Fetched. (protocol.md section 5, Fetch)
type Fetch struct {
	Bucket   int
	After    int64 // 0: from the head
	Limit    int   // rows, 1 to 1,000,000
	NotAfter Instant
}

// Probe asks, strongly consistent, whether a gap holds a message by now. Its
// result is a Probed. (protocol.md section 5, Probe gaps)
type Probe struct {
	Bucket   int
	From, To int64 // both included
	NotAfter Instant
}

// MaxDeletes is how many rows one Delete removes at most.
const MaxDeletes = 25

// Delete removes acknowledged rows by their exact keys, in one BatchWriteItem.
// Its result is a Deleted. (protocol.md section 5, Delete)
type Delete struct {
	Bucket    int
	Sequences []int64 // ascending, 1 to MaxDeletes; not changed after the request was made
	NotAfter  Instant
}

// RequestName implements Request.
func (Heartbeat) RequestName() string        { return "heartbeat" }
func (ReadCoordination) RequestName() string { return "readCoordination" }
func (Claim) RequestName() string            { return "claim" }
func (Keep) RequestName() string             { return "keep" }
func (Release) RequestName() string          { return "release" }
func (StampStopped) RequestName() string     { return "stampStopped" }
func (Prune) RequestName() string            { return "prune" }
func (Discover) RequestName() string         { return "discover" }
func (Fetch) RequestName() string            { return "fetch" }
func (Probe) RequestName() string            { return "probe" }
func (Delete) RequestName() string           { return "delete" }

// Lane implements Request.
func (Heartbeat) Lane() Lane        { return Coordination }
func (ReadCoordination) Lane() Lane { return Coordination }
func (Claim) Lane() Lane            { return Coordination }
func (Keep) Lane() Lane             { return Coordination }
func (Release) Lane() Lane          { return Coordination }
func (StampStopped) Lane() Lane     { return Coordination }
func (Prune) Lane() Lane            { return Coordination }
func (Discover) Lane() Lane         { return Messages }
func (Fetch) Lane() Lane            { return Messages }
func (Probe) Lane() Lane            { return Messages }
func (Delete) Lane() Lane           { return Messages }

// Deadline implements Request.
func (r Heartbeat) Deadline() Instant        { return r.NotAfter }
func (r ReadCoordination) Deadline() Instant { return r.NotAfter }
func (r Claim) Deadline() Instant            { return r.NotAfter }
func (r Keep) Deadline() Instant             { return r.NotAfter }
func (r Release) Deadline() Instant          { return r.NotAfter }
func (r StampStopped) Deadline() Instant     { return r.NotAfter }
func (r Prune) Deadline() Instant            { return r.NotAfter }
func (r Discover) Deadline() Instant         { return r.NotAfter }
func (r Fetch) Deadline() Instant            { return r.NotAfter }
func (r Probe) Deadline() Instant            { return r.NotAfter }
func (r Delete) Deadline() Instant           { return r.NotAfter }

// ConcernsBucket implements Request.
func (Heartbeat) ConcernsBucket() int        { return -1 }
func (ReadCoordination) ConcernsBucket() int { return -1 }
func (r Claim) ConcernsBucket() int          { return r.Bucket }
func (r Keep) ConcernsBucket() int           { return r.Bucket }
func (r Release) ConcernsBucket() int        { return r.Bucket }
func (StampStopped) ConcernsBucket() int     { return -1 }
func (Prune) ConcernsBucket() int            { return -1 }
func (r Discover) ConcernsBucket() int       { return r.Bucket }
func (r Fetch) ConcernsBucket() int          { return r.Bucket }
func (r Probe) ConcernsBucket() int          { return r.Bucket }
func (r Delete) ConcernsBucket() int         { return r.Bucket }
