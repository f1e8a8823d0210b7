package publishertest

import (
	"cmp"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/outbox"
)

// Harness is one backend, fresh for each case. Its maker frees it through
// t.Cleanup, after the producers.
type Harness struct {
	// Factory is what is tested.
	Factory publisher.Factory
	// Topic is the name of the topic that a case uses; on a broker that others use
	// too, it is unique. "": orders.
	Topic string
	// CreateTopic creates a topic. maxMessageBytes is its max.message.bytes, or 0
	// for the backend's default, which must be at least 100,000.
	CreateTopic func(t testing.TB, topic string, partitions int32, maxMessageBytes int)
	// Grow gives a topic more partitions, so that it has that many. nil: the backend
	// cannot, see Lacks.
	Grow func(t testing.TB, topic string, partitions int32)
	// Read returns all records of a topic, by partition, then offset.
	// Read returns all records of a topic that a consumer of committed records sees, by
	// partition, then offset.
	Read func(t testing.TB, topic string) []Record
	// Now is the clock of the backend's record times.
	Now func() time.Time
	// Step lets virtual time go on to the next thing that happens; false: nothing
	// will happen any more. nil: the backend runs in real time.
	Step func() bool
	// Hold makes the broker leave produce requests unanswered, until release. nil:
	// it cannot, see Lacks.
	Hold func(t testing.TB) (release func())
	// Lacks says what this backend cannot do, each with the reason. Its cases are
	// skipped with it.
	Lacks map[Ability]string
}

// Ability is something that not every backend can do.
type Ability string

// The abilities.
const (
	// Limits: the broker refuses what is over the topic's max.message.bytes.
	Limits Ability = "limits"
	// Descriptions: it tells a topic's max.message.bytes.
	Descriptions Ability = "descriptions"
	// Growing: a topic can gain partitions.
	Growing Ability = "growing"
	// Holding: it can leave requests unanswered.
	Holding Ability = "holding"
	// Transactions: it has transactional producers.
	Transactions Ability = "transactions"
	// Isolation: consumers of committed records do not see what was aborted.
	Isolation Ability = "isolation"
	// Fencing: the producer that took a transactional id last is the only one that may
	// use it.
	Fencing Ability = "fencing"
)

// Record is one record as a consumer sees it. Nil keys, values and header values
// are null.
type Record struct {
	Partition  int32
	Timestamp  time.Time
	Key, Value []byte
	Headers    []outbox.Header
}

func (h Harness) topic() string { return cmp.Or(h.Topic, "orders") }

func (h Harness) needs(t *testing.T, abilities ...Ability) {
	t.Helper()
	for _, a := range abilities {
		if reason, lacks := h.Lacks[a]; lacks {
			t.Skipf("this backend has no %s: %s", a, reason)
		}
	}
}

// Run runs the suite. newHarness is called once for each case.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"a broker that answers is reached", reachesBroker},
		{"null and empty stay distinct to the consumer", keepsNullAndEmpty},
		{"headers of one name keep their order", keepsDuplicateHeaders},
		{"records go to the partition that they name", honoursPartitions},
		{"each partition keeps the order of submission", keepsOrder},
		{"every record has exactly one report", reportsOnce},
		{"record time is the publish time", stampsPublishTime},
		{"a record over the producer's own limit is refused at once", refusesTooLarge},
		{"an illegal topic is the record's fault", refusesIllegalTopic},
		{"a topic is described", describesTopic},
		{"a topic's limit is described", describesLimit},
		{"a missing topic is nobody's fault", describesMissingTopic},
		{"a producer that knew fewer partitions learns of new ones", learnsOfPartitions},
		{"a careful producer loses only the record that the broker rejects", carefulGoesOn},
		{"a primed gap-less producer lets nothing pass a rejected record", gaplessStops},
		{"what is purged may have been appended", purgeIsAmbiguous},
		{"after Close records are refused and nothing is said", closedIsSilent},
		{"Close while producing does no harm", closesWhileProducing},
		{"what is committed is read, what is aborted is not", commitsOrAborts},
		{"who takes the fence ends what earlier producers had open", takesTheFence},
		{"the fence can be taken back", takesTheFenceBack},
		{"a rejected record fails its whole transaction", rejectedFailsAll},
		{"an abort waits for no report", abortPurges},
		{"outside a transaction nothing is taken", refusesOutsideTransaction},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newHarness(t)) })
	}
}
