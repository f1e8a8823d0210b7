package outbox_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/outbox"
)

func TestNewMessageHasAnIDOfItsOwnAndTheTime(t *testing.T) {
	before := time.Now()
	a := outbox.NewMessage("orders", []byte("k"), []byte("v"))
	b := outbox.NewMessage("orders", nil, nil)
	if a.ID == uuid.Nil || a.ID == b.ID {
		t.Errorf("ids %s and %s", a.ID, b.ID)
	}
	if a.CreatedAt.Before(before.Truncate(0)) || a.CreatedAt.Location() != time.UTC {
		t.Errorf("created at %s, not after %s in UTC", a.CreatedAt, before)
	}
	if a.Topic != "orders" || string(a.Key) != "k" || string(a.Value) != "v" || b.Key != nil || b.Value != nil {
		t.Errorf("got %v and %v", a, b)
	}
}

// Order per key rests on this: nothing but the key decides, unless there is a partition or no key.
func TestBucketFollowsPartitionThenKeyThenID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, outbox.MaxBucketCount).Draw(t, "count")
		m := outbox.NewMessage("t", bytesOrNil(20).Draw(t, "key"), nil)
		bucket := m.Bucket(count)
		if bucket < 0 || bucket >= count {
			t.Fatalf("bucket %d of %d", bucket, count)
		}
		other := outbox.NewMessage("u", bytes.Clone(m.Key), []byte("v"))
		if m.Key != nil && other.Bucket(count) != bucket {
			t.Fatalf("key %x is in buckets %d and %d", m.Key, bucket, other.Bucket(count))
		}
		if m.Key == nil {
			other.ID = m.ID
			if other.Bucket(count) != bucket {
				t.Fatalf("keyless id %s is in buckets %d and %d", m.ID, bucket, other.Bucket(count))
			}
		}
		partition := rapid.Int32Range(0, 1<<31-1).Draw(t, "partition")
		m.Partition = &partition
		if got := m.Bucket(count); got != int(partition)%count {
			t.Fatalf("partition %d of %d buckets is in bucket %d", partition, count, got)
		}
	})
}

// An empty key is a key: all its messages share one bucket. Keyless messages are spread (case K-01).
func TestEmptyKeyIsNotKeyless(t *testing.T) {
	empty, keyless := map[int]int{}, map[int]int{}
	for range 200 {
		empty[outbox.NewMessage("t", []byte{}, nil).Bucket(12)]++
		keyless[outbox.NewMessage("t", nil, nil).Bucket(12)]++
	}
	if len(empty) != 1 || empty[9] != 200 {
		t.Errorf("messages with an empty key are in buckets %v, want all in 9", empty)
	}
	if len(keyless) < 6 {
		t.Errorf("200 keyless messages are in %d of 12 buckets", len(keyless))
	}
}

func TestTicksAreWholeAndRoundDown(t *testing.T) {
	epoch := time.Unix(0, 0)
	for name, test := range map[string]struct {
		at   time.Time
		want int64
	}{
		"the Unix epoch":              {epoch, 621_355_968_000_000_000},
		"99 ns later":                 {epoch.Add(99), 621_355_968_000_000_000},
		"100 ns later":                {epoch.Add(100), 621_355_968_000_000_001},
		"1 ns earlier":                {epoch.Add(-1), 621_355_967_999_999_999},
		"another zone":                {epoch.In(time.FixedZone("", 7200)), 621_355_968_000_000_000},
		"the zero time":               {time.Time{}, 0},
		"the last instant of 9999":    {time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), outbox.MaxTicks},
		"an odd tick beyond 2^53":     {outbox.FromTicks(638_000_000_000_000_001), 638_000_000_000_000_001},
		"the instant before the zero": {time.Time{}.Add(-1), -1},
	} {
		if got := outbox.Ticks(test.at); got != test.want {
			t.Errorf("%s: %d ticks, want %d", name, got, test.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		ticks := rapid.Int64Range(0, outbox.MaxTicks).Draw(t, "ticks")
		if got := outbox.Ticks(outbox.FromTicks(ticks)); got != ticks {
			t.Fatalf("%d ticks became %d", ticks, got)
		}
	})
}
