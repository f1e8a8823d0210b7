package publisher

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/outbox"
)

// The files of testdata are played against the core alone. Each begins with its
// story. A line with "> " is what happens, the indented lines below it are all
// that the core wants done then, but for timers and what telemetry only counts.
// PUBLISHER_UPDATE=1 writes the files anew, to be read before they are kept.
//
//	> bucket 3 publishes 1:orders/blue 2:orders/-/500 3:orders/red@1
//
// is a batch of three rows: sequence, topic, key ("-": keyless), then the size of
// the value if it matters, and the explicit partition if there is one. In fenced
// mode, which the setting fenced-renew-interval (seconds) turns on,
//
//	> bucket 3 asks renewed=12s
//	> producer 2 concludes commit ambiguous _TIMED_OUT
//
// are a wish for the fence under a lease that was renewed that long ago, and the end
// of a call that takes its time.
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
			case os.Getenv("PUBLISHER_UPDATE") != "":
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
	s := &stage{t: t, random: rand.New(rand.NewPCG(1, 1)), refusals: map[string]*Fault{}, batches: map[int]uint64{}, restarts: map[int]int{}}
	s.cfg = Config{Buckets: 4, Producers: 1, MaxBytes: minMaxBytes}.WithDefaults()
	var out strings.Builder
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

// stage is a core with everything around it scripted.
type stage struct {
	t       *testing.T
	random  *rand.Rand
	cfg     Config
	core    *core
	now     time.Duration
	timers  []timer
	did     []string
	batches map[int]uint64 // the last batch of each bucket
	// refusals are what producers will say to a row, by number and bucket:sequence.
	refusals map[string]*Fault
	noOpen   *Fault // what the factory says; nil: it opens
	wishes   uint64 // for fences
	restarts map[int]int
}

type timer struct {
	at      time.Duration
	message any
}

// act does what one line says.
func (s *stage) act(words []string) {
	line := strings.Join(words, " ")
	number := func(i int) int { return atoi(s.t, words[i]) }
	switch {
	case words[0] == "setting":
		s.set(words[1], number(2))
	case line == "letters":
		s.cfg.DeadLetterTopic = "letters"
	case line == "start":
		s.core = newCore(s.cfg, s.random)
		s.step(start{})
	case words[0] == "bucket":
		s.bucketActs(number(1), words[2], words[3:])
	case words[0] == "topic":
		s.topicIs(words[1], words[2:])
	case words[0] == "after":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.pass(d)
	case words[0] == "factory" && words[1] == "fails":
		s.noOpen = &Fault{Retriable, CodeNotOpened, "no"}
	case words[0] == "factory":
		s.noOpen = nil
	case words[0] == "producer":
		s.producerSays(number(1), words[2], words[3:])
	default:
		s.t.Fatalf("unknown line %q", line)
	}
}

func (s *stage) set(name string, value int) {
	switch name {
	case "careful-producers":
		s.cfg.CarefulProducers = value
	case "max-bytes":
		s.cfg.MaxBytes = value
	case "fenced-renew-interval":
		s.cfg.Fencing = &Fencing{TransactionalIDPrefix: "outbox-eu-shop-OUTBOX", LeaseValidity: 28 * time.Second,
			LeaseRenewInterval: time.Duration(value) * time.Second, CallTimeout: DefaultCallTimeout}
	default:
		s.t.Fatalf("unknown setting %q", name)
	}
}

func (s *stage) bucketActs(bucket int, verb string, words []string) {
	switch verb {
	case "publishes":
		s.batches[bucket] += 10
		m := Publish{Bucket: bucket, Batch: s.batches[bucket] + uint64(bucket), ReplyTo: s.actor(bucket), NotAfter: s.instant().Add(time.Hour)}
		for _, word := range words {
			if valid, found := strings.CutPrefix(word, "until="); found {
				d, err := time.ParseDuration(valid)
				if err != nil {
					s.t.Fatal(err)
				}
				m.NotAfter = s.instant().Add(d)
				continue
			}
			m.Rows = append(m.Rows, s.row(word))
		}
		s.step(m)
	case "abandons":
		s.step(Abandon{bucket})
	case "restarts":
		s.restarts[bucket]++
	case "asks": // for its fence; "renewed=12s": its lease was, so long ago
		m := Fence{Bucket: bucket, NotAfter: s.instant().Add(28 * time.Second), ReplyTo: s.actor(bucket)}
		s.wishes++
		m.Number = s.wishes
		if len(words) > 0 {
			d, err := time.ParseDuration(strings.TrimPrefix(words[0], "renewed="))
			if err != nil {
				s.t.Fatal(err)
			}
			m.NotAfter = m.NotAfter.Add(-d)
		}
		s.step(m)
	case "extends":
		s.step(Extend{bucket, s.instant().Add(time.Hour)})
	default:
		s.t.Fatalf("a bucket cannot %q", verb)
	}
}

