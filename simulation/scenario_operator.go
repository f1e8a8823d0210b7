package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// subjectOf is what an operator has in mind: a topic and key, or a whole topic, in
// some buckets.
type subjectOf struct {
	key     string // empty: the topic
	topic   string
	buckets []int // of a topic; nil: of all
}

// readSubject reads "key a of audit in bucket 0" and "topic orders in bucket 0-3". Without
// a word of it, a key is one of orders, and a topic is meant in all buckets.
func readSubject(w *words) subjectOf {
	s := subjectOf{topic: "orders"}
	if w.has("topic") {
		s.topic = w.take("a topic")
	} else {
		w.must("key")
		s.key = w.take("a key")
		if w.has("of") {
			s.topic = w.take("a topic")
		}
	}
	if w.has("in bucket") {
		s.buckets = w.buckets()
	}
	if s.key != "" && len(s.buckets) != 1 {
		w.fail("a key is in one bucket")
	}
	return s
}

// markers are those that the subject has, or would have.
func (t *stage) markers(s subjectOf) ([]bucketMarker, error) {
	buckets := s.buckets
	if s.key != "" {
		bytes, err := t.keys[s.key], error(nil)
		if bytes == nil {
			bytes, err = t.keyIn(s.key, buckets[0], t.fleet.o.Buckets)
		}
		keyID := outbox.ParkedKeyID(&outbox.Message{Topic: s.topic, Key: bytes})
		return []bucketMarker{{buckets[0], store.Marker{KeyID: keyID, Topic: s.topic}}}, err
	}
	for b := range t.fleet.o.Buckets {
		if s.buckets == nil {
			buckets = append(buckets, b)
		}
	}
	var markers []bucketMarker
	for _, b := range buckets {
		markers = append(markers, bucketMarker{b, store.Marker{Topic: s.topic}})
	}
	return markers, nil
}

// noBell is in place of a bucket to ring for: nobody is.
const noBell = -1

// change is one request of an operator, and the bucket to ring for.
type change struct {
	bucket  int
	request store.Request
}

// readOperator reads "operator parks key a in bucket 0", "operator retries topic
// orders", "operator withdraws key a in bucket 0" (its retry), "operator discards m1", "operator pauses bucket 0-3 for 1m", "operator resumes
// bucket 0-3", "operator rings bucket 3". The bell is rung at once,
// or as "ringing after 3s" and "ringing never" say; a change that must be refused is followed by
// "refused".
func readOperator(p *scenarioParser, w *words) func(*stage) error {
	var changes func(*stage) ([]change, error)
	switch w.oneOf("what the operator does", "parks", "retries", "withdraws", "discards", "pauses", "resumes", "rings") {
	case "parks":
		s := readSubject(w)
		changes = func(t *stage) ([]change, error) {
			return t.changes(s, func(m bucketMarker) store.Request {
				m.Reason, m.ParkedAt = operatorReason, t.fleet.ticks()
				return store.SetAside{Bucket: m.bucket, Marker: m.Marker}
			})
		}
	case "retries":
		s := readSubject(w)
		changes = func(t *stage) ([]change, error) {
			return t.changes(s, func(m bucketMarker) store.Request {
				return store.AskRetry{Bucket: m.bucket, KeyID: m.KeyID, Topic: m.Topic, At: t.fleet.ticks()}
			})
		}
	case "withdraws":
		s := readSubject(w)
		changes = func(t *stage) ([]change, error) { return t.withdrawals(s) }
	case "discards":
		names := p.messages(w, "ringing", "refused")
		changes = func(t *stage) ([]change, error) { return nil, t.discard(names) }
	case "pauses":
		changes = readPauses(w)
	case "resumes":
		changes = readResumes(w)
	default:
		w.must("bucket")
		buckets := w.buckets()
		return func(t *stage) error {
			for _, b := range buckets {
				t.fleet.ring(b)
			}
			return nil
		}
	}
	return readRinging(w, changes)
}

