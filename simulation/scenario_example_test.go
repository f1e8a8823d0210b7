package simulation_test

import (
	"fmt"
	"strings"

	"github.com/bucketbrigade/relay/simulation"
)

// A story of one's own, with one's own settings: how long does it take until
// another relay has taken over from one that was killed?
func ExampleParseScenario() {
	s, err := simulation.ParseScenario("takeover.txt", strings.NewReader(`
# A killed relay's messages wait for a lease
#
# A dies right after a commit.

lease 12s
interval 4s

start A B
within 30s B owns 4 buckets
at 60s kill A
commit m1..m3 in bucket 0
within 17s 1 deliveries of m1..m3
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	r := s.Run()
	fmt.Println(r.OK, r.Messages.Enqueued, r.Messages.Duplicates)
	// Output: true 3 0
}
