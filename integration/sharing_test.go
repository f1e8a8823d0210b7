//go:build integration

package integration

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/outbox"
)

// The timing of the relays that share buckets here: as short as a busy machine
// bears, since an attempt of a coordination request has a fifth of the interval.
const (
	leaseDuration = 6 * time.Second
	renewInterval = 2 * time.Second
	maxSkew       = 400 * time.Millisecond
	// requestTime is what a round's requests may take, on top of when it is due.
	requestTime = renewInterval / 2
)

const sharedPartitions = 4 // of the topic

// sharing is a fleet that shares the buckets of one table, watched from the
// table's side. Who owns what is read from the lease items; what a relay asks is
// seen at its gate.
type sharing struct {
	t        *testing.T
	client   *dynamodb.Client
	schema   outbox.Schema
	kafka    servers
	topic    string
	traffic  *traffic
	members  []*member // all that were ever started
	endLoad  func()
	messages []sent // of the loads that have ended
	loads    int
	pace     time.Duration // between two commits of a load
}

// member is one relay process of the fleet.
type member struct {
	*process
	id   string // the relay's; the process may have another name
	gate *gate
}

// newSharing makes an empty table of so many buckets, and a topic.
func newSharing(t *testing.T, buckets int) *sharing {
	t.Helper()
	return newSharingOn(t, brokers(t), 1, buckets)
}

// newSharingOn is newSharing with the topic on these servers, and with so many
// replicas.
func newSharingOn(t *testing.T, kafka servers, replicas, buckets int) *sharing {
	t.Helper()
	s := &sharing{t: t, client: dynamo(t), kafka: kafka, topic: uniqueTopic(t), traffic: newTraffic(), endLoad: func() {}, pace: loadPause}
	s.schema = freshTable(t, s.client, outbox.Schema{BucketCount: buckets})
	kafka.create(t, ck.TopicSpecification{Topic: s.topic, NumPartitions: sharedPartitions, ReplicationFactor: replicas})
	t.Cleanup(func() { s.endLoad() })
	return s
}

// join starts a relay whose id is its process's name.
func (s *sharing) join(id string, more ...string) *member {
	s.t.Helper()
	return s.joinAs(id, id, more...)
}

func (s *sharing) joinAs(name, id string, more ...string) *member {
	s.t.Helper()
	g := newGate(s.t, name, s.traffic)
	args := relayArgs(s.t, s.schema.Table, id, append([]string{
		"--dynamodb-endpoint", g.server.URL, "--brokers", s.kafka.String(), "--bucket-count", fmt.Sprint(s.schema.BucketCount),
		"--lease-duration", leaseDuration.String(), "--lease-renew-interval", renewInterval.String(),
		"--max-clock-skew", maxSkew.String(), "--poll-interval", "200ms", "--log-level", "debug"}, more...)...)
	m := &member{process: start(s.t, name, args...), id: id, gate: g}
	s.members = append(s.members, m)
	return m
}

// joinAll starts relays with these ids, one right after the other.
func (s *sharing) joinAll(ids ...string) []*member {
	s.t.Helper()
	var members []*member
	for _, id := range ids {
		members = append(members, s.join(id))
	}
	return members
}

// lease is a lease item: who holds the bucket, and under which incarnation.
type lease struct{ owner, incarnation string }

// leases are the lease items, by bucket, as one strongly consistent read has them.
func (s *sharing) leases() map[int]lease {
	s.t.Helper()
	leases := map[int]lease{}
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName: &s.schema.Table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("PK = :pk"),
		ExpressionAttributeValues: item{":pk": text(coordinationPartition)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, problem := range inspect(page.Items).problems {
			s.t.Error(problem)
		}
		for _, i := range page.Items {
			if key := leaseKey.FindStringSubmatch(textOf(i["SK"])); key != nil {
				leases[numberOf(key[1])] = lease{owner: textOf(i["Owner"]), incarnation: textOf(i["Incarnation"])}
			}
		}
	}
	return leases
}