// readRinging reads when the bell is rung, and whether the change must be refused.
func readRinging(w *words, changes func(*stage) ([]change, error)) func(*stage) error {
	after, never := time.Duration(0), false
	switch {
	case w.has("ringing never"):
		never = true
	case w.has("ringing after"):
		after = w.positive("a while")
	}
	want := store.Done
	if w.has("refused") {
		want = store.Refused
	}
	return func(t *stage) error {
		all, err := changes(t)
		for _, c := range all {
			if reply := t.fleet.change(c.request); reply.Class != want {
				return fmt.Errorf("it is %v", reply.Class)
			}
			if !never && c.bucket != noBell {
				t.fleet.ringLater(c.bucket, after)
			}
		}
		return err
	}
}

// changes are one request for each marker of a subject.
func (t *stage) changes(s subjectOf, request func(bucketMarker) store.Request) ([]change, error) {
	markers, err := t.markers(s)
	var all []change
	for _, m := range markers {
		all = append(all, change{m.bucket, request(m)})
	}
	return all, err
}

// withdrawals call off the retries of a subject, as its markers are.
func (t *stage) withdrawals(s subjectOf) ([]change, error) {
	var err error
	all, fault := t.changes(s, func(m bucketMarker) store.Request {
		if t.fleet.checker.marker(m.bucket, m.Marker) == nil {
			err = fmt.Errorf("it is not set aside in bucket %d", m.bucket)
		}
		return t.fleet.callOff(m)
	})
	return all, errors.Join(fault, err)
}

// discard throws the rows of messages away that are set aside.
func (t *stage) discard(names []string) error {
	for _, name := range names {
		m := t.messages[name]
		row := asideRow{m.bucket, outbox.ParkedKeyID(&m.message), m.sequence}
		if !slices.Contains(t.fleet.asideRows(), row) {
			return fmt.Errorf("%s is not set aside", name)
		}
		t.fleet.discardRow(row, 0)
	}
	return nil
}

// readWriteAgain reads "write m1 again": the SDK repeats the put of one message.
func readWriteAgain(p *scenarioParser, w *words) func(*stage) error {
	names := p.messages(w, "again")
	w.must("again")
	return func(t *stage) error {
		for _, name := range names {
			s := t.messages[name]
			if s == nil || !s.committed {
				return errors.New(name + " was not committed")
			}
			t.fleet.writers.putAgain(transaction{messages: []outbox.Message{s.message}, bucket: s.bucket, first: s.sequence})
		}
		return nil
	}
}

// readSetAside reads "key a in bucket 0 is set aside", "is to be retried", and "is free":
// what the table's markers say.
func readSetAside(w *words) expectation {
	s := readSubject(w)
	w.must("is")
	want := strings.Join(w.rest("how it is"), " ")
	states := []string{"free", "set aside", "to be retried"}
	if w.err == nil && !slices.Contains(states, want) {
		w.fail("it is one of %s", strings.Join(states, ", "))
	}
	return func(t *stage) error {
		markers, err := t.markers(s)
		for _, m := range markers {
			is := "set aside"
			item := t.fleet.checker.marker(m.bucket, m.Marker)
			if item == nil {
				is = "free"
			} else if _, asked := item.ticks(outbox.AttrRetryAtUtc); asked {
				is = "to be retried"
			}
			if is != want {
				return fmt.Errorf("in bucket %d it is %s", m.bucket, is)
			}
		}
		return err
	}
}

// readAside reads what rows that are set aside are counted: "of key a in bucket 0", "in
// bucket 0", or all.
func readAside(w *words) func(*stage) []counted {
	ofKey, bucket := subjectOf{}, -1
	switch {
	case w.has("of"):
		ofKey = readSubject(w)
	case w.has("in bucket"):
		bucket = w.bucket()
	}
	return func(t *stage) []counted {
		var of []bucketMarker
		if ofKey.key != "" {
			of, _ = t.markers(ofKey)
		}
		n := 0
		for _, row := range t.fleet.asideRows() {
			switch {
			case of != nil && (row.keyID != of[0].KeyID || row.bucket != of[0].bucket):
			case bucket >= 0 && row.bucket != bucket:
			default:
				n++
			}
		}
		return []counted{{n, " set aside"}}
	}
}
