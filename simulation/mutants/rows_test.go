package mutants_test

const (
	batchFile   = "actors/bucket/batch.go"
	gapsFile    = "actors/bucket/gaps.go"
	deleteFile  = "actors/bucket/delete.go"
	publishFile = "actors/bucket/publish.go"
	messages    = "store/messages.go"
)

// rows are mutants of how a bucket is drained.
func rows() []mutant {
	return []mutant{
		{
			name: "a stored cursor", breaks: "what commits late, behind what was removed, is found (O-07)", caught: by("I-1", "I-10", "I-4", "I-31"),
			edits: in(batchFile, "	var after int64\n	if len(b.rows) > 0 {", "	after := c.expected - 1\n	if len(b.rows) > 0 {"),
		},
		{
			name: "fetch may be stale", breaks: "a fetch is strongly consistent (O-21)", caught: by("I-21"),
			edits: in(messages, "	in.ConsistentRead = aws.Bool(true)\n	in.Limit = aws.Int32(int32(min(r.Limit", "	in.ConsistentRead = aws.Bool(false)\n	in.Limit = aws.Int32(int32(min(r.Limit"),
		},
		{
			name: "probe may be stale", breaks: "a probe is strongly consistent", caught: by("I-21"),
			edits: in(messages, "	in.ConsistentRead = aws.Bool(true)\n	in.Select = types.SelectCount", "	in.ConsistentRead = aws.Bool(false)\n	in.Select = types.SelectCount"),
		},
		{
			name: "discovery is strong", breaks: "discovery costs half a unit", caught: by("I-21"),
			edits: in(messages, "in.ConsistentRead = aws.Bool(false)", "in.ConsistentRead = aws.Bool(true)"),
		},
		{
			name: "gaps are not probed", breaks: "no row is published behind a gap that was not probed", caught: by("I-4"),
			edits: in(gapsFile, "if sequence > b.next {", "if sequence > b.next && sequence < 0 {"),
		},
		{
			name: "a filled gap is ignored", breaks: "no row is published behind a gap that was not probed empty", caught: by("I-4"),
			edits: in(gapsFile, "p.token, p.filled = 0, answer.Filled", "p.token, p.filled = 0, answer.Filled && false"),
		},
		{
			name: "rows behind a filled gap go too", breaks: "the batch ends before a gap that was filled", caught: by("I-4"),
			edits: in(gapsFile, "			c.proved(p.before)", "			c.proved(len(b.rows))"),
		},
		{
			name: "the ninth gap is not probed", breaks: "rows behind the ninth gap wait", caught: by("I-4"),
			edits: in(gapsFile, "	c.proved(c.beforeNextGap())", "	c.proved(len(b.rows))"),
		},
		{
			name: "an unanswered probe is empty", breaks: "a gap counts as empty only when the table said so", caught: by("I-4"),
			edits: in(gapsFile, "	if !ok {\n		c.failBatch()\n		return\n	}", "	_ = ok"),
		},
		{
			name: "all gaps at once", breaks: "a bucket asks for eight gaps at a time", caught: by("I-19"),
			edits: in(gapsFile, "			if len(b.probes) == maxProbes {\n				break\n			}\n", ""),
		},
		{
			name: "the tail behind the ninth gap goes unprobed", breaks: "the tail's gaps are probed before it is published", caught: by("I-4"),
			edits: in(deleteFile, "	c.transition(b.machine, fsm.Advance)\n	c.probe()", "	c.transition(b.machine, fsm.Advance)\n	c.proved(len(b.rows))"),
		},
		{
			name: "several pages are one reading", breaks: "what commits between two pages is found before the second is published", caught: by("I-4"),
			edits: in(batchFile, "if b.rows[0].Sequence < c.expected || b.pages > 1 {", "if b.rows[0].Sequence < c.expected {"),
		},
		{
			name: "a poll is the last one", breaks: "an owned bucket is looked at again and again", caught: by("I-10", "I-1", "I-29"),
			edits: in(coreFile, "	c.arm(pollTimer, c.cfg.PollInterval, 0)\n", ""),
		},
		{
			name: "the first gap is not probed", breaks: "a tenure that has removed nothing probes from the start of the bucket", caught: by("I-4"),
			edits: in(batchFile, "	b.next = c.expected\n", "	b.next = max(c.expected, b.rows[0].Sequence)\n"),
		},
		{
			name: "the baseline follows what was fetched", breaks: "expected follows what was removed, not what was read", caught: by("I-4"),
			edits: in(batchFile, "	c.fetched = max(c.fetched, b.rows[len(b.rows)-1].Sequence)\n	b.next = c.expected\n",
				"	b.next = max(c.expected, c.fetched+1)\n	c.fetched = max(c.fetched, b.rows[len(b.rows)-1].Sequence)\n"),
		},
		{
			name: "late commits are not probed anew", breaks: "a row behind what was removed has its gaps probed anew", caught: by("I-4"),
			edits: in(batchFile, "		b.next = 1\n", "		b.next = b.rows[0].Sequence\n"),
		},
		{
			name: "all rows count as acknowledged", breaks: "only the acknowledged prefix is deleted", caught: by("I-3", "I-9"),
			edits: in(publishFile, "b.acknowledged, b.failure = i, failureOf", "b.failure = failureOf"),
		},
		{
			name: "acknowledged rows behind a failed one", breaks: "only the contiguous prefix counts", caught: by("I-3"),
			edits: in(publishFile, "b.acknowledged, b.failure = i, failureOf(b.rows[i].Sequence, result)\n			break", "b.acknowledged, b.failure = i+1, failureOf(b.rows[i].Sequence, result)\n			break"),
		},
		{
			name: "what is unknown is acknowledged", breaks: "an ambiguous outcome is no acknowledgement (F-05)", caught: by("I-3"),
			edits: in(publishFile, "if result.Outcome != publisher.Acknowledged {", "if result.Outcome != publisher.Acknowledged && result.Outcome != publisher.Unknown {"),
		},
		{
			name: "deletes before it publishes", breaks: "a row is deleted after its acknowledgement", caught: by("I-3", "I-1"),
			edits: in(batchFile, "	c.fetched = max(c.fetched, b.rows[len(b.rows)-1].Sequence)\n",
				"	c.fetched = max(c.fetched, b.rows[len(b.rows)-1].Sequence)\n	c.do(store.Delete{Bucket: c.cfg.Bucket, Sequences: []int64{b.rows[0].Sequence}, NotAfter: c.lease.validUntil})\n"),
		},
		{
			name: "deletes the next key", breaks: "deletes are by exact key", caught: by("I-3"),
			edits: in(deleteFile, "chunk[i] = row.Sequence", "chunk[i] = row.Sequence + 1"),
		},
		{
			name: "deletes nothing", breaks: "a delete deletes (O-10)", caught: by("I-10", "I-20"),
			edits: in(messages, "key := c.schema.Key(c.schema.MessagesKey(r.Bucket), outbox", "key := c.schema.Key(c.schema.ParkedKey(r.Bucket), outbox"),
		},
		{
			name: "deletes all but the last", breaks: "a delete deletes all of its rows (O-10)", caught: by("I-10", "I-20", "I-27"),
			edits: in(messages, "for _, sequence := range r.Sequences {\n		key :=", "for _, sequence := range r.Sequences[:max(1, len(r.Sequences)-1)] {\n		key :="),
		},
		{
			name: "unprocessed deletes are forgotten", breaks: "unprocessed deletes are sent again before the next chunk (D-06)", caught: by("I-27", "I-4"),
			edits: in(deleteFile, "if done && len(deleted.Unprocessed) == 0 {", "if done {"),
		},
		{
			name: "an unanswered delete is done", breaks: "a chunk without an answer is sent again before the next (D-08)", caught: by("I-27", "I-4"),
			edits: in(deleteFile, "if done && len(deleted.Unprocessed) == 0 {", "if len(deleted.Unprocessed) == 0 {"),
		},
		{
			name: "chunks go in descending order", breaks: "what remains of a batch is part of one chunk and a suffix (D-08)", caught: by("I-27", "I-3", "I-9"),
			edits: in(deleteFile, "rows := b.rows[b.removed:min(b.removed+size, b.acknowledged)]",
				"rows := b.rows[max(0, b.acknowledged-b.removed-size) : b.acknowledged-b.removed]"),
		},
		{
			name: "the publisher's death is an acknowledgement", breaks: "rows of a dead publisher have an unknown outcome", caught: by("I-3"),
			edits: in(publishFile, "	case b.acknowledged == 0:\n		c.headFailed()", "	case b.acknowledged == 0:\n		b.acknowledged = 1\n		c.transition(b.machine, fsm.Published)\n		c.deleteNext()"),
		},
	}
}
