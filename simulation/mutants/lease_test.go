package mutants_test

const (
	coordination = "store/coordination.go"
	lease        = "actors/bucket/lease.go"
	round        = "actors/coordinator/round.go"
	instant      = "store/instant.go"
)

// requests are mutants of what is sent to the coordination partition.
func requests() []mutant {
	return []mutant{
		{
			name: "heartbeat moves backwards", breaks: "a late heartbeat revives a stopped relay (L-01)", caught: by("I-20"),
			edits: in(coordination, `"attribute_not_exists(#seen) OR #seen <= :now"`,
				`"attribute_not_exists(#seen) OR #seen <= :now OR #seen > :now"`),
		},
		{
			name: "heartbeat without incarnation", breaks: "two processes of one id do not learn of each other", caught: by("I-20"),
			edits: in(coordination, `if r.Incarnation != "" {`, `if r.Incarnation == "" {`),
		},
		{
			name: "claim of a live lease", breaks: "the condition of a claim", caught: by("I-5", "I-20"),
			edits: in(coordination, `OR attribute_not_exists(#expires) OR #expires <= :now")`,
				`OR attribute_not_exists(#expires) OR #expires <= :now OR #expires > :now")`),
		},
		{
			name: "claim without its number", breaks: "what an earlier tenure sent cannot be told from this one", caught: by("I-20"),
			edits: in(coordination, `"SET #owner = :me, #expires = :expiry, #incarnation = :incarnation, #claim = :claim"`,
				`"SET #owner = :me, #expires = :expiry, #incarnation = :incarnation, #claim = if_not_exists(#claim, :claim)"`),
		},
		{
			name: "keep under any expiry", breaks: "a late keep undoes a newer one", caught: by("I-7", "I-20"),
			edits: in(coordination, "in.ConditionExpression = aws.String(\"#owner = :me AND #expires = :seen\")\n\tin.ExpressionAttributeNames = leaseNames()",
				"in.ConditionExpression = aws.String(\"#owner = :me AND (#expires = :seen OR #expires <> :seen)\")\n\tin.ExpressionAttributeNames = leaseNames()"),
		},
		{
			name: "release under any expiry", breaks: "a late release frees a lease that was taken again", caught: by("I-5", "I-20"),
			edits: in(coordination, "in.ConditionExpression = aws.String(\"#owner = :me AND #expires = :seen\")\n\tin.ExpressionAttributeNames = map",
				"in.ConditionExpression = aws.String(\"#owner = :me AND (#expires = :seen OR #expires <> :seen)\")\n\tin.ExpressionAttributeNames = map"),
		},
		{
			name: "release of another's lease", breaks: "the owner in the condition of a release", caught: by("I-5", "I-20"),
			edits: in(coordination, "in.ConditionExpression = aws.String(\"#owner = :me AND #expires = :seen\")\n\tin.ExpressionAttributeNames = map",
				"in.ConditionExpression = aws.String(\"(#owner = :me OR attribute_exists(#owner)) AND (#expires = :seen OR #expires > :seen)\")\n\tin.ExpressionAttributeNames = map"),
		},
		{
			name: "release keeps the owner", breaks: "a released lease has no owner", caught: by("I-20"),
			edits: in(coordination, `"SET #expires = :now REMOVE #owner"`, `"SET #expires = :now, #owner = :me"`),
		},
		{
			name: "own repeated claim is a refusal", breaks: "the SDK's repetition of an applied claim is recognised (D-01)", caught: by("I-20"),
			edits: in(coordination, "old.Claim == r.Claim && old.Expires == r.Expires\n\t})\n}\n\nfunc (c *Client) keep",
				"old.Claim == r.Claim && old.Expires == r.Expires && r.Relay == \"\"\n\t})\n}\n\nfunc (c *Client) keep"),
		},
		{
			name: "own repeated keep is a refusal", breaks: "the SDK's repetition of an applied keep is recognised (D-01)", caught: by("I-20"),
			edits: in(coordination, "old.Claim == r.Claim && old.Expires == r.Expires\n\t})\n}\n\nfunc (c *Client) release",
				"old.Claim == r.Claim && old.Expires == r.Expires && r.Relay == \"\"\n\t})\n}\n\nfunc (c *Client) release"),
		},
		{
			name: "any old item is our own", breaks: "a keep that is refused by another owner is a loss", caught: by("I-5", "I-20"),
			edits: in(coordination, "if own(old) {", "if own(old) || old.Owner != \"\" {"),
		},
		{
			name: "stamp of another incarnation", breaks: "a stop stamps only a record of its own incarnation", caught: by("I-20"),
			edits: in(coordination, `"attribute_not_exists(#incarnation) OR #incarnation = :mine"`,
				`"attribute_not_exists(#incarnation) OR #incarnation = :mine OR attribute_exists(#incarnation)"`),
		},
		{
			name: "prune of a live record", breaks: "only records that are long gone are pruned", caught: by("I-20"),
			edits: []edit{
				{round, "if record.LastSeen < r.Dead || record.Stopped != 0 && record.LastSeen < r.Stopped {", "if record.LastSeen > r.Dead {"},
				{coordination, `"attribute_not_exists(#pk) OR #seen < :dead" +`, `"attribute_not_exists(#pk) OR #seen < :dead OR #seen >= :dead" +`},
			},
		},
		{
			name: "prune at once", breaks: "a stopped record stays for a lease duration, to refuse late heartbeats", caught: by("I-20", "I-35"),
			edits: in(round, "Stopped:  now.Add(-c.cfg.LeaseDuration),", "Stopped:  now,"),
		},
		{
			name: "coordination read may be stale", breaks: "the coordination read is strongly consistent", caught: by("I-21"),
			edits: in(coordination, "ConsistentRead:         aws.Bool(true),", "ConsistentRead:         aws.Bool(false),"),
		},
		{
			name: "only the first page is read", breaks: "the plan is made after the last page (L-18)", caught: by("I-22", "I-12", "I-24"),
			edits: in(round, `		if page.Next != "" {
			c.read(page.Next)
			return
		}
		c.allRead()`, `		c.allRead()`),
		},
	}
}

