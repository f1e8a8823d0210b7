package publishertest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// callTimeout is that of each call in the cases of transactions.
const callTimeout = 10 * time.Second

// openTransactional opens a producer with a transactional id, which all of a case
// share, as the owners of one bucket do.
func openTransactional(t *testing.T, h Harness) *session {
	t.Helper()
	h.needs(t, Transactions)
	return open(t, h, publisher.Options{TransactionalID: h.topic() + "-7"})
}

// conclude makes a call and waits for its end.
func (s *session) conclude(t *testing.T, call publisher.Call) publisher.Concluded {
	t.Helper()
	p := s.Producer.(publisher.Transactional)
	switch call {
	case publisher.Initialize:
		p.Initialize(callTimeout)
	case publisher.Commit:
		p.Commit(callTimeout)
	case publisher.Abort:
		p.Abort(callTimeout)
	}
	before := len(s.concluded)
	s.await(t, fmt.Sprintf("the end of a call to %v", call), func() bool { return len(s.concluded) > before })
	m := s.concluded[before]
	if m.Call != call {
		t.Fatalf("a call to %v is answered as one to %v", call, m.Call)
	}
	return m
}

// succeeds makes a call that must be done.
func (s *session) succeeds(t *testing.T, call publisher.Call) {
	t.Helper()
	if m := s.conclude(t, call); m.Fault != nil {
		t.Fatalf("%v: %v, %v, want it done", call, m.Fault.Class, m.Fault)
	}
}

func (s *session) begin(t *testing.T) {
	t.Helper()
	if err := s.Producer.(publisher.Transactional).Begin(); err != nil {
		t.Fatalf("begin: %v", err)
	}
}

func (h Harness) reads(t *testing.T, want ...string) {
	t.Helper()
	if got := values(h.Read(t, h.topic())); !slices.Equal(got, want) {
		t.Errorf("a consumer of committed records reads %v, want %v", got, want)
	}
}

func commitsOrAborts(t *testing.T, h Harness) {
	h.needs(t, Isolation)
	h.CreateTopic(t, h.topic(), 1, 0)
	s := openTransactional(t, h)
	s.succeeds(t, publisher.Initialize)
	s.begin(t)
	s.acknowledged(t, 0, h.rows(0, 3, -1)...)
	s.succeeds(t, publisher.Commit)
	s.begin(t)
	s.acknowledged(t, 3, h.rows(3, 2, -1)...)
	s.succeeds(t, publisher.Abort)
	s.begin(t)
	s.acknowledged(t, 5, h.rows(5, 1, -1)...)
	s.succeeds(t, publisher.Commit)
	h.reads(t, "0", "1", "2", "5")
}

// takesTheFence: what the earlier producer had open is never seen, and it commits
// nothing any more.
func takesTheFence(t *testing.T, h Harness) {
	h.needs(t, Fencing)
	h.CreateTopic(t, h.topic(), 1, 0)
	zombie := openTransactional(t, h)
	zombie.succeeds(t, publisher.Initialize)
	zombie.begin(t)
	zombie.acknowledged(t, 0, h.rows(0, 3, -1)...)

	successor := openTransactional(t, h)
	successor.succeeds(t, publisher.Initialize)
	successor.begin(t)
	successor.acknowledged(t, 3, h.rows(3, 2, -1)...)

	if m := zombie.conclude(t, publisher.Commit); m.Fault == nil {
		t.Error("the zombie has committed")
	} else if m.MustAbort {
		if m = zombie.conclude(t, publisher.Abort); m.Fault == nil || m.Fault.Class != publisher.Fenced {
			t.Errorf("the zombie's abort: %+v, want fenced", m)
		}
	} else if m.Fault.Class != publisher.Fenced {
		t.Errorf("the zombie's commit: %v, %v, want fenced", m.Fault.Class, m.Fault)
	}
	successor.succeeds(t, publisher.Commit)
	h.reads(t, "3", "4")
}

// takesTheFenceBack: who holds the lease initializes again, and goes on.
func takesTheFenceBack(t *testing.T, h Harness) {
	h.needs(t, Fencing)
	h.CreateTopic(t, h.topic(), 1, 0)
	owner := openTransactional(t, h)
	owner.succeeds(t, publisher.Initialize)
	other := openTransactional(t, h)
	other.succeeds(t, publisher.Initialize)
	owner.Close()
	again := openTransactional(t, h)
	again.succeeds(t, publisher.Initialize)
	again.begin(t)
	again.acknowledged(t, 0, h.rows(0, 2, -1)...)
	again.succeeds(t, publisher.Commit)
	h.reads(t, "0", "1")
}

// rejectedFailsAll: a rejected record fails its whole transaction, and the
// producer goes on after an abort.
func rejectedFailsAll(t *testing.T, h Harness) {
	h.needs(t, Limits)
	h.CreateTopic(t, h.topic(), 1, limit)
	s := openTransactional(t, h)
	s.succeeds(t, publisher.Initialize)
	s.begin(t)
	s.produce(t, 0, h.sized(0, 0), h.sized(1, guiltySize), h.sized(2, 0))
	s.awaitReports(t, 1, 1, func() {})
	if fault := s.outcome(t, 1); fault == nil || fault.Class != publisher.Rejected {
		t.Fatalf("the record over the limit: %v, want rejected", fault)
	}
	s.succeeds(t, publisher.Abort)
	s.begin(t)
	s.acknowledged(t, 3, h.rows(3, 2, -1)...)
	s.succeeds(t, publisher.Commit)
	h.reads(t, "3", "4")
}

// abortPurges: an abort waits for no broker to answer for the records.
func abortPurges(t *testing.T, h Harness) {
	h.needs(t, Holding)
	h.CreateTopic(t, h.topic(), 1, 0)
	s := openTransactional(t, h)
	s.succeeds(t, publisher.Initialize)
	release := h.Hold(t)
	s.begin(t)
	s.produce(t, 0, h.rows(0, 5, -1)...)
	m := s.conclude(t, publisher.Abort)
	release()
	if m.Fault != nil && (m.Fault.Class == publisher.Fatal || m.Fault.Class == publisher.Fenced) {
		t.Fatalf("abort: %v, %v, want that it may be called again", m.Fault.Class, m.Fault)
	}
	if m.Fault != nil {
		s.succeeds(t, publisher.Abort)
	}
	s.awaitReports(t, 0, 5, func() {})
	h.reads(t)
}

func refusesOutsideTransaction(t *testing.T, h Harness) {
	h.CreateTopic(t, h.topic(), 1, 0)
	s := openTransactional(t, h)
	s.succeeds(t, publisher.Initialize)
	if err := s.Produce(h.sized(0, 0), token(0)); err == nil {
		t.Error("a record is taken outside a transaction")
	}
	h.reads(t)
}
