package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// newOrders is the service with a table and an outbox of its own, in this process.
func newOrders(t *testing.T, notify func(buckets ...int)) *orders {
	t.Helper()
	w, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	if err := w.createTable(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	writer, err := outbox.NewWriter(w.messages, outbox.Options{Table: "orders", Notify: notify})
	if err != nil {
		t.Fatal(err)
	}
	return &orders{db: w.messages, name: "orders", writer: writer}
}

func TestEachOrderIsSeenPlacedAndThenPaid(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var stdout, stderr strings.Builder
	if err := run(ctx, options{table: "orders", orders: 4}, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	placed := map[string]bool{}
	paid := 0
	for line := range strings.Lines(stdout.String()) {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[0] != "partition" {
			continue
		}
		switch id := fields[3]; {
		case strings.Contains(line, `"placed"`):
			placed[id] = true
		case !placed[id]:
			t.Errorf("paid before it was placed: %s", line)
		default:
			paid++
		}
	}
	if len(placed) != 4 || paid != 4 {
		t.Errorf("%d placed, %d paid:\n%s", len(placed), paid, stdout.String())
	}
}

// Many pay one order at once: each change has its message, and nobody's is
// written twice or without the change.
func TestConcurrentChangesHaveOneMessageEach(t *testing.T) {
	ctx := context.Background()
	messages := 0
	var mu sync.Mutex
	service := newOrders(t, func(...int) {
		mu.Lock()
		defer mu.Unlock()
		messages++
	})
	if err := service.place(ctx, "4711", 12); err != nil {
		t.Fatal(err)
	}
	const payers = 3
	errs := make([]error, payers)
	var all sync.WaitGroup
	for i := range payers {
		all.Go(func() { errs[i] = service.pay(ctx, "4711") })
	}
	all.Wait()
	changed := 1
	for _, err := range errs {
		if err == nil {
			changed++
		}
	}
	version, err := service.version(ctx, "4711")
	if err != nil || version != changed || messages != changed {
		t.Errorf("version %d, %d messages after %d changes (%v)", version, messages, changed, err)
	}
}

func TestAnOrderIsPlacedOnce(t *testing.T) {
	ctx := context.Background()
	service := newOrders(t, nil)
	if err := service.place(ctx, "4711", 12); err != nil {
		t.Fatal(err)
	}
	if err := service.place(ctx, "4711", 13); !wasChanged(err) {
		t.Errorf("placed again: %v", err)
	}
	if err := service.pay(ctx, "4712"); err == nil {
		t.Error("an order that does not exist was paid")
	}
}

// Errors of the outbox wrap the service's own, and are none that the service may take
// for a change by others: the one may have stored the change, the other wants a repair.
func TestErrorsOfTheOutboxAreNoConflicts(t *testing.T) {
	ctx := context.Background()
	service := newOrders(t, nil)
	if err := service.place(ctx, "4711", 12); err != nil {
		t.Fatal(err)
	}
	// Somebody sets the counter of the order's bucket back.
	schema := outbox.Schema{Table: "orders"}.WithDefaults()
	placed := outbox.NewMessage(topic, []byte("4711"), nil)
	if _, err := service.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &schema.Table, Key: schema.Key(schema.SequenceKey(placed.Bucket(schema.BucketCount)), outbox.CounterSortKey),
		UpdateExpression:          aws.String("SET #n = :none"),
		ExpressionAttributeNames:  map[string]string{"#n": outbox.AttrSequence},
		ExpressionAttributeValues: map[string]types.AttributeValue{":none": number(0)},
	}); err != nil {
		t.Fatal(err)
	}
	if err := service.pay(ctx, "4711"); !errors.Is(err, outbox.ErrSequenceBehind) {
		t.Errorf("paid with a counter that is behind: %v", err)
	}
	refused := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{Code: aws.String("ConditionalCheckFailed")}}}
	if !wasChanged(refused) || wasChanged(fmt.Errorf("%w: %w", outbox.ErrAmbiguous, refused)) {
		t.Error("what may have been stored is taken for a conflict")
	}
}
