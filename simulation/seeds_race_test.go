//go:build race

package simulation_test

// fewSeeds under the race detector, which has little to find in a world without
// goroutines and takes ten times as long.
const fewSeeds = 6

// scenarioSeeds under the race detector.
const scenarioSeeds = 1
