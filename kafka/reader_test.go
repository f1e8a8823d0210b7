package kafka

import (
	"testing"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// newReader makes a reader of a filled channel, over a producer that has no
// client.
func newReader(sink publisher.Sink, events ...ck.Event) *reader {
	filled := make(chan ck.Event, len(events))
	for _, e := range events {
		filled <- e
	}
	close(filled)
	return &reader{
		producer: &producer{number: 3, codes: newCodebook(), sink: sink},
		events:   filled, faults: make(map[ck.ErrorCode]*publisher.Fault),
	}
}

func report(sequence int, err error) ck.Event {
	return &ck.Message{Opaque: &publisher.Token{Sequence: int64(sequence)}, TopicPartition: ck.TopicPartition{Error: err}}
}

// TestReportsComeInBursts: one message to the publisher for all that is there, up
// to a bound, in order, and none held back.
func TestReportsComeInBursts(t *testing.T) {
	const count = 2*maxBurst + 100
	var sizes []int
	next := int64(0)
	r := newReader(func(msg any) {
		switch m := msg.(type) {
		case publisher.Reported:
			sizes = append(sizes, len(m.Reports))
			for _, report := range m.Reports {
				if report.Token.Sequence != next {
					t.Fatalf("report of row %d, want row %d", report.Token.Sequence, next)
				}
				next++
			}
		case publisher.Reached:
		default:
			t.Errorf("unexpected %#v", msg)
		}
	})
	var events []ck.Event
	for n := range count {
		events = append(events, report(n, nil))
	}
	r.events = newReader(nil, events...).events
	r.drain()
	r.flush()
	if len(sizes) != 3 || sizes[0] != maxBurst || sizes[1] != maxBurst || sizes[2] != 100 {
		t.Errorf("bursts of %v, want %d, %d and 100", sizes, maxBurst, maxBurst)
	}
}

// TestAFatalErrorIsToldOnceAndInOrder: after the reports that came before it.
func TestAFatalErrorIsToldOnceAndInOrder(t *testing.T) {
	fatal := ck.NewError(ck.ErrGaplessGuarantee, "why", true)
	rejected := ck.NewError(ck.ErrMsgSizeTooLarge, "", false)
	var got []any
	r := newReader(func(msg any) { got = append(got, msg) },
		report(1, rejected), report(2, rejected), fatal, fatal, report(3, ck.NewError(ck.ErrPurgeQueue, "", false)))
	r.drain()
	r.flush()
	if len(got) != 3 {
		t.Fatalf("%d messages, want reports, fatal, reports: %#v", len(got), got)
	}
	first, isReported := got[0].(publisher.Reported)
	fataled, isFataled := got[1].(publisher.Fataled)
	if !isReported || !isFataled || len(first.Reports) != 2 {
		t.Fatalf("got %#v, want two reports, then the fatal error", got)
	}
	if first.Reports[0].Fault == nil || first.Reports[0].Fault != first.Reports[1].Fault {
		t.Error("reports of one code do not share their fault")
	}
	if fataled.Producer != 3 || fataled.Fault.Class != publisher.Fatal || fataled.Fault.Code != "_GAPLESS_GUARANTEE" {
		t.Errorf("fatal as %+v", *fataled.Fault)
	}
}