// leases are mutants of what a bucket concludes about its lease.
func leases() []mutant {
	return []mutant{
		{
			name: "unsettled is lost", breaks: "a refusal by our own older write concludes nothing", caught: by("I-24"),
			edits: in(lease, "return old != nil && old.Owner == c.cfg.Relay && old.Incarnation == c.cfg.Incarnation\n", "return false && old != nil\n"),
		},
		{
			name: "unanswered keep is applied", breaks: "an unanswered write is unsettled", caught: by("I-5", "I-6", "I-20", "I-23"),
			edits: in(lease, "	case store.Ambiguous:\n		c.unsettled(m)", "	case store.Ambiguous:\n		c.leaseWritten(m.Request)"),
		},
		{
			name: "throttled keep is applied", breaks: "a write that was not applied changes nothing", caught: by("I-5", "I-6", "I-20", "I-23"),
			edits: in(lease, "	case store.Retriable:\n		c.leaseNotWritten(m)", "	case store.Retriable:\n		c.leaseWritten(m.Request)"),
		},
		{
			name: "expiry moves backwards", breaks: "a clock that is behind sends no keep (L-06)", caught: by("I-7", "I-20"),
			edits: in(lease, "if expires < c.lease.seen {", "if expires < 0 {"),
		},
		{
			// Either is enough: a keep that ends with its round is older than the next reading.
			name: "an old reading counts", breaks: "a lease that was read before our own last write has ended says nothing", caught: by("I-24", "I-20"),
			edits: []edit{
				{lease, "if c.lease.token == 0 && (c.lease.ended.IsZero() || c.lease.ended.Mono < m.Round.ReadAt.Mono) {", "if c.lease.token == 0 {"},
				{lease, "		Expires:     expires,\n		NotAfter:    round.Now.Add(c.cfg.LeaseRenewInterval),", "		Expires:     expires,\n		NotAfter:    round.Now.Add(3 * c.cfg.LeaseRenewInterval),"},
			},
		},
		{
			name: "a second write of a lease", breaks: "one lease write at a time", caught: by("I-15"),
			edits: []edit{
				{lease, "if c.lease.token != 0 || c.lease.seen == 0 {", "if c.lease.seen == 0 {"},
				{lease, "if c.lease.token == 0 && c.lease.seen != 0 && c.machine.In(", "if c.lease.seen != 0 && c.machine.In("},
			},
		},
		{
			name: "a restart claims", breaks: "a relay that starts again takes up the leases that name it", caught: by("I-22", "I-29"),
			edits: in(coreFile, "c.lease.seen, c.lease.resuming = m.Lease.Expires, true\n		c.keep(m.Round)", "c.lease.seen, c.lease.resuming = m.Lease.Expires, true\n		c.claim(m.Round)"),
		},
		{
			name: "clock behind publishes", breaks: "nothing is published until the clock has passed what was withheld", caught: by("I-25"),
			edits: in(lease, "behind := c.lease.barrier != 0 && c.now.Ticks() <= c.lease.barrier", "behind := false && c.now.Ticks() <= c.lease.barrier"),
		},
		{
			name: "any incarnation is ours", breaks: "a lease of another process under our id is not ours", caught: by("I-34", "I-5"),
			edits: []edit{
				{lease, "return lease.Incarnation == c.cfg.Incarnation || c.lease.resuming", "return true"},
				{lease, "return old != nil && old.Owner == c.cfg.Relay && old.Incarnation == c.cfg.Incarnation\n", "return old != nil && old.Owner == c.cfg.Relay\n"},
				{round, "if result.Previous != nil && result.Previous.Incarnation > c.id.incarnation {", "if false {"},
				{round, "if by := c.successor(); by != \"\" {", "if by := c.successor(); by == \"?\" {"},
			},
		},
		{
			name: "a replaced process goes on", breaks: "a process that finds a higher incarnation ends (M-09)", caught: by("I-5", "I-20", "I-23"),
			edits: []edit{
				{round, "if result.Previous != nil && result.Previous.Incarnation > c.id.incarnation {", "if false {"},
				{round, "if by := c.successor(); by != \"\" {", "if by := c.successor(); by == \"?\" {"},
			},
		},
		{
			name: "tenures share a number", breaks: "each tenure of an incarnation has a number of its own", caught: by("I-20", "I-9"),
			edits: in("actors/coordinator/children.go", "	c.lastTenure++\n", "	c.lastTenure = int64(b) + 1\n"),
		},
		{
			name: "claims although its heartbeat failed", breaks: "a relay whose heartbeat was refused or unanswered claims nothing (L-05)", caught: by("I-22"),
			edits: in(round, "	if !c.round.mayClaim {\n		return\n	}\n", ""),
		},
		{
			name: "joins before it can work", breaks: "no heartbeat before table and broker were reached (M-12)", caught: by("I-13"),
			edits: in(round, "c.state == starting && !(c.tableRead && c.connected)", "c.state == starting && !c.tableRead"),
		},
		{
			name: "a failed read shows an empty table", breaks: "after a failed read what is held is kept and nothing is claimed", caught: by("I-22", "I-24", "I-9", "I-5"),
			edits: in(round, `		if !ok {
			c.readFailed(m.Reply)
			return
		}`, `		if !ok && c.state == starting {
			c.readFailed(m.Reply)
			return
		}`),
		},
	}
}

