// Package kafka is the relay's Kafka client: publisher.Producer on librdkafka,
// and the one place where librdkafka's codes become classes of outcomes.
//
// It is thin. The order algorithm lives in actors/publisher; what is here are
// the settings that the algorithm depends on, one reader of delivery reports
// per producer, which never waits for anybody, and ends that take a bounded
// time whatever the brokers do. It is the only package that needs cgo, but for the
// command's limit of what the C library keeps; outside of it nobody sees a type or
// an error of librdkafka's.
//
// Mock starts librdkafka's mock cluster for the demo and for tests, ReadTopic reads
// a topic back, and an Inspector asks a cluster about itself, for relay doctor.
package kafka
