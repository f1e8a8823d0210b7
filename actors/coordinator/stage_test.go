package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

func textAttribute(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func numberAttribute(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// begin is the wall clock at a stage's begin.
const begin = 1_700_000_000 * time.Second

// stage is the core of one relay's coordinator with everything around it in the
// test's hands. The table is real but for the moment at which a request reaches it.
type stage struct {
	t      rapid.TB
	core   *core
	db     *memtable.DB
	client *store.Client
	schema outbox.Schema

	mono, wall time.Duration // since the begin
	timers     map[timer]due
	waiting    []do
	sent       map[uint64]actors.Instant // by token
	dated      bool                      // answers tell the time, which is that of the monotonic clock
	buckets    map[int64]int             // by tenure
	did        []string
	finished   int
}

type due struct {
	at     time.Duration
	number uint64
}

func newStage(t rapid.TB, buckets int) *stage {
	s := &stage{
		t: t, timers: map[timer]due{}, buckets: map[int64]int{}, sent: map[uint64]actors.Instant{},
		schema: outbox.Schema{Table: "orders", BucketCount: buckets}.WithDefaults(),
	}
	s.db = memtable.New(memtable.Options{})
	if err := store.CreateTable(context.Background(), s.db, s.schema); err != nil {
		t.Fatal(err)
	}
	s.client = store.NewClient(s.schema, nil, s.db)
	s.core = newCore(Config{
		Relay: "A", Mode: "ordered", BucketCount: buckets,
		LeaseDuration: 30 * time.Second, LeaseRenewInterval: 10 * time.Second, ShutdownTimeout: 25 * time.Second,
		MaxConcurrency: 8, Bucket: bucket.Config{MaxClockSkew: 2 * time.Second},
	}, "A1")
	renamed := 1
	s.core.rename = func(_ actors.Instant, before identity) identity {
		renamed++
		return identity{before.relay, fmt.Sprintf("A%d", renamed)}
	}
	return s
}

// step gives the core one message and takes up what it wants done.
func (s *stage) step(message any) { s.take(s.core.step(s.instant(), message)) }

func (s *stage) take(effects []effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case do:
			s.waiting = append(s.waiting, e)
			s.sent[e.token] = s.instant()
		case arm:
			s.timers[e.timer] = due{s.mono + e.after, e.number}
		case spawn:
			s.buckets[e.tenure] = e.bucket
		case finish:
			s.finished++
			clear(s.timers)
		}
		if said := s.describe(e); said != "" {
			s.did = append(s.did, said)
		}
	}
}

// pass lets time go by; timers fire in their order.
func (s *stage) pass(d time.Duration) {
	until := s.mono + d
	for {
		next, found := roundTimer, false
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

var requestNames = map[string]string{
	"heartbeat": "heartbeat", "read": "readCoordination", "stamp": "stampStopped", "prune": "prune", "release": "release",
}

func (s *stage) requestEnds(name, way string) {
	i := slices.IndexFunc(s.waiting, func(d do) bool { return d.request.RequestName() == requestNames[name] })
	if i < 0 {
		s.t.Fatalf("no %s is under way", name)
	}
	s.end(i, way)
}

// end ends one waiting request, in one of the ways of TestScenarios.
func (s *stage) end(i int, way string) {
	d := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	lost := store.Reply{Class: store.Ambiguous, Err: store.ErrUnavailable}
	if _, read := d.request.(store.ReadCoordination); read {
		lost.Class = store.Retriable
	}
	var reply store.Reply
	switch way {
	case "answered":
		reply = s.carryOut(d.request)
	case "unanswered":
		s.carryOut(d.request)
		reply = lost
	case "lost":
		reply = lost
	case "throttled":
		reply = store.Reply{Class: store.Retriable, Err: store.ErrThrottled}
	case "denied":
		reply = store.Reply{Class: store.Retriable, Err: store.ErrDenied}
	case "missing":
		reply = store.Reply{Class: store.Retriable, Err: store.ErrTableMissing}
	default:
		s.t.Fatalf("a request cannot be %q", way)
	}
	s.step(actors.Replied{Token: d.token, Request: d.request, Reply: reply, Sent: s.sent[d.token], Received: s.instant()})
}

func (s *stage) carryOut(r store.Request) store.Reply {
	reply := s.client.Do(context.Background(), r)
	if s.dated {
		reply.Date = actors.Instant{Wall: (begin + s.mono).Truncate(time.Second)}.Ticks()
	}
	return reply
}

func (s *stage) put(item map[string]types.AttributeValue) {
	if _, err := s.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &s.schema.Table, Item: item}); err != nil {
		s.t.Fatal(err)
	}
}

