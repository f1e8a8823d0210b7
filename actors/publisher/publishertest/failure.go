package publishertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/bucketbrigade/relay/actors/publisher"
)

const (
	// limit is the max.message.bytes of topics in the cases of rejections, and
	// guiltySize the value of the record over it.
	limit      = 2_000
	guiltySize = 5_000
)

func (h Harness) sized(n, size int) publisher.Record {
	value := slices.Grow(fmt.Appendf(nil, "%d", n), size)
	for len(value) < size {
		value = append(value, '.')
	}
	return publisher.Record{Topic: h.topic(), Value: value}
}

// rows are count records of which the one at guilty is over limit.
func (h Harness) rows(first, count, guilty int) []publisher.Record {
	var records []publisher.Record
	for n := first; n < first+count; n++ {
		size := 0
		if n == guilty {
			size = guiltySize
		}
		records = append(records, h.sized(n, size))
	}
	return records
}

func faultOf(t *testing.T, err error) *publisher.Fault {
	t.Helper()
	var fault *publisher.Fault
	if !errors.As(err, &fault) {
		t.Fatalf("%v is not a *publisher.Fault", err)
	}
	if fault.Code == "" || fault.Text == "" {
		t.Errorf("fault %+v says too little", *fault)
	}
	return fault
}

func refusesTooLarge(t *testing.T, h Harness) {
	h.CreateTopic(t, h.topic(), 1, 0)
	s := open(t, h, publisher.Options{MaxMessageBytes: limit})
	s.acknowledged(t, 0, h.sized(0, 0))
	fault := faultOf(t, s.Produce(h.sized(1, guiltySize), token(1)))
	if fault.Class != publisher.Rejected || fault.Code != "MSG_SIZE_TOO_LARGE" {
		t.Errorf("%s, %v: want MSG_SIZE_TOO_LARGE, rejected", fault.Code, fault.Class)
	}
	s.acknowledged(t, 2, h.sized(2, 0)) // and it does no other harm
	if got := values(h.Read(t, h.topic())); !slices.Equal(got, []string{"0", "2"}) {
		t.Errorf("the topic has %v, want 0 and 2", got)
	}
	if len(s.reports[token(1)]) != 0 {
		t.Error("a record refused at once has a report too")
	}
}

func refusesIllegalTopic(t *testing.T, h Harness) {
	s := open(t, h, publisher.Options{})
	for _, name := range []string{"", ".", "..", "a b", "a\x00b", "größe", string(make([]byte, 300))} {
		fault := faultOf(t, s.Produce(publisher.Record{Topic: name}, token(0)))
		if fault.Class != publisher.Rejected {
			t.Errorf("topic %q: %v, want rejected", name, fault)
		}
	}
}

func describesTopic(t *testing.T, h Harness) {
	h.CreateTopic(t, h.topic(), 5, 0)
	s := open(t, h, publisher.Options{})
	d := s.describe(t, h.topic())
	if d.Fault != nil || d.Partitions != 5 || d.Compressed {
		t.Errorf("described as %+v, want 5 partitions, not compressed", d)
	}
}

func describesLimit(t *testing.T, h Harness) {
	h.needs(t, Descriptions)
	h.CreateTopic(t, h.topic(), 1, limit)
	s := open(t, h, publisher.Options{})
	if d := s.describe(t, h.topic()); d.Fault != nil || d.MaxMessageBytes != limit {
		t.Errorf("described as %+v, want max.message.bytes %d", d, limit)
	}
}

// describesMissingTopic: asking must not create it either, with a number of
// partitions that nobody chose.
func describesMissingTopic(t *testing.T, h Harness) {
	s := open(t, h, publisher.Options{})
	for range 2 {
		d := s.describe(t, h.topic())
		if d.Fault == nil || d.Fault.Class != publisher.Retriable || d.Partitions != 0 {
			t.Fatalf("described as %+v, want a retriable fault", d)
		}
		delete(s.described, h.topic())
	}
	h.CreateTopic(t, h.topic(), 2, 0)
	if d := s.describe(t, h.topic()); d.Fault != nil || d.Partitions != 2 {
		t.Errorf("created late, and described as %+v, want 2 partitions", d)
	}
	s.acknowledged(t, 0, publisher.Record{Topic: h.topic(), Partition: 1})
}

