package publishertest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
)

func reachesBroker(t *testing.T, h Harness) {
	s := open(t, h, publisher.Options{})
	s.await(t, "the broker is reached", func() bool { return s.reached > 0 })
}

// keepsNullAndEmpty: a null value is a tombstone and an empty one is not; an
// empty key always goes to one partition and a null one anywhere.
func keepsNullAndEmpty(t *testing.T, h Harness) {
	h.CreateTopic(t, h.topic(), 1, 0)
	s := open(t, h, publisher.Options{})
	contents := [][]byte{nil, {}, []byte("x")}
	var sent []publisher.Record
	for _, key := range contents {
		for _, value := range contents {
			for _, header := range contents {
				sent = append(sent, publisher.Record{Topic: h.topic(), Key: key, Value: value,
					Headers: []outbox.Header{{Key: "h", Value: header}}})
			}
		}
	}
	sent = append(sent, publisher.Record{Topic: h.topic(), Key: []byte("no headers")})
	s.acknowledged(t, 0, sent...)
	compare(t, h.Read(t, h.topic()), sent)
}

func keepsDuplicateHeaders(t *testing.T, h Harness) {
	h.CreateTopic(t, h.topic(), 1, 0)
	s := open(t, h, publisher.Options{})
	sent := publisher.Record{Topic: h.topic(), Value: []byte("v"), Headers: []outbox.Header{
		{Key: "trace", Value: []byte("b")}, {Key: "", Value: []byte("empty name")}, {Key: "trace", Value: nil},
		{Key: "trace", Value: []byte("a")}, {Key: "größe", Value: []byte{0, 255}}, {Key: "trace", Value: []byte{}},
	}}
	s.acknowledged(t, 0, sent)
	compare(t, h.Read(t, h.topic()), []publisher.Record{sent})
}

func honoursPartitions(t *testing.T, h Harness) {
	const partitions = 3
	h.CreateTopic(t, h.topic(), partitions, 0)
	s := open(t, h, publisher.Options{})
	var sent []publisher.Record
	for n := range 30 {
		// One key for all: only what the record says decides.
		sent = append(sent, publisher.Record{Topic: h.topic(), Partition: int32(n * n % partitions), Key: []byte("one key"),
			Value: fmt.Appendf(nil, "%d", n*n%partitions)})
	}
	s.acknowledged(t, 0, sent...)
	got := h.Read(t, h.topic())
	if len(got) != len(sent) {
		t.Fatalf("the topic has %d records, want %d", len(got), len(sent))
	}
	for _, r := range got {
		if want := fmt.Sprint(r.Partition); string(r.Value) != want {
			t.Errorf("partition %d has a record for partition %s", r.Partition, r.Value)
		}
	}
}

func keepsOrder(t *testing.T, h Harness) {
	const partitions, each = 3, 200
	h.CreateTopic(t, h.topic(), partitions, 0)
	s := open(t, h, publisher.Options{})
	sent := h.numbered(partitions, each)
	s.acknowledged(t, 0, sent...)
	got := h.Read(t, h.topic())
	for partition := range int32(partitions) {
		var want []string
		for n := int(partition); n < partitions*each; n += partitions {
			want = append(want, fmt.Sprint(n))
		}
		if is := values(inPartition(got, partition)); !slices.Equal(is, want) {
			t.Errorf("partition %d has %v, want %v", partition, is, want)
		}
	}
}

// reportsOnce also wants the reports of one partition in its order: the core
// deletes rows by the contiguous prefix of what was acknowledged.
func reportsOnce(t *testing.T, h Harness) {
	const partitions, each = 2, 250
	h.CreateTopic(t, h.topic(), partitions, 0)
	s := open(t, h, publisher.Options{})
	s.acknowledged(t, 0, h.numbered(partitions, each)...)
	// Whatever came twice would have come before the report of a later record.
	s.acknowledged(t, partitions*each, h.numbered(partitions, 1)...)
	last := make([]int64, partitions)
	for i := range last {
		last[i] = -1
	}
	for _, tok := range s.order {
		partition := tok.Sequence % partitions
		if tok.Sequence <= last[partition] {
			t.Errorf("partition %d: the report of row %d came after that of row %d", partition, tok.Sequence, last[partition])
		}
		last[partition] = tok.Sequence
	}
	if len(s.order) != partitions*each+partitions {
		t.Errorf("%d reports, want %d", len(s.order), partitions*each+partitions)
	}
}

// stampsPublishTime: consumers see when a record was published, not when its row
// was written. Record times are whole milliseconds.
func stampsPublishTime(t *testing.T, h Harness) {
	h.CreateTopic(t, h.topic(), 1, 0)
	s := open(t, h, publisher.Options{})
	s.acknowledged(t, 0, publisher.Record{Topic: h.topic(), Value: []byte("first")})
	before := h.Now().Truncate(time.Millisecond)
	s.acknowledged(t, 1, publisher.Record{Topic: h.topic(), Value: []byte("second")})
	after := h.Now()
	got := h.Read(t, h.topic())
	if len(got) != 2 {
		t.Fatalf("the topic has %d records, want 2", len(got))
	}
	if at := got[1].Timestamp; at.Before(before) || at.After(after) {
		t.Errorf("record time %v, want one from %v to %v", at, before, after)
	}
}

// numbered are partitions×each records; record n has value n and goes to
// partition n modulo partitions.
func (h Harness) numbered(partitions, each int) []publisher.Record {
	var records []publisher.Record
	for n := range partitions * each {
		records = append(records, publisher.Record{Topic: h.topic(), Partition: int32(n % partitions),
			Key: fmt.Appendf(nil, "key-%d", n%7), Value: fmt.Appendf(nil, "%d", n)})
	}
	return records
}

// compare wants exactly the records sent, null and empty told apart. No headers
// at all and an empty list are the same to a consumer.
func compare(t *testing.T, got []Record, sent []publisher.Record) {
	t.Helper()
	if len(got) != len(sent) {
		t.Fatalf("the topic has %d records, want %d", len(got), len(sent))
	}
	for i, want := range sent {
		is := got[i]
		if !reflect.DeepEqual(is.Key, want.Key) {
			t.Errorf("record %d: key %#v, want %#v", i, is.Key, want.Key)
		}
		if !reflect.DeepEqual(is.Value, want.Value) {
			t.Errorf("record %d: value %#v, want %#v", i, is.Value, want.Value)
		}
		if len(is.Headers)+len(want.Headers) > 0 && !reflect.DeepEqual(is.Headers, want.Headers) {
			t.Errorf("record %d: headers %#v, want %#v", i, is.Headers, want.Headers)
		}
	}
}
