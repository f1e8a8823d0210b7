package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// expectation is nil when it is met, and else says what is there instead.
type expectation func(*stage) error

// How often a waiting expectation looks whether anything has happened, and for how
// long it takes for granted that nothing has changed when nothing was recorded.
const (
	glance = time.Millisecond
	trust  = 250 * time.Millisecond
)

// readExpect reads "expect …": it is so now.
func readExpect(p *scenarioParser, w *words) func(*stage) error {
	return readExpectation(p, w)
}

// readWithin reads "within 30s …": time goes on until it is so.
func readWithin(p *scenarioParser, w *words) func(*stage) error {
	d := w.positive("a while")
	met := readExpectation(p, w)
	return func(t *stage) error {
		return t.watch(d, met, func(err error) bool { return err == nil })
	}
}

// readThroughout reads "throughout 60s …": it is so all the time.
func readThroughout(p *scenarioParser, w *words) func(*stage) error {
	d := w.positive("a while")
	met := readExpectation(p, w)
	return func(t *stage) error {
		return t.watch(d, met, func(err error) bool { return err != nil })
	}
}

// watch lets time go on until a look at the expectation is enough, or is the last.
func (t *stage) watch(d time.Duration, met expectation, enough func(error) bool) error {
	f := t.fleet
	for end := f.now + d; ; {
		err := met(t)
		if f.failed() || enough(err) || f.now >= end {
			return err
		}
		seen, until := len(t.seen), min(end, f.now+trust)
		for f.now < until && len(t.seen) == seen && !f.failed() {
			f.runUntil(min(until, f.now+glance), f.failed)
		}
	}
}

// readExpectation reads what can be seen.
func readExpectation(p *scenarioParser, w *words) expectation {
	switch {
	case w.peek() == "key", w.peek() == "topic":
		return readSetAside(w)
	case w.has("owner of"):
		return readOwner(w)
	case w.has("record of"):
		return readRecord(w)
	case w.has("expiry of"):
		return readExpiry(w)
	case w.has("order of"):
		return readOrder(p, w, firsts)
	case w.has("log of"):
		return readOrder(p, w, func(all []string) []string { return all })
	case w.peek() == "at", w.peek() == "no", strings.ContainsAny(w.peek()[:min(1, len(w.peek()))], "0123456789"):
		return readCount(p, w)
	}
	name := p.process(w)
	switch w.oneOf("what it does", "runs", "ended", "died", "holds", "owns") {
	case "runs":
		return func(t *stage) error { return t.life(name, true) }
	case "died":
		return func(t *stage) error { return t.life(name, false) }
	case "ended":
		return readEnded(w, name)
	case "owns":
		return readOwns(w, name)
	}
	return readHolds(w, name)
}

// readOwner reads "owner of 0-3 is A": the relay id in the leases.
func readOwner(w *words) expectation {
	buckets := w.buckets()
	w.must("is")
	want := w.take("a relay id")
	return func(t *stage) error {
		for _, b := range buckets {
			got, _ := t.lease(b)
			if got == "" {
				got = "nobody"
			}
			if got != want {
				return fmt.Errorf("the owner of %d is %s", b, got)
			}
		}
		return nil
	}
}

// readOwns reads "A owns 3 buckets": as many leases name its relay.
func readOwns(w *words, name string) expectation {
	want := w.number("how many")
	w.must("buckets")
	return func(t *stage) error {
		p, err := t.process(name)
		if err != nil {
			return err
		}
		var owned []int
		for b := range t.fleet.o.Buckets {
			if owner, _ := t.lease(b); owner == p.relay {
				owned = append(owned, b)
			}
		}
		if len(owned) != want {
			return fmt.Errorf("it owns %v", owned)
		}
		return nil
	}
}

