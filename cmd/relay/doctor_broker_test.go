package main

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
)

func startKafka(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

func brokersOf(cluster *kfake.Cluster) []string {
	return []string{"--brokers", strings.Join(cluster.ListenAddrs(), ",")}
}

// sound are the settings of a topic with nothing wrong about it.
var sound = map[string]string{"min.insync.replicas": "2"}

func TestDoctorOnASoundCluster(t *testing.T) {
	t.Parallel()
	cluster := startKafka(t)
	if err := cluster.CreateTopic("placed", 3, sound); err != nil {
		t.Fatal(err)
	}
	if err := cluster.CreateTopic("letters", 1, sound); err != nil {
		t.Fatal(err)
	}
	c := settled(t)
	c.waitsSince(t, time.Second, outbox.Message{Topic: "placed", Key: []byte("k")})
	e := c.examine(t, append(brokersOf(cluster), "--mode", "fenced", "--poison", "dead-letter", "--dead-letter-topic", "letters")...)
	e.only(t, checkDeadLetter, statusOK)
	for _, id := range []string{checkBrokers, checkVersions, checkProducer, checkTransactions, checkTopics, checkWritable, checkPartitions,
		checkInSync, checkSize, checkElections, checkRetention, checkCompaction} {
		e.only(t, id, statusOK)
		e.wants(t, id, statusOK)
	}
	e.wants(t, checkTransactions, statusOK, "outbox-orders-OUTBOX-doctor")
}

// Each way in which the topic of a waiting row can be wrong is found, and said with
// what to do.
func TestDoctorOnTopicsOfRowsThatWait(t *testing.T) {
	t.Parallel()
	cluster := startKafka(t)
	two := int32(2)
	tests := []struct {
		topic      string
		settings   map[string]string // nil: the topic does not exist
		row        outbox.Message
		age        time.Duration
		id, status string
		texts      []string
	}{
		{topic: "missing", id: checkTopics, status: statusFailure,
			texts: []string{"topic missing", "does not exist: 1 row waiting for it, one in bucket 3", "create it", "relay message park --topic missing"}},
		{topic: "no/topic", id: checkTopics, status: statusFailure, texts: []string{"topic no/topic", "illegal byte", "correct the writer"}},
		{topic: "small", settings: map[string]string{"max.message.bytes": "2000"}, row: outbox.Message{Key: []byte("k"), Value: make([]byte, 5000)},
			id: checkSize, status: statusFailure, texts: []string{"topic small", "of bucket 3 takes 51", "max.message.bytes is 2000", "raise max.message.bytes"}},
		{topic: "narrow", settings: sound, row: outbox.Message{Partition: &two},
			id: checkPartitions, status: statusFailure, texts: []string{"has 2 partitions, and a row asks for number 2", "more partitions"}},
		{topic: "strict", settings: map[string]string{"min.insync.replicas": "4"},
			id: checkInSync, status: statusFailure, texts: []string{"topic strict", "is 4, and a partition has 3 replicas", "lower min.insync.replicas"}},
		{topic: "brittle", settings: map[string]string{"min.insync.replicas": "3"},
			id: checkInSync, status: statusWarning, texts: []string{"topic brittle", "is 3, of 3", "one replica more"}},
		{topic: "careless", settings: map[string]string{"min.insync.replicas": "1"},
			id: checkInSync, status: statusWarning, texts: []string{"topic careless", "is 1, of 3", "min.insync.replicas=2"}},
		{topic: "forgetful", settings: map[string]string{"retention.ms": "3600000", "min.insync.replicas": "2"}, age: 2 * time.Hour,
			id: checkRetention, status: statusWarning, texts: []string{"topic forgetful", "for 1h (retention.ms)", "has waited for 2h", "raise retention.ms"}},
		{topic: "compacted", settings: map[string]string{"cleanup.policy": "compact"},
			id: checkCompaction, status: statusFailure, texts: []string{"topic compacted", "and 1 row has no key", "give the messages keys"}},
		{topic: "tables", settings: map[string]string{"cleanup.policy": "compact"}, row: outbox.Message{Key: []byte("k")}, age: 30 * 24 * time.Hour,
			id: checkRetention, status: statusOK},
	}
	c := settled(t)
	for _, test := range tests {
		if test.settings != nil {
			if err := cluster.CreateTopic(test.topic, 2, test.settings); err != nil {
				t.Fatal(err)
			}
		}
		test.row.Topic = test.topic
		c.waitsSince(t, test.age, test.row)
	}
	e := c.examine(t, brokersOf(cluster)...)
	for _, test := range tests {
		e.wants(t, test.id, test.status, test.texts...)
	}
	e.wants(t, checkTopics, statusOK, "8 topics")
	e.wants(t, checkRetention, statusOK, "7 topics") // compacted ones keep the last record of each key
	// The limit is on what is compressed, and that is not known before.
	e = c.examine(t, append(brokersOf(cluster), "--kafka", "compression.type=lz4")...)
	e.wants(t, checkSize, statusWarning, "topic small", "of what is compressed")
}

func TestDoctorWithoutADeadLetterTopic(t *testing.T) {
	t.Parallel()
	e := settled(t).examine(t, append(brokersOf(startKafka(t)), "--poison", "dead-letter", "--dead-letter-topic", "letters")...)
	e.wants(t, checkDeadLetter, statusFailure, "topic letters", "create it")
}

// What a topic's state can be that no cluster of a test comes into.
func TestDoctorJudgesTheStateOfATopic(t *testing.T) {
	at := func(change func(*kafka.TopicState)) examination {
		f := fleetAt(0, 0)
		state := kafka.TopicState{Name: "placed", Permitted: []kafka.Operation{kafka.Write, kafka.DescribeSettings},
			Partitions: []kafka.PartitionState{{Replicas: 3, InSync: 3}, {ID: 1, Replicas: 3, InSync: 3}}, Settings: sound}
		change(&state)
		topics := &topicChecks{settings: f.settings, outbox: f.outbox, topics: []topicSeen{{TopicState: state, use: topicUse{rows: 1, partition: -1}}}}
		return examination{doctorDocument: doctorDocument{Checks: topics.judge()}}
	}
	at(func(s *kafka.TopicState) { s.Partitions[1].Leaderless = true }).
		wants(t, checkPartitions, statusFailure, "no leader in partition 1")
	at(func(s *kafka.TopicState) { s.Partitions[1].InSync = 1 }).
		wants(t, checkInSync, statusFailure, "has 1 in sync, min.insync.replicas is 2", "bring back")
	at(func(s *kafka.TopicState) { s.Partitions[1].Replicas, s.Settings = 1, nil }).
		wants(t, checkInSync, statusWarning, "has one replica")
	at(func(s *kafka.TopicState) {
		s.Settings = map[string]string{"unclean.leader.election.enable": "true", "min.insync.replicas": "2"}
	}).wants(t, checkElections, statusWarning, "unclean.leader.election.enable=false")
	at(func(s *kafka.TopicState) { s.Permitted = nil }).wants(t, checkWritable, statusSkipped, "do not say")
	at(func(s *kafka.TopicState) { s.Permitted = []kafka.Operation{kafka.Describe} }).wants(t, checkWritable, statusFailure, "grant WRITE")
	unanswered := at(func(s *kafka.TopicState) {
		s.Fault = &kafka.Trouble{Kind: kafka.Unanswered, Code: "_TIMED_OUT", Text: "no answer in time"}
	})
	unanswered.wants(t, checkTopics, statusSkipped, "no answer in time")
	unanswered.wants(t, checkInSync, statusSkipped)
}

// Each permission that is missing at the brokers is named.
func TestDoctorWithoutPermissionsAtTheBrokers(t *testing.T) {
	t.Parallel()
	may := func(topic string, operation kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true}
	}
	cluster := startKafka(t, kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "root"),
		kfake.User("PLAIN", "relay", "hunter2", may("placed", kmsg.ACLOperationDescribe), may("written", kmsg.ACLOperationWrite)),
		kfake.SeedTopics(1, "placed", "written", "hidden"))
	c := settled(t)
	for _, topic := range []string{"placed", "written", "hidden"} {
		c.waitsSince(t, time.Second, outbox.Message{Topic: topic})
	}
	login := []string{"--kafka", "security.protocol=SASL_PLAINTEXT", "--kafka", "sasl.mechanisms=PLAIN", "--kafka", "sasl.username=relay"}
	e := c.examine(t, append(append(brokersOf(cluster), login...), "--kafka", "sasl.password=hunter2", "--mode", "fenced")...)
	e.wants(t, checkBrokers, statusOK)
	e.wants(t, checkWritable, statusFailure, "topic placed", "grant WRITE")
	e.wants(t, checkWritable, statusWarning, "topic written", "grant DESCRIBE_CONFIGS")
	e.wants(t, checkWritable, statusFailure, "topic hidden", "grant DESCRIBE, WRITE")
	e.wants(t, checkTransactions, statusFailure, "grant WRITE and DESCRIBE on transactional ids that begin with outbox-orders-OUTBOX-")
	e.wants(t, checkSize, statusSkipped)
	if strings.Contains(e.stdout+e.stderr, "hunter2") {
		t.Error("the password is printed")
	}

	// Without a permission to write anywhere there is no producer either.
	cluster = startKafka(t, kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "root"),
		kfake.User("PLAIN", "relay", "hunter2"))
	e = c.examine(t, append(append(brokersOf(cluster), login...), "--kafka", "sasl.password=hunter2")...)
	e.wants(t, checkProducer, statusFailure, "IDEMPOTENT_WRITE")
}