// validity are mutants of for how long a lease is believed.
func validity() []mutant {
	return []mutant{
		{
			name: "skew is not subtracted", breaks: "local validity ends MaxClockSkew before the lease", caught: by("I-5", "I-23"),
			edits: in(lease, "c.lease.round.Now.Add(c.cfg.LeaseDuration - c.cfg.MaxClockSkew)", "c.lease.round.Now.Add(c.cfg.LeaseDuration)"),
		},
		{
			name: "validity counts from the answer", breaks: "local validity counts from the round's now", caught: by("I-5", "I-23"),
			edits: in(lease, "c.lease.round.Now.Add(c.cfg.LeaseDuration - c.cfg.MaxClockSkew)", "c.now.Add(c.cfg.LeaseDuration - c.cfg.MaxClockSkew)"),
		},
		{
			name: "the wall clock is ignored", breaks: "a suspended machine does not prolong a lease (X-18)", caught: by("I-5", "I-6"),
			edits: []edit{
				{instant, "return now.Wall > i.Wall || now.Mono > i.Mono", "return now.Mono > i.Mono"},
				{instant, "return min(deadline.Wall-i.Wall, deadline.Mono-i.Mono)", "return deadline.Mono - i.Mono"},
			},
		},
		{
			name: "the monotonic clock is ignored", breaks: "a wall clock that is set back does not prolong a lease (X-18)", caught: by("I-5", "I-6"),
			edits: []edit{
				{instant, "return now.Wall > i.Wall || now.Mono > i.Mono", "return now.Wall > i.Wall"},
				{instant, "return min(deadline.Wall-i.Wall, deadline.Mono-i.Mono)", "return deadline.Wall - i.Wall"},
			},
		},
		{
			name: "publishes without an end", breaks: "each publish carries the end of the lease's validity (L-07)", caught: by("I-6"),
			edits: in("actors/bucket/publish.go", "		NotAfter: c.lease.validUntil,", "		NotAfter: c.now.Add(1000 * c.cfg.LeaseDuration),"),
		},
		{
			name: "the publisher ignores the end", breaks: "no record is submitted after the lease's validity", caught: by("I-6"),
			edits: in("actors/publisher/submit.go", "if t.lapsed(c.now) {", "if false {"),
		},
		{
			name: "deletes without an end", breaks: "each delete carries the end of the lease's validity (L-09)", caught: by("I-6"),
			edits: []edit{
				{"actors/bucket/delete.go", "	if !c.valid() {\n		b.chunk = nil\n", "	if false {\n		b.chunk = nil\n"},
				{"actors/bucket/delete.go", "Sequences: b.chunk, NotAfter: c.lease.validUntil}", "Sequences: b.chunk}"},
			},
		},
		{
			name: "a lapse is not noticed", breaks: "a lapsed lease gives up what is outstanding", caught: by("I-5", "I-26"),
			edits: in(lease, "	c.withhold(\"lease lapsed\")\n}\n\n// withhold sends", "}\n\n// withhold sends"),
		},
	}
}
