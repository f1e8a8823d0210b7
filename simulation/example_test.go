package simulation_test

import (
	"fmt"
	"time"

	"github.com/bucketbrigade/relay/simulation"
)

// Before settings go live, run them through some bad nights: in a test, with
// t.Errorf where this prints.
func ExampleRun() {
	settings := simulation.Options{
		Relays: 3, Buckets: 8, Rate: 20,
		LeaseDuration: 12 * time.Second, LeaseRenewInterval: 4 * time.Second, MaxClockSkew: time.Second,
		BatchSize: 100,
		Duration:  time.Minute, Faults: simulation.Storm(),
	}
	for settings.Seed = 1; settings.Seed <= 3; settings.Seed++ {
		report := simulation.Run(settings)
		for _, v := range report.Violations {
			fmt.Printf("seed %d: %v\n", report.Seed, v)
			for _, e := range simulation.LastEvents(settings, v, 20) {
				fmt.Println(e)
			}
		}
		fmt.Printf("seed %d: ok %v, %d left in the outbox\n", report.Seed, report.OK, report.Messages.Pending)
	}
	// Output:
	// seed 1: ok true, 0 left in the outbox
	// seed 2: ok true, 0 left in the outbox
	// seed 3: ok true, 0 left in the outbox
}
