package bucket

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

type item = map[string]types.AttributeValue

func textAttribute(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func binaryAttribute(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

func numberAttribute(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// begin is the wall clock at a stage's begin.
const begin = 1_700_000_000 * time.Second

// stage is the core of one bucket with everything around it in the test's hands.
// The table is real but for the moment at which a request reaches it.
type stage struct {
	t      rapid.TB
	core   *core
	db     *memtable.DB
	client *store.Client
	schema outbox.Schema

	mono, wall time.Duration // since the begin
	timers     map[timer]due
	waiting    []do // requests without an end, in the order of their sending
	submitted  []publisher.Publish
	fences     []publisher.Fence // that were asked for
	did        []string
	stopped    bool

	lost map[string]store.Request // by name, the latest that was lost

	observe func() // is called after each step; nil: nobody watches

	showsMarkers bool // the scenario answers the reads of markers itself

	unprocessed  []string // sequences that the next delete leaves undone; "all"
	acknowledged map[int64]bool
}

type due struct {
	at     time.Duration
	number uint64
}

func newStage(t rapid.TB) *stage {
	s := &stage{
		t: t, timers: map[timer]due{}, acknowledged: map[int64]bool{}, lost: map[string]store.Request{},
		schema: outbox.Schema{Table: "orders"}.WithDefaults(),
	}
	s.db = memtable.New(memtable.Options{Unprocessed: s.leaves})
	if err := store.CreateTable(context.Background(), s.db, s.schema); err != nil {
		t.Fatal(err)
	}
	s.client = store.NewClient(s.schema, s.db, s.db)
	s.core = newCore(Config{
		Bucket: 3, BucketCount: 8, Relay: "A", Incarnation: "A1", Claim: 7,
		BatchSize: 100, MaxBatchBytes: 1 << 20, PollInterval: time.Second, ErrorBackoff: time.Second,
		LeaseDuration: 30 * time.Second, LeaseRenewInterval: 10 * time.Second, MaxClockSkew: 2 * time.Second,
		Poison: Block, PoisonAfter: 2, DeadLetterTopic: "letters",
	})
	return s
}

func (s *stage) instant() actors.Instant { return actors.Instant{Wall: begin + s.wall, Mono: s.mono} }

func (s *stage) ticksAt(offset string) store.Ticks {
	return actors.Instant{Wall: begin + s.duration(offset)}.Ticks()
}

// step gives the core one message and takes up what it wants done.
func (s *stage) step(message any) {
	for _, e := range s.core.step(s.instant(), message) {
		switch e := e.(type) {
		case do:
			if _, fetches := e.request.(store.Fetch); fetches && s.core.cfg.Fenced && !s.core.fence.held {
				s.t.Fatal("I-44: a fetch is sent without the fence")
			}
			s.waiting = append(s.waiting, e)
		case arm:
			s.timers[e.timer] = due{s.mono + e.after, e.number}
		case disarm:
			delete(s.timers, e.timer)
		case tellPublisher:
			switch m := e.message.(type) {
			case publisher.Publish:
				s.submitted = append(s.submitted, m)
			case publisher.Fence:
				s.fences = append(s.fences, m)
			}
		case stop:
			s.stopped = true
			clear(s.timers)
		}
		if said := describe(e); said != "" && !s.hides(e) {
			s.did = append(s.did, said)
		}
	}
	if s.observe != nil {
		s.observe()
	}
	if i := slices.IndexFunc(s.waiting, func(d do) bool { return s.hides(d) }); i >= 0 {
		s.end(i, "answered")
	}
}

// hides tells whether an effect is a read of markers, which all tenures begin with
// and scenarios about other things leave out: it is answered at once.
func (s *stage) hides(e effect) bool {
	d, request := e.(do)
	if !request || s.showsMarkers {
		return false
	}
	_, reads := d.request.(store.ReadMarkers)
	return reads
}

// pass lets time go by; timers fire in their order.
func (s *stage) pass(d time.Duration) {
	until := s.mono + d
	for {
		next, found := pollTimer, false
		for kind := range timerKinds {
			if d, armed := s.timers[kind]; armed && d.at <= until && (!found || d.at < s.timers[next].at) {
				next, found = kind, true
			}
		}
		if !found {
			s.wall, s.mono = s.wall+until-s.mono, until
			return
		}
		fired := s.timers[next]
		delete(s.timers, next)
		at := max(s.mono, fired.at)
		s.wall, s.mono = s.wall+at-s.mono, at
		s.step(next.message(fired.number))
	}
}

// requestEnds ends the oldest request of a name, or all of them for "probes".
func (s *stage) requestEnds(name string, words []string) {
	all := name == "probes"
	if all {
		name = "probe"
	}
	for {
		i := slices.IndexFunc(s.waiting, func(d do) bool { return d.request.RequestName() == name })
		if i < 0 {
			s.t.Fatalf("no %s is under way", name)
		}
		s.end(i, words[0])
		if !all || !slices.ContainsFunc(s.waiting, func(d do) bool { return d.request.RequestName() == name }) {
			return
		}
	}
}

// end ends one waiting request, in one of the ways of TestScenarios.
func (s *stage) end(i int, way string) {
	reply := s.reply(s.waiting[i], way)
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.step(reply)
}

// reply is the end of a request in one of these ways.
func (s *stage) reply(d do, way string) actors.Replied {
	lost := store.Reply{Class: store.Ambiguous, Err: store.ErrUnavailable}
	if slices.Contains([]string{"fetch", "probe", "discover", "readMarkers", "fetchParked"}, d.request.RequestName()) {
		lost.Class = store.Retriable // a read can simply be repeated
	}
	var reply store.Reply
	switch way {
	case "answered":
		reply = s.carryOut(d.request)
	case "unanswered":
		s.carryOut(d.request)
		reply = lost
	case "lost":
		s.lost[d.request.RequestName()] = d.request
		reply = lost
	case "throttled":
		reply = store.Reply{Class: store.Retriable, Err: store.ErrThrottled}
	case "conflicted":
		reply = store.Reply{Class: store.Retriable, Err: store.ErrConflict}
	case "mismatched":
		reply = store.Reply{Class: store.Ambiguous, Err: store.ErrInvalid}
	default:
		s.t.Fatalf("a request cannot be %q", way)
	}
	return actors.Replied{Token: d.token, Request: d.request, Reply: reply}
}

func (s *stage) carryOut(r store.Request) store.Reply {
	return s.client.Do(context.Background(), r)
}

// leaves tells whether the delete of a row is left undone.
func (s *stage) leaves(_ string, w types.WriteRequest) bool {
	sequence, err := outbox.ParseSequence(w.DeleteRequest.Key[s.schema.SortKey].(*types.AttributeValueMemberS).Value)
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.Contains(s.unprocessed, "all") || slices.Contains(s.unprocessed, strconv.FormatInt(sequence, 10))
}

func (s *stage) putRow(sequence int64, change func(item)) {
	m := outbox.Message{Topic: "orders", Key: []byte("k"), Value: []byte("v"), CreatedAt: s.instant().Time()}
	m.ID = uuid.NewSHA1(uuid.Nil, []byte(strconv.FormatInt(sequence, 10)))
	row := s.schema.EncodeMessage(m, s.core.cfg.Bucket, sequence)
	if change != nil {
		change(row)
	}
	s.put(row)
}

func (s *stage) put(row item) {
	if _, err := s.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &s.schema.Table, Item: row}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) leaseKey() item {
	return s.schema.Key(s.schema.CoordinationKey(), outbox.LeaseSortKey(s.core.cfg.Bucket))
}

// leaseItem is the lease's item, a new one when there is none.
func (s *stage) leaseItem() item {
	out, err := s.db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &s.schema.Table, Key: s.leaseKey()})
	if err != nil {
		s.t.Fatal(err)
	}
	if out.Item == nil {
		return s.leaseKey()
	}
	return out.Item
}