// awaitLeases reads the leases after each write to them until they are as wanted,
// and returns them and when they were read.
func (s *sharing) awaitLeases(what string, wanted func(map[int]lease) bool) (map[int]lease, time.Time) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		next := s.traffic.nextWrite()
		leases := s.leases()
		if wanted(leases) {
			return leases, time.Now()
		}
		select {
		case <-next:
		case <-deadline:
			s.t.Fatalf("the leases are %v after %v, want %s", leases, patience, what)
		}
	}
}

// awaitFair waits until these relays own all buckets, none two more than another.
func (s *sharing) awaitFair(members ...*member) (map[int]lease, time.Time) {
	s.t.Helper()
	return s.awaitLeases("a fair split", func(leases map[int]lease) bool { return s.fair(leases, members) })
}

func (s *sharing) fair(leases map[int]lease, members []*member) bool {
	owned := map[string]int{}
	for _, m := range members {
		owned[m.id] = 0
	}
	for b := range s.schema.BucketCount {
		if _, member := owned[leases[b].owner]; !member {
			return false
		}
		owned[leases[b].owner]++
	}
	counts := slices.Collect(maps.Values(owned))
	return slices.Max(counts)-slices.Min(counts) <= 1
}

// settle waits for a fair split and one whole round of each relay after it.
func (s *sharing) settle(members ...*member) map[int]lease {
	s.t.Helper()
	leases, _ := s.awaitFair(members...)
	s.awaitRounds(1, members...)
	return leases
}

// awaitRounds waits for so many whole rounds of each relay that begin from now on.
func (s *sharing) awaitRounds(rounds int, members ...*member) {
	s.t.Helper()
	mark := s.traffic.mark()
	s.traffic.await(s.t, fmt.Sprintf("%d rounds of each relay", rounds), mark, func(seen []request) bool {
		return slices.IndexFunc(members, func(m *member) bool { return beats(seen, m) <= rounds }) < 0
	})
}

// beats is how many rounds the relay has begun.
func beats(seen []request, m *member) int {
	return len(only(seen, func(r request) bool { return r.relay == m.name && r.kind == heartbeat && r.attempt == 1 }))
}

// awaitRoundEnd waits for the end of a round that each of these relays begins from
// now on: nothing of it is on the way any more.
func (s *sharing) awaitRoundEnd(members ...*member) {
	s.t.Helper()
	leases, mark := s.leases(), s.traffic.mark()
	s.traffic.await(s.t, "the end of a round", mark, func(seen []request) bool {
		return slices.IndexFunc(members, func(m *member) bool {
			return len(applied(seen, keep, m.name)) < len(bucketsOf(leases, m))
		}) < 0
	})
}

// wantQuiet waits for some rounds of each relay, in which no bucket may move and
// no write be refused.
func (s *sharing) wantQuiet(rounds int, members ...*member) {
	s.t.Helper()
	before, mark := s.leases(), s.traffic.mark()
	s.awaitRounds(rounds, members...)
	if after := s.leases(); !maps.Equal(before, after) {
		s.t.Errorf("the leases changed from %v to %v", before, after)
	}
	if seen := restless(s.traffic.since(mark)); len(seen) > 0 {
		s.t.Errorf("a settled fleet sent %s", tally(seen))
	}
}

// bucketsOf are the buckets that the relay owns, ascending.
func bucketsOf(leases map[int]lease, m *member) []int {
	var owned []int
	for _, b := range slices.Sorted(maps.Keys(leases)) {
		if leases[b].owner == m.id {
			owned = append(owned, b)
		}
	}
	return owned
}

// moved are the buckets that have changed hands, ascending.
func moved(before, after map[int]lease) []int {
	var buckets []int
	for _, b := range slices.Sorted(maps.Keys(after)) {
		if before[b].owner != after[b].owner {
			buckets = append(buckets, b)
		}
	}
	return buckets
}

// wantMoved wants just these buckets to have changed hands, each once: a bucket
// that need not move does not even go and come back.
func (s *sharing) wantMoved(mark int, before, after map[int]lease, want []int) {
	s.t.Helper()
	if got := moved(before, after); !slices.Equal(got, want) {
		s.t.Errorf("buckets %v have moved, want %v", got, want)
	}
	s.wantClaims(mark, want)
}

