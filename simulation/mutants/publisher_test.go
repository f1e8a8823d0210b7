package mutants_test

const (
	producers = "actors/publisher/producers.go"
	submit    = "actors/publisher/submit.go"
	outcome   = "actors/publisher/outcome.go"
	recordGo  = "actors/publisher/record.go"
)

// publishing are mutants of the order algorithm.
func publishing() []mutant {
	return []mutant{
		{
			name: "no priming", breaks: "a producer's first record on a partition goes alone", caught: by("I-4", "I-31"),
			edits: in(producers, "return w.outstanding == 0 || w.known(now, primeAfter, era)", "return true"),
		},
		{
			name: "no priming again", breaks: "a producer that was idle is primed again", caught: by("I-4", "I-31"),
			edits: in(producers, "return w.primed && w.era == era && actors.Elapsed(w.lastSent, now) < primeAfter", "return w.primed && w.era == era"),
		},
		{
			name: "records wait for however long", breaks: "what outlasts a broker's memory does not wait behind another record", caught: by("I-4", "I-31"), scenario: "O-12-forgotten",
			edits: in(submit, "	c.watch(p, r.lane.place)\n", ""),
		},
		{
			name: "a pause does not count", breaks: "brokers forget a producer while it is idle, too", caught: by("I-4", "I-31"), scenario: "O-12-forgotten-idle",
			edits: in(producers, "	w.outstanding++\n	w.alone = ", "	if w.outstanding == 0 {\n		w.heard = now\n	}\n	w.outstanding++\n	w.alone = "),
		},
		{
			// In its place is a careful one, with one request under way: some fleets are too slow.
			name: "not gap-less", breaks: "shared producers are gap-less", caught: by("I-4", "I-31", "I-10"),
			edits: in("actors/publisher/perform.go", "f.factory.Open(options, f.sink)",
				"f.factory.Open(Options{Number: options.Number, MaxMessageBytes: options.MaxMessageBytes, Careful: true}, f.sink)"),
		},
		{
			name: "a fatal error is retriable", breaks: "a producer with a fatal error is replaced", caught: by("I-1", "I-10", "I-4"),
			edits: []edit{
				{"actors/publisher/core.go", "			c.fail(p, m.Fault)\n", "			_ = p\n"},
				{outcome, "		case Fatal, Fenced:\n			c.settle(t, i, Unknown, report.Fault)\n			culprit = report.Fault\n", ""},
				{outcome, "	if culprit != nil && (!p.options.Careful || culprit.Class != Rejected) {", "	if culprit != nil && culprit.Class != Rejected {"},
				{outcome, "	case fault.Class == Fatal || fault.Class == Fenced:\n		c.settle(t, i, Failed, fault)\n		c.fail(p, fault)\n", ""},
			},
		},
		{
			name: "reports by order", breaks: "a report belongs to the row that it names", caught: by("I-3", "I-17"),
			edits: in(outcome, "	i = t.find(token.Sequence)\n", "	i = slices.IndexFunc(t.rows, func(r row) bool { return r.state == outstanding })\n"),
		},
		{
			name: "later rows pass a refused one", breaks: "after a synchronous refusal nothing more of the batch is produced", caught: by("I-4", "I-31"),
			edits: in("actors/publisher/perform.go", "			if !halted[name] {", "			if !halted[name] || len(effects) > 0 {"),
		},
		{
			name: "a failed row does not stop its batch", breaks: "after the first row that fails no later one is submitted", caught: by("I-4", "I-31"),
			edits: in(submit, "	if outcome != Acknowledged {\n		t.stop()\n	}", ""),
		},
		{
			name: "a failed producer does not stop its batches", breaks: "no row is submitted behind one that went down with its producer", caught: by("I-4", "I-31"),
			edits: in(producers, "			b.active.stop()\n		}\n	}\n	c.vacate(p, fault)", "		}\n	}\n	c.vacate(p, fault)"),
		},
		{
			name: "rows pass one that waits", breaks: "a row waits behind an earlier one of its topic and key", caught: by("I-4", "I-31"),
			edits: in(submit, "				r.hold(c.pass)", ""),
		},
		{
			name: "a key on two partitions", breaks: "a row waits for those of its key that are outstanding on another partition", caught: by("I-4"),
			edits: in(submit, "return k != nil && (k.held == pass || k.outstanding > 0 && k.lane != r.lane)", "return k != nil && k.held == pass"),
		},
		{
			name: "a later tenure does not wait", breaks: "a bucket's records of an earlier tenure end before the next ones are submitted", caught: by("I-16", scripted), scenario: "L-07-again",
			edits: in("actors/publisher/batch.go", "	if b.active == nil {\n		c.begin(b, m)", "	if b.active == nil || b.active.stopped {\n		c.begin(b, m)"),
		},
		{
			name: "a shared row passes a careful one", breaks: "shared rows wait until the careful one is through", caught: by("I-4", "I-31", "I-9"),
			edits: in(submit, "		if t.outstanding > 0 {\n			return pauses // a careful row is outstanding\n		}\n		c.leaveCareful(t)", "		c.leaveCareful(t)"),
		},
		{
			name: "what was not sent counts as sent", breaks: "a record that found a full queue keeps no path primed", caught: by("I-4", "I-31"),
			edits: in(outcome, "		if w := p.path(r.lane.place); w.outstanding == 0 {\n			w.primed = false", "		if w := p.path(r.lane.place); w.outstanding < 0 {\n			w.primed = false"),
		},
		{
			name: "a timer for each refusal", breaks: "a full queue is asked again at a steady pace", caught: by("I-9", "I-36"),
			edits: in(outcome, "		if !p.paused {", "		if !p.paused || p.full {"),
		},
		{
			name: "a full queue is left alone for good", breaks: "a producer whose queue was full is tried again", caught: by("I-10", "I-1", "I-29"),
			edits: in(outcome, "			c.wake(queuePause, queueDue{p.options.Number})\n", ""),
		},
		{
			name: "reports are waited for without an end", breaks: "rows whose reports never come are given up", caught: by("I-26", "I-10", "I-29"),
			edits: in(producers, "if actors.Elapsed(p.since, c.now) < c.cfg.PurgeDeadline {", "if c.cfg.PurgeDeadline > 0 {"),
		},
		{
			name: "careful rows go together", breaks: "a careful row is alone", caught: by("I-4", "I-31"),
			edits: []edit{
				{submit, "	if t.outstanding > 0 {\n		return pauses\n	}\n	if t.careful == nil", "	if t.careful == nil"},
				{submit, "if p.state != open || p.full || p.outstanding > 0 {", "if p.state != open || p.full {"},
				{submit, "	c.handOver(t, i, p)\n	return pauses // the next row waits for this one's report", "	return c.handOver(t, i, p)"},
			},
		},
		{
			name: "no careful producer", breaks: "a rejected bucket finds its guilty row alone", caught: by("I-1", "I-10", "I-17", "I-4"),
			edits: in(outcome, "			t.bucket.careful = max(t.bucket.careful, report.Token.Sequence)\n", ""),
		},
		{
			name: "innocent rows are refused", breaks: "a rejection counts only for a record alone in its request", caught: by("I-17"),
			edits: in(outcome, "lone := p.options.Careful || p.path(r.lane.place).alone", "lone := true"),
		},
		{
			name: "abandoned rows are not retired", breaks: "a bucket that lost its lease leaves no record outstanding for long", caught: by("I-26"),
			edits: in("actors/publisher/batch.go", "		if r := &t.rows[i]; r.state == outstanding {", "		if r := &t.rows[i]; r.state == outstanding && r.via == nil {"),
		},
		{
			name: "an ambiguous report is an acknowledgement", breaks: "what may not have been appended stays in the table", caught: by("I-3"),
			edits: in(outcome, "		default:\n			c.settle(t, i, Unknown, report.Fault)", "		default:\n			c.acknowledged(t, i, p)"),
		},
		{
			name: "a late report is an acknowledgement", breaks: "rows of a producer that has ended have an unknown outcome", caught: by("I-3"),
			edits: in(producers, "				c.settle(b.active, i, Unknown, fault)", "				c.settle(b.active, i, Acknowledged, fault)"),
		},
		{
			name: "a caller's header stays", breaks: "a caller's header under the name of ours is replaced", caught: by("I-2"),
			edits: in(recordGo, "		if !c.ownHeader(h.Key) {", "		if h.Key != \"\" {"),
		},
		{
			name: "headers of any case are replaced", breaks: "only a header of that very name is replaced", caught: by("I-2"),
			edits: in(recordGo, "return name == c.MessageIDHeader || ", "return len(name) == len(c.MessageIDHeader) || "),
		},
		{
			name: "the id comes first", breaks: "the message id is the last header", caught: by("I-2"),
			edits: in(recordGo, "	headers = append(headers, outbox.Header{Key: c.MessageIDHeader, Value: []byte(m.ID.String())})",
				"	headers = append([]outbox.Header{{Key: c.MessageIDHeader, Value: []byte(m.ID.String())}}, headers...)"),
		},
		{
			name: "an explicit partition is ignored", breaks: "a writer may choose the partition", caught: by("I-2"),
			edits: in(recordGo, "	case m.Partition != nil:\n		return *m.Partition\n", ""),
		},
		{
			name: "an empty key is no key", breaks: "an empty key is a key (K-01)", caught: by("I-2", "I-4"),
			edits: in(recordGo, "	case m.Key != nil:\n		return hashed", "	case len(m.Key) > 0:\n		return hashed"),
		},
		{
			name: "signed partitions", breaks: "keys go where Java's client sends them (K-02)", caught: by("I-2", "I-9"),
			edits: in(recordGo, "return int32(outbox.Murmur2(key)&0x7fffffff) % partitions", "return int32(outbox.Murmur2(key)>>1) % partitions"),
		},
	}
}