func (s *stage) writeLease(lease item) {
	if lease != nil {
		s.put(lease)
		return
	}
	if _, err := s.db.DeleteItem(context.Background(),
		&dynamodb.DeleteItemInput{TableName: &s.schema.Table, Key: s.leaseKey()}); err != nil {
		s.t.Fatal(err)
	}
}

// lease is what a round reads of the lease now; nil: no item.
func (s *stage) lease() *store.Lease {
	page := s.carryOut(store.ReadCoordination{}).Result.(store.CoordinationPage)
	for _, l := range page.Leases {
		if l.Bucket == s.core.cfg.Bucket {
			return &l
		}
	}
	return nil
}

// remaining are the sequences in the table.
func (s *stage) remaining() []int64 {
	var left []int64
	for _, sortKey := range s.sortKeys(s.schema.MessagesKey(s.core.cfg.Bucket)) {
		sequence, err := outbox.ParseSequence(sortKey)
		if err != nil {
			s.t.Fatal(err)
		}
		left = append(left, sequence)
	}
	return left
}

// setAside are the sequences of the rows that are set aside, by key id, and the
// sort keys of the markers.
func (s *stage) setAside() (rows map[string][]int64, markers []string) {
	rows = map[string][]int64{}
	for _, sortKey := range s.sortKeys(s.schema.ParkedKey(s.core.cfg.Bucket)) {
		if keyID, sequence, err := outbox.ParseParkedRow(sortKey); err == nil {
			rows[keyID] = append(rows[keyID], sequence)
		} else {
			markers = append(markers, sortKey)
		}
	}
	return rows, markers
}

func (s *stage) sortKeys(partition string) []string {
	var keys []string
	for _, item := range s.db.Items(s.schema.Table) {
		if item[s.schema.PartitionKey].(*types.AttributeValueMemberS).Value == partition {
			keys = append(keys, item[s.schema.SortKey].(*types.AttributeValueMemberS).Value)
		}
	}
	return keys
}

// showTable writes down what is in the table: the rows and the lease.
func (s *stage) showTable() {
	s.did = append(s.did, "rows "+list(s.remaining()))
	rows, markers := s.setAside()
	for _, marker := range markers {
		kind, name, _ := strings.Cut(marker, "#")
		if kind == "KEY" {
			name = short(name)
		}
		s.did = append(s.did, "marker "+kind+" "+name)
	}
	for _, keyID := range slices.Sorted(maps.Keys(rows)) {
		s.did = append(s.did, "set aside of "+short(keyID)+" "+list(rows[keyID]))
	}
	lease := s.lease()
	switch {
	case lease == nil:
		s.did = append(s.did, "no lease")
	case lease.Owner == "":
		s.did = append(s.did, "lease of nobody, "+offset(lease.Expires))
	default:
		s.did = append(s.did, fmt.Sprintf("lease of %s/%s claim %d until %s", lease.Owner, lease.Incarnation, lease.Claim, offset(lease.Expires)))
	}
}
