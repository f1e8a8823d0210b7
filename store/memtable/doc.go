// Package memtable is an in-memory DynamoDB: the table of `relay demo`, of
// tests and of the simulation. It stands behind store.API and store.TableAPI
// with the SDK's own types for requests, answers and errors, and passes the
// same conformance suite (package storetest) as a real emulator.
//
// It serves what the relay sends, parsed in general: condition, key condition,
// filter, update and projection expressions with #names and :values; queries
// and scans by pages of 1 MB; batches with unprocessed items; transactions
// with tokens and cancellation reasons; consumed capacity; numbers exact to 38
// digits; the limits of items, batches, transactions and keys. What it does
// not serve (indexes, the parameters that expressions replaced, sets in update
// expressions) it refuses with the error code UnservedByMemtable, so that a
// test never takes silence for success.
//
// The layer may import store and outbox. It starts no goroutine and reads no
// clock, and the same calls give the same answers, order included: nothing
// depends on the iteration of a map.
//
// Reads and writes reach rows only through table (table.go). A read model that
// lags behind, or a transaction that becomes visible in parts, belongs there.
package memtable
