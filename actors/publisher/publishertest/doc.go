// Package publishertest is one suite for whatever implements publisher.Factory:
// librdkafka (package kafka) on its mock cluster, on kfake and on Apache Kafka,
// and the simulation's broker. What passes here the publisher's core may rely
// on; what the backends do differently it must not.
//
// The suite decides by what a consumer reads, never by a producer's own figures.
// It runs in real time with a bound on each wait, or in virtual time, where it
// steps the world until something arrives.
package publishertest
