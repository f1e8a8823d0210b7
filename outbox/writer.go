package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/propagation"
)

// DefaultMaxConcurrency is how many requests a call has outstanding at most, when Options say nothing.
const DefaultMaxConcurrency = 8

// API is the part of DynamoDB that a Writer uses; *dynamodb.Client satisfies it. The policy of an AWS
// role needs dynamodb:PutItem and dynamodb:UpdateItem on the table. It must be safe for concurrent use.
type API interface {
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Options configure a Writer. Table, PartitionKey, SortKey, KeyPrefix and BucketCount are those of
// Schema and must be the same for every writer and relay of the outbox; zero values mean the defaults.
type Options struct {
	Table                 string // required
	PartitionKey, SortKey string // default PK and SK
	KeyPrefix             string // default OUTBOX
	BucketCount           int    // 1 to 10,000, default 8
	MaxConcurrency        int    // requests that one call has outstanding at most, default 8
	// Notify is called with the buckets of messages that were committed, ascending and each once, so that
	// a relay in this process reads them at once: (*relay.Relay).Notify. It runs on the caller's goroutine
	// and must not block. Nil: relays find the messages by polling.
	Notify func(buckets ...int)
	// Propagator puts the trace that a call's context is in into the headers of its messages, behind the
	// caller's, so that consumers go on with it and a relay's spans link to it:
	// propagation.TraceContext{} for the headers traceparent and tracestate of W3C, or what the
	// application has set for all, otel.GetTextMapPropagator(). A message that has a header of the
	// propagator's already is stored as it is, and so is a call that would be too large with them. Nil:
	// nothing is added. docs/tracing.md.
	Propagator propagation.TextMapPropagator
}

// Schema is the part of the options that says where the items live, with its defaults filled in.
func (o Options) Schema() Schema {
	return Schema{
		Table: o.Table, PartitionKey: o.PartitionKey, SortKey: o.SortKey,
		KeyPrefix: o.KeyPrefix, BucketCount: o.BucketCount,
	}.WithDefaults()
}

// Validate returns all faults of the options, joined, each with the field and its value, or nil.
func (o Options) Validate() error {
	err := o.Schema().Validate()
	if o.MaxConcurrency < 0 {
		err = errors.Join(err, fmt.Errorf("MaxConcurrency: %d is negative", o.MaxConcurrency))
	}
	return err
}

// Writer stores messages. It is safe for concurrent use, starts nothing and has nothing to close.
//
// The order of two messages of a bucket is that of their reservations, which happen before the commit:
// an application whose transactions of one key depend on each other must reserve anew for each attempt,
// as Commit does. Messages of uncoordinated transactions have no order among each other.
type Writer struct {
	api            API
	schema         Schema
	maxConcurrency int
	notify         func(buckets ...int)
	propagator     propagation.TextMapPropagator // nil: messages carry no trace
}

// NewWriter is a Writer over api. Its error names every fault of the options; nothing is sent.
func NewWriter(api API, o Options) (*Writer, error) {
	err := o.Validate()
	if api == nil {
		err = errors.Join(errors.New("api: nil is no client"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("make writer: %w", err)
	}
	return &Writer{
		api:            api,
		schema:         o.Schema(),
		maxConcurrency: cmp.Or(o.MaxConcurrency, DefaultMaxConcurrency),
		notify:         o.Notify,
		propagator:     o.Propagator,
	}, nil
}

// Commit stores messages in the caller's transaction: it reserves their numbers, appends their puts to a
// copy of in, sends it, and notifies. This is the way to use a Writer. A nil error means that the
// caller's items and all messages were written; any error but ErrAmbiguous, that nothing was. The
// caller's items come first, so the CancellationReasons of a *types.TransactionCanceledException, which
// errors.As finds, have the caller's indexes.
//
// An application that loses an optimistic race reads its state again, builds in again, and calls Commit
// again: each call reserves anew, since a number kept from before would sort before the write that won.
// Each call has a ClientRequestToken of its own, unless in brings one. Such a token serves one call: for
// ten minutes DynamoDB refuses another one under it, since its numbers differ, and that is ErrAmbiguous.
//
// A request that the SDK repeated after it was applied, when DynamoDB no longer knows its token, finds all
// its own rows: that is a success, although the caller's conditions may be refused the second time. While
// DynamoDB says that the first is in progress, Commit asks again under the same token, with growing
// pauses, for at most 15 seconds.
//
// Limits: 100 items and 4 MiB with the caller's own, and those of Enqueue for each message. Errors:
// ErrTooLarge, ErrAmbiguous, ErrSequenceBehind, those of the api. Without messages, the transaction is
// sent as it is; without any item, nothing is.
func (w *Writer) Commit(ctx context.Context, in *dynamodb.TransactWriteItemsInput, messages ...Message) error {
	if in == nil {
		return errors.New("commit: the transaction is nil")
	}
	entries, err := w.build(ctx, messages, in.TransactItems)
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	request := *in
	request.TransactItems = slices.Concat(in.TransactItems, w.puts(entries))
	if len(request.TransactItems) == 0 {
		return nil
	}
	if aws.ToString(request.ClientRequestToken) == "" {
		request.ClientRequestToken = aws.String(uuid.NewString())
	}
	if err := w.transact(ctx, &request, entries); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	w.notifyEntries(entries)
	return nil
}

// TransactItem is TransactItems for one message.
func (w *Writer) TransactItem(ctx context.Context, m Message) (types.TransactWriteItem, error) {
	items, err := w.TransactItems(ctx, []Message{m})
	if err != nil {
		return types.TransactWriteItem{}, err
	}
	return items[0], nil
}

// TransactItems reserves numbers for the messages and returns their puts, in order, for a transaction
// that the caller sends. The items are for one attempt: one that failed, for whatever reason, is rebuilt
// with new items, or its messages would sort before those of the transaction that won. Numbers that are
// never committed leave gaps, which do no harm. Call NotifyCommitted after the commit.
//
// A put refused by its condition, attribute_not_exists, comes with the row that was found. When each put
// of the transaction is refused by a row with its own MessageId, the SDK repeated a request that had been
// applied: success. Commit knows that by itself, and is to be preferred. Limits and errors are those of
// Commit; nothing is ever ambiguous here, since nothing but counters is written.
func (w *Writer) TransactItems(ctx context.Context, messages []Message) ([]types.TransactWriteItem, error) {
	entries, err := w.build(ctx, messages, nil)
	if err != nil {
		return nil, fmt.Errorf("build transaction items: %w", err)
	}
	return w.puts(entries), nil
}

// Enqueue stores 1 to 100 messages that no business write goes with, all or none, and notifies. Nothing
// does nothing. A nil error means that all are stored; any error but ErrAmbiguous, that none is. Requests
// that the SDK repeats are recognised, see Commit.
//
// Refused before anything is sent, with every fault of every message: over 100 messages or 4 MiB in all,
// an item over MaxItemBytes, a blank topic or one that is not UTF-8, a zero ID, a negative partition, a
// CreatedAt outside the years 1 to 9999 (zero means now). Errors: ErrTooLarge, ErrAmbiguous,
// ErrSequenceBehind, those of the api. Protocol, section 2.
func (w *Writer) Enqueue(ctx context.Context, messages ...Message) error {
	if len(messages) == 0 {
		return nil
	}
	entries, err := w.build(ctx, messages, nil)
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	if len(entries) == 1 {
		err = w.put(ctx, entries[0])
	} else {
		err = w.transact(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems:      w.puts(entries),
			ClientRequestToken: aws.String(uuid.NewString()),
		}, entries)
	}
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	w.notifyEntries(entries)
	return nil
}

// NotifyCommitted tells a relay of this process that these messages are in the table. Call it after a
// transaction with items of TransactItems was committed, never before: a relay that looks too early finds
// nothing and is not told again. Commit and Enqueue do it by themselves.
func (w *Writer) NotifyCommitted(messages ...Message) {
	buckets := make([]int, len(messages))
	for i, m := range messages {
		buckets[i] = m.Bucket(w.schema.BucketCount)
	}
	w.notifyBuckets(buckets)
}

func (w *Writer) notifyEntries(entries []entry) {
	buckets := make([]int, len(entries))
	for i, e := range entries {
		buckets[i] = e.bucket
	}
	w.notifyBuckets(buckets)
}

func (w *Writer) notifyBuckets(buckets []int) {
	if w.notify == nil || len(buckets) == 0 {
		return
	}
	slices.Sort(buckets)
	w.notify(slices.Compact(buckets)...)
}
