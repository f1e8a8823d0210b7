package simulation

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// brokerTime is a BrokerClock of its own, without a fleet around it.
type brokerTime struct {
	now  time.Duration
	seq  uint64
	dues dues
}

func (c *brokerTime) Now() time.Duration { return c.now }

func (c *brokerTime) At(d time.Duration, do func()) {
	c.seq++
	heap.Push(&c.dues, &due{at: c.now + d, seq: c.seq, do: do})
}

// pass lets time go by.
func (c *brokerTime) pass(d time.Duration) {
	until := c.now + d
	for len(c.dues) > 0 && c.dues[0].at <= until {
		next := heap.Pop(&c.dues).(*due)
		c.now = next.at
		next.do()
	}
	c.now = until
}

// The first four rows of kafka.md's first table, on the model: a topic limited to
// 2,000 bytes, rows to one partition, one row of 5,000 bytes among them, one
// request a row. A model that did not do these would prove nothing about the
// publisher.
func TestModelBrokerDoesWhatWasMeasured(t *testing.T) {
	tests := []struct {
		name     string
		careful  bool
		rejected int  // index of the row that is too large
		data     int  // rows of another producer that are there before
		primed   bool // the first row is sent alone
		fatal    bool
		want     []int // rows appended, with one repeat of what had failed
	}{
		{name: "idempotent only: the later rows are appended, then the repeat", careful: true, rejected: 1,
			want: []int{0, 2, 3, 4, 5, 1}},
		{name: "gap-less: fatal, nothing later is appended", rejected: 1, fatal: true,
			want: []int{0, 1, 2, 3, 4, 5}},
		{name: "gap-less, new to the partition, the first row is rejected: still broken", rejected: 0, data: 3, fatal: true,
			want: []int{1, 2, 3, 4, 0, 5}},
		{name: "gap-less and primed: clean", rejected: 1, data: 3, primed: true, fatal: true,
			want: []int{0, 1, 2, 3, 4, 5}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := newBrokerRun(20 * time.Millisecond)
			m.broker.CreateTopic("orders", 1, 2000)
			before := m.open(publisher.Options{Number: 1, Careful: true})
			for i := range test.data {
				m.send(before, 100+i, 10)
			}
			p := m.open(publisher.Options{Number: 2, Careful: test.careful})
			for i := range 6 {
				size := 10
				if i == test.rejected {
					size = 5000
				}
				m.send(p, i, size)
				if test.primed && i == 0 {
					m.settle()
				} else {
					m.separate()
				}
			}
			m.settle()
			if m.fatal != test.fatal {
				t.Errorf("fatal: %v, want %v", m.fatal, test.fatal)
			}
			p.Purge()
			m.settle()
			// Repeat, in order, what was not acknowledged, now within the limit.
			again := m.open(publisher.Options{Number: 3})
			first := slices.IndexFunc([]int{0, 1, 2, 3, 4, 5}, func(i int) bool { return !m.acknowledged[int64(i)] })
			for i := first; i < 6; i++ {
				if !m.acknowledged[int64(i)] {
					m.send(again, i, 10)
				}
			}
			m.settle()
			if got := m.appended(); !slices.Equal(got, test.want) {
				t.Errorf("appended %v, want %v", got, test.want)
			}
		})
	}
}

// A partition forgets a producer of which it has appended nothing for long, also while
// records of it wait: what comes behind a rejected one is the first of a new one then.
func TestModelBrokerForgetsAProducerWhoseRecordsWait(t *testing.T) {
	for away, want := range map[time.Duration][]int{9 * time.Minute: {0}, 11 * time.Minute: {0, 2}} {
		m := newBrokerRun(0)
		m.broker.cfg.Memory = 10 * time.Minute
		m.broker.CreateTopic("orders", 1, 2000)
		p := m.open(publisher.Options{Number: 1})
		m.send(p, 0, 10)
		m.settle()
		m.broker.Leave()
		m.send(p, 1, 5000)
		m.separate()
		m.send(p, 2, 10)
		m.clock.pass(away)
		m.broker.Return()
		m.settle()
		if got := m.appended(); !slices.Equal(got, want) || !m.fatal {
			t.Errorf("after %v: appended %v, want %v; fatal: %v", away, got, want, m.fatal)
		}
	}
}

// brokerRun drives producers of the model without a publisher.
type brokerRun struct {
	clock        *brokerTime
	broker       *Broker
	acknowledged map[int64]bool
	fatal        bool
}

// newBrokerRun has the broker at that distance; 0: the default.
func newBrokerRun(latency time.Duration) *brokerRun {
	clock := &brokerTime{}
	return &brokerRun{
		clock:        clock,
		broker:       NewBroker(BrokerConfig{Clock: clock, Rand: rand.New(rand.NewPCG(1, 7)), Latency: latency}),
		acknowledged: map[int64]bool{},
	}
}

func (m *brokerRun) open(o publisher.Options) publisher.Producer {
	p, _ := m.broker.Factory("relay-a").Open(o, func(message any) {
		switch message := message.(type) {
		case publisher.Reported:
			for _, r := range message.Reports {
				if r.Fault == nil {
					m.acknowledged[r.Token.Sequence] = true
				}
			}
		case publisher.Fataled:
			m.fatal = true
		}
	})
	m.settle()
	return p
}

func (m *brokerRun) send(p publisher.Producer, row, size int) {
	_ = p.Produce(publisher.Record{Topic: "orders", Value: make([]byte, size)}, publisher.Token{Sequence: int64(row)})
}

// separate lets the linger pass, so that the next row gets its own request.
func (m *brokerRun) separate() { m.clock.pass(3 * time.Millisecond) }

func (m *brokerRun) settle() { m.clock.pass(time.Second) }

func (m *brokerRun) appended() []int {
	var rows []int
	for _, r := range m.broker.Records("orders") {
		if r.Token.Sequence < 100 {
			rows = append(rows, int(r.Token.Sequence))
		}
	}
	return rows
}

// A request that is stuck when its producer is closed lands behind the repeat:
// late duplicates are possible, and consumers deduplicate.
func TestModelBrokerLetsAStuckRequestOfAClosedProducerLandLate(t *testing.T) {
	m := newBrokerRun(0)
	m.broker.CreateTopic("orders", 1, 0)
	old := m.open(publisher.Options{Number: 1})
	m.send(old, 0, 10)
	m.settle()
	m.broker.SetFaults(BrokerFaults{Request: func(BrokerRequest) BrokerFault {
		return BrokerFault{Delay: 20 * time.Second}
	}})
	m.send(old, 1, 10)
	m.send(old, 2, 10)
	m.clock.pass(time.Second)
	old.Close()
	m.broker.SetFaults(BrokerFaults{})
	fresh := m.open(publisher.Options{Number: 2})
	for i := 1; i <= 5; i++ {
		m.send(fresh, i, 10)
	}
	m.clock.pass(time.Minute)
	if want, got := []int{0, 1, 2, 3, 4, 5, 1, 2}, m.appended(); !slices.Equal(got, want) {
		t.Errorf("appended %v, want %v", got, want)
	}
}