// layout are mutants of the items that writers and relays share.
func layout() []mutant {
	return []mutant{
		{
			name: "numbers without zeros", breaks: "sort keys sort as their numbers do", caught: by("I-4", "I-10", "I-1", "I-20"),
			edits: []edit{
				{"outbox/schema.go", `return zeros[min(len(digits), len(zeros)):] + digits`, `return digits`},
				{"outbox/schema.go", `if len(sortKey) != sequenceDigits || strings`, `if sequenceDigits < 0 || strings`},
			},
		},
		{
			name: "an empty value is a tombstone", breaks: "empty and absent values are told apart", caught: by("I-2"),
			edits: in("outbox/item.go", "	if m.Value != nil {", "	if len(m.Value) > 0 {"),
		},
		{
			name: "a tombstone is an empty value", breaks: "empty and absent values are told apart", caught: by("I-2"),
			edits: in("outbox/item.go", "	if !present {\n		return nil\n	}\n	b, ok := value.(*types.AttributeValueMemberB)", "	if !present {\n		return []byte{}\n	}\n	b, ok := value.(*types.AttributeValueMemberB)"),
		},
		{
			name: "a null header value is empty", breaks: "null and empty header values are told apart", caught: by("I-2"),
			edits: in("outbox/headers.go", "			out = appendLength(out, nullLength)", "			out = appendLength(out, 0)"),
		},
		{
			name: "the last header is lost", breaks: "all headers are delivered", caught: by("I-2"),
			edits: in("outbox/headers.go", "	if len(r.rest) > 0 {\n		return nil, fmt.Errorf(\"%d bytes follow", "	headers = headers[:len(headers)-1]\n	if len(r.rest) > 0 {\n		return nil, fmt.Errorf(\"%d bytes follow"),
		},
		{
			name: "parts of a committed number", breaks: "numbers are read whole", caught: by("I-3", "I-4", "I-20", "I-10"),
			edits: in(messages, "in.ExpressionAttributeValues[\":after\"] = text(outbox.SequenceSortKey(r.After))", "in.ExpressionAttributeValues[\":after\"] = text(outbox.SequenceSortKey(r.After + 1))"),
		},
	}
}
