package bucket

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// operator changes what is set aside, and rings: "parks k", "parks topic orders",
// "pauses topic orders 5s" (from the scenario's begin), "retries k", "retries topic
// orders", "withdraws k" (its retry), "discards k 4", "moves 4" (a row that cannot be
// read); "… silently" does not ring. Rows of the key k, of the topic orders, unless they
// say otherwise.
func (s *stage) operator(words []string) {
	rings := words[len(words)-1] != "silently"
	now := s.instant().Ticks()
	marker := store.Marker{Topic: "orders", Reason: "operator", ParkedAt: now}
	if words[1] == "topic" {
		marker.Topic = words[2]
	} else {
		marker.KeyID = outbox.ParkedKeyID(&outbox.Message{Topic: "orders", Key: []byte(words[1])})
	}
	var r store.Request
	switch words[0] {
	case "parks":
		r = store.SetAside{Bucket: s.core.cfg.Bucket, Marker: marker}
	case "pauses":
		marker.PausedUntil, marker.PausedBy = s.ticksAt(words[3]), "ann"
		r = store.PauseTopic{Bucket: s.core.cfg.Bucket, Marker: marker}
	case "retries":
		r = store.AskRetry{Bucket: s.core.cfg.Bucket, KeyID: marker.KeyID, Topic: marker.Topic, At: now}
	case "withdraws":
		r = s.callOff(marker)
	case "moves":
		r = s.moveUnreadable(s.number(words[1]), marker)
	case "discards":
		r = store.DiscardParked{Bucket: s.core.cfg.Bucket, KeyID: marker.KeyID, Sequence: s.number(words[2])}
	default:
		s.t.Fatalf("an operator cannot do %q", words[0])
	}
	if reply := s.carryOut(r); reply.Class != store.Done {
		s.did = append(s.did, "refused")
	}
	if rings {
		s.carryOut(store.Ring{Bucket: s.core.cfg.Bucket, At: now})
	}
}

// callOff is the command that sets what is retried aside again.
func (s *stage) callOff(marker store.Marker) store.Request {
	page := s.carryOut(store.ReadMarkers{Bucket: s.core.cfg.Bucket}).Result.(store.MarkersPage)
	for _, m := range page.Markers {
		if m.KeyID == marker.KeyID && m.Topic == marker.Topic {
			return store.CallOff{Bucket: s.core.cfg.Bucket, Seen: m, ParkedAt: max(marker.ParkedAt, m.ParkedAt+1), Reason: m.Reason}
		}
	}
	s.t.Fatalf("nothing is set aside as %+v", marker)
	return nil
}

// moveUnreadable is the command that sets a row aside which cannot be read.
func (s *stage) moveUnreadable(sequence int64, marker store.Marker) store.Request {
	read := s.carryOut(store.ReadRow{Bucket: s.core.cfg.Bucket, Sequence: sequence}).Result.(store.RowRead)
	marker.KeyID, marker.Topic = s.schema.ParkedIdentity(read.Item)
	return store.MoveUnreadable{
		Bucket: s.core.cfg.Bucket, Sequence: sequence, Item: read.Item, Marker: marker, Token: fmt.Sprint("move-", sequence),
	}
}

// markerIs makes that of the key k2 one that cannot be read: "marker unreadable"; or
// takes it away: "marker gone".
func (s *stage) markerIs(what string) {
	sortKey := outbox.ParkedKeySortKey(outbox.ParkedKeyID(&outbox.Message{Topic: "orders", Key: []byte("k2")}))
	item := s.schema.Key(s.schema.ParkedKey(s.core.cfg.Bucket), sortKey)
	if what == "unreadable" {
		s.put(item)
		return
	}
	if _, err := s.db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &s.schema.Table, Key: item}); err != nil {
		s.t.Fatal(err)
	}
}