func TestDoctorOnOldBrokers(t *testing.T) {
	t.Parallel()
	e := settled(t).examine(t, brokersOf(startKafka(t, kfake.NumBrokers(1), kfake.MaxVersions(kversion.V0_10_2())))...)
	e.wants(t, checkVersions, statusFailure, "broker 0", "InitProducerId", "Kafka 0.11")
	e.wants(t, checkProducer, statusFailure, "no id")
}

// Brokers that do not answer, one or all, fail one check; the table's are made all the
// same.
func TestDoctorWithoutBrokers(t *testing.T) {
	t.Parallel()
	e := settled(t).examine(t, "--brokers", "127.0.0.1:1", "--timeout", "300ms")
	e.wants(t, checkBrokers, statusFailure, "127.0.0.1:1", "security.protocol")
	e.only(t, checkTopics, statusSkipped)
	e.only(t, checkSequence, statusOK)

	cluster := startKafka(t, kfake.NumBrokers(2))
	cluster.ControlKey(int16(kmsg.DescribeConfigs), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return nil, errors.New("gone"), cluster.CurrentNode() == 1
	})
	e = settled(t).examine(t, append(brokersOf(cluster), "--timeout", "1s")...)
	e.wants(t, checkBrokers, statusFailure, "broker 1 ("+cluster.ListenAddrs()[1]+")", "advertised.listeners")
	e.wants(t, checkBrokers, statusOK, "1 broker")
}

func TestDoctorTakesAsLongAsItMay(t *testing.T) {
	c := newConsole(t)
	if got := c.run("doctor", "--table", "orders", "--timeout", strconv.Itoa(5)); got.code != exitUsage || !strings.Contains(got.stderr, "needs a unit") {
		t.Errorf("%+v", got)
	}
}
