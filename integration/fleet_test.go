//go:build integration

package integration

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// fleetMessages is how many messages the fleet moves: half of them are there
// when the first relay starts.
const fleetMessages = 20_000

// fleet is the fleet test at work: the writers, and the relays by age.
type fleet struct {
	t        *testing.T
	schema   outbox.Schema
	workload *workload
	relays   []*process
}

// TestFleet is the promise as a whole. Services write 20,000 messages of all
// kinds; relays come, are asked to leave, and are killed, each in the middle of
// a batch. Then a consumer and a scan of the table decide, not the relays.
func TestFleet(t *testing.T) {
	topics := []topic{{uniqueTopic(t) + "-orders", 6}, {uniqueTopic(t) + "-payments", 3}}
	partitions := map[string]int{}
	for _, to := range topics {
		createTopic(t, to.name, to.partitions, 0)
		partitions[to.name] = to.partitions
	}
	client := dynamo(t)
	schema := freshTable(t, client, outbox.Schema{})
	f := &fleet{t: t, schema: schema, workload: newWorkload(t, client, schema, topics)}
	if err := f.workload.write(t.Context(), fleetMessages/2); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	f.turnOver()
	messages, calls := f.workload.committed()
	awaitDelivery(t, messages, partitions)
	f.checkHeldLeases(scan(t, client, schema.Table))
	for _, p := range f.relays[2:] {
		p.stop()
	}
	took := time.Since(began)

	var records []kafka.Record
	for _, to := range topics {
		records = append(records, readTopic(t, to.name)...)
	}
	verdict := check(messages, records, partitions, time.Now())
	t.Logf("%v", &verdict)
	t.Logf("%s; %d stamped with no bucket count", kinds(messages), calls.unstamped)
	t.Logf("written by %d enqueues and %d transactions with a business item, while %d more were refused",
		calls.enqueued, calls.transactions+calls.foreign, calls.refused)
	t.Logf("from the first relay's start to the last one's end: %.1f s", took.Seconds())
	if !verdict.sound() || verdict.sent != fleetMessages {
		t.Errorf("%v", &verdict)
	}
	f.checkTable(scan(t, client, schema.Table))
	f.checkBusiness(len(scan(t, client, f.workload.orders)), calls)
	f.checkLogs()
}

// turnOver writes the second half while the fleet is replaced: relay 1 is asked
// to leave, relay 2 is killed, 3 and 4 join.
func (f *fleet) turnOver() {
	t := f.t
	t.Helper()
	claimed := func(p *process) { p.await("bucket.claimed", nil) }
	first, second := f.join(), f.join()
	claimed(first)
	claimed(second)

	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	written := make(chan error, 1)
	leave := f.workload.reached(fleetMessages * 6 / 10)
	kill := f.workload.reached(fleetMessages * 8 / 10)
	go func() { written <- f.workload.write(ctx, fleetMessages/2) }()

	f.after(ctx, leave, "the first relay leaves")
	first.awaitFrom(first.now(), "batch.fetched", nil)
	first.signal(syscall.SIGTERM)
	third := f.join()
	f.after(ctx, kill, "the second relay is killed")
	// Its rows are acknowledged, and their deletes, 25 rows each, have begun.
	published := second.awaitFrom(second.now(), "batch.published", func(l line) bool { return l.Rows > store.MaxDeletes })
	second.signal(syscall.SIGKILL)
	t.Logf("the second relay is killed while it deletes %d rows", published.Rows)
	fourth := f.join()

	if code := first.exit(); code != 0 {
		t.Errorf("the first relay ended with %d after SIGTERM, want 0", code)
	}
	if code := second.exit(); code != -1 {
		t.Errorf("the second relay ended with %d before it could be killed", code)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	claimed(third)
	claimed(fourth)
}

// join starts the next relay.
func (f *fleet) join() *process {
	f.t.Helper()
	id := fmt.Sprintf("relay-%d", len(f.relays)+1)
	// A long pause between polls makes batches of many rows, to be interrupted.
	p := start(f.t, id, relayArgs(f.t, f.schema.Table, id, "--poll-interval", "1s", "--log-level", "trace")...)
	f.relays = append(f.relays, p)
	return p
}

func (f *fleet) after(ctx context.Context, mark <-chan struct{}, what string) {
	f.t.Helper()
	select {
	case <-mark:
	case <-ctx.Done():
		f.t.Fatalf("the writers did not come to where %s", what)
	}
}

// checkHeldLeases wants the documented form while relays are at work too, and
// each bucket theirs.
func (f *fleet) checkHeldLeases(items []item) {
	f.t.Helper()
	s := inspect(items)
	f.t.Logf("at work: leases %v", s.leases)
	for _, problem := range s.problems {
		f.t.Error(problem)
	}
	for bucket, owner := range s.leases {
		if owner != "" && owner != f.relays[2].name && owner != f.relays[3].name {
			f.t.Errorf("bucket %d: its lease names %s, which has gone", bucket, owner)
		}
	}
}

// checkTable wants what outlives the messages, and nothing else, in the
// documented form.
func (f *fleet) checkTable(items []item) {
	f.t.Helper()
	s := inspect(items)
	f.t.Logf("the table: %v", &s)
	for _, problem := range s.problems {
		f.t.Error(problem)
	}
	if s.messages != 0 {
		f.t.Errorf("%d messages are left in the table", s.messages)
	}
	for bucket, reserved := range f.workload.reserved() {
		if s.sequences[bucket] < reserved {
			f.t.Errorf("bucket %d: its sequence is at %d, although %d numbers were handed out", bucket, s.sequences[bucket], reserved)
		}
	}
	for bucket := range f.schema.BucketCount {
		if owner, exists := s.leases[bucket]; !exists || owner != "" {
			f.t.Errorf("bucket %d: its lease exists: %v, and names %q, want a free one", bucket, exists, owner)
		}
	}
	for _, id := range []string{"relay-3", "relay-4"} {
		if s.relays[id] == "" {
			f.t.Errorf("the record of %s does not say that it stopped", id)
		}
	}
	if stopped, exists := s.relays["relay-1"]; exists && stopped == "" { // it may have been pruned
		f.t.Error("the record of the first relay does not say that it stopped")
	}
	if s.relays["relay-2"] != "" {
		f.t.Error("the record of the killed relay says that it stopped")
	}
}

// checkBusiness wants the business items of all transactions, and none of those
// that were refused.
func (f *fleet) checkBusiness(items int, c calls) {
	f.t.Helper()
	if want := c.transactions + c.foreign; items != want {
		f.t.Errorf("%d business items, want %d", items, want)
	}
}

// checkLogs wants JSON lines without a message's content and without errors
// that ask for a person.
func (f *fleet) checkLogs() {
	f.t.Helper()
	for _, p := range f.relays {
		for _, l := range p.said(func(line) bool { return true }) {
			if l.Event == "" || l.Level == "error" || strings.Contains(l.text, secret) || strings.Contains(l.text, "customer") {
				f.t.Errorf("%s wrote: %s", p.name, l.text)
			}
		}
	}
}