// learnsOfPartitions: what another producer has learned of a topic, this one learns
// when it is offered a record that does not fit what it knows. It may refuse it
// meanwhile, as nobody's fault.
func learnsOfPartitions(t *testing.T, h Harness) {
	h.needs(t, Growing)
	h.CreateTopic(t, h.topic(), 2, 0)
	s := open(t, h, publisher.Options{})
	s.acknowledged(t, 0, publisher.Record{Topic: h.topic(), Partition: 1})
	h.Grow(t, h.topic(), 5)
	offer := func() {
		if err := s.Produce(publisher.Record{Topic: h.topic(), Partition: 4}, token(1)); err != nil {
			if fault := faultOf(t, err); fault.Class != publisher.Retriable {
				t.Fatalf("%v, %v: want a retriable fault", fault, fault.Class)
			}
			return
		}
		s.awaitReports(t, 1, 1, func() {})
	}
	offer()
	s.awaitNudging(t, "a record in a new partition", func() bool { return len(s.reports[token(1)]) > 0 }, offer)
	if fault := s.outcome(t, 1); fault != nil {
		t.Fatalf("%v, want an acknowledgement", fault)
	}
	if got := inPartition(h.Read(t, h.topic()), 4); len(got) != 1 {
		t.Errorf("partition 4 has %d records, want 1", len(got))
	}
}

func (s *session) describe(t *testing.T, name string) publisher.Described {
	t.Helper()
	s.Describe(name)
	s.await(t, "description of "+name, func() bool { _, is := s.described[name]; return is })
	return s.described[name]
}

func carefulGoesOn(t *testing.T, h Harness) {
	h.needs(t, Limits)
	h.CreateTopic(t, h.topic(), 1, limit)
	s := open(t, h, publisher.Options{Careful: true})
	const count, guilty = 12, 4
	s.produce(t, 0, h.rows(0, count, guilty)...)
	s.awaitReports(t, 0, count, func() {})
	var want []string
	for n := range count {
		fault := s.outcome(t, n)
		switch {
		case n == guilty && (fault == nil || fault.Class != publisher.Rejected):
			t.Errorf("row %d: %v, want rejected", n, fault)
		case n != guilty && fault != nil:
			t.Errorf("row %d: %v, want an acknowledgement", n, fault)
		}
		if n != guilty {
			want = append(want, fmt.Sprint(n))
		}
	}
	if got := values(h.Read(t, h.topic())); !slices.Equal(got, want) {
		t.Errorf("the topic has %v, want %v", got, want)
	}
	if len(s.fataled) > 0 {
		t.Errorf("fatal: %v", s.fataled)
	}
}

