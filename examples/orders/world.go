package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

// partitions is how many the topic has in the in-process broker.
const partitions = 3

// world is what the service stands on.
type world struct {
	messages     store.API // of the service and of the relay's messages
	coordination store.API // of the relay's leases: a client of its own
	tables       store.TableAPI
	cluster      kafka.Config
	close        func()
}

// embedded is a table and a broker in this process: nothing to install.
func embedded() (world, error) {
	broker, err := kafka.StartMock(kafka.Topic{Name: topic, Partitions: partitions})
	if err != nil {
		return world{}, err
	}
	db := memtable.New(memtable.Options{})
	return world{messages: db, coordination: db, tables: db, cluster: broker.Config(), close: broker.Close}, nil
}

// deployed is DynamoDB, or an emulator at endpoint, with credentials and region of
// the SDK's chain, and the Kafka cluster of brokers, which must have the topic.
func deployed(ctx context.Context, endpoint string, brokers []string) (world, error) {
	base, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return world{}, fmt.Errorf("load the AWS configuration: %w", err)
	}
	if endpoint != "" {
		base.BaseEndpoint = aws.String(endpoint)
	}
	messages, coordination := dynamodb.NewFromConfig(base), dynamodb.NewFromConfig(base)
	return world{messages: messages, coordination: coordination, tables: messages,
		cluster: kafka.Config{Brokers: brokers}, close: func() {}}, nil
}

// createTable makes the table that orders and outbox share.
func (w world) createTable(ctx context.Context, name string) error {
	return store.CreateTable(ctx, w.tables, outbox.Schema{Table: name})
}
