package bucket

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// The files of testdata are played against the core alone, on a table in memory.
// Each begins with its story. A line with "> " is what happens, the indented
// lines below it are all that the core wants done then, but for what only counts
// or draws states. Times are relative to the scenario's begin. BUCKET_UPDATE=1
// writes the files anew, to be read before they are kept.
//
// A request waits until a line ends it: "fetch answered" carries it out on the
// table and hands the reply back; "keep unanswered" carries it out and says that
// nobody knows; "keep lost" only says so; "fetch throttled" says that it was
// certainly not carried out, and so does "keep conflicted", for a transaction's sake; "move
// mismatched" that its token is another transaction's, which nobody understands.
// "lands keep" carries a lost one out, late. The oldest request of that name is meant.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			played := play(t, string(text))
			switch {
			case played == string(text):
			case os.Getenv("BUCKET_UPDATE") != "":
				if err := os.WriteFile(file, []byte(played), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s differs; played it is:\n%s", file, played)
			}
		})
	}
}

// play runs a scenario and returns it with what the core really did.
func play(t *testing.T, text string) string {
	s := newStage(t)
	var out strings.Builder
	ended := false
	defer func() {
		if !ended { // a line asks for what is not there
			t.Logf("played until then:\n%s", out.String())
		}
	}()
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "> "):
			out.WriteString(line)
			s.act(strings.Fields(line[2:]))
			for _, did := range s.did {
				out.WriteString("  " + did + "\n")
			}
			s.did = nil
		case !strings.HasPrefix(line, "  "):
			out.WriteString(line)
		}
	}
	ended = true
	return out.String()
}

// act does what one line says.
func (s *stage) act(words []string) {
	switch words[0] {
	case "setting":
		s.set(words[1], words[2])
	case "rows":
		for _, n := range words[1:] {
			s.putRow(s.number(n), nil)
		}
	case "row":
		s.rowIs(s.number(words[1]), words[2], words[3:])
	case "lease":
		s.leaseIs(words[1:])
	case "claim", "resume", "round", "wake", "quiesce", "rebind":
		if len(words) > 1 && words[0] == "claim" {
			s.requestEnds(words[0], words[1:])
			return
		}
		s.told(words)
	case "operator":
		s.operator(words[1:])
	case "marker":
		s.markerIs(words[1])
	case "keep", "release", "discover", "fetch", "probe", "probes", "delete",
		"readMarkers", "mark", "move", "fetchParked", "removeParked", "unmark", "endRetry":
		s.requestEnds(words[0], words[1:])
	case "lands":
		if reply := s.carryOut(s.lost[words[1]]); reply.Class != store.Done {
			s.did = append(s.did, "refused")
		}
	case "unprocessed":
		s.unprocessed = words[1:]
	case "publisher":
		s.publisherAnswers(words[1:])
	case "fence":
		s.fenceIs(words[1:])
	case "after":
		s.pass(s.duration(words[1]))
	case "suspended":
		s.wall += s.duration(words[1])
	case "wall":
		s.wall += s.duration(words[1])
	case "table":
		s.showTable()
	default:
		s.t.Fatalf("unknown line %q", strings.Join(words, " "))
	}
}

func (s *stage) set(name, value string) {
	switch name {
	case "batch-size":
		s.core.cfg.BatchSize = int(s.number(value))
	case "max-batch-bytes":
		s.core.cfg.MaxBatchBytes = int(s.number(value))
	case "poison":
		s.core.cfg.Poison = Poison(value)
	case "poison-after":
		s.core.cfg.PoisonAfter = int(s.number(value))
	case "trace-links":
		s.core.cfg.TraceLinks = int(s.number(value))
	case "markers":
		s.showsMarkers = value == "shown"
	case "mode":
		s.core.cfg.Fenced = value == "fenced"
	default:
		s.t.Fatalf("unknown setting %q", name)
	}
}

// told is a command of the coordinator: "round", "round yields", "round leaves",
// "round read 2s ago yields", "round carried".
func (s *stage) told(words []string) {
	now := s.instant()
	round := Round{Now: now, ReadAt: now}
	switch words[0] {
	case "claim":
		s.step(Claim{Round: round, Lease: s.lease()})
	case "resume":
		m := Resume{Round: round, Lease: *s.lease()}
		if m.Lease.Incarnation != s.core.cfg.Incarnation {
			m.Elder = m.Lease.Expires
		}
		s.step(m)
	case "wake":
		s.step(Wake{})
	case "quiesce":
		s.step(Quiesce{})
	case "rebind":
		s.step(Rebind{})
	case "round":
		m := Attend{Round: round, Lease: s.lease()}
		for i, word := range words {
			switch word {
			case "yields":
				m.Verdict = Yield
			case "leaves":
				m.Verdict = Leave
			case "carried":
				s.step(Carry{Round: round})
				return
			case "read":
				m.Round.ReadAt = now.Add(-s.duration(words[i+1]))
			}
		}
		s.step(m)
	}
}

