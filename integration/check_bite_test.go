package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
)

// A sound delivery of a few messages, into which the tests plant faults.
type delivery struct {
	messages   []sent
	records    []kafka.Record
	partitions map[string]int
	until      time.Time
}

// soundDelivery has, in topic orders with 4 partitions, keys "a" and "b" three
// times each, an empty key, a keyless message, and two without a key in the
// explicit partition 2.
func soundDelivery() *delivery {
	began := time.Date(2026, 3, 1, 9, 30, 0, 500_000, time.UTC)
	d := &delivery{partitions: map[string]int{"orders": 4}, until: began.Add(time.Minute)}
	two := int32(2)
	add := func(stream string, key, value []byte, partition *int32, headers ...outbox.Header) {
		m := outbox.NewMessage("orders", key, value)
		m.Partition, m.Headers, m.CreatedAt = partition, headers, began.Add(-time.Hour)
		d.messages = append(d.messages, sent{message: m, stream: stream, began: began})
		r := kafka.Record{
			Topic: m.Topic, Partition: max(partitionOf(m, 4), 0), Offset: int64(len(d.records)),
			Timestamp: began.Truncate(time.Millisecond).Add(time.Second), Key: key, Value: value,
			Headers: append(slices.Clone(headers), outbox.Header{Key: idHeader, Value: []byte(m.ID.String())}),
		}
		d.records = append(d.records, r)
	}
	for n := range 3 {
		add("orders a", []byte("a"), fmt.Append(nil, "value ", n), nil, outbox.Header{Key: "h"}, outbox.Header{Key: "h", Value: []byte{}})
		add("orders b", []byte("b"), nil, nil)
	}
	add("orders empty", []byte{}, []byte{}, nil)
	add("", nil, []byte("keyless"), nil)
	add("orders 2", nil, []byte("first"), &two)
	add("orders 2", nil, []byte("second"), &two)
	return d
}

func (d *delivery) check() verdict { return check(d.messages, d.records, d.partitions, d.until) }

func TestCheckAcceptsASoundDelivery(t *testing.T) {
	v := soundDelivery().check()
	if !v.sound() || v.sent != 10 || v.delivered != 10 || v.duplicates != 0 || v.streams != 4 {
		t.Errorf("%v", &v)
	}
}

// A message may come again, whole batches of a stream too, as long as each first
// delivery is behind those before it.
func TestCheckCountsDuplicates(t *testing.T) {
	d := soundDelivery()
	d.records = slices.Insert(d.records, 3, d.records[0], d.records[2])
	d.records = append(d.records, d.records...)
	if v := d.check(); !v.sound() || v.duplicates != 14 {
		t.Errorf("%v", &v)
	}
}

// planted is a fault in a delivery, and where check must count it.
type planted struct {
	name  string
	plant func(d *delivery)
	count func(v verdict) int
}

// plantedBetween are faults between records.
func plantedBetween() []planted {
	return []planted{
		{"a lost message",
			func(d *delivery) { d.records = slices.Delete(d.records, 4, 5) },
			func(v verdict) int { return v.lost }},
		{"two records of a key exchanged",
			func(d *delivery) { d.records[0], d.records[2] = d.records[2], d.records[0] },
			func(v verdict) int { return v.disordered }},
		{"two keyless records of an explicit partition exchanged",
			func(d *delivery) { d.records[8], d.records[9] = d.records[9], d.records[8] },
			func(v verdict) int { return v.disordered }},
	}
}

// plantedWithin are faults of one record.
func plantedWithin() []planted {
	return []planted{
		{"a changed byte",
			func(d *delivery) { d.records[2].Value = []byte("value I") },
			func(v verdict) int { return v.altered }},
		{"null for an empty key",
			func(d *delivery) { d.records[6].Key = nil },
			func(v verdict) int { return v.altered }},
		{"null for an empty value",
			func(d *delivery) { d.records[6].Value = nil },
			func(v verdict) int { return v.altered }},
		{"empty for a tombstone",
			func(d *delivery) { d.records[1].Value = []byte{} },
			func(v verdict) int { return v.altered }},
		{"empty for a null header",
			func(d *delivery) { d.records[0].Headers[0].Value = []byte{} },
			func(v verdict) int { return v.altered }},
		{"a header less",
			func(d *delivery) { d.records[0].Headers = d.records[0].Headers[1:] },
			func(v verdict) int { return v.altered }},
		{"a second id header",
			func(d *delivery) {
				d.records[7].Headers = slices.Insert(d.records[7].Headers, 0, outbox.Header{Key: idHeader, Value: []byte("caller's")})
			},
			func(v verdict) int { return v.altered }},
		{"a partition that the key does not choose",
			func(d *delivery) { d.records[0].Partition = (d.records[0].Partition + 1) % 4 },
			func(v verdict) int { return v.misplaced }},
		{"another than the explicit partition",
			func(d *delivery) { d.records[9].Partition = 3 },
			func(v verdict) int { return v.misplaced }},
		{"CreatedAt as the record's time",
			func(d *delivery) { d.records[5].Timestamp = d.messages[5].message.CreatedAt },
			func(v verdict) int { return v.mistimed }},
		{"a time to come",
			func(d *delivery) { d.records[5].Timestamp = d.until.Add(time.Second) },
			func(v verdict) int { return v.mistimed }},
		{"a record of a message that was never committed",
			func(d *delivery) {
				r := d.records[0]
				r.Headers = []outbox.Header{{Key: idHeader, Value: []byte("00000000-0000-4000-8000-000000000000")}}
				d.records = append(d.records, r)
			},
			func(v verdict) int { return v.foreign }},
		{"a record whose id is not the last header",
			func(d *delivery) {
				r := d.records[0]
				r.Headers = append(r.Headers, outbox.Header{Key: "h"})
				d.records = append(d.records, r)
			},
			func(v verdict) int { return v.foreign }},
	}
}

// Each planted fault is found, and counted as what it is.
func TestCheckBites(t *testing.T) {
	for _, c := range slices.Concat(plantedBetween(), plantedWithin()) {
		t.Run(c.name, func(t *testing.T) {
			d := soundDelivery()
			c.plant(d)
			v := d.check()
			if v.sound() || c.count(v) != 1 || len(v.problems) != 1 {
				t.Errorf("%v", &v)
			}
		})
	}
}

// The partitions that Java's client chooses: the hashes stand in the tests of
// Apache Kafka itself (UtilsTest.testMurmur2).
func TestPartitionsAreThoseOfJavasClient(t *testing.T) {
	for key, hash := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		for _, partitions := range []int{1, 3, 6, 50} {
			want := (hash & 0x7fffffff) % int32(partitions)
			if got := partitionOf(outbox.Message{Key: []byte(key)}, partitions); got != want {
				t.Errorf("%q of %d partitions: %d, want %d", key, partitions, got, want)
			}
		}
	}
}
