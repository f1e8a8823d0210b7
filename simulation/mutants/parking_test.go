package mutants_test

const (
	moveGo      = "actors/bucket/move.go"
	parkedGo    = "actors/bucket/parked.go"
	retryGo     = "actors/bucket/retry.go"
	condemnedGo = "actors/bucket/condemned.go"
	parkingGo   = "store/parking.go"
	transactGo  = "store/transact.go"
)

// parking are mutants of how rows are set aside.
func parking() []mutant {
	return []mutant{
		{
			name: "a move under any lease", breaks: "what an earlier owner sent late is refused (M-01)", caught: by("I-37"),
			edits: in(transactGo, `"#owner = :me AND #incarnation = :inc AND #claim = :claim"`,
				`"#owner = :me AND #incarnation = :inc AND #claim = :claim OR #owner <> :me OR #incarnation <> :inc OR #claim <> :claim"`),
		},
		{
			name: "a move of an earlier tenure", breaks: "what the same process sent in an earlier tenure is refused (M-01)", caught: by("I-37"),
			edits: in(transactGo, `"#owner = :me AND #incarnation = :inc AND #claim = :claim"`,
				`"#owner = :me AND #incarnation = :inc AND (#claim = :claim OR #claim <> :claim)"`),
		},
		{
			name: "a move of an earlier incarnation", breaks: "what an earlier process of the same id sent is refused", caught: by("I-37"),
			edits: in(transactGo, `"#owner = :me AND #incarnation = :inc AND #claim = :claim"`,
				`"#owner = :me AND (#incarnation = :inc OR #incarnation <> :inc) AND #claim = :claim"`),
		},
		{
			name: "rows move before their marker", breaks: "the marker is in the table before any row moves (M-08)", caught: by("I-38"),
			edits: in(moveGo, "	if len(missing) > 0 {\n", "	if len(missing) > 0 && len(move.Rows) == 0 {\n"),
		},
		{
			name: "a marker replaces another", breaks: "an operator's marker, with a wish for a retry, stays", caught: by("I-37"),
			edits: in(parkingGo, "			Item:                     c.markerItem(r.Tenure.Bucket, marker),\n			ConditionExpression:      aws.String(\"attribute_not_exists(#pk)\"),",
				"			Item:                     c.markerItem(r.Tenure.Bucket, marker),\n			ConditionExpression:      aws.String(\"attribute_not_exists(#pk) OR attribute_exists(#pk)\"),"),
		},
		{
			name: "a row that is gone is set aside", breaks: "only a row that still waits is moved", caught: by("I-37"),
			edits: in(parkingGo, "			ConditionExpression:      aws.String(\"attribute_exists(#pk)\"),",
				"			ConditionExpression:      aws.String(\"attribute_exists(#pk) OR attribute_not_exists(#pk)\"),"),
		},
		{
			name: "a moved row replaces another message", breaks: "a row that is set aside is not overwritten", caught: by("I-37"),
			edits: in(parkingGo, `"attribute_not_exists(#pk) OR #id = :id"`, `"attribute_not_exists(#pk) OR #id = :id OR #id <> :id"`),
		},
		{
			name: "a move leaves the row behind", breaks: "a row that is set aside leaves the messages", caught: by("I-37"),
			edits: in(parkingGo, "		x.remove(RowRefused, types.Delete{\n			TableName:                &c.schema.Table,\n			Key:                      c.schema.Key(c.schema.MessagesKey(r.Tenure.Bucket), outbox.SequenceSortKey(moving.Row.Sequence)),\n			ConditionExpression: ",
				"		x.check(RowRefused, types.ConditionCheck{\n			TableName:                &c.schema.Table,\n			Key:                      c.schema.Key(c.schema.MessagesKey(r.Tenure.Bucket), outbox.SequenceSortKey(moving.Row.Sequence)),\n			ConditionExpression: "),
		},
		{
			name: "headers are left behind", breaks: "a row is set aside with all of its attributes", caught: by("I-37"),
			edits: in(parkingGo, "	moved := maps.Clone(item)\n", "	moved := maps.Clone(item)\n	delete(moved, outbox.AttrHeaders)\n"),
		},
		{
			name: "keyless rows are one key", breaks: "a row without a key is set aside alone", caught: by("I-37"),
			edits: in(moveGo, "		if aside {\n			b.aside = append(b.aside, store.Moving{KeyID: keyID, Row: *row})",
				"		if aside {\n			if row.Message.Key == nil && len(b.aside) > 0 {\n				keyID = b.aside[0].KeyID\n			}\n			b.aside = append(b.aside, store.Moving{KeyID: keyID, Row: *row})"),
		},
		{
			name: "rows move under any marker", breaks: "a move is refused when its marker was removed and set anew", caught: by("I-37"),
			edits: in(parkingGo, `"#parked = :known"`, `"#parked = :known OR #parked <> :known"`),
		},
		{
			name: "a marker is removed whatever was asked", breaks: "a retry that was asked for meanwhile is not forgotten (M-05)", caught: by("I-37"),
			edits: in(parkingGo, "	condition, names, values := unchanged(r.Marker)\n	x.remove(", "	condition, names, values := unchanged(r.Marker)\n	condition = condition + \" OR NOT (\" + condition + \")\"\n	x.remove("),
		},
		{
			name: "a retry ends whatever was asked", breaks: "a rejected retry leaves a newer wish alone (M-05)", caught: by("I-37"),
			edits: in(parkingGo, "	condition, names, values := unchanged(r.Marker)\n	set :=", "	condition, names, values := unchanged(r.Marker)\n	condition = condition + \" OR NOT (\" + condition + \")\"\n	set :="),
		},
		{
			name: "a tenure does not read the markers", breaks: "what is set aside is known before the first fetch", caught: by("I-39", "I-4", "I-9"),
			edits: in(coreFile, "expected: 1, lastBatch: uint64(cfg.Claim) << 32}", "expected: 1, lastBatch: uint64(cfg.Claim) << 32, parked: parked{known: true}}"),
		},
		{
			name: "only the first page of markers", breaks: "all markers are read before the first fetch", caught: by("I-39", "I-40", "I-38", "I-4"),
			edits: in(parkedGo, "	if page.Next != \"\" {\n		c.readMarkers(page.Next)\n		return\n	}\n", ""),
		},
		{
			name: "markers may be stale", breaks: "the markers are read strongly consistent", caught: by("I-21"),
			edits: in(parkingGo, "		ConsistentRead:            aws.Bool(true),", "		ConsistentRead:            aws.Bool(false),"),
		},
		{
			name: "nobody hears the bell", breaks: "the owner looks again when an operator has rung", caught: by("I-39", "I-10"),
			edits: in(parkedGo, "if c.parked.known && c.attention() != c.parked.heard {", "if c.parked.known && c.attention() < 0 {"),
		},
		{
			name: "the bell is looked at after the query", breaks: "a bell that rings during the query is heard (M-11)", caught: by("I-39"),
			edits: in(parkedGo, "	c.parked.take(c.now.Ticks())\n", "	c.parked.asking = c.attention()\n	c.parked.take(c.now.Ticks())\n"),
		},
		{
			name: "retries begin at once", breaks: "after a tenure that was not ended cleanly, retries wait", caught: by("I-40"),
			edits: in(parkedGo, "return c.cleanly || c.aged() }", "return c.cleanly || !c.ownedSince.IsZero() }"),
		},
		{
			name: "newer rows pass", breaks: "rows of a key that is set aside are moved behind it", caught: by("I-39", "I-4"),
			edits: in(parkedGo, "	if _, known := p.find(keyID); known {\n		return keyID, true\n	}\n", ""),
		},
		{
			name: "newer rows pass a retry", breaks: "newer rows pass only when the retry is over", caught: by("I-39", "I-4"),
			edits: in(parkedGo, "	if _, known := p.find(keyID); known {\n		return keyID, true\n	}\n",
				"	if n, known := p.find(keyID); known {\n		return keyID, p.keys[n].RetryAt == 0\n	}\n"),
		},
		{
			name: "a topic's new keys pass", breaks: "all keys of a topic that is set aside are", caught: by("I-39"),
			edits: in(parkedGo, "return keyID, known && !p.topics[i].retried()", "return keyID, known && p.topics[i].RetryAt < 0"),
		},
		{
			name: "a topic's retry is one of all its keys", breaks: "a topic's retry leaves alone what was set aside for rejections", caught: by("I-40"),
			edits: in(parkedGo, " && key.Reason == store.ReasonTopic", " && key.Reason != \"\""),
		},
		{
			name: "a topic's marker goes first", breaks: "a topic's marker goes after those of its keys", caught: by("I-40", scripted), scenario: "P-02-outage",
			edits: in(parkedGo, "t.retried() && !slices.ContainsFunc(p.keys, func(k parkedKey) bool { return k.ofTopic(t.Marker) })", "t.retried()"),
		},
		{
			name: "a key is cleared in a young tenure", breaks: "an empty key is cleared once the tenure has an age", caught: by("I-40"),
			edits: in(parkedGo, "!c.parked.drained || !c.aged() || c.retryDue()", "!c.parked.drained || c.retryDue()"),
		},
		{
			name: "a key is cleared before its rows have moved", breaks: "an empty key is cleared only when no row waits that it was set for", caught: by("I-40"),
			edits: []edit{
				{parkedGo, "!c.parked.drained || !c.aged() || c.retryDue()", "!c.aged() || c.retryDue()"},
				{retryGo, "	case (p.checking || p.owed) && c.checkDue():", "	case c.checkDue():"},
			},
		},
		{
			name: "removed before acknowledged", breaks: "a row that is retried is removed after its acknowledgement", caught: by("I-3"),
			edits: in(publishFile, "		if result.Outcome != publisher.Acknowledged {", "		if result.Outcome != publisher.Acknowledged && !(b.keyed && i > 0) {"),
		},
		{
			name: "a retry begins with the second row", breaks: "rows of a key are retried in order", caught: by("I-4"),
			edits: in(retryGo, "		b.solid, b.last = len(b.rows), b.rows[len(b.rows)-1].Sequence\n", "		if len(b.rows) > 1 {\n			b.rows = b.rows[1:]\n		}\n		b.solid, b.last = len(b.rows), b.rows[len(b.rows)-1].Sequence\n"),
		},
		{
			name: "a retry ends with its first batch", breaks: "the marker is removed when no row is left", caught: by("I-38"),
			edits: in(retryGo, "	case b.more || b.malformed != nil:", "	case b.malformed != nil:"),
		},
		{
			name: "the last pass is not exclusive", breaks: "between the last rows of a key and its marker nothing new is fetched", caught: by("I-38"),
			edits: []edit{
				{parkedGo, "	checking bool\n", "	checking bool\n	emptied  string\n"},
				{retryGo, "		c.endBatch(fsm.Deleted)\n	default:\n		c.clear()\n", "		c.endBatch(fsm.Deleted)\n	default:\n		c.woken, c.parked.emptied = \"retry\", b.key.KeyID\n		c.endBatch(fsm.Deleted)\n"},
				{retryGo, "	if wanted.KeyID == \"\" {\n", "	if wanted.KeyID == \"\" || wanted.KeyID == c.parked.emptied {\n		c.parked.emptied = \"\"\n"},
			},
		},
		{
			name: "an unanswered transaction is forgotten", breaks: "a transaction without an answer is repeated before anything else", caught: by("I-37"),
			edits: in(retryGo, "	case c.unanswered != nil:\n", "	case c.unanswered != nil && c.failures < 0:\n"),
		},
		{
			name: "repeated under a new token", breaks: "the repetition of a transaction is the same transaction", caught: by("I-37"),
			edits: in(retryGo, "		c.transact(c.unanswered)\n", "		if move, moves := c.unanswered.(store.Move); moves {\n			move.Token = c.transactionToken()\n			c.unanswered = move\n		}\n		c.transact(c.unanswered)\n"),
		},
		{
			name: "one token for all", breaks: "no two transactions have one token", caught: by("I-37", "I-9", "I-10", "I-38"),
			edits: in(moveGo, "	c.lastTransaction++\n", "	c.lastTransaction = 1\n"),
		},
		{
			name: "rows move behind an unprobed gap", breaks: "no row is set aside behind a gap that was not probed", caught: by("I-4"),
			edits: in(gapsFile, "		if sequence > b.next {", "		if _, aside := c.parked.aside(&b.rows[i]); sequence > b.next && !aside {"),
		},
		{
			name: "moves without a lease", breaks: "no transaction is sent without a valid lease", caught: by("I-6"),
			edits: []edit{
				{moveGo, "	r := withDeadline(b.queued, c.lease.validUntil)\n", "	r := withDeadline(b.queued, c.now.Add(c.cfg.LeaseDuration))\n"},
				{moveGo, "	if !c.valid() {\n", "	if !c.valid() && c.lease.token != 0 {\n"},
			},
		},
		{
			name: "a shared rejection condemns", breaks: "only rejections of a row alone in its request count", caught: by("I-45"),
			edits: in(publishFile, "return f.outcome == publisher.Refused }", "return f.outcome == publisher.Refused || f.class == publisher.Rejected.String() }"),
		},
		{
			name: "the first rejection is the last", breaks: "a row is tried as often as its policy says", caught: by("I-45"),
			edits: in(condemnedGo, "c.condemned.attempts < c.cfg.PoisonAfter", "c.condemned.attempts < 1"),
		},
		{
			name: "rejections of another row count", breaks: "rejections are counted for each row", caught: by("I-45"),
			edits: []edit{
				{condemnedGo, "		c.condemned = condemned{sequence: f.sequence}\n", "		c.condemned.sequence, c.condemned.parked = f.sequence, false\n"},
				{condemnedGo, "		c.condemned = condemned{}\n		c.transition(b.machine, fsm.Published)", "		c.transition(b.machine, fsm.Published)"},
				{condemnedGo, "	c.condemned = condemned{}\n}\n\nfunc tooLarge", "}\n\nfunc tooLarge"},
			},
		},
		{
			name: "an outage ends a retry", breaks: "a retry ends when a row is rejected, and for nothing else", caught: by("I-45"),
			edits: in(retryGo, "	if !b.failure.refused() {", "	if b.failure.class == \"\" {"),
		},
		{
			name: "a rejected row is skipped", breaks: "a key's later rows are set aside with the rejected one", caught: by("I-39", "I-4"),
			edits: in(moveGo, "		c.transition(b.machine, fsm.Marked)\n", "		c.parked.remove(r.Markers[0])\n		c.transition(b.machine, fsm.Marked)\n"),
		},
		{
			name: "a letter is not waited for", breaks: "a row is deleted after the acknowledgement of its letter", caught: by("I-3"),
			edits: in(condemnedGo, "	c.send([]outbox.Row{c.letter(row)})\n",
				"	c.send([]outbox.Row{c.letter(row)})\n	c.do(store.Delete{Bucket: c.cfg.Bucket, Sequences: []int64{row.Sequence}, NotAfter: c.lease.validUntil})\n"),
		},
		{
			name: "a letter does not say why", breaks: "a letter tells of its row's rejection", caught: by("I-2"),
			edits: in(condemnedGo, "	header(headerReason, c.condemned.reason)\n", ""),
		},
		{
			name: "a letter keeps its topic", breaks: "letters go to the dead-letter topic", caught: by("I-10", "I-1", "I-2"),
			edits: in(condemnedGo, "	m.Topic, m.Partition = c.cfg.DeadLetterTopic, nil\n", "	m.Partition = nil\n"),
		},
	}
}
