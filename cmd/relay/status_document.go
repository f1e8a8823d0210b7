package main

import (
	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// statusDocument is the JSON of a picture. What the table does not say is null.
type statusDocument struct {
	Table       string           `json:"table"`
	KeyPrefix   string           `json:"keyPrefix"`
	BucketCount int              `json:"bucketCount"` // by the settings
	Time        string           `json:"time"`        // of the picture, by DynamoDB's clock
	Relays      []relayDocument  `json:"relays"`
	Buckets     []bucketDocument `json:"buckets"`
	Totals      totalsDocument   `json:"totals"`
	Troubles    []trouble        `json:"troubles"` // the gravest first
	Cost        *costDocument    `json:"cost,omitempty"`
}

type relayDocument struct {
	ID          string             `json:"id"`
	State       picture.RelayState `json:"state"`
	LastSeen    string             `json:"lastSeen"`
	StoppedAt   *string            `json:"stoppedAt"`
	Mode        *string            `json:"mode"`        // null for relays of the peer, as the next
	Incarnation *string            `json:"incarnation"` // of the process
	Owned       int                `json:"owned"`       // buckets
}

type bucketDocument struct {
	Bucket  int                `json:"bucket"`
	Owner   *string            `json:"owner"`
	Expires *string            `json:"expires"`
	State   picture.LeaseState `json:"state"`
	Pending *int               `json:"pending"` // messages; null when they could not be counted
	// PendingIsLimit tells that more may wait than were counted.
	PendingIsLimit   bool           `json:"pendingIsLimit"`
	OldestAgeSeconds float64        `json:"oldestAgeSeconds"` // 0 without a message
	ParkedKeys       int            `json:"parkedKeys"`
	ParkedTopics     int            `json:"parkedTopics"`
	Paused           *pauseDocument `json:"paused"`
}

type totalsDocument struct {
	Pending          int     `json:"pending"`
	PendingIsLimit   bool    `json:"pendingIsLimit"`
	ParkedKeys       int     `json:"parkedKeys"`
	ParkedRows       int     `json:"parkedRows"`
	ParkedIsLimit    bool    `json:"parkedIsLimit"`
	OldestAgeSeconds float64 `json:"oldestAgeSeconds"`
}

type costDocument struct {
	Requests  []spentDocument `json:"requests"`
	Total     int             `json:"total"`     // requests
	ReadUnits float64         `json:"readUnits"` // of all
}

type spentDocument struct {
	Request   string  `json:"request"`
	Count     int     `json:"count"`
	ReadUnits float64 `json:"readUnits"`
}

func (c *status) document(s *settings.Settings, p picture.Table) statusDocument {
	sum := p.Totals()
	d := statusDocument{
		Table: s.Relay.Table, KeyPrefix: s.Schema().WithDefaults().KeyPrefix, BucketCount: len(p.Buckets), Time: rfc3339(p.At),
		Relays: []relayDocument{}, Buckets: []bucketDocument{}, Troubles: troublesOf(p),
		Totals: totalsDocument{
			Pending: sum.Pending, PendingIsLimit: sum.PendingIsLimit, ParkedKeys: sum.ParkedKeys, ParkedRows: sum.ParkedRows,
			ParkedIsLimit: sum.ParkedIsLimit, OldestAgeSeconds: seconds(sum.Oldest),
		},
	}
	for _, r := range p.Relays {
		d.Relays = append(d.Relays, relayDocument{
			ID: r.ID, State: r.State, LastSeen: rfc3339(r.LastSeen.Time()), StoppedAt: timeOrNull(r.Stopped),
			Mode: textOrNull(r.Mode), Incarnation: textOrNull(r.Incarnation), Owned: r.Owned,
		})
	}
	for i, b := range p.Buckets {
		d.Buckets = append(d.Buckets, bucketDocumentOf(i, b))
	}
	if c.cost {
		d.Cost = costDocumentOf(p.Cost)
	}
	return d
}

func bucketDocumentOf(bucket int, b picture.Bucket) bucketDocument {
	keys, topics := b.Parked()
	d := bucketDocument{
		Bucket: bucket, Owner: textOrNull(b.Lease.Owner), Expires: timeOrNull(b.Lease.Expires), State: b.Lease.State,
		PendingIsLimit: b.PendingIsLimit, OldestAgeSeconds: seconds(b.Oldest), ParkedKeys: keys, ParkedTopics: topics,
		Paused: describeLeasePause(b.Lease),
	}
	if b.Fault == nil || b.Head.Waiting {
		d.Pending = &b.Pending
	}
	return d
}

func costDocumentOf(c picture.Cost) *costDocument {
	d := &costDocument{Requests: []spentDocument{}}
	d.Total, d.ReadUnits = c.Total()
	for _, spent := range c.Requests {
		d.Requests = append(d.Requests, spentDocument{Request: spent.Request, Count: spent.Count, ReadUnits: spent.Units})
	}
	return d
}
