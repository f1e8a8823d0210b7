// Package simulation runs a whole fleet in virtual time: many relays, the
// writers, the table and the broker in one process, from one seed. The actors
// are the production ones, on a dispatcher that queues and a mailbox that takes
// one message a step; what happens next is chosen by the seed among all that
// could.
//
// A request to the table is applied at an instant of its own. It may be lost, be
// applied without an answer, be repeated by the SDK, be applied after its sender
// gave up or died, or be throttled. A process may crash, stop, stall, and have a
// clock of its own.
//
// An observer outside the relays sees the table and the broker and checks the
// promises of docs/invariants.md at each step; at the end everything is healed,
// and the outbox must be empty, the split fair and the fleet silent within
// bounded virtual time. Then one relay joins, stops or crashes, and nothing but
// what the protocol's event table says may follow. Package mutants shows that the
// observer sees what it is to see.
//
// Run makes one run at random, ParseScenario reads one that is scripted. Shrink
// makes one that breaks a promise small, and WriteScenario writes it down.
//
// All that can be observed goes into the digest of a Report, and, on request, to
// Options.Observe, one Event each. Timeline is an observer that draws the run.
//
// Nothing here reads a wall clock, starts a goroutine, or loops over a map in an
// order that matters: the same seed gives the same run.
package simulation
