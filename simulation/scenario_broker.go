package simulation

import "fmt"

// readBroker reads "broker leaves" and "broker returns".
func readBroker(_ *scenarioParser, w *words) func(*stage) error {
	switch w.oneOf("what the broker does", "leaves", "returns") {
	case "leaves":
		return func(t *stage) error {
			t.fleet.record("broker", brokerLeft, nil)
			t.fleet.broker.Leave()
			return nil
		}
	default:
		return func(t *stage) error {
			t.fleet.returnBroker()
			return nil
		}
	}
}

// ofTopic reads a topic, and does something with it.
func ofTopic(w *words, do func(b *Broker, topic string)) func(*stage) error {
	topic := w.take("a topic")
	return func(t *stage) error {
		if _, exists := t.fleet.broker.topics[topic]; !exists {
			return fmt.Errorf("there is no topic %s", topic)
		}
		do(t.fleet.broker, topic)
		return nil
	}
}

// readCreateTopic reads "create topic late with 1 partitions".
func readCreateTopic(_ *scenarioParser, w *words) func(*stage) error {
	w.must("topic")
	topic := w.take("a topic")
	w.must("with")
	n := w.number("partitions")
	w.must("partitions")
	return func(t *stage) error {
		t.fleet.broker.CreateTopic(topic, n, 0)
		return nil
	}
}

// readDeleteTopic reads "delete topic late".
func readDeleteTopic(_ *scenarioParser, w *words) func(*stage) error {
	w.must("topic")
	return ofTopic(w, func(b *Broker, topic string) { b.DeleteTopic(topic) })
}

// readLimit reads "limit orders to 600 bytes", and "limit orders no more".
func readLimit(_ *scenarioParser, w *words) func(*stage) error {
	n := 0
	do := ofTopic(w, func(b *Broker, topic string) { b.LimitTopic(topic, n) })
	if !w.has("no more") {
		w.must("to")
		n = w.number("a limit")
		w.must("bytes")
	}
	return do
}

// readPartitions reads "partitions payments 3 more".
func readPartitions(_ *scenarioParser, w *words) func(*stage) error {
	n := 0
	do := ofTopic(w, func(b *Broker, topic string) { b.AddPartitions(topic, n) })
	n = w.number("partitions")
	w.must("more")
	return do
}

// readForbid reads "forbid orders": nobody may write to it.
func readForbid(_ *scenarioParser, w *words) func(*stage) error {
	return ofTopic(w, (*Broker).ForbidTopic)
}

// readAllow reads "allow orders".
func readAllow(_ *scenarioParser, w *words) func(*stage) error {
	return ofTopic(w, (*Broker).AllowTopic)
}

// readReject reads "reject m1": the broker refuses it for its own sake.
func readReject(_ *scenarioParser, w *words) func(*stage) error {
	names := w.names(nil)
	return func(t *stage) error {
		for _, name := range names {
			t.rejected[name] = true
		}
		return nil
	}
}

// readAccept reads "accept m1": it refuses it no more.
func readAccept(_ *scenarioParser, w *words) func(*stage) error {
	names := w.names(nil)
	return func(t *stage) error {
		for _, name := range names {
			if !t.rejected[name] {
				return fmt.Errorf("%s is not rejected", name)
			}
			delete(t.rejected, name)
		}
		return nil
	}
}