// rowIs changes one row: "row 4 malformed", "row 4 nameless" (its topic and key can be
// read), "row 4 counts 16", "row 4 sized
// 1000", "row 0 keyed abc", "row 4 removed", "row 4 of k2", "row 4 of k2 payments".
func (s *stage) rowIs(sequence int64, verb string, words []string) {
	switch verb {
	case "malformed":
		s.putRow(sequence, func(item item) { delete(item, outbox.AttrTopic) })
	case "nameless":
		s.putRow(sequence, func(item item) { delete(item, outbox.AttrMessageId) })
	case "counts":
		s.putRow(sequence, func(item item) { item[outbox.AttrBucketCount] = numberAttribute(s.number(words[0])) })
	case "sized":
		value := make([]byte, s.number(words[0]))
		s.putRow(sequence, func(item item) { item[outbox.AttrValue] = binaryAttribute(value) })
	case "keyed":
		s.putRow(sequence, func(item item) { item[s.schema.SortKey] = textAttribute(words[0]) })
	case "of":
		s.putRow(sequence, func(item item) {
			item[outbox.AttrKey] = binaryAttribute([]byte(words[0]))
			if words[0] == "nobody" {
				delete(item, outbox.AttrKey)
			}
			if len(words) > 1 {
				item[outbox.AttrTopic] = textAttribute(words[1])
			}
		})
	case "traced": // "row 3 traced a": within a trace of that digit, sampled; "row 3 traced a unsampled"
		flags := "01"
		if len(words) > 1 {
			flags = "00"
		}
		parent := fmt.Sprintf("00-%s-%s-%s", strings.Repeat(words[0], 32), strings.Repeat("1", 16), flags)
		headers := outbox.EncodeHeaders([]outbox.Header{{Key: "kind"}, {Key: "traceparent", Value: []byte(parent)}, {Key: "traceparent", Value: []byte("another")}})
		s.putRow(sequence, func(item item) {
			item[outbox.AttrHeaders] = binaryAttribute(headers)
			if len(words) > 2 {
				item[outbox.AttrTopic] = textAttribute(words[2])
			}
		})
	case "repaired":
		s.putRow(sequence, nil)
	case "removed":
		s.carryOut(store.Delete{Bucket: s.core.cfg.Bucket, Sequences: []int64{sequence}})
	default:
		s.t.Fatalf("a row cannot be %q", verb)
	}
}

// leaseIs writes the lease by another's hand: "lease of B until 30s", "lease of
// A/A0 until 30s claim 2", "lease of nobody", "lease paused until 1h", "lease gone".
func (s *stage) leaseIs(words []string) {
	switch {
	case words[0] == "gone":
		s.writeLease(nil)
	case words[0] == "paused":
		item := s.leaseItem()
		item[outbox.AttrPausedUntilUtc] = numberAttribute(int64(s.ticksAt(words[2])))
		s.writeLease(item)
	case words[1] == "nobody":
		item := s.leaseItem()
		delete(item, outbox.AttrOwner)
		s.writeLease(item)
	default:
		owner, incarnation, own := strings.Cut(words[1], "/")
		item := s.leaseItem()
		item[outbox.AttrOwner] = textAttribute(owner)
		delete(item, outbox.AttrExpiresAtUtc)
		if i := slices.Index(words, "until"); i >= 0 {
			item[outbox.AttrExpiresAtUtc] = numberAttribute(int64(s.ticksAt(words[i+1])))
		}
		if own {
			item[outbox.AttrIncarnation] = textAttribute(incarnation)
		}
		s.writeLease(item)
	}
}

// publisherAnswers is the outcome of the batch that the publisher has:
// "acknowledges all", "acknowledges 2 then refused", "acknowledges 0 then unknown".
func (s *stage) publisherAnswers(words []string) {
	if len(s.submitted) == 0 {
		s.t.Fatal("the publisher has nothing")
	}
	p := s.submitted[0]
	s.submitted = s.submitted[1:]
	m := publisher.Published{Bucket: p.Bucket, Batch: p.Batch, Results: make([]publisher.Result, len(p.Rows))}
	acknowledged := len(p.Rows)
	if words[1] != "all" {
		acknowledged = int(s.number(words[1]))
	}
	for i := range acknowledged {
		m.Results[i].Outcome = publisher.Acknowledged
		s.acknowledged[p.Rows[i].Sequence] = true
	}
	if len(words) > 3 {
		m.Results[acknowledged] = publisher.Result{
			Outcome: outcomeOf(s.t, words[3]),
			Fault:   &publisher.Fault{Class: classOf[words[3]], Code: "CODE", Text: "scripted"},
		}
	}
	s.step(m)
}

// fenceIs answers the oldest question for the fence: "fence held", "fence refused".
func (s *stage) fenceIs(words []string) {
	if len(s.fences) == 0 {
		s.t.Fatal("nobody asked for the fence")
	}
	asked := s.fences[0]
	s.fences = s.fences[1:]
	m := publisher.FenceTaken{Bucket: asked.Bucket, Number: asked.Number}
	if words[0] == "refused" {
		m.Fault = &publisher.Fault{Class: publisher.Retriable, Code: "CODE", Text: "scripted"}
	}
	s.step(m)
}

// classOf is the class of the fault that comes with an outcome.
var classOf = map[string]publisher.Class{
	"refused": publisher.Rejected, "failed": publisher.Retriable,
	"unknown": publisher.Ambiguous, "not": publisher.Retriable,
}

func outcomeOf(t rapid.TB, name string) publisher.Outcome {
	for o := publisher.NotSubmitted; o <= publisher.Unknown; o++ {
		if o.String() == name {
			return o
		}
	}
	t.Fatalf("unknown outcome %q", name)
	return 0
}

func (s *stage) number(word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *stage) duration(word string) time.Duration {
	d, err := time.ParseDuration(word)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}
