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
			name: "a clock that is behind is not off", breaks: "a relay whose clock is behind claims and prunes nothing", caught: by("I-35", "I-5"),
			edits: in(clockFile, "s.low > g.limit || s.high < -g.limit", "s.low > g.limit"),
		},
		{
			name: "a clock that is ahead is not off", breaks: "a relay whose clock is ahead writes no heartbeat and no lease", caught: by("I-35", "I-5"),
			edits: in(clockFile, "s.low > g.limit || s.high < -g.limit", "s.high < -g.limit"),
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
			name: "ahead, keeps are sent", breaks: "a relay that is ahead keeps nothing", caught: by("I-35"),
			edits: in(lease, "	if round.Ahead {\n		return\n	}\n", ""),
		},
		{
			name: "an incarnation of a wrong clock stays", breaks: "a relay whose clock was ahead before it joined is no successor of those to come", caught: by(scripted), scenario: "M-09-clock",
			edits: in(withdrawFile, "		if c.lastBeat == 0 {", "		if c.lastBeat < 0 {"),
		},
		{
			name: "a relay that has withdrawn renews leases", breaks: "what is left when a relay has withdrawn lapses", caught: by("I-46"), scenario: "X-13-in-flight",
			edits: in(withdrawFile, "c.attend(b, bucket.Leave)", "c.attend(b, bucket.Yield)"),
		},
		{
			name: "a relay withdraws for good", breaks: "a relay comes back when its clock is right and a broker is reached", caught: by("I-10", "I-1"),
			edits: in(withdrawFile, "	if left || c.round.clock.off || !c.connected {", "	if left || c.round.clock.off || c.state == withdrawn {"),
		},
	}
}
