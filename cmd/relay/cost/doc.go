// Package cost reckons what an outbox asks of its table: requests, and capacity units
// as DynamoDB counts them, for a fleet and a workload that are given by numbers. It
// sends nothing and knows no prices.
//
// docs/cost.md has the formulas in words. The tests hold them against runs of the
// simulation, in which the production actors send the requests and the table counts
// the units.
package cost
