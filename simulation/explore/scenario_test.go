package explore

import (
	"strings"
	"testing"

	"github.com/bucketbrigade/relay/simulation"
)

// What is found is written as a scenario that the simulation plays: without the bug
// that was planted for it, nothing is broken there.
func TestScenarioOfViolation(t *testing.T) {
	for _, p := range leasePlantings()[:5] {
		o := p.within
		if underRace {
			continue
		}
		o.plant = p.plant
		text := Search(o).Violation.Scenario
		s, err := simulation.ParseScenario(p.name, strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v\n%s", p.name, err, text)
			continue
		}
		for _, v := range s.Run().Violations {
			t.Errorf("%s: %v\n%s", p.name, v, text)
		}
	}
}
