package bucket

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// describe is one effect as scenarios show it; "" for what they leave out: the
// timers but for pauses, and the events that only count.
func describe(e effect) string {
	switch e := e.(type) {
	case do:
		return "send " + describeRequest(e.request)
	case arm:
		if e.timer == retryTimer {
			return fmt.Sprintf("pause %v, or up to %v less", e.after, e.spread)
		}
	case tellPublisher:
		switch m := e.message.(type) {
		case publisher.Publish:
			return fmt.Sprintf("publish %s, not after %s", list(sequences(m.Rows)), until(m.NotAfter))
		case publisher.Fence:
			return fmt.Sprintf("ask for the fence, under the lease until %s", until(m.NotAfter))
		case publisher.Extend:
			return "extend to " + until(m.NotAfter)
		case publisher.Abandon:
			return "abandon"
		}
	case tellCoordinator:
		return strings.TrimPrefix(fmt.Sprintf("tell %T", e.message), "bucket.")
	case emit:
		return describeEvent(e.event)
	case stop:
		return "stop"
	}
	return ""
}

func describeRequest(r store.Request) string {
	switch r := r.(type) {
	case store.Claim:
		return fmt.Sprintf("claim %d at %s until %s, not after %s", r.Claim, offset(r.Now), offset(r.Expires), until(r.NotAfter))
	case store.Keep:
		return fmt.Sprintf("keep %d from %s until %s, not after %s", r.Claim, offset(r.Seen), offset(r.Expires), until(r.NotAfter))
	case store.Release:
		return fmt.Sprintf("release from %s at %s", offset(r.Seen), offset(r.Now))
	case store.Fetch:
		return fmt.Sprintf("fetch %d after %d, not after %s", r.Limit, r.After, until(r.NotAfter))
	case store.Probe:
		return fmt.Sprintf("probe %d-%d", r.From, r.To)
	case store.Delete:
		return fmt.Sprintf("delete %s, not after %s", list(r.Sequences), until(r.NotAfter))
	case store.Mark:
		words := make([]string, len(r.Markers))
		for i, m := range r.Markers {
			words[i] = describeMarker(m)
		}
		return fmt.Sprintf("mark %s, not after %s", strings.Join(words, ", "), until(r.NotAfter))
	case store.Move:
		rows := make([]int64, len(r.Rows))
		for i, m := range r.Rows {
			rows[i] = m.Row.Sequence
		}
		return fmt.Sprintf("move %s of %d keys, not after %s", list(rows), len(r.Markers), until(r.NotAfter))
	case store.FetchParked:
		return fmt.Sprintf("fetchParked %s, %d after %d", short(r.KeyID), r.Limit, r.After)
	case store.RemoveParked:
		return fmt.Sprintf("removeParked %s %s", short(r.KeyID), list(r.Sequences))
	case store.Unmark:
		return "unmark " + describeMarker(r.Marker)
	case store.EndRetry:
		return fmt.Sprintf("endRetry %s: %s, %d attempts", describeMarker(r.Marker), r.Reason, r.Attempts)
	default:
		return r.RequestName()
	}
}

// short is a key id as scenarios show it.
func short(keyID string) string { return keyID[:6] }

func describeMarker(m store.Marker) string {
	name := "topic " + m.Topic
	if m.KeyID != "" {
		name = short(m.KeyID) + " of " + m.Topic
	}
	name += fmt.Sprintf(" (%s, %d attempts, at %s", m.Reason, m.Attempts, offset(m.ParkedAt))
	if m.RetryAt != 0 {
		name += ", retry at " + offset(m.RetryAt)
	}
	return name + ")"
}

func describeEvent(e event.Event) string {
	switch e := e.(type) {
	case event.StateChanged:
		if e.Machine == "bucket" {
			return "now " + e.To
		}
		return ""
	case event.BucketKept, event.BatchFetched, event.BatchPublished, event.BatchRemoved, event.BucketDraining,
		event.BucketReleased, event.BucketWoken, event.GapProbed:
		return ""
	case event.BatchTraced:
		return describeTraced(e)
	default:
		fields := strings.Trim(fmt.Sprintf("%+v", e), "{}")
		_, fields, _ = strings.Cut(fields, " ") // Bucket comes first
		return strings.TrimSpace("event " + e.EventName() + " " + fields)
	}
}

func describeTraced(e event.BatchTraced) string {
	digits := make([]string, len(e.Traces))
	for i, trace := range e.Traces {
		digits[i] = trace.String()[:1]
	}
	said := fmt.Sprintf("traced %d rows, %d acknowledged, of topic %q: %s", e.Batch.Rows, e.Batch.Acknowledged, e.Topic, strings.Join(digits, " "))
	if e.Unlinked > 0 {
		said += fmt.Sprintf(", and %d more", e.Unlinked)
	}
	if e.Class != "" {
		said += ", " + e.Class + " " + e.Code
	}
	return said
}

func sequences(rows []outbox.Row) []int64 {
	numbers := make([]int64, len(rows))
	for i, row := range rows {
		numbers[i] = row.Sequence
	}
	return numbers
}

// list is some ascending numbers, runs in short: "1-3 5".
func list(numbers []int64) string {
	if len(numbers) == 0 {
		return "none"
	}
	if !slices.IsSorted(numbers) {
		return fmt.Sprint("not ascending: ", numbers)
	}
	var words []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		word := fmt.Sprint(numbers[i])
		if j > i {
			word += fmt.Sprint("-", numbers[j])
		}
		words = append(words, word)
		i = j + 1
	}
	return strings.Join(words, " ")
}

// until is a local deadline, since the stage's begin by the monotonic clock.
func until(i actors.Instant) string { return "+" + i.Mono.String() }

// offset is a moment in the table, since the stage's begin by the wall clock.
func offset(t store.Ticks) string {
	d := t.Sub(actors.Instant{Wall: begin}.Ticks())
	if d < 0 {
		return d.String()
	}
	return "+" + d.String()
}
