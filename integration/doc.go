// Package integration holds the project's promises against real services: Apache
// Kafka, a DynamoDB emulator, and the built binary as processes of its own. It
// has no code of its own to offer.
//
// `make integration` starts the services, runs the tests, which have the build
// tag integration, and stops the services. They read
//
//	RELAY_TEST_DYNAMODB   the emulator's address, http://127.0.0.1:8000
//	RELAY_TEST_BROKERS    Kafka's bootstrap servers, comma separated
//	RELAY_TEST_BINARY     path of the relay binary under test
//
// and judge from outside only: by what a consumer reads, what a scan of the
// table returns, what a process writes to stderr, and how it ends. What judges
// (check_test.go, form_test.go) is pure and has tests of its own, which plant
// what must be found; they have no build tag and run in `make test`.
//
// Nothing sleeps or polls. Tests wait for what a process says, for a consumer's
// records, or for an exit, each with a deadline that only a failure reaches.
package integration