// gaplessStops: with one record sent alone and acknowledged first, a rejected
// record ends the producer, and nothing behind it is ever appended. What a
// producer does that was not primed is not promised.
func gaplessStops(t *testing.T, h Harness) {
	h.needs(t, Limits)
	h.CreateTopic(t, h.topic(), 1, limit)
	first := open(t, h, publisher.Options{}) // the partition has data of another producer already
	first.acknowledged(t, 0, h.sized(0, 0))

	s := open(t, h, publisher.Options{})
	s.acknowledged(t, 1, h.sized(1, 0)) // the primer
	const count, guilty = 30, 5
	submitted := 2
	for _, r := range h.rows(2, count, guilty) {
		if err := s.Produce(r, token(submitted)); err != nil {
			if fault := faultOf(t, err); fault.Class != publisher.Fatal {
				t.Errorf("row %d: %v, want fatal", submitted, fault)
			}
			break
		}
		submitted++
	}
	s.await(t, "the fatal error", func() bool { return len(s.fataled) > 0 })
	s.Purge()
	s.awaitReports(t, 2, submitted-2, s.Purge)
	if len(s.fataled) != 1 || s.fataled[0].Class != publisher.Fatal {
		t.Errorf("fatal %v, want one of class fatal", s.fataled)
	}
	if fault := faultOf(t, s.Produce(h.sized(99, 0), token(99))); fault.Class != publisher.Fatal {
		t.Errorf("after the fatal error: %v, want fatal", fault)
	}
	got := values(h.Read(t, h.topic()))
	for n, value := range got {
		if value != fmt.Sprint(n) || n >= guilty {
			t.Fatalf("the topic has %v: more than a prefix of what came before row %d", got, guilty)
		}
	}
	for n := guilty; n < submitted; n++ {
		if s.outcome(t, n) == nil {
			t.Errorf("row %d is acknowledged and was not appended", n)
		}
	}
	for n := 2; n < guilty; n++ {
		if acknowledged := s.outcome(t, n) == nil; acknowledged && n >= len(got) {
			t.Errorf("row %d is acknowledged and was not appended", n)
		}
	}
}

func purgeIsAmbiguous(t *testing.T, h Harness) {
	h.needs(t, Holding)
	h.CreateTopic(t, h.topic(), 1, 0)
	s := open(t, h, publisher.Options{Careful: true})
	s.acknowledged(t, 0, h.sized(0, 0))
	release := h.Hold(t)
	defer release()
	const count = 20
	s.produce(t, 1, h.rows(1, count, -1)...)
	s.Purge()
	s.awaitReports(t, 1, count, s.Purge)
	for n := 1; n <= count; n++ {
		if fault := s.outcome(t, n); fault == nil || fault.Class != publisher.Ambiguous {
			t.Errorf("row %d: %v, want ambiguous", n, fault)
		}
	}
}

func closedIsSilent(t *testing.T, h Harness) {
	h.CreateTopic(t, h.topic(), 1, 0)
	s := open(t, h, publisher.Options{})
	s.acknowledged(t, 0, h.sized(0, 0))
	s.produce(t, 1, h.rows(1, 20, -1)...)
	s.Close()
	s.absorb(t)
	reported := len(s.order)
	if fault := faultOf(t, s.Produce(h.sized(99, 0), token(99))); fault.Class != publisher.Retriable {
		t.Errorf("after Close: %v, want retriable", fault)
	}
	s.Purge()
	s.Describe(h.topic())
	s.Close()
	// Whatever a closed producer could say comes before another's acknowledgement.
	other := open(t, h, publisher.Options{})
	other.acknowledged(t, 0, h.sized(0, 0))
	s.absorb(t)
	if len(s.order) != reported || len(s.described) > 0 {
		t.Errorf("after Close came %d reports, described %v", len(s.order)-reported, s.described)
	}
}

// closesWhileProducing is about real threads: librdkafka ends the process when
// it is used while it is being freed.
func closesWhileProducing(t *testing.T, h Harness) {
	if h.Step != nil {
		t.Skip("virtual time has one thread")
	}
	h.CreateTopic(t, h.topic(), 1, 0)
	for range 5 {
		s := open(t, h, publisher.Options{Careful: true}) // Purge ends a gap-less one
		s.acknowledged(t, 0, h.sized(0, 0))
		var producing sync.WaitGroup
		for range 2 {
			producing.Go(func() {
				for n := 1; ; n++ {
					if err := s.Produce(h.sized(n, 0), token(n)); err != nil {
						return
					}
					if n%100 == 0 {
						s.Describe(h.topic())
						s.Purge()
					}
				}
			})
		}
		s.await(t, "reports while producing", func() bool { return len(s.order) > 500 })
		s.Close()
		producing.Wait()
	}
}
