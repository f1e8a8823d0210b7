package simulation_test

import (
	"context"
	"fmt"

	"github.com/bucketbrigade/relay/simulation"
)

// A seed of the storm broke a promise: how little does it take? Here the promise
// is one that nobody can keep, that a fleet has settled a nanosecond after all
// faults end.
func ExampleShrink() {
	found, err := simulation.Shrink(context.Background(),
		simulation.Options{Seed: 17, Faults: simulation.Storm(), HealWithin: 1}.Draw(),
		simulation.ShrinkConfig{MaxRuns: 200})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found.Broken().Invariant)
	fmt.Println(found.After)
	// found.WriteScenario writes the file that relay simulate --scenario plays.

	// Output:
	// I-10
	// 1 relay, 1 bucket, 1s of 0.1 messages a second, no fault
}
