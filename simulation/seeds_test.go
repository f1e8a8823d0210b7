//go:build !race

package simulation_test

// fewSeeds is how many seeds of the storm fit `make test`.
const fewSeeds = 60

// scenarioSeeds is with how many seeds each scenario is played.
const scenarioSeeds = 3
