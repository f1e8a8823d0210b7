package mutants_test

const (
	fenceGo     = "actors/publisher/fence.go"
	transaction = "actors/publisher/transaction.go"
)

// fencedMode are mutants of fenced mode, which a quarter of the storm's fleets is in.
func fencedMode() []mutant {
	return []mutant{
		{
			name: "delivered is acknowledged", breaks: "a row is acknowledged when its transaction is committed", caught: by("I-3", "I-10", "I-1"),
			edits: in(transaction, "	x.tries = 1\n	f.conclude(x, committing, Commit)", "	x.tries = 1\n	f.committed(x)"),
		},
		{
			name: "an aborted transaction is acknowledged", breaks: "rows of an aborted transaction are published again", caught: by("I-3"),
			edits: in(transaction, "f.endTransaction(x, Failed, x.fault)", "f.endTransaction(x, Acknowledged, x.fault)"),
		},
		{
			name: "a commit without an answer is done", breaks: "a commit that timed out is called again", caught: by("I-3"),
			edits: in(transaction, "	case m.Fault == nil:\n		f.committed(x)", "	case m.Fault == nil || m.Fault.Class == Ambiguous:\n		f.committed(x)"),
		},
		{
			name: "a rejection in company counts", breaks: "a row is refused only when it was alone in its transaction", caught: by("I-17"),
			edits: in(transaction, "if fault.Class == Rejected && x.alone() {", "if fault.Class == Rejected {"),
		},
		{
			name: "the guilty row is not looked for", breaks: "rows up to a rejected one go alone", caught: by("I-17", "I-10"),
			edits: in(transaction, "	if t.request.Rows[i].Sequence <= x.bucket.careful {\n		x.until = i + 1\n	}\n", ""),
		},
		{
			name: "a fence under any lease", breaks: "a fence is taken under a lease that was renewed lately", caught: by("I-42"),
			edits: in(fenceGo, "	return f.now.Until(x.asked.NotAfter) > f.settings.LeaseValidity-f.settings.LeaseRenewInterval", "	return true"),
		},
		{
			name: "no fence", breaks: "nothing of a bucket is sent without its fence", caught: by("I-10"),
			edits: in("actors/bucket/fence.go", "	if !c.cfg.Fenced || c.fence.held {", "	if c.cfg.BucketCount > 0 {"),
		},
		{
			name: "a lost fence is not asked for again", breaks: "an owner that lost the fence takes it back", caught: by("I-10"),
			edits: in("actors/bucket/fence.go", "func (c *core) doubtFence() { c.fence.held = false }", "func (c *core) doubtFence() {}"),
		},
		{
			name: "a fenced batch outlives its lease", breaks: "no row is handed over after the lease's validity, in fenced mode too", caught: by("I-6"),
			edits: []edit{
				{transaction, "	if x.phase == transacting && t.lapsed(f.now) {", "	if false {"},
				{transaction, "	if t.lapsed(f.now) {\n		t.stop()\n	}\n", ""},
			},
		},
	}
}
