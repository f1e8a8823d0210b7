package kafka_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/bucketbrigade/relay/kafka"
)

// inspector is one of a cluster, and a context within which it must have answered.
func inspector(t *testing.T, c kafka.Config, patience time.Duration) (*kafka.Inspector, context.Context) {
	t.Helper()
	i, err := kafka.OpenInspector(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return i, ctx
}

// ample is more than any answer of a cluster in this process takes.
const ample = 20 * time.Second

// wantTrouble demands an error of this kind.
func wantTrouble(t *testing.T, err error, kind kafka.TroubleKind) {
	t.Helper()
	var trouble *kafka.Trouble
	if !errors.As(err, &trouble) || trouble.Kind != kind || trouble.Text == "" {
		t.Errorf("got %v, want a trouble of kind %s", err, kind)
	}
}

func TestInspectorSeesASoundCluster(t *testing.T) {
	t.Parallel()
	cluster := startKfake(t, kfake.NumBrokers(2), kfake.SeedTopics(3, "orders"))
	i, ctx := inspector(t, kafka.Config{Brokers: cluster.ListenAddrs()[:1]}, ample)

	seen, err := i.Cluster(ctx)
	if err != nil || seen.ID == "" || len(seen.Brokers) != 2 {
		t.Fatalf("%+v, %v", seen, err)
	}
	for n, broker := range seen.Brokers {
		if broker.Fault != nil || broker.ID != n || !slices.Contains(cluster.ListenAddrs(), broker.Address) {
			t.Errorf("%+v", broker)
		}
		// The one thing that is read from the client's words: a later librdkafka that
		// has others for it fails here.
		if broker.Versions[0].High < 3 || len(broker.Takes()) != 3 {
			t.Errorf("broker %d has not said what it takes: %v", broker.ID, broker.Versions)
		}
		if lacks := broker.Lacks(true); lacks != nil {
			t.Errorf("broker %d lacks %q", broker.ID, lacks)
		}
	}

	topics, err := i.Topics(ctx, []string{"missing", "orders", "no/topic"})
	if err != nil || len(topics) != 3 {
		t.Fatalf("%+v, %v", topics, err)
	}
	wantTrouble(t, topics[0].Fault, kafka.Missing)
	wantTrouble(t, topics[2].Fault, kafka.Invalid)
	orders := topics[1]
	if orders.Name != "orders" || orders.Fault != nil || orders.SettingsFault != nil || len(orders.Partitions) != 3 {
		t.Fatalf("%+v", orders)
	}
	if p := orders.Partitions[2]; p.ID != 2 || p.Leaderless || p.Replicas != 2 || p.InSync != 2 {
		t.Errorf("%+v", p)
	}
	if orders.Settings["max.message.bytes"] != "1048588" {
		t.Errorf("settings %v", orders.Settings)
	}
	for _, operation := range []kafka.Operation{kafka.Write, kafka.Describe, kafka.DescribeSettings} {
		if !slices.Contains(orders.Permitted, operation) {
			t.Errorf("%s is not among %v", operation, orders.Permitted)
		}
	}
	if err := i.ProducerID(ctx); err != nil {
		t.Error(err)
	}
	if err := i.Transactions(ctx, "outbox-doctor"); err != nil {
		t.Error(err)
	}
}

// Each thing that is not permitted is told apart, and the others are seen all the
// same.
func TestInspectorIsToldWhatIsNotPermitted(t *testing.T) {
	t.Parallel()
	describe := kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "orders", Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: kmsg.ACLOperationDescribe, Allow: true}
	cluster := startKfake(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "root"),
		kfake.User("PLAIN", "relay", "hunter2", describe), kfake.SeedTopics(1, "orders", "others"))
	i, ctx := inspector(t, kafka.Config{Brokers: cluster.ListenAddrs(), Properties: map[string]string{
		"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN", "sasl.username": "relay", "sasl.password": "hunter2",
	}}, ample)

	seen, err := i.Cluster(ctx)
	if err != nil || len(seen.Brokers) != 1 || seen.Brokers[0].Fault != nil {
		t.Errorf("a broker that may not tell its settings was reached: %+v, %v", seen, err)
	} else if seen.Brokers[0].Versions == nil {
		t.Error("behind SASL a broker's versions are not known")
	}
	topics, err := i.Topics(ctx, []string{"orders", "others"})
	if err != nil {
		t.Fatal(err)
	}
	if orders := topics[0]; orders.Fault != nil || slices.Contains(orders.Permitted, kafka.Write) || !slices.Contains(orders.Permitted, kafka.Describe) {
		t.Errorf("%+v", orders)
	}
	wantTrouble(t, topics[0].SettingsFault, kafka.Denied)
	wantTrouble(t, topics[1].Fault, kafka.Denied)
	wantTrouble(t, i.ProducerID(ctx), kafka.Denied)
	wantTrouble(t, i.Transactions(ctx, "outbox-doctor"), kafka.Denied)
}

// A broker from before idempotent producers lacks what a relay needs.
func TestInspectorNamesWhatAnOldBrokerLacks(t *testing.T) {
	t.Parallel()
	cluster := startKfake(t, kfake.MaxVersions(kversion.V0_10_2()))
	i, ctx := inspector(t, kafka.Config{Brokers: cluster.ListenAddrs()}, ample)
	seen, err := i.Cluster(ctx)
	if err != nil || len(seen.Brokers) != 1 {
		t.Fatalf("%+v, %v", seen, err)
	}
	lacks := strings.Join(seen.Brokers[0].Lacks(false), "; ")
	for _, want := range []string{"Produce of version 3", "InitProducerId"} {
		if !strings.Contains(lacks, want) {
			t.Errorf("lacks %q, want %q among them", lacks, want)
		}
	}
	wantTrouble(t, i.ProducerID(ctx), kafka.Unsupported)
}

// A broker that cannot be reached at the address that it advertises is named; what
// the others answer is not lost.
func TestInspectorNamesABrokerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	cluster := startKfake(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "orders"))
	cluster.ControlKey(int16(kmsg.DescribeConfigs), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return nil, errors.New("gone"), cluster.CurrentNode() == 1
	})
	i, ctx := inspector(t, kafka.Config{Brokers: cluster.ListenAddrs()[:1]}, 1500*time.Millisecond)
	seen, err := i.Cluster(ctx)
	if err != nil || len(seen.Brokers) != 2 {
		t.Fatalf("%+v, %v", seen, err)
	}
	if fault := seen.Brokers[0].Fault; fault != nil {
		t.Errorf("broker 0: %v", fault)
	}
	wantTrouble(t, seen.Brokers[1].Fault, kafka.Unanswered)
}

func TestInspectorWithoutBrokers(t *testing.T) {
	t.Parallel()
	i, ctx := inspector(t, kafka.Config{Brokers: []string{"127.0.0.1:1"}}, 500*time.Millisecond)
	_, err := i.Cluster(ctx)
	wantTrouble(t, err, kafka.Unanswered)
	if err != nil && !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%v does not say whom it could not reach", err)
	}
	_, err = i.Topics(ctx, []string{"orders"})
	wantTrouble(t, err, kafka.Unanswered)
	wantTrouble(t, i.ProducerID(ctx), kafka.Unanswered)
}

func TestInspectorRefusesABadConfiguration(t *testing.T) {
	if i, err := kafka.OpenInspector(kafka.Config{Brokers: []string{"kafka:nine"}}); err == nil {
		i.Close()
		t.Error("a port that is no number was taken")
	}
}
