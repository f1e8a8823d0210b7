package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
)

// delivery is 12 messages with 3 keys, and the records of a delivery without
// fault: one partition a key.
func delivery() ([]outbox.Message, []kafka.Record) {
	var messages []outbox.Message
	for n := range 12 {
		m := demoMessage(n, n%3)
		m.ID = uuid.UUID{15: byte(n + 1)}
		messages = append(messages, m)
	}
	var records []kafka.Record
	for partition := range 3 {
		for n := partition; n < 12; n += 3 {
			records = append(records, recordOf(messages[n], partition, n))
		}
	}
	return messages, records
}

func recordOf(m outbox.Message, partition, offset int) kafka.Record {
	headers := append(slices.Clone(m.Headers), outbox.Header{Key: "x-outbox-message-id", Value: []byte(m.ID.String())})
	return kafka.Record{Topic: m.Topic, Partition: int32(partition), Offset: int64(offset), Key: m.Key, Value: m.Value, Headers: headers}
}

func TestVerifierAcceptsWhatIsPromised(t *testing.T) {
	messages, records := delivery()
	// At least once: a record again, at once, and late.
	records = append(records[:1], records...)
	records = append(records, records[9])
	v := verify(messages, records)
	want := verdict{Enqueued: 12, Delivered: 12, Duplicates: 2, Keys: 3}
	if !v.sound() || fmt.Sprint(v) != fmt.Sprint(want) {
		t.Errorf("%+v", v)
	}
}

// Each planted fault is found, counted, and told with its message.
func TestVerifierFindsPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		plant   func([]kafka.Record) []kafka.Record
		want    verdict
		problem string
	}{
		{"a loss", func(r []kafka.Record) []kafka.Record { return slices.Delete(r, 5, 6) },
			verdict{Delivered: 11, Lost: 1}, "was never delivered"},
		{"nothing arrived", func([]kafka.Record) []kafka.Record { return nil },
			verdict{Lost: 12}, "was never delivered"},
		{"two swapped", func(r []kafka.Record) []kafka.Record { r[1], r[2] = r[2], r[1]; return r },
			verdict{Delivered: 12, Disordered: 1}, "number 2 of its key, came after number 3"},
		{"the first one last", func(r []kafka.Record) []kafka.Record {
			return append(r[1:4:4], append([]kafka.Record{r[0]}, r[4:]...)...)
		},
			verdict{Delivered: 12, Disordered: 1}, "number 1 of its key, came after number 4"},
		{"a key on two partitions", func(r []kafka.Record) []kafka.Record { r[3].Partition = 5; return r },
			verdict{Delivered: 12, Disordered: 1}, "on partition 0"},
		{"a changed byte", func(r []kafka.Record) []kafka.Record {
			r[0].Value = slices.Clone(r[0].Value)
			r[0].Value[3] ^= 1
			return r
		}, verdict{Delivered: 12, Altered: 1}, "its value differs"},
		{"an empty value for none", func(r []kafka.Record) []kafka.Record { r[6].Value = []byte{}; return r },
			verdict{Delivered: 12, Altered: 1}, "its value differs"},
		{"another key", func(r []kafka.Record) []kafka.Record { r[4].Key = []byte("order-9"); return r },
			verdict{Delivered: 12, Altered: 1}, "its key differs"},
		{"another topic", func(r []kafka.Record) []kafka.Record { r[4].Topic = "elsewhere"; return r },
			verdict{Delivered: 12, Altered: 1}, "its topic differs"},
		{"headers in another order", func(r []kafka.Record) []kafka.Record {
			h := slices.Clone(r[0].Headers)
			h[0], h[1] = h[1], h[0]
			r[0].Headers = h
			return r
		}, verdict{Delivered: 12, Altered: 1}, "its headers differ"},
		{"a null header that became empty", func(r []kafka.Record) []kafka.Record {
			r[0].Headers = slices.Clone(r[0].Headers)
			r[0].Headers[1].Value = []byte{}
			return r
		}, verdict{Delivered: 12, Altered: 1}, "its headers differ"},
		{"a record of nobody", func(r []kafka.Record) []kafka.Record {
			return append(r, recordOf(outbox.NewMessage(demoTopic, []byte("k"), nil), 0, 99))
		}, verdict{Delivered: 12, Altered: 1}, "a record of no message"},
		{"a record without an id", func(r []kafka.Record) []kafka.Record { r[11].Headers = nil; return r },
			verdict{Delivered: 11, Lost: 1, Altered: 1}, "a record of no message"},
		{"a duplicate that was changed", func(r []kafka.Record) []kafka.Record {
			again := r[2]
			again.Value = []byte("changed")
			return append(r, again)
		}, verdict{Delivered: 12, Duplicates: 1, Altered: 1}, "its value differs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			messages, records := delivery()
			v := verify(messages, c.plant(records))
			c.want.Enqueued, c.want.Keys, c.want.Problems = 12, 3, v.Problems
			if v.sound() || fmt.Sprint(v) != fmt.Sprint(c.want) {
				t.Errorf("got  %+v\nwant %+v", v, c.want)
			}
			if !strings.Contains(strings.Join(v.Problems, "\n"), c.problem) {
				t.Errorf("problems %q do not say %q", v.Problems, c.problem)
			}
		})
	}
}