// readHolds reads "A holds 0-3" and "A holds nothing": by its own reckoning.
func readHolds(w *words, name string) expectation {
	var want []int
	if !w.has("nothing") {
		want = w.buckets()
	}
	return func(t *stage) error {
		p, err := t.process(name)
		if err != nil {
			return err
		}
		var holds []int
		for b := range t.fleet.o.Buckets {
			if !p.dead && t.fleet.checker.holds(p, b) {
				holds = append(holds, b)
			}
		}
		missing := slices.ContainsFunc(want, func(b int) bool { return !slices.Contains(holds, b) })
		if missing || len(want) == 0 && len(holds) > 0 {
			return fmt.Errorf("it holds %v", holds)
		}
		return nil
	}
}

// life tells whether a process runs.
func (t *stage) life(name string, runs bool) error {
	p, err := t.process(name)
	switch {
	case err != nil:
		return err
	case runs && (p.dead || p.ended):
		return fmt.Errorf("it has ended")
	case !runs && !p.dead:
		return fmt.Errorf("it runs")
	}
	return nil
}

// readEnded reads "A ended", and "A ended saying …": with an error like that.
func readEnded(w *words, name string) expectation {
	said := ""
	if w.has("saying") {
		said = strings.Join(w.rest("a text"), " ")
	}
	return func(t *stage) error {
		p, err := t.process(name)
		switch {
		case err != nil:
			return err
		case !p.ended:
			return fmt.Errorf("it has not ended")
		case said == "" && p.endedWith != nil:
			return fmt.Errorf("it ended with %w", p.endedWith)
		case !strings.Contains(fmt.Sprint(p.endedWith), said):
			return fmt.Errorf("it ended with %v", p.endedWith)
		}
		return nil
	}
}

// readRecord reads "record of A is live", stopped or missing.
func readRecord(w *words) expectation {
	relay := w.take("a relay id")
	w.must("is")
	want := w.oneOf("the state", "live", "stopped", "missing")
	return func(t *stage) error {
		item := t.coordination(outbox.RelaySortKey(relay))
		got := "live"
		switch {
		case item == nil:
			got = "missing"
		case item[outbox.AttrStoppedAtUtc] != nil:
			got = "stopped"
		}
		if got != want {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	}
}

// readExpiry reads "expiry of 3 is from 41s to 43s", in virtual time.
func readExpiry(w *words) expectation {
	b := w.bucket()
	w.must("is from")
	from := w.duration("an instant")
	w.must("to")
	to := w.duration("an instant")
	return func(t *stage) error {
		if _, expires := t.lease(b); expires < from || expires > to {
			return fmt.Errorf("it is %v", expires)
		}
		return nil
	}
}

// readOrder reads "order of key a is m1 m2" and "order of bucket 3 is m1 m2": the
// first deliveries; or "log of …": all.
func readOrder(p *scenarioParser, w *words, of func([]string) []string) expectation {
	var passes func(*scripted) bool
	if w.has("bucket") {
		bucket := w.bucket()
		passes = func(s *scripted) bool { return s.bucket == bucket }
	} else {
		w.must("key")
		key := w.take("a key")
		passes = func(s *scripted) bool { return s.key == key }
	}
	w.must("is")
	want := p.messages(w)
	return func(t *stage) error {
		got := of(t.delivered(passes))
		if !slices.Equal(got, want) {
			return fmt.Errorf("it is %s", strings.Join(got, " "))
		}
		return nil
	}
}

// coordination is an item of the coordination partition, nil for none.
func (t *stage) coordination(sortKey string) map[string]types.AttributeValue {
	s := t.fleet.schema
	out, err := t.fleet.db.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: &s.Table, Key: s.Key(s.CoordinationKey(), sortKey),
	})
	if err != nil {
		panic(err)
	}
	return out.Item
}

// lease is a lease's owner, and its expiry in virtual time.
func (t *stage) lease(b int) (owner string, expires time.Duration) {
	if o, ok := t.coordination(outbox.LeaseSortKey(b))[outbox.AttrOwner].(*types.AttributeValueMemberS); ok {
		owner = o.Value
	}
	begin := store.Instant{Wall: epoch}.Ticks()
	return owner, t.fleet.checker.expiry(b).Sub(begin)
}
