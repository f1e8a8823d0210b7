// Package integration holds the project's promises against real services: Apache
// Kafka, a DynamoDB emulator, and the built binary as processes of its own. It
// has no code of its own to offer.
//
// `make integration` starts the services, runs the tests, which have the build
// tag integration, and stops the services. The tests read
//
//	INTEGRATION_DYNAMODB   the emulator's address, http://127.0.0.1:8000
//	INTEGRATION_BROKERS    Kafka's bootstrap servers, comma separated
//	INTEGRATION_RELAY     path of the relay binary under test
//	INTEGRATION_KAFKA     folder of Apache Kafka's jars, for tests with brokers of their own
//	INTEGRATION_MEMORY_ROWS    how many rows wait when memory is measured; `make memory` sets it
//	INTEGRATION_SOAK    how long the soak lasts, such as 30m; `make soak` sets it, without it there is none
//	INTEGRATION_OUTAGE    how long a broker is away, such as 60s; 20s when it is not set
//
// What is held where:
//
//	events_test.go       what may happen to a fleet that shares buckets: the event
//	                     table, with refused writes, takeovers and a round's cost;
//	                     events_hard_test.go has the rows with stalls and crowds
//	fleet_test.go        20,000 messages of all kinds, while relays come and go
//	outage_test.go       services that come up late or go away; the second SIGTERM
//	failover_test.go     a broker that is stopped and started again; three brokers, each
//	                     killed once; cluster_test.go makes such clusters
//	frozen_test.go       a relay stopped by SIGSTOP with rows on their way, past its lease
//	limit_test.go        a record that its topic does not take, by poison policy
//	fatal_test.go        how soon other buckets publish after a fatal error
//	growth_test.go       a topic that gains partitions
//	memory_test.go       what a relay has resident with many rows waiting
//	soak_test.go         what a relay has, over half an hour, when another is restarted each minute
//	refusal_test.go      what ends a relay: its exit code, and its words
//	doctor_test.go       what relay doctor finds, beside a relay at work and in an outbox in trouble
//	store_test.go        the table's conformance suite, on the emulator
//	kafka_test.go        the producers' conformance suite, on Apache Kafka
//	throughput_test.go   the relay beside a bare loop of the same two clients
//
// The tests judge from outside only: by what a consumer reads, what a scan of the
// table returns, what passes by on the way to the table (gate_test.go) or to the
// broker (brokergate_test.go), what a process writes to stderr, and how it ends.
// What judges (check_test.go, form_test.go, request_test.go, judge_test.go,
// cost_test.go) is pure and has tests of its own, which plant what must be found;
// they have no build tag and run in `make test`.
//
// Nothing sleeps or polls, but the soak, which is a load and readings in steady time. Tests wait for what a process says, for a consumer's
// records, for requests that pass by, or for an exit, each with a deadline that
// only a failure reaches.
package integration
