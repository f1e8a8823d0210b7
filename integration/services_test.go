//go:build integration

package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// patience bounds every wait; only a failure reaches it.
const patience = 60 * time.Second

// setting is a variable that the tests cannot do without.
func setting(t testing.TB, name, advice string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set; %s", name, advice)
	}
	return value
}

// endpoint is the emulator's address.
func endpoint(t testing.TB) string {
	t.Helper()
	return setting(t, "INTEGRATION_DYNAMODB",
		"start the services and set it with: scripts/services start && eval \"$(scripts/services env)\"")
}

// dynamo is a client of the emulator, with connections of its own, enough for
// writers that do not wait for each other.
func dynamo(t testing.TB) *dynamodb.Client {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(endpoint(t)),
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient:   &http.Client{Transport: transport},
	})
}

// freshTable creates a table with these settings, under a name of its own.
func freshTable(t testing.TB, client *dynamodb.Client, schema outbox.Schema) outbox.Schema {
	t.Helper()
	schema = schema.WithDefaults()
	schema.Table = fmt.Sprintf("relay-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	if err := store.CreateTable(t.Context(), client, schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &schema.Table}); err != nil {
			t.Errorf("delete table: %v", err)
		}
	})
	return schema
}

// scan is every item of a table.
func scan(t testing.TB, client *dynamodb.Client, table string) []item {
	t.Helper()
	var items []item
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, page.Items...)
	}
	return items
}

// newWriter is the product's own writer on the table.
func newWriter(t testing.TB, client *dynamodb.Client, schema outbox.Schema) *outbox.Writer {
	t.Helper()
	writer, err := outbox.NewWriter(client, outbox.Options{
		Table: schema.Table, PartitionKey: schema.PartitionKey, SortKey: schema.SortKey,
		KeyPrefix: schema.KeyPrefix, BucketCount: schema.BucketCount,
	})
	if err != nil {
		t.Fatal(err)
	}
	return writer
}

// enqueue stores messages, in order.
func enqueue(t testing.TB, client *dynamodb.Client, schema outbox.Schema, messages ...outbox.Message) {
	t.Helper()
	if err := newWriter(t, client, schema).Enqueue(t.Context(), messages...); err != nil {
		t.Fatal(err)
	}
}

// write commits messages one call after another, in their order.
func write(t *testing.T, writer *outbox.Writer, messages []sent) {
	t.Helper()
	for len(messages) > 0 {
		n := min(len(messages), outbox.MaxCallItems)
		batch := make([]outbox.Message, n)
		for i := range batch {
			batch[i] = messages[i].message
		}
		if err := writer.Enqueue(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
		messages = messages[n:]
	}
}
