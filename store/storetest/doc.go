// Package storetest is what every DynamoDB behind store.API must do for the
// relay: one conformance suite, run on the in-memory table and on a real
// emulator. If they differed, the simulation would prove a fiction.
//
// The suite speaks the SDK's own types and asserts on raw items, never on
// anything that the relay counts. It asserts error types and codes, not the
// wording of messages. The layer may import store and outbox.
package storetest
