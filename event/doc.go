// Package event holds what happened in a relay, as small typed values, and the
// Observer port through which readers learn of it.
//
// Cores emit events and know nothing of who reads them. Logs, metrics, the
// status model, the simulator's trace and its checkers are all readers of the
// same values: a new figure is a new reader, never a second place that counts.
//
// The package imports nothing of the relay. Events carry facts only: never a
// record's key, value or headers, and never a secret.
package event
