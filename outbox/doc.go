// Package outbox is what an application needs to put messages into the outbox: the Message, its
// header codec and bucket hash, the layout of the items in the table (Schema), and the Writer, which
// stores messages in the transaction that also holds the business write.
//
// The package follows sections 1 and 2 of the protocol, which it shares with the writers and relays
// of Dekaf.Outbox.DynamoDB: both may work on one table at the same time. It knows nothing of Kafka,
// of actors and of logging, needs no C compiler, and talks to DynamoDB only through API, which
// *dynamodb.Client satisfies. The relay's own packages use Schema to read what the writers wrote.
package outbox
