package main

import (
	"fmt"
	"strconv"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// describeRequest says what a request of an operator is about, for --dry-run and for
// the end of a command.
func describeRequest(schema outbox.Schema, r store.Request) requestDocument {
	d := requestDocument{Request: r.RequestName(), Bucket: r.ConcernsBucket(), PartitionKey: schema.ParkedKey(r.ConcernsBucket())}
	switch r := r.(type) {
	case store.SetAside:
		d.SortKey = markerSortKey(r.Marker.KeyID, r.Marker.Topic)
		d.Does = "set aside " + markerText(r.Marker) + inBucket(r.Bucket)
		d.Effect = fmt.Sprintf("put unless it exists: %s %d, %s %s", outbox.AttrParkedAtUtc, r.Marker.ParkedAt, outbox.AttrReason, strconv.Quote(r.Marker.Reason))
		if r.Marker.RetryAt != 0 {
			d.Does += ", and ask for its retry"
		}
	case store.AskRetry:
		d.SortKey = markerSortKey(r.KeyID, r.Topic)
		d.Does = "ask for a retry of " + markerText(store.Marker{KeyID: r.KeyID, Topic: r.Topic}) + inBucket(r.Bucket)
		d.Effect = fmt.Sprintf("if it exists, set %s to %d", outbox.AttrRetryAtUtc, r.At)
	case store.CallOff:
		d.SortKey = markerSortKey(r.Seen.KeyID, r.Seen.Topic)
		d.Does = "call off the retry of " + markerText(r.Seen) + inBucket(r.Bucket) + ", which stays set aside"
		d.Effect = fmt.Sprintf("if it is as it was read, set %s to %d and %s to %s, and remove %s", outbox.AttrParkedAtUtc, r.ParkedAt,
			outbox.AttrReason, strconv.Quote(r.Reason), outbox.AttrRetryAtUtc)
		if r.Seen.PausedUntil != 0 {
			d.Effect += fmt.Sprintf(", %s and %s", outbox.AttrPausedUntilUtc, outbox.AttrPausedBy)
		}
	case store.DiscardParked:
		d.SortKey = outbox.ParkedRowSortKey(r.KeyID, r.Sequence)
		d.Does = fmt.Sprintf("discard row %d of key %s%s", r.Sequence, r.KeyID, inBucket(r.Bucket))
		d.Effect = "delete if it exists"
	case store.MoveUnreadable:
		d.SortKey = outbox.ParkedRowSortKey(r.Marker.KeyID, r.Sequence)
		d.Does = fmt.Sprintf("move row %d, which cannot be read, aside under key %s%s", r.Sequence, r.Marker.KeyID, inBucket(r.Bucket))
		d.Effect = fmt.Sprintf("moved here from %s, if it is as it was read, with its marker", schema.MessagesKey(r.Bucket))
	case store.Ring:
		d.PartitionKey, d.SortKey = schema.CoordinationKey(), outbox.LeaseSortKey(r.Bucket)
		d.Does = fmt.Sprintf("tell the owner of bucket %d", r.Bucket)
		d.Effect = fmt.Sprintf("set %s to %d", outbox.AttrAttention, r.At)
	case store.Pause, store.Resume, store.PauseTopic, store.Release:
		describePause(&d, schema, r)
	default:
		d.Does, d.Effect = r.RequestName()+inBucket(d.Bucket), fmt.Sprintf("%+v", r)
	}
	return d
}

// describePause says what a request is about that pauses, resumes, or frees a lease.
func describePause(d *requestDocument, schema outbox.Schema, r store.Request) {
	d.PartitionKey, d.SortKey = schema.CoordinationKey(), outbox.LeaseSortKey(d.Bucket)
	switch r := r.(type) {
	case store.Pause:
		d.Does = fmt.Sprintf("pause bucket %d, %s", r.Bucket, endText(r.Until))
		d.Effect = fmt.Sprintf("%s, set %s to %d, %s to %s, %s to %s", pauseCondition(r.Seen),
			outbox.AttrPausedUntilUtc, r.Until, outbox.AttrPausedBy, strconv.Quote(r.By), outbox.AttrPauseReason, strconv.Quote(r.Reason))
	case store.Resume:
		d.Does = fmt.Sprintf("let bucket %d go on", r.Bucket)
		d.Effect = fmt.Sprintf("%s, remove %s, %s and %s", pauseCondition(r.Seen),
			outbox.AttrPausedUntilUtc, outbox.AttrPausedBy, outbox.AttrPauseReason)
	case store.PauseTopic:
		d.PartitionKey, d.SortKey = schema.ParkedKey(r.Bucket), markerSortKey("", r.Marker.Topic)
		d.Does = fmt.Sprintf("pause %s%s, %s", markerText(r.Marker), inBucket(r.Bucket), endText(r.Marker.PausedUntil))
		d.Effect = "put unless it exists"
		if r.Seen != 0 {
			d.Effect = fmt.Sprintf("put if its %s is %d and no retry is asked for", outbox.AttrParkedAtUtc, r.Seen)
		}
		d.Effect += fmt.Sprintf(": %s %d, %s %d, %s %s, %s %s", outbox.AttrParkedAtUtc, r.Marker.ParkedAt,
			outbox.AttrPausedUntilUtc, r.Marker.PausedUntil, outbox.AttrPausedBy, strconv.Quote(r.Marker.PausedBy), outbox.AttrReason, strconv.Quote(r.Marker.Reason))
	case store.Release:
		d.Does = fmt.Sprintf("free the lease of bucket %d, held by %s", r.Bucket, legible(r.Relay))
		d.Effect = fmt.Sprintf("if %s is %s and %s is %d, remove %s and set %s to %d", outbox.AttrOwner, strconv.Quote(r.Relay),
			outbox.AttrExpiresAtUtc, r.Seen, outbox.AttrOwner, outbox.AttrExpiresAtUtc, r.Now)
	}
}

// pauseCondition is under which a pause is changed.
func pauseCondition(seen store.Ticks) string {
	if seen == 0 {
		return "unless it is paused"
	}
	return fmt.Sprintf("if %s is %d", outbox.AttrPausedUntilUtc, seen)
}

func inBucket(bucket int) string { return fmt.Sprintf(" in bucket %d", bucket) }

func markerSortKey(keyID, topic string) string {
	if keyID != "" {
		return outbox.ParkedKeySortKey(keyID)
	}
	return outbox.ParkedTopicSortKey(topic)
}

// markerText names what a marker stands for.
func markerText(m store.Marker) string {
	switch {
	case m.KeyID == "":
		return "all of topic " + legible(m.Topic)
	case m.Topic == "":
		return "key " + m.KeyID
	default:
		return fmt.Sprintf("key %s of topic %s", m.KeyID, legible(m.Topic))
	}
}
