package mutants_test

const (
	clockFile    = "actors/coordinator/clock.go"
	withdrawFile = "actors/coordinator/withdraw.go"
)

// clocks are mutants of the clock guard and of withdrawal.
func clocks() []mutant {
	return []mutant{
		{
			name: "dates are not looked at", breaks: "a clock that is off is noticed", caught: by("I-35", "I-5"),
			edits: in(clockFile, "	g.dated = m.Reply.Date != 0\n", "	g.dated = m.Reply.Date < 0\n"),
		},
		{
			name: "a step is not looked at", breaks: "a clock that has stepped is in doubt until the next answer", caught: by("I-35", "I-5"),
			edits: in(clockFile, "	if step.Abs() > stepGrain {\n		g.bounds = nil", "	if step.Abs() < 0 {\n		g.bounds = nil"),
		},
		{
			name: "a doubtful round beats its heart", breaks: "a relay that is ahead, or may be, reads before it writes", caught: by("I-35"),
			edits: in(round, " || c.guard.doubtful(c.now)", ""),
		},
		{
			name: "an off round claims", breaks: "a relay whose clock is off claims nothing", caught: by("I-35", "I-5"),
			edits: in(round, "	case c.round.clock.off: // nothing is claimed or pruned\n		c.holdAll()\n		c.nextRound(everyRound)\n		return\n	case c.round.silent: // our clock is right after all\n		c.beginRound()\n		return\n",
				"	case c.round.silent && !c.round.clock.off:\n		c.beginRound()\n		return\n	case c.round.silent:\n		c.round.mayClaim = true\n"),
		},
		{
			name: "the round's now is not looked at", breaks: "a clock that was set right within the round makes it off (M-02)", caught: by("I-35", "I-5"),
			edits: in(clockFile, "	if was, off := g.off(then); off {\n		return was, true\n	}\n	if step := gapOf(now) - gapOf(then); step.Abs() > g.limit {", "	if step := gapOf(now) - gapOf(then); step.Abs() < 0 {"),
		},
		{
			name: "ahead, keeps are sent", breaks: "a relay that is ahead keeps nothing", caught: by("I-35"),
			edits: in(lease, "	if round.Ahead {\n		return\n	}\n", ""),
		},
		{
			name: "a relay withdraws for good", breaks: "a relay comes back when its clock is right and a broker is reached", caught: by("I-10", "I-1"),
			edits: in(withdrawFile, "	if left || c.round.clock.off || !c.connected {", "	if left || c.round.clock.off || c.state == withdrawn {"),
		},
		{
			name: "comes back without a broker", breaks: "a relay that reaches no broker takes no share", caught: by("I-13", "I-10", "I-9"),
			edits: in(withdrawFile, "	if left || c.round.clock.off || !c.connected {", "	if left || c.round.clock.off {"),
		},
	}
}
