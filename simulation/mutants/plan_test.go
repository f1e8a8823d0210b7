package mutants_test

const (
	planFile = "actors/coordinator/plan.go"
	stopFile = "actors/coordinator/stop.go"
	coreFile = "actors/bucket/core.go"
)

// plans are mutants of who takes what.
func plans() []mutant {
	return []mutant{
		{
			name: "shares are rounded up", breaks: "the split is fair for a joiner too (L-10)", caught: by("I-10", "I-29"),
			edits: in(planFile, "floor, remainder := buckets/len(held), buckets%len(held)", "floor, remainder := (buckets+len(held)-1)/len(held), 0"),
		},
		{
			name: "the remainder goes to nobody", breaks: "every bucket has an owner", caught: by("I-1", "I-10", "I-29"),
			edits: in(planFile, "floor, remainder := buckets/len(held), buckets%len(held)", "floor, remainder := buckets/len(held), 0"),
		},
		{
			name: "everybody claims what is free", breaks: "claims of relays that read the same are disjoint (L-11)", caught: by("I-28"),
			edits: in(planFile, "	var ours, left []int\n	take :=", `	var blind []int
	for b, h := range d.holders {
		if h == nobody && len(blind) < short[me] {
			blind = append(blind, b)
		}
	}
	if len(blind) > 0 {
		return blind
	}
	var ours, left []int
	take :=`),
		},
		{
			name: "the remainder goes by name", breaks: "a joiner whose id sorts first moves nothing (L-12)", caught: by("I-11", "I-29"),
			edits: in(planFile, "if remainder > 0 && held[r] > floor == holdsMore {", "if remainder > 0 && holdsMore {"),
		},
		{
			name: "a silent relay's live lease is free", breaks: "a live lease of a relay without a heartbeat is not free (L-15)", caught: by("I-22"),
			edits: in(planFile, "	return somebody\n", "	return nobody\n"),
		},
		{
			name: "live leases count as expired", breaks: "only expired leases are free", caught: by("I-22"),
			edits: in(round, "Expired: lease.Expires <= now}", "Expired: lease.Expires > now}"),
		},
		{
			name: "leases never expire", breaks: "the buckets of a dead relay are taken", caught: by("I-1", "I-10", "I-29"),
			edits: in(round, "Expired: lease.Expires <= now}", "Expired: lease.Expires <= 0 && now > 0}"),
		},
		{
			name: "stopped relays count", breaks: "a stopped relay's buckets are taken within a round", caught: by("I-29"),
			edits: in(round, "if r.Stopped == 0 && r.LastSeen > oldest {", "if r.LastSeen > oldest {"),
		},
		{
			name: "dead relays count", breaks: "a relay whose heartbeat has lapsed has no share", caught: by("I-1", "I-10", "I-29"),
			edits: in(round, "if r.Stopped == 0 && r.LastSeen > oldest {", "if r.Stopped == 0 && r.LastSeen > 0 && oldest > 0 {"),
		},
		{
			name: "nothing is handed back", breaks: "who has more than its share hands it back", caught: by("I-10", "I-29"),
			edits: in(round, "		c.attend(b, bucket.Yield)", "		c.attend(b, bucket.Hold)"),
		},
		{
			name: "standbys sleep too long", breaks: "a standby refreshes its heartbeat within three quarters of the lease", caught: by("I-32"),
			edits: in(round, "return max(everyRound, int(c.cfg.LeaseDuration*3/4/c.cfg.LeaseRenewInterval))", "return max(everyRound, int(c.cfg.LeaseDuration*9/4/c.cfg.LeaseRenewInterval))"),
		},
	}
}