// row reads sequence:topic/key[/size][@partition].
func (s *stage) row(word string) outbox.Row {
	word, partition, explicit := strings.Cut(word, "@")
	sequence, rest, _ := strings.Cut(word, ":")
	parts := strings.Split(rest, "/")
	r := outbox.Row{Sequence: int64(atoi(s.t, sequence)), Message: outbox.Message{Topic: parts[0], CreatedAt: s.instant().Time()}}
	r.Message.ID = uuid.NewSHA1(uuid.Nil, []byte(word))
	if parts[1] != "-" {
		r.Message.Key = []byte(parts[1])
	}
	r.Message.Value = []byte{}
	if len(parts) > 2 {
		r.Message.Value = make([]byte, atoi(s.t, parts[2]))
	}
	if explicit {
		p := int32(atoi(s.t, partition))
		r.Message.Partition = &p
	}
	return r
}

// topicIs answers the question for a topic: "topic orders 4 partitions limit 2000"
// or "topic orders fails UNKNOWN_TOPIC_OR_PART".
func (s *stage) topicIs(name string, words []string) {
	d := Described{Producer: s.core.topic(name).producer, Topic: name}
	switch words[0] {
	case "fails":
		d.Fault = &Fault{Retriable, words[1], "scripted"}
	case "illegal":
		d.Fault = &Fault{Rejected, "TOPIC_EXCEPTION", "scripted"}
	default:
		d.Partitions = int32(atoi(s.t, words[0]))
		d.MaxMessageBytes = 1_048_588
		if len(words) > 2 {
			d.MaxMessageBytes = atoi(s.t, words[3])
		}
		d.Compressed = len(words) > 4
	}
	s.step(d)
}

// producerSays is what a producer reports: "producer 1 acknowledges 0:1 0:2",
// "producer 1 reports ambiguous _PURGE_QUEUE 0:3", "producer 1 dies CODE",
// "producer 1 refuses retriable _QUEUE_FULL 0:4" of what it will be given.
func (s *stage) producerSays(number int, verb string, words []string) {
	switch verb {
	case "acknowledges":
		s.step(Reported{number, s.reports(nil, words)})
	case "reports":
		s.step(Reported{number, s.reports(&Fault{classOf(s.t, words[0]), words[1], "scripted"}, words[2:])})
	case "refuses":
		for _, row := range words[2:] {
			s.refusals[fmt.Sprint(number, " ", row)] = &Fault{classOf(s.t, words[0]), words[1], "scripted"}
		}
	case "dies":
		s.step(Fataled{number, &Fault{Fatal, words[0], "scripted"}})
	case "concludes":
		s.step(s.concluded(number, words))
	case "reaches":
		s.step(Reached{number})
	case "loses":
		s.step(Unreached{number, "scripted"})
	default:
		s.t.Fatalf("a producer cannot %q", verb)
	}
}

func (s *stage) reports(fault *Fault, rows []string) (reports []Report) {
	for _, row := range rows {
		bucket, sequence, _ := strings.Cut(row, ":")
		b := atoi(s.t, bucket)
		reports = append(reports, Report{Token{b, s.batches[b] + uint64(b), int64(atoi(s.t, sequence))}, fault})
	}
	return reports
}

// concluded reads "concludes commit", "concludes commit ambiguous _TIMED_OUT", and
// "concludes commit retriable _MSG_TIMED_OUT must abort".
func (s *stage) concluded(number int, words []string) Concluded {
	m := Concluded{Producer: number}
	for c := Initialize; c <= Abort; c++ {
		if c.String() == words[0] {
			m.Call = c
		}
	}
	if len(words) > 1 {
		m.Fault = &Fault{classOf(s.t, words[1]), words[2], "scripted"}
		m.MustAbort = len(words) > 3
	}
	return m
}

// actor is a bucket's actor: another one after each restart.
func (s *stage) actor(bucket int) *actor.PID {
	return actor.NewPID("stage", fmt.Sprintf("bucket-%d-%d", bucket, s.restarts[bucket]))
}

func classOf(t *testing.T, name string) Class {
	for c := Rejected; c <= Fenced; c++ {
		if c.String() == name {
			return c
		}
	}
	t.Fatalf("unknown class %q", name)
	return 0
}

func atoi(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *stage) instant() actors.Instant {
	return actors.Instant{Wall: 1_700_000_000*time.Second + s.now, Mono: s.now}
}

// pass lets time go by; timers that are due come in their order.
func (s *stage) pass(d time.Duration) {
	until := s.now + d
	for {
		next := -1
		for i, tm := range s.timers {
			if tm.at <= until && (next < 0 || tm.at < s.timers[next].at) {
				next = i
			}
		}
		if next < 0 {
			s.now = until
			return
		}
		tm := s.timers[next]
		s.timers = append(s.timers[:next], s.timers[next+1:]...)
		s.now = max(s.now, tm.at)
		s.step(tm.message)
	}
}

// say notes an effect.
func (s *stage) say(format string, args ...any) { s.did = append(s.did, fmt.Sprintf(format, args...)) }
