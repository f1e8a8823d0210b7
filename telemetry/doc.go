// Package telemetry holds the readers of events that are made for people. Log
// writes one zerolog line for each event that deserves attention; Metrics counts
// and measures with OpenTelemetry, and Export hands that to Prometheus and OTLP.
// NewAdmin serves it to probes, scrapes and people, from an AdminServer.
//
// A reader sees nothing but package event: it never asks the store or an
// actor, and no actor knows of it. Readers run inside the actors that emit, so
// they take a short lock at most, start no goroutine and read no clock: time is
// what the events' envelopes say. Export and AdminServer have goroutines of their
// own, until they are closed.
package telemetry
