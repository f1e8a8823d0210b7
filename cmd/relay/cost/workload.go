package cost

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
)

// Workload is a fleet, and what it has to move.
type Workload struct {
	// Schema is the table's layout: names and prefix count in every item's size, and
	// BucketCount is how many buckets there are.
	Schema outbox.Schema
	Relays int // that run, standbys included
	// RelayIDBytes is the length of a relay's id; 0: 32, about that of a pod.
	RelayIDBytes int

	PollInterval, LeaseDuration, LeaseRenewInterval time.Duration
	// SampleInterval is between two samples of the backlog; 0: nobody samples.
	SampleInterval time.Duration
	BatchSize      int // rows of one fetch
	MaxBatchBytes  int

	Rate float64 // messages a second, all buckets together; 0: none
	// MessageBytes is the size of a message's topic, key, value and encoded headers.
	MessageBytes int
	// PerTransaction is how many messages of one bucket are committed together, 1 to
	// outbox.MaxCallItems; 0: 1.
	PerTransaction float64
	// Notified is the share of the commits, 0 to 1, of which the owner of the bucket is
	// told at once: those of writers that have it in their process (Relay.Notify).
	Notified float64
	// Shares are the parts of the messages that fall to each bucket, of any sum; nil: all
	// buckets have the same.
	Shares []float64
}

const defaultRelayIDBytes = 32

func (w Workload) withDefaults() Workload {
	w.Schema = w.Schema.WithDefaults()
	if w.RelayIDBytes == 0 {
		w.RelayIDBytes = defaultRelayIDBytes
	}
	if w.PerTransaction == 0 {
		w.PerTransaction = 1
	}
	return w
}

// Validate returns all that is wrong with the workload, joined, each with its field
// and value.
func (w Workload) Validate() error {
	w = w.withDefaults()
	var faults []error
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(w.Relays < 1, "Relays %d: must be 1 or more", w.Relays)
	fault(w.PollInterval <= 0, "PollInterval %v: must be positive", w.PollInterval)
	fault(w.LeaseRenewInterval <= 0, "LeaseRenewInterval %v: must be positive", w.LeaseRenewInterval)
	fault(w.LeaseDuration < w.LeaseRenewInterval, "LeaseDuration %v: must be at least LeaseRenewInterval %v", w.LeaseDuration, w.LeaseRenewInterval)
	fault(w.SampleInterval < 0, "SampleInterval %v: must not be negative", w.SampleInterval)
	fault(w.BatchSize < 1, "BatchSize %d: must be 1 or more", w.BatchSize)
	fault(w.MaxBatchBytes < 1, "MaxBatchBytes %d: must be 1 or more", w.MaxBatchBytes)
	fault(!(w.Rate >= 0), "Rate %v: must not be negative", w.Rate)
	fault(!(w.PerTransaction >= 1 && w.PerTransaction <= outbox.MaxCallItems), "PerTransaction %v: must be from 1 to %d", w.PerTransaction, outbox.MaxCallItems)
	fault(!(w.Notified >= 0 && w.Notified <= 1), "Notified %v: must be from 0 to 1", w.Notified)
	fault(w.Shares != nil && len(w.Shares) != w.Schema.BucketCount, "Shares: %d, must be one for each of %d buckets", len(w.Shares), w.Schema.BucketCount)
	if row := w.rowBytes(); row > outbox.MaxItemBytes {
		fault(true, "MessageBytes %d: its row would have %d bytes, must have %d at most", w.MessageBytes, row, outbox.MaxItemBytes)
	} else if all := w.PerTransaction * float64(row); all > outbox.MaxCallBytes {
		fault(true, "PerTransaction %v: its rows would have %.0f bytes together, must have %d at most", w.PerTransaction, all, outbox.MaxCallBytes)
	}
	return errors.Join(faults...)
}

// Bytes of the sample items whose sizes stand for all of their kind. Ticks have 18
// digits, the sequence numbers of a year-old outbox eight or more.
const (
	sampleTicks     = 639_123_456_789_123_457
	sampleSequence  = 12_345_678
	incarnationSize = 19 + 1 + 8
	sampleTopic     = 1 // byte of MessageBytes that is the topic, which may not be blank
)

// rowBytes is the size of a message's row by DynamoDB's rules.
func (w Workload) rowBytes() int {
	m := outbox.Message{
		ID: uuid.Max, Topic: "t", Key: []byte{}, Value: make([]byte, max(0, w.MessageBytes-sampleTopic)),
		CreatedAt: outbox.FromTicks(sampleTicks),
	}
	return outbox.ItemSize(w.Schema.EncodeMessage(m, w.Schema.BucketCount-1, sampleSequence))
}

// leaseBytes is the size of a lease that a relay of ours holds.
func (w Workload) leaseBytes() int {
	item := w.Schema.Key(w.Schema.CoordinationKey(), outbox.LeaseSortKey(0))
	item[outbox.AttrOwner] = textOf(w.RelayIDBytes)
	item[outbox.AttrExpiresAtUtc] = ticks()
	item[outbox.AttrIncarnation] = textOf(incarnationSize)
	item[outbox.AttrClaim] = &types.AttributeValueMemberN{Value: "1"}
	return outbox.ItemSize(item)
}

// recordBytes is the size of a relay's record.
func (w Workload) recordBytes() int {
	item := w.Schema.Key(w.Schema.CoordinationKey(), outbox.RelaySortKey(strings.Repeat("r", w.RelayIDBytes)))
	item[outbox.AttrLastSeenUtc] = ticks()
	item[outbox.AttrIncarnation] = textOf(incarnationSize)
	item[outbox.AttrMode] = textOf(len("ordered"))
	return outbox.ItemSize(item)
}

func textOf(bytes int) types.AttributeValue {
	return &types.AttributeValueMemberS{Value: strings.Repeat("x", bytes)}
}

func ticks() types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(int64(sampleTicks))}
}
