package coordinator

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// The files of testdata are played against the core alone, on a table in memory.
// Each begins with its story. A line with "> " is what happens, the indented
// lines below it are all that the core wants done then. Times are relative to the
// scenario's begin. COORDINATOR_UPDATE=1 writes the files anew, to be read before
// they are kept.
//
// A request waits until a line ends it: "read answered" carries it out on the
// table and hands the reply back; "heartbeat unanswered" carries it out and says
// that nobody knows; "heartbeat lost" only says so; "read throttled", "read
// denied" and "read missing" say that it was certainly not carried out. The oldest
// request of that name is meant. "wall 41s" sets the wall clock forward, and "dates"
// lets answers tell the time, which is that of the other clock. Bucket actors and publishers are the test's:
// "bucket 3 ended", "bucket 3 failed", "bucket 3 quiesced", "bucket 3 mismatched".
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
			case os.Getenv("COORDINATOR_UPDATE") != "":
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
	s := newStage(t, 4)
	var out strings.Builder
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("played until then:\n%s", out.String())
		}
	})
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
	return out.String()
}

// act does what one line says.
func (s *stage) act(words []string) {
	switch words[0] {
	case "buckets":
		*s = *newStage(s.t, int(s.number(words[1])))
	case "start":
		s.take(s.core.start(s.instant()))
	case "ready": // what every relay does before its first round
		s.act([]string{"start"})
		s.act([]string{"broker", "reached"})
		s.act([]string{"read", "answered"})
		s.did = nil
	case "lease":
		s.leaseIs(int(s.number(words[1])), words[2:])
	case "relay":
		s.relayIs(words[1], words[2:])
	case "broker":
		if words[1] == "reached" {
			s.step(publisher.Connected{})
		} else {
			s.step(publisher.Disconnected{Reason: "scripted"})
		}
	case "heartbeat", "read", "stamp", "prune", "release":
		s.requestEnds(words[0], words[1])
	case "bucket":
		b := int(s.number(words[1]))
		tenures := s.tenures(b)
		s.bucketSays(b, tenures[len(tenures)-1], words[2])
	case "first": // "first actor of bucket 3 ended": whoever stands for it by now
		b := int(s.number(words[4]))
		s.bucketSays(b, s.tenures(b)[0], words[5])
	case "publisher":
		s.step(publisherDied{int(s.number(words[1]))})
	case "notify":
		s.step(Notify{Buckets: []int{int(s.number(words[1])), int(s.number(words[2]))}})
	case "stop":
		s.step(Stop{})
	case "after":
		s.pass(s.duration(words[1]))
	case "wall":
		s.wall += s.duration(words[1])
	case "dates": // the service's answers tell the time from here on
		s.dated = true
	case "table":
		s.showTable()
	default:
		s.t.Fatalf("unknown line %q", strings.Join(words, " "))
	}
}

// tenures are all that a bucket had, ascending.
func (s *stage) tenures(b int) (all []int64) {
	for tenure, of := range s.buckets {
		if of == b {
			all = append(all, tenure)
		}
	}
	slices.Sort(all)
	return all
}

// bucketSays is a word of an actor of a bucket.
func (s *stage) bucketSays(b int, tenure int64, word string) {
	switch word {
	case "ended":
		s.step(bucket.Ended{Bucket: b, Tenure: tenure})
	case "denied": // its claim was not written, for want of a permission
		s.step(bucket.Ended{Bucket: b, Tenure: tenure, Err: store.ErrDenied})
	case "failed": // and then protoactor's word for it comes
		s.step(bucket.Failed{Bucket: b, Tenure: tenure, Reason: "scripted"})
		s.step(childDied{b, tenure})
	case "died":
		s.step(childDied{b, tenure})
	case "quiesced":
		s.step(bucket.Quiesced{Bucket: b, Tenure: tenure})
	case "mismatched":
		s.step(bucket.Mismatched{Bucket: b, Sequence: 9, Stamped: 16})
	default:
		s.t.Fatalf("a bucket cannot say %q", word)
	}
}

// leaseIs writes a lease as a bucket actor or a peer would: "lease 0 of B until
// 30s", "lease 0 of A/A1 until 30s", "lease 0 of B" without an expiry, "lease 0 of
// nobody", "lease 0 unreadable", "lease 0 of B until 30s padded" by 400 kB.
func (s *stage) leaseIs(b int, words []string) {
	lease := s.schema.Key(s.schema.CoordinationKey(), outbox.LeaseSortKey(b))
	for i, word := range words {
		switch word {
		case "unreadable":
			lease[outbox.AttrExpiresAtUtc] = textAttribute("soon")
		case "until":
			lease[outbox.AttrExpiresAtUtc] = numberAttribute(s.ticksAt(words[i+1]))
		case "padded":
			lease["Padding"] = textAttribute(strings.Repeat("x", 400_000))
		case "of":
			owner, incarnation, own := strings.Cut(words[i+1], "/")
			if owner != "nobody" {
				lease[outbox.AttrOwner] = textAttribute(owner)
			}
			if own {
				lease[outbox.AttrIncarnation] = textAttribute(incarnation)
			}
		}
	}
	s.put(lease)
}

// relayIs writes a record: "relay B seen 0s", "relay A/A2 seen 0s", "relay B seen
// 0s stopped".
func (s *stage) relayIs(id string, words []string) {
	id, incarnation, own := strings.Cut(id, "/")
	record := s.schema.Key(s.schema.CoordinationKey(), outbox.RelaySortKey(id))
	record[outbox.AttrLastSeenUtc] = numberAttribute(s.ticksAt(words[1]))
	if len(words) > 2 {
		record[outbox.AttrStoppedAtUtc] = record[outbox.AttrLastSeenUtc]
	}
	if own {
		record[outbox.AttrIncarnation] = textAttribute(incarnation)
	}
	s.put(record)
}

func (s *stage) instant() actors.Instant { return actors.Instant{Wall: begin + s.wall, Mono: s.mono} }

func (s *stage) ticksAt(offset string) int64 {
	return int64(actors.Instant{Wall: begin + s.duration(offset)}.Ticks())
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
