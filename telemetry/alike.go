package telemetry

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// alike is one trouble, in as many lines of the log as it took: those that differ only in
// their bucket and in when, how often and for how long. What one command does to many
// buckets is one trouble, and so is a fault that the log reminds of.
type alike struct {
	key    string                     // by which a line is known to be like these
	newest map[string]json.RawMessage // the last line, without its bucket and its repeated
	first  json.RawMessage            // the time of the first line
	count  int                        // how often it was told, or held back by the log's pace
	// buckets are those that it was told of, ascending; none: it is about no bucket.
	buckets []int
}

// newAlike reads a line.
func newAlike(line []byte) (alike, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return alike{}, fmt.Errorf("read a line of the log: %w", err)
	}
	var numbers struct {
		Bucket   *int
		Repeated int
	}
	if err := json.Unmarshal(line, &numbers); err != nil {
		return alike{}, fmt.Errorf("read a line of the log: %w", err)
	}
	a := alike{newest: fields, first: fields["time"], count: 1 + numbers.Repeated}
	if numbers.Bucket != nil {
		a.buckets = []int{*numbers.Bucket}
	}
	delete(fields, "bucket")
	delete(fields, "repeated")
	same := maps.Clone(fields)
	for _, when := range []string{"time", "after", "lasted"} {
		delete(same, when)
	}
	key, err := json.Marshal(same) // by ascending names
	a.key = string(key)
	return a, err
}

// with takes a later line in that is like these.
func (a alike) with(later alike) alike {
	later.first, later.count = a.first, a.count+later.count
	for _, bucket := range later.buckets { // one at most
		if i, known := slices.BinarySearch(a.buckets, bucket); !known {
			a.buckets = slices.Insert(a.buckets, i, bucket)
		}
	}
	later.buckets = a.buckets
	return later
}

// line is the last line with count, and, for several lines, firstTime; buckets stands in
// place of bucket where there are several.
func (a alike) line() json.RawMessage {
	fields := map[string]any{"count": a.count}
	for name, value := range a.newest {
		fields[name] = value
	}
	if a.count > 1 {
		fields["firstTime"] = a.first
	}
	switch len(a.buckets) {
	case 0:
	case 1:
		fields["bucket"] = a.buckets[0]
	default:
		fields["buckets"] = a.buckets
	}
	line, _ := json.Marshal(fields) // what was read can be written
	return line
}