// stops are mutants of how buckets and relays hand over.
func stops() []mutant {
	return []mutant{
		{
			name: "release before the batch has ended", breaks: "a release is sent when nothing of the bucket is in flight", caught: by("I-9", "I-6"),
			edits: in(coreFile, "case c.machine.In(fsm.Draining) && c.batch == nil && c.lease.token == 0:", "case c.machine.In(fsm.Draining) && c.lease.token == 0:"),
		},
		{
			name: "acknowledged rows are left behind", breaks: "what was published is deleted before the bucket is handed over (L-23)", caught: by("I-29"),
			edits: in(coreFile, "c.batch.machine.In(fsm.Fetching, fsm.Probing, fsm.BackingOff)", "c.batch.machine.In(fsm.Fetching, fsm.Probing, fsm.BackingOff, fsm.Deleting)"),
		},
		{
			name: "no stamp", breaks: "a stop stamps its record, so that peers take over within a round", caught: by("I-29", "I-30"),
			edits: in(stopFile, "	c.stop.phase = stamping\n	c.arm(deadlineTimer, c.now.Until(c.stop.until))\n	c.stamp()",
				"	c.stop.phase = reading\n	c.arm(deadlineTimer, c.now.Until(c.stop.until))\n	c.readLeases(\"\")"),
		},
		{
			name: "release before the stamp", breaks: "the record is stamped before any lease is handed back", caught: by("I-30"),
			edits: []edit{
				{stopFile, "	c.stop.phase = stamping\n	c.arm(deadlineTimer, c.now.Until(c.stop.until))\n	c.stamp()",
					"	c.stop.phase = reading\n	c.arm(deadlineTimer, c.now.Until(c.stop.until))\n	c.readLeases(\"\")"},
				{stopFile, "	if c.stop.reads == maxFinalReads {\n		c.handedBack()", "	if c.stop.reads == maxFinalReads {\n		c.stamp()\n		c.handedBack()"},
			},
		},
		{
			name: "the leases are read once", breaks: "a stop reads again until no lease names it (L-02)", caught: by("I-30"),
			edits: in(stopFile, "if c.stop.reads == maxFinalReads {", "if c.stop.reads == 1 {"),
		},
		{
			name: "a stop frees what is in flight", breaks: "a stop that misses its deadline releases nothing that may still be published", caught: by("I-6"),
			edits: in(stopFile, "		case k.tenure == 0 && names && k.failures.count == 0:", "		case names:"),
		},
		{
			name: "a stop frees nothing", breaks: "a stop hands its leases back", caught: by("I-29", "I-30"),
			edits: in(stopFile, "		case k.tenure != 0 && k.quiesced:", "		case k.tenure < 0:"),
		},
		{
			name: "a lease that was not taken up is freed", breaks: "a bucket hands back only what its own incarnation has written", caught: by("I-34", scripted), scenario: "M-09-not-taken-up",
			edits: in(coreFile, "c.lease.resuming && c.lease.read.Incarnation != c.cfg.Incarnation:", "c.lease.resuming && c.lease.read == nil:"),
		},
		{
			name: "a stop frees a namesake's lease", breaks: "a stop frees only leases of its own incarnation", caught: by("I-34", "I-5"),
			edits: in(stopFile, "lease.Owner == c.id.relay && lease.Incarnation == c.id.incarnation\n", "lease.Owner == c.id.relay\n"),
		},
		{
			name: "a stamp is not above the heartbeats", breaks: "the stamp refuses heartbeats that land late (L-01)", caught: by("I-30"),
			edits: in(stopFile, "at = max(at, c.serviceTime())", "at = c.serviceTime()"),
		},
		{
			name: "rounds go on under the hand-back", breaks: "a relay that hands back has no round under way", caught: by("I-9"),
			edits: in(stopFile, "	c.round.token = 0\n	c.timers[roundTimer]++\n", ""),
		},
		{
			name: "a stopping relay plans on", breaks: "a relay that stops claims nothing more", caught: by("I-30", "I-29", "I-9"),
			edits: in(round, "	case c.state == stopping || c.state == withdrawn:\n		c.holdAll()\n		c.nextRound(everyRound)\n		return\n", ""),
		},
		{
			name: "a stop does not drain", breaks: "publishes in flight end before the leases are handed back", caught: by("I-29"),
			edits: in(stopFile, "		if c.busy == 0 {", "		if c.busy >= 0 {"),
		},
	}
}
