// Package actors holds what all actors of the relay share: the Runtime port,
// the one door to time, randomness and I/O, and the supervision strategy.
//
// The actors themselves are in the folders below. Each has the same shape:
// core.go is a struct with one step function that takes a message and returns
// effects, without I/O, clock, lock or randomness; actor.go performs the
// effects through Runtime; messages.go has the commands that it takes and the
// events that it emits. The same actors run live (package relay) and in virtual
// time (package simulation).
package actors
