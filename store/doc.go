// Package store holds the relay's requests to the table, as values: one type
// is one DynamoDB request and one round trip. A request says what is wanted
// (store.Keep{Bucket: 3, ...}); Client builds the SDK's input from it, sends it
// on the lane that it belongs to, and turns the answer into one of four
// outcomes with a typed result.
//
// Since requests are values, the simulation prints, delays, repeats and loses
// them, and tests compare them with ==-like equality.
//
// The package decides what an answer means (one classification for all SDK
// errors) and whether a refused write is the SDK's own repetition of an applied
// one (ALL_OLD). It never decides what to do next: the actors do.
//
// It may import package outbox, for names and layout, and nothing else of ours.
package store
