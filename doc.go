// Package relay moves outbox messages from a DynamoDB table to Kafka, in order
// per key, at least once, and deletes what was acknowledged.
//
// It is the embedding API: fill a Config, call New, and Run it until its
// context is cancelled. Writers use package outbox; package kafka has the
// producer. The relay's behaviour towards the table is docs/architecture.md's,
// and every relay and writer sharing a table follows it.
//
// Delivery is at least once. A consumer deduplicates on the header
// x-outbox-message-id.
package relay
