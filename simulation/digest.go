package simulation

import (
	"fmt"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// digest is a hash of all that was observed so far, in the manner of FNV-1a but
// over words of 64 bits. It tells runs apart; nobody attacks it.
type digest uint64

const (
	emptyDigest digest = 14695981039346656037
	digestPrime digest = 1099511628211
)

// word mixes one word in. For a given digest no two words have the same outcome,
// and for a given word no two digests have.
func (d digest) word(w uint64) digest {
	d = (d ^ digest(w)) * digestPrime
	return d ^ d>>32 // a product's upper half depends on all, its lower half does not
}

func (d digest) numbers(numbers ...int64) digest {
	for _, n := range numbers {
		d = d.word(uint64(n))
	}
	return d
}

// texts mixes each text in with its length, so that no two lists run together.
func (d digest) texts(texts ...string) digest {
	for _, text := range texts {
		d = d.word(uint64(len(text)))
		var w uint64
		for i := range len(text) {
			w = w<<8 | uint64(text[i])
			if i%8 == 7 {
				d, w = d.word(w), 0
			}
		}
		d = d.word(w)
	}
	return d
}

func (d digest) instant(i store.Instant) digest { return d.numbers(int64(i.Wall), int64(i.Mono)) }

// detail mixes in every field of an event's detail. All can be told by their
// texts; the frequent ones, which are nearly all, are told by hand, for that is
// many times faster.
func (d digest) detail(detail any) digest {
	switch e := detail.(type) {
	case nil:
		return d
	case appended:
		return d.texts(e.Topic, e.Process).numbers(int64(e.Partition), e.Offset, int64(e.Bucket), e.Sequence, int64(e.Producer))
	case applied:
		return d.texts(e.Request).numbers(int64(e.Outcome)).request(e.Of)
	case committed:
		return d.numbers(int64(e.Bucket), e.First, int64(e.Messages))
	case event.StateChanged:
		return d.texts(e.Machine, e.Event, e.From, e.To).numbers(int64(e.Bucket))
	case event.RecordAcknowledged:
		return d.texts(e.Topic).numbers(int64(e.Bucket), e.Sequence, int64(e.Lag))
	case event.BatchPublished:
		return d.numbers(int64(e.Bucket), int64(e.Rows), int64(e.Acknowledged), int64(e.Took))
	case event.BatchFetched:
		return d.numbers(int64(e.Bucket), int64(e.Rows), int64(e.Bytes), int64(e.Refetched))
	case event.BatchRemoved:
		return d.numbers(int64(e.Bucket), int64(e.Rows), e.Last)
	case event.BucketWoken:
		return d.texts(e.Cause).numbers(int64(e.Bucket))
	case event.BucketKept:
		return d.numbers(int64(e.Bucket), int64(e.ValidFor), int64(e.Wall), int64(e.Mono))
	case event.FleetSeen:
		return d.fleet(e)
	}
	return d.texts(fmt.Sprintf("%+v", detail))
}

func (d digest) fleet(e event.FleetSeen) digest {
	for _, r := range e.Relays {
		d = d.texts(r.Relay, r.Mode).numbers(r.LastSeen.UnixNano(), r.Stopped.UnixNano(), bit(r.Active))
	}
	for _, l := range e.Leases {
		d = d.texts(l.Owner).numbers(l.PausedUntil.UnixNano(), bit(l.Lapsed), bit(l.Unreadable))
	}
	return d.numbers(int64(len(e.Relays)), int64(len(e.Leases)))
}

// bit is 1 for what is so.
func bit(so bool) int64 {
	if so {
		return 1
	}
	return 0
}

// request does the same for a request.
func (d digest) request(r store.Request) digest {
	switch r := r.(type) {
	case store.Discover:
		return d.numbers(int64(r.Bucket)).instant(r.NotAfter)
	case store.Fetch:
		return d.numbers(int64(r.Bucket), r.After, int64(r.Limit)).instant(r.NotAfter)
	case store.Probe:
		return d.numbers(int64(r.Bucket), r.From, r.To).instant(r.NotAfter)
	case store.Delete:
		return d.numbers(int64(r.Bucket), int64(len(r.Sequences))).numbers(r.Sequences...).instant(r.NotAfter)
	case store.Move:
		d = d.texts(r.Token).numbers(int64(r.Tenure.Bucket), r.Tenure.Claim, int64(len(r.Markers)), int64(len(r.Rows))).instant(r.NotAfter)
		for _, m := range r.Rows {
			d = d.texts(m.KeyID).numbers(m.Row.Sequence)
		}
		return d
	}
	return d.texts(fmt.Sprintf("%+v", r))
}
