// Package coordinator is the actor that shares the buckets with the other
// relays: it beats its heart, reads the coordination partition, plans, and
// spawns, instructs and stops one bucket actor per owned lease (protocol.md
// sections 3 and 4).
//
// It writes relay records only; leases are written by the bucket actors. The one
// exception are leases that name us and that no bucket actor stands for when the
// relay stops. The plan is a pure function, in plan.go.
package coordinator