// showTable writes down leases and relays.
func (s *stage) showTable() {
	page := s.carryOut(store.ReadCoordination{}).Result.(store.CoordinationPage)
	for _, l := range page.Leases {
		owner := l.Owner
		if owner == "" {
			owner = "nobody"
		}
		s.did = append(s.did, fmt.Sprintf("lease %d of %s", l.Bucket, owner)+expiry(&l))
	}
	for _, r := range page.Relays {
		state := ""
		if r.Stopped != 0 {
			state = ", stopped at " + offset(r.Stopped)
		}
		s.did = append(s.did, fmt.Sprintf("relay %s/%s seen %s%s", r.ID, r.Incarnation, offset(r.LastSeen), state))
	}
}

// describe is one effect as scenarios show it; "" for what they leave out.
func (s *stage) describe(e effect) string {
	switch e := e.(type) {
	case do:
		return "send " + describeRequest(e.request)
	case arm:
		return map[timer]string{
			roundTimer: "next round in ", repeatTimer: "look again in ", publisherTimer: "replace the publisher in ",
			deadlineTimer: "wait no longer than ", paceTimer: "keep more in ",
		}[e.timer] + e.after.String()
	case spawn:
		return fmt.Sprintf("spawn %d for bucket %d: %s", e.tenure, e.bucket, describeCommand(e.first))
	case tell:
		return fmt.Sprintf("tell bucket %d: %s", s.buckets[e.tenure], describeCommand(e.message))
	case openPublisher:
		return fmt.Sprintf("open publisher %d", e.number)
	case tellPublisher:
		return strings.TrimPrefix(fmt.Sprintf("tell publisher: %T %v", e.message, e.message), "publisher.")
	case emit:
		return describeEvent(e.event)
	case finish:
		if e.err != nil {
			return "finish: " + e.err.Error()
		}
		return "finish"
	}
	return ""
}

func describeRequest(r store.Request) string {
	switch r := r.(type) {
	case store.Heartbeat:
		return fmt.Sprintf("heartbeat %s/%s at %s", r.Relay, r.Incarnation, offset(r.LastSeen))
	case store.ReadCoordination:
		if r.After != "" {
			return "read after " + r.After
		}
		return "read"
	case store.StampStopped:
		return fmt.Sprintf("stamp %s/%s at %s", r.Relay, r.Incarnation, offset(r.At))
	case store.Prune:
		return fmt.Sprintf("prune %s, silent since %s or stopped since %s", r.Relay, offset(r.Dead), offset(r.Stopped))
	case store.Release:
		return fmt.Sprintf("release of bucket %d from %s at %s", r.Bucket, offset(r.Seen), offset(r.Now))
	default:
		return r.RequestName()
	}
}

func describeCommand(m any) string {
	lease := func(l *store.Lease) string {
		switch {
		case l == nil:
			return "no lease"
		case l.Owner == "":
			return "lease of nobody"
		default:
			return "lease of " + l.Owner + expiry(l)
		}
	}
	switch m := m.(type) {
	case bucket.Claim:
		return "claim, " + lease(m.Lease)
	case bucket.Resume:
		said := "resume, " + lease(&m.Lease)
		if m.Elder != 0 {
			said += ", an elder's until " + offset(m.Elder)
		}
		return said
	case bucket.Attend:
		return m.Verdict.String() + ", " + lease(m.Lease) + describeClock(m.Round)
	case bucket.Carry:
		return "carry" + describeClock(m.Round)
	default:
		return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", m), "bucket."))
	}
}

func describeClock(r bucket.Round) string {
	switch {
	case r.Ahead:
		return ", with a clock that is ahead"
	case r.Off:
		return ", with a clock that is off"
	}
	return ""
}

func describeEvent(e event.Event) string {
	switch e := e.(type) {
	case event.RoundCompleted:
		return fmt.Sprintf("round of %d relays, %d buckets, rank %d", e.Active, e.Owned, e.StandbyRank)
	case event.FleetSeen:
		return describeFleet(e)
	}
	return strings.TrimSpace("event " + e.EventName() + " " + strings.Trim(fmt.Sprintf("%+v", e), "{}"))
}

// describeFleet has the relays, with those that do not count in brackets, and the
// owners by bucket, with those whose time is over in brackets.
func describeFleet(e event.FleetSeen) string {
	bracketed := func(text string, brackets bool) string {
		if brackets {
			return "(" + text + ")"
		}
		return text
	}
	line := "saw"
	for _, r := range e.Relays {
		line += " " + bracketed(r.Relay, !r.Active)
	}
	line += " owning"
	for _, l := range e.Leases {
		switch {
		case l.Unreadable:
			line += " ?"
		case l.Owner == "":
			line += " -"
		default:
			line += " " + bracketed(l.Owner, l.Lapsed)
		}
		if !l.PausedUntil.IsZero() {
			line += ":paused"
		}
	}
	return line
}

// offset is a moment in the table, since the stage's begin by the wall clock.
func offset(t store.Ticks) string {
	d := t.Sub(actors.Instant{Wall: begin}.Ticks())
	if d < 0 {
		return d.String()
	}
	return "+" + d.String()
}

func expiry(l *store.Lease) string {
	if l.Expires == 0 {
		return " without an expiry"
	}
	return " until " + offset(l.Expires)
}
