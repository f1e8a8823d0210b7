package cost

import (
	"math"
	"time"
)

// Sizes in bytes that one capacity unit pays for, and at which a query's page ends.
const (
	readUnitBytes  = 4096
	writeUnitBytes = 1024
	pageBytes      = 1 << 20
)

// deleteRows is how many rows one request deletes.
const deleteRows = 25

// Line is what requests of one kind ask for, a second.
type Line struct {
	Request  string // as store.Request.RequestName; of writers "reserve" and "put"
	Requests float64
	Read     float64 // units
	Write    float64 // units
}

// Bill is what a part of an outbox's work asks for, a second.
type Bill []Line

// Total is the sum of a bill's lines.
func (b Bill) Total() Line {
	total := Line{Request: "total"}
	for _, l := range b {
		total.Requests, total.Read, total.Write = total.Requests+l.Requests, total.Read+l.Read, total.Write+l.Write
	}
	return total
}

// times is a bill with every figure multiplied.
func (l Line) times(n float64) Line {
	return Line{Request: l.Request, Requests: n * l.Requests, Read: n * l.Read, Write: n * l.Write}
}

// Month is the length of a month, as the service's own examples have it: 730 hours.
const Month = 730 * time.Hour

// For is what a bill comes to in a while.
func (b Bill) For(d time.Duration) Bill {
	all := make(Bill, len(b))
	for i, l := range b {
		all[i] = l.times(d.Seconds())
	}
	return all
}

// Idle is what a settled fleet asks for while there is no message: its rounds, its
// looks at the buckets, and the samples of the backlog.
func (w Workload) Idle() Bill {
	w = w.withDefaults()
	buckets, relays := float64(w.Schema.BucketCount), float64(w.Relays)
	rounds := w.rounds()
	bytes := buckets*float64(w.leaseBytes()) + relays*float64(w.recordBytes())
	bill := Bill{
		Line{Request: "heartbeat", Requests: 1, Write: units(w.recordBytes(), writeUnitBytes)}.times(rounds),
		Line{Request: "readCoordination", Requests: math.Ceil(bytes / pageBytes), Read: math.Ceil(bytes / readUnitBytes)}.times(rounds),
		Line{Request: "keep", Requests: 1, Write: units(w.leaseBytes(), writeUnitBytes)}.times(buckets / w.LeaseRenewInterval.Seconds()),
		Line{Request: "discover", Requests: 1, Read: 0.5}.times(buckets / w.PollInterval.Seconds()),
	}
	if w.SampleInterval > 0 {
		samples := buckets / w.SampleInterval.Seconds()
		bill = append(bill,
			Line{Request: "readHead", Requests: 1, Read: 0.5}.times(samples),
			Line{Request: "count", Requests: 1, Read: 0.5}.times(samples))
	}
	return bill
}

// rounds are the coordination rounds of all relays, a second. Every relay runs one in
// each LeaseRenewInterval, but for those that would be the last to get a bucket: of the
// standbys, in line behind as many as there are buckets, each leaves some out
// (protocol.md section 3, Standby).
func (w Workload) rounds() float64 {
	far := max(0, w.Relays-2*w.Schema.BucketCount)
	stride := max(1, int(w.LeaseDuration*3/4/w.LeaseRenewInterval))
	return (float64(w.Relays-far) + float64(far)/float64(stride)) / w.LeaseRenewInterval.Seconds()
}

// Load is what the messages add to that: fetching and deleting them. Looks at the
// buckets are those of Idle, but one that finds a message has read all of it. None is
// sent while a batch of the bucket is under way: that so many are left out is not
// reckoned.
func (w Workload) Load() Bill {
	w = w.withDefaults()
	bill := Bill{{Request: "discover"}, {Request: "fetch"}, {Request: "delete"}}
	delivered := map[float64][3]Line{} // of the rates that buckets have, mostly one
	for _, rate := range w.rates() {
		lines, known := delivered[rate]
		if !known {
			lines = w.deliver(rate)
			delivered[rate] = lines
		}
		for i, l := range lines {
			bill[i].Requests, bill[i].Read, bill[i].Write = bill[i].Requests+l.Requests, bill[i].Read+l.Read, bill[i].Write+l.Write
		}
	}
	return bill
}

// Writers is what writing the messages asks for, beside the business items that they
// are committed with: taking numbers, one request for each transaction and bucket, and
// one row for each message in a transaction, which costs twice what a put does.
func (w Workload) Writers() Bill {
	w = w.withDefaults()
	transactions := w.Rate / w.PerTransaction
	return Bill{
		Line{Request: "reserve", Requests: 1, Write: 1}.times(transactions),
		Line{Request: "put", Requests: 1, Write: 2 * w.PerTransaction * units(w.rowBytes(), writeUnitBytes)}.times(transactions),
	}
}

// rates are the messages of each bucket, a second.
func (w Workload) rates() []float64 {
	rates := make([]float64, w.Schema.BucketCount)
	sum := float64(len(rates))
	if w.Shares != nil {
		sum = 0
		for _, share := range w.Shares {
			sum += share
		}
	}
	for b := range rates {
		share := 1.0
		if w.Shares != nil {
			share = w.Shares[b]
		}
		if sum > 0 {
			rates[b] = w.Rate * share / sum
		}
	}
	return rates
}

// units are the capacity units of an item or a query.
func units(bytes, unit int) float64 { return math.Max(1, math.Ceil(float64(bytes)/float64(unit))) }
