//go:build !race

package simulation_test

// fewSeeds is how many seeds of the storm fit `make test`.
const fewSeeds = 200
