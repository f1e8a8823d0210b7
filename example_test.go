package relay_test

import (
	"context"
	"fmt"
	"log"

	relay "github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// A relay inside a service. Table and broker are in this process here; a real
// service makes two clients with dynamodb.NewFromConfig, one for messages and one
// for coordination, and names its brokers in kafka.Config.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	broker, err := kafka.StartMock(kafka.Topic{Name: "orders", Partitions: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close()
	table := memtable.New(memtable.Options{})
	if err := store.CreateTable(ctx, table, outbox.Schema{Table: "shop"}); err != nil {
		log.Fatal(err)
	}

	producers, err := kafka.NewFactory(broker.Config())
	if err != nil {
		log.Fatal(err)
	}
	r, err := relay.New(relay.Config{
		Table:        "shop",
		DynamoDB:     table,
		Coordination: table,
		Producers:    producers,
		Observers: []event.Observer{event.ObserverFunc(func(e event.Envelope) {
			if removed, ok := e.Event.(event.BatchRemoved); ok {
				fmt.Println("removed from the outbox:", removed.Rows)
				cancel() // a service would go on until it is told to stop
			}
		})},
	})
	if err != nil {
		log.Fatal(err)
	}

	writer, err := outbox.NewWriter(table, outbox.Options{Table: "shop", Notify: r.Notify})
	if err != nil {
		log.Fatal(err)
	}
	if err := writer.Enqueue(ctx, outbox.NewMessage("orders", []byte("order-1"), []byte("placed"))); err != nil {
		log.Fatal(err)
	}

	// Run drains and hands the buckets back when its context is cancelled.
	if err := r.Run(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := producers.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("state:", r.Status().State)
	// Output:
	// removed from the outbox: 1
	// state: stopped
}
