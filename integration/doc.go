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
//
// What is held where:
//
//	events_test.go       what may happen to a fleet that shares buckets: the event
//	                     table, with refused writes, takeovers and a round's cost;
//	                     events_hard_test.go has the rows with stalls and crowds
//	fleet_test.go        20,000 messages of all kinds, while relays come and go
//	outage_test.go       services that come up late or go away; the second SIGTERM
//	refusal_test.go      what ends a relay: its exit code, and its words
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
// Nothing sleeps or polls. Tests wait for what a process says, for a consumer's
// records, for requests that pass by, or for an exit, each with a deadline that
// only a failure reaches.
package integration
