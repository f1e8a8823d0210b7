package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// counting is what is counted, and of whom.
type counting struct {
	what    string // rows, deliveries, duplicates, moves, refused, done, sent, or an event's name
	kind    string // of requests; empty: any
	names   []string
	process string // empty: any
	bucket  int    // -1: any
	since   time.Duration
	saying  string                 // what an event's text contains
	aside   func(*stage) []counted // rows that are set aside; nil: something else
}

// readCount reads "at most 3 refused claim of A in bucket 2 since 30s" and its
// like.
func readCount(p *scenarioParser, w *words) expectation {
	least, most := 0, 1<<30
	switch {
	case w.has("at least"):
		least = w.number("how many")
	case w.has("at most"):
		most = w.number("how many")
	case w.has("no"):
		most = 0
	default:
		least = w.number("how many")
		most = least
	}
	c := readCounted(p, w)
	return func(t *stage) error {
		for _, of := range t.count(c) {
			if of.n < least || of.n > most {
				return fmt.Errorf("there are %d%s", of.n, of.what)
			}
		}
		return nil
	}
}

// countWords are what can be counted beside events.
var countWords = []string{"rows", "deliveries", "letters", "duplicates", "moves", "refused", "done", "sent"}

// readCounted reads what is counted.
func readCounted(p *scenarioParser, w *words) counting {
	c := counting{what: w.take("what is counted"), bucket: -1}
	switch {
	case c.what == "rows" && w.has("set aside"):
		c.aside = readAside(w)
		return c
	case c.what == "deliveries", c.what == "letters":
		w.must("of")
		c.names = p.messages(w)
		return c
	case slices.Contains(countWords, c.what):
		if kind := w.peek(); slices.Contains(requestKinds, kind) && !slices.Contains([]string{"rows", "duplicates", "moves"}, c.what) {
			c.kind = w.take("a request")
		}
	case !strings.Contains(c.what, "."):
		w.fail("what is counted is one of %s, or an event like bucket.lost", strings.Join(countWords, ", "))
	}
	for w.err == nil && w.peek() != "" {
		switch {
		case w.has("of"):
			c.process = p.process(w)
		case w.has("in bucket"):
			c.bucket = w.bucket()
		case w.has("since"):
			c.since = w.duration("an instant")
		case w.has("saying"):
			c.saying = strings.Join(w.rest("a text"), " ")
		default:
			w.take("")
			w.fail("want of, in bucket, since or saying")
		}
	}
	return c
}

// counted is a number, and of what it is if there are several.
type counted struct {
	n    int
	what string
}

// count counts. Deliveries are counted for each message.
func (t *stage) count(c counting) []counted {
	switch {
	case c.aside != nil:
		return c.aside(t)
	case c.what == "rows":
		return []counted{{t.rows(c.bucket), ""}}
	case c.what == "deliveries", c.what == "letters":
		var all []counted
		t.catchUp()
		of := t.deliveries
		if c.what == "letters" {
			of = t.letters
		}
		for _, name := range c.names {
			all = append(all, counted{of[name], " of " + name})
		}
		return all
	case c.what == "duplicates":
		t.fleet.checker.catchUp()
		n := 0
		for _, delivered := range t.fleet.checker.delivered {
			n += max(0, delivered-1)
		}
		return []counted{{n, ""}}
	case c.what == "sent":
		return []counted{{t.countSent(c), ""}}
	}
	n := 0
	for _, e := range t.seen {
		if e.At >= c.since && c.counts(e) {
			n++
		}
	}
	return []counted{{n, ""}}
}

// counts tells whether an event is one of those that are counted.
func (c counting) counts(e Event) bool {
	switch {
	case c.process != "" && e.Who != c.process, c.bucket >= 0 && e.Bucket() != c.bucket:
		return false
	case !slices.Contains(countWords, c.what):
		return e.Name == c.what && strings.Contains(fmt.Sprintf("%+v", e.Detail), c.saying)
	}
	request, ok := e.Detail.(applied)
	if !ok || !c.ofKind(request.Of) {
		return false
	}
	switch c.what {
	case "refused":
		return request.Outcome == store.Refused
	case "moves":
		return request.Request == "claim" && request.Outcome == store.Done
	}
	return request.Outcome == store.Done
}

// ofKind tells whether a request is of the kind that is counted.
func (c counting) ofKind(r store.Request) bool {
	return slices.Contains([]string{"", "request", r.RequestName(), r.Lane().String()}, c.kind)
}

func (t *stage) countSent(c counting) int {
	n := 0
	for _, s := range t.sent {
		passes := c.process == "" || c.process == s.process
		passes = passes && (c.bucket < 0 || c.bucket == s.request.ConcernsBucket())
		if passes && s.at >= c.since && c.ofKind(s.request) {
			n++
		}
	}
	return n
}

// rows is how many rows the table has, of a bucket or of all.
func (t *stage) rows(bucket int) int {
	s := t.fleet.schema
	n := 0
	for _, item := range t.fleet.db.Items(s.Table) {
		key := item[s.PartitionKey].(*types.AttributeValueMemberS).Value
		of := strings.HasPrefix(key, outbox.DefaultKeyPrefix+"#MESSAGES#")
		if of && (bucket < 0 || key == s.MessagesKey(bucket)) {
			n++
		}
	}
	return n
}