// wantClaims wants each of these buckets to have been claimed once since a mark,
// and no other.
func (s *sharing) wantClaims(mark int, want []int) {
	s.t.Helper()
	// The table may show a claim before its answer has passed by.
	s.traffic.await(s.t, "the answers to all claims", mark, func(seen []request) bool {
		return !slices.ContainsFunc(seen, func(r request) bool { return r.kind == claim && r.answered.IsZero() })
	})
	if got := claimed(s.traffic.since(mark)); !slices.Equal(got, want) {
		s.t.Errorf("buckets %v were claimed, want %v", got, want)
	}
}

// kill ends relays at once, and returns when.
func (s *sharing) kill(members ...*member) time.Time {
	s.t.Helper()
	for _, m := range members {
		m.signal(syscall.SIGKILL)
	}
	at := time.Now()
	for _, m := range members {
		m.exit()
	}
	return at
}

// The load: some keys, some messages of different ones in each commit.
const (
	loadKeys   = 24
	loadCommit = 4
	loadPause  = 100 * time.Millisecond
)

// load begins a light load of messages, one commit after another, so that each
// key has an order. It ends with endLoad.
func (s *sharing) load() {
	s.t.Helper()
	s.loads++
	prefix, writer := fmt.Sprintf("load-%d", s.loads), newWriter(s.t, s.client, s.schema)
	done, ended := make(chan struct{}), make(chan struct{})
	var written []sent
	go func() {
		defer close(ended)
		pace := time.NewTicker(s.pace)
		defer pace.Stop()
		for n := 0; ; n += loadCommit {
			select {
			case <-done:
				return
			case <-pace.C:
			}
			batch, messages := s.someMessages(prefix, n)
			err := writer.Enqueue(s.t.Context(), messages...)
			if s.t.Context().Err() != nil {
				return // the test has ended
			}
			if err != nil {
				s.t.Errorf("write messages: %v", err)
				return
			}
			written = append(written, batch...)
		}
	}()
	s.endLoad = sync.OnceFunc(func() {
		close(done)
		<-ended
		s.messages = append(s.messages, written...)
	})
}

func (s *sharing) someMessages(prefix string, n int) ([]sent, []outbox.Message) {
	batch, messages := make([]sent, loadCommit), make([]outbox.Message, loadCommit)
	for i := range batch {
		key := fmt.Appendf(nil, "%s-%d", prefix, (n+i)%loadKeys)
		messages[i] = outbox.NewMessage(s.topic, key, fmt.Append(nil, n+i))
		batch[i] = sent{message: messages[i], stream: string(key), began: messages[i].CreatedAt}
	}
	return batch, messages
}

// finish ends the load, waits until all is delivered, stops the relays that still
// run, and judges what a consumer and the table say. It returns the number of
// records beyond the first of a message.
func (s *sharing) finish(running ...*member) (duplicates int) {
	s.t.Helper()
	s.endLoad()
	partitions := map[string]int{s.topic: sharedPartitions}
	s.kafka.await(s.t, s.messages, partitions)
	for _, m := range running {
		m.signal(syscall.SIGTERM)
	}
	for _, m := range running {
		if code := m.exit(); code != 0 {
			s.t.Errorf("%s ended with %d after SIGTERM, want 0", m.name, code)
		}
	}
	verdict := check(s.messages, s.kafka.read(s.t, s.topic), partitions, time.Now())
	if !verdict.sound() || verdict.sent == 0 {
		s.t.Errorf("%v", &verdict)
	}
	state := inspect(scan(s.t, s.client, s.schema.Table))
	for _, problem := range state.problems {
		s.t.Error(problem)
	}
	if state.messages != 0 {
		s.t.Errorf("%d messages are left in the table", state.messages)
	}
	for _, problem := range faults(s.traffic.since(0)) {
		s.t.Error(problem)
	}
	return verdict.duplicates
}
