package simulation

import (
	"context"
	"strings"
	"time"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// operators are people who look after an outbox. They change what is set aside, and
// ring for the owner of the bucket afterwards: as two requests, with time between
// them.
func (f *fleet) operators() {
	f.every(KeyParked, func(s source) {
		b := s.IntN(f.o.Buckets)
		if rows := f.checker.rowsOf[b]; len(rows) > 0 {
			i := f.checker.rows[rowName{b, rows[s.IntN(len(rows))]}]
			m := f.writers.committed[i].message
			f.operate(b, s, store.SetAside{Bucket: b, Marker: store.Marker{
				KeyID: outbox.ParkedKeyID(&m), Topic: m.Topic, Reason: operatorReason, ParkedAt: f.ticks(),
			}})
		}
	})
	f.every(TopicParked, func(s source) {
		topic := topics[s.IntN(len(topics))].name
		for b := range f.o.Buckets {
			f.operate(b, s, store.SetAside{Bucket: b, Marker: store.Marker{Topic: topic, Reason: operatorReason, ParkedAt: f.ticks()}})
		}
	})
	f.every(RetryAsked, func(s source) {
		for _, m := range f.markers() {
			if s.chance(0.5) {
				f.operate(m.bucket, s, store.AskRetry{Bucket: m.bucket, KeyID: m.KeyID, Topic: m.Topic, At: f.ticks()})
			}
		}
	})
	f.every(RowDiscarded, func(s source) {
		if rows := f.asideRows(); len(rows) > 0 {
			row := rows[s.IntN(len(rows))]
			f.discardRow(row, s.between(0, 3*time.Second))
		}
	})
	f.every(TopicPaused, func(s source) {
		topic, end := topics[s.IntN(len(topics))].name, f.soon(s)
		for b := range f.o.Buckets {
			f.operate(b, s, f.pauseTopic(bucketMarker{b, store.Marker{Topic: topic}}, end))
		}
	})
	f.every(BucketPaused, func(s source) {
		b := s.IntN(f.o.Buckets)
		f.change(store.Pause{Bucket: b, Seen: f.pausedUntil(b), Until: f.soon(s), By: pauser, Reason: operatorReason})
	})
	f.every(RetryCalledOff, func(s source) {
		for _, m := range f.markers() {
			if s.chance(0.5) {
				f.operate(m.bucket, s, f.callOff(m))
			}
		}
	})
}

// soon is an end of a pause.
func (f *fleet) soon(s source) store.Ticks { return f.ticks().Add(s.between(time.Second, time.Minute)) }

// pauseTopic pauses a topic in one bucket, under its marker as that is now.
func (f *fleet) pauseTopic(m bucketMarker, end store.Ticks) store.PauseTopic {
	seen, _ := f.checker.marker(m.bucket, m.Marker).ticks(outbox.AttrParkedAtUtc)
	m.Reason, m.ParkedAt, m.PausedUntil, m.PausedBy = operatorReason, max(f.ticks(), seen+1), end, pauser
	return store.PauseTopic{Bucket: m.bucket, Seen: seen, Marker: m.Marker}
}

// callOff sets aside again what a marker stands for, be it retried or not. Its reason
// stays.
func (f *fleet) callOff(m bucketMarker) store.CallOff {
	is := f.checker.marker(m.bucket, m.Marker)
	m.ParkedAt, _ = is.ticks(outbox.AttrParkedAtUtc)
	m.RetryAt, _ = is.ticks(outbox.AttrRetryAtUtc)
	reason := strings.TrimPrefix(is[outbox.AttrReason], text(""))
	return store.CallOff{Bucket: m.bucket, Seen: m.Marker, ParkedAt: max(f.ticks(), m.ParkedAt+1), Reason: reason}
}

// operatorReason is the Reason of what operators set aside.
const operatorReason = "operator"

func (f *fleet) ticks() store.Ticks { return store.Instant{Wall: epoch + f.now}.Ticks() }

// operate does one thing to a bucket, and rings soon after.
func (f *fleet) operate(b int, s source, r store.Request) {
	f.change(r)
	f.ringLater(b, s.between(0, 3*time.Second))
}

// change is one request of an operator.
func (f *fleet) change(r store.Request) store.Reply {
	reply := f.net.client.Do(context.Background(), r)
	f.record("operator", operatorActed, applied{r.RequestName(), reply.Class, r})
	return reply
}

// ringLater rings after a while, before which the run is not over.
func (f *fleet) ringLater(b int, after time.Duration) {
	f.writers.open++
	f.At(after, func() {
		f.writers.open--
		f.ring(b)
	})
}

// ring tells the owner of a bucket that something has changed.
func (f *fleet) ring(b int) { f.change(store.Ring{Bucket: b, At: f.ticks()}) }

// discardRow throws one row that is set aside away, and rings after a while.
func (f *fleet) discardRow(row asideRow, ringing time.Duration) {
	reply := f.change(store.DiscardParked{Bucket: row.bucket, KeyID: row.keyID, Sequence: row.sequence})
	f.ringLater(row.bucket, ringing)
	if reply.Class != store.Done {
		return
	}
	c := f.checker
	c.catchUp()
	c.aside[row.bucket].remove(row.keyID, row.sequence)
	if i, known := c.rows[rowName{row.bucket, row.sequence}]; known {
		c.discarded[i] = true
	}
}

// retryAll asks for a retry of all that is set aside, and resumes what is paused.
func (f *fleet) retryAll() {
	for b := range f.o.Buckets {
		if until := f.pausedUntil(b); until != 0 {
			f.change(store.Resume{Bucket: b, Seen: until})
		}
	}
	for _, m := range f.markers() {
		f.operate(m.bucket, f.rand, store.AskRetry{Bucket: m.bucket, KeyID: m.KeyID, Topic: m.Topic, At: f.ticks()})
	}
}

// pausedUntil is the end of a bucket's pause, as its lease item has it; 0: it has none.
func (f *fleet) pausedUntil(b int) store.Ticks {
	until, _ := f.checker.item(outbox.LeaseSortKey(b)).ticks(outbox.AttrPausedUntilUtc)
	return until
}

// bucketMarker is a marker of a bucket.
type bucketMarker struct {
	bucket int
	store.Marker
}

// asideRow is one row that is set aside.
type asideRow struct {
	bucket   int
	keyID    string
	sequence int64
}

// markers are all that are in the table, with what names them.
func (f *fleet) markers() []bucketMarker {
	var markers []bucketMarker
	f.parkedItems(func(b int, sortKey string) {
		if topic, is := strings.CutPrefix(sortKey, outbox.ParkedTopicSortKeyPrefix); is {
			markers = append(markers, bucketMarker{b, store.Marker{Topic: topic}})
		}
		if keyID, is := strings.CutPrefix(sortKey, outbox.ParkedKeySortKeyPrefix); is {
			markers = append(markers, bucketMarker{b, store.Marker{KeyID: keyID}})
		}
	})
	return markers
}

// asideRows are all rows that are set aside.
func (f *fleet) asideRows() []asideRow {
	var rows []asideRow
	f.parkedItems(func(b int, sortKey string) {
		if keyID, sequence, err := outbox.ParseParkedRow(sortKey); err == nil {
			rows = append(rows, asideRow{b, keyID, sequence})
		}
	})
	return rows
}

// parkedItems goes through the sort keys of all parked partitions, in the table's
// order.
func (f *fleet) parkedItems(visit func(bucket int, sortKey string)) {
	for b := range f.o.Buckets {
		for _, sortKey := range f.db.SortKeys(f.schema.Table, f.schema.ParkedKey(b)) {
			visit(b, sortKey)
		}
	}
}
