package kafka

import (
	"errors"
	"fmt"
	"strings"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// Mock is librdkafka's mock cluster: one broker inside this process, on a free
// port of 127.0.0.1, that keeps what it is sent in memory. It serves the demo
// and tests. It knows no limits of size, no permissions, no fencing and no
// descriptions of configurations. Starting one turns the process's stderr off
// for an instant, so it is started before anything else runs.
type Mock struct{ cluster *ck.MockCluster }

// Topic is a topic to be created.
type Topic struct {
	Name       string
	Partitions int // at least 1
}

// StartMock starts a mock cluster with these topics. Close ends it.
func StartMock(topics ...Topic) (*Mock, error) {
	var cluster *ck.MockCluster
	err := withoutStderr(func() (err error) {
		// The cluster is itself a client that knows no broker, and says so, in a
		// line that reads like a failure; it takes no setting that would stop it.
		cluster, err = ck.NewMockCluster(1)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start mock cluster: %s", err)
	}
	m := &Mock{cluster: cluster}
	for _, t := range topics {
		if err := m.CreateTopic(t); err != nil {
			m.Close()
			return nil, err
		}
	}
	return m, nil
}

// CreateTopic creates one topic. One that exists is an error.
func (m *Mock) CreateTopic(t Topic) error {
	if fault := inspectTopic(t.Name); fault != nil {
		return fmt.Errorf("create topic %q: %w", t.Name, errors.New(fault.Text))
	}
	if t.Partitions < 1 {
		return fmt.Errorf("create topic %q: %d partitions: at least 1 is needed", t.Name, t.Partitions)
	}
	if err := m.cluster.CreateTopic(t.Name, t.Partitions, 1); err != nil {
		return fmt.Errorf("create topic %q: %s", t.Name, err)
	}
	return nil
}

// Config is how to reach it. It has no controller to ask for limits.
func (m *Mock) Config() Config {
	return Config{Brokers: strings.Split(m.cluster.BootstrapServers(), ","), LimitTimeout: -1}
}

// Delay makes every answer of the broker take this long, from now on.
func (m *Mock) Delay(roundTrip time.Duration) error {
	if err := m.cluster.SetRoundtripDuration(-1, roundTrip); err != nil {
		return fmt.Errorf("delay mock cluster: %s", err)
	}
	return nil
}

// Down disconnects all clients and takes no connection until Up.
func (m *Mock) Down() error {
	if err := m.cluster.SetBrokerDown(-1); err != nil {
		return fmt.Errorf("take mock cluster down: %s", err)
	}
	return nil
}

// Up ends Down.
func (m *Mock) Up() error {
	if err := m.cluster.SetBrokerUp(-1); err != nil {
		return fmt.Errorf("bring mock cluster up: %s", err)
	}
	return nil
}

// Close ends the cluster and forgets all that it was sent. Producers are closed
// before it.
func (m *Mock) Close() { m.cluster.Close() }
