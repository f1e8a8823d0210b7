// Package fsm holds the relay's two state machines, as tables: that of a
// bucket's lease, and that of a batch inside an owned bucket. The cores fire
// events; nothing else happens here, no callback and no side effect.
//
// A machine runs on looplab/fsm behind Machine.Fire. An event that the table
// does not allow is an error and a broken invariant of the caller, which turns
// it into a panic; the state then has not changed.
//
// docs/states.md has the diagram that Mermaid makes from the tables; a test
// keeps it true.
package fsm
