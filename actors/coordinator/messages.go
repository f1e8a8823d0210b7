package coordinator

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/actors/publisher"
)

// Errors that end a relay.
var (
	// ErrBucketCount: a message is stamped with another bucket count. Drain the
	// table with the old count, then change it everywhere.
	ErrBucketCount = errors.New("bucket counts differ")
	// ErrTable: the table cannot be used as the settings have it. It wraps what
	// the store says.
	ErrTable = errors.New("table cannot be used")
	// ErrDeadLetterTopic: at the start there was no such topic.
	ErrDeadLetterTopic = errors.New("dead-letter topic cannot be used")
	// ErrReplaced: another process runs under our relay id, and began later.
	ErrReplaced = errors.New("replaced by another process under the same relay id")
)

// Config is what the coordinator is told at its birth.
type Config struct {
	Relay string // our relay id, printable ASCII, 1 to 128 characters
	// NewID makes an id for a relay that comes back after it has withdrawn; nil when
	// the id was configured, and stays.
	NewID       func(*rand.Rand) string
	Mode        string // written to our relay record
	BucketCount int    // 1 to 10,000

	LeaseDuration      time.Duration
	LeaseRenewInterval time.Duration // at most a third of LeaseDuration
	ShutdownTimeout    time.Duration // for a graceful stop, all in all
	// MaxConcurrency is how many coordination requests are under way at once, and so
	// how many leases are kept at a time.
	MaxConcurrency int

	// Bucket is the template of each bucket actor's configuration.
	Bucket    bucket.Config
	Publisher publisher.Config

	// Ended is called once, when the coordinator has ended by itself; nil after a
	// stop that was asked for. It must not block.
	Ended func(error)
}

// Commands.
type (
	// Stop drains the buckets, stamps our record, hands the leases back, and
	// ends.
	Stop struct{}
	// Notify says that messages were committed to buckets.
	Notify struct{ Buckets []int }
)

// Timers of the actor, and what it tells itself. Each timer carries the number
// that it was armed with.
type (
	roundDue     struct{ number uint64 } // the next round, or the next try to start
	deadlineDue  struct{ number uint64 } // a phase of stopping must end
	repeatDue    struct{ number uint64 } // a step of stopping is tried again
	publisherDue struct{ number uint64 } // a dead publisher is replaced
	paceDue      struct{ number uint64 } // the next leases are kept

	// childDied and publisherDied follow protoactor's Terminated, behind what
	// the child itself has sent before.
	childDied struct {
		bucket int
		tenure int64
	}

	publisherDied struct{ number int }
)
