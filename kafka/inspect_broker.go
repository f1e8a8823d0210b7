package kafka

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// Cluster is what a cluster says of itself.
type Cluster struct {
	ID      string   // empty: it does not say
	Brokers []Broker // ascending by id
}

// Broker is one broker of a cluster.
type Broker struct {
	ID      int
	Address string // host:port, as it is advertised to clients
	// Fault is why it did not answer for itself, at that address; nil when it did.
	Fault *Trouble
	// Versions are the requests that it takes, by their number in Kafka's protocol; nil:
	// it has not said.
	Versions map[int16]Versions
}

// Versions are the lowest and the highest version of a request.
type Versions struct{ Low, High int16 }

// Cluster asks who belongs to the cluster, and then each broker by itself: that
// one bootstrap server answers says nothing of the addresses that the brokers
// advertise.
func (i *Inspector) Cluster(ctx context.Context) (Cluster, error) {
	described, err := i.admin.DescribeCluster(ctx)
	if err != nil {
		return Cluster{}, i.trouble(err)
	}
	var c Cluster
	if described.ClusterID != nil {
		c.ID = *described.ClusterID
	}
	for _, node := range described.Nodes {
		c.Brokers = append(c.Brokers, Broker{ID: node.ID, Address: net.JoinHostPort(node.Host, strconv.Itoa(node.Port))})
	}
	slices.SortFunc(c.Brokers, func(a, b Broker) int { return a.ID - b.ID })

	var asked sync.WaitGroup
	for b := range c.Brokers {
		asked.Go(func() { c.Brokers[b].Fault = i.askBroker(ctx, c.Brokers[b].ID) })
	}
	asked.Wait()
	var reached []string
	for _, b := range c.Brokers {
		if b.Fault == nil {
			reached = append(reached, b.Address)
		}
	}
	versions := i.versionsOf(ctx, reached)
	for b := range c.Brokers {
		c.Brokers[b].Versions = versions[c.Brokers[b].Address]
	}
	return c, nil
}

// askBroker asks one broker for its settings: a question that only this broker
// answers. Any answer shows that it can be reached, also that we may not know.
func (i *Inspector) askBroker(ctx context.Context, id int) *Trouble {
	results, err := i.admin.DescribeConfigs(ctx, []ck.ConfigResource{{Type: ck.ResourceBroker, Name: strconv.Itoa(id)}})
	if err == nil && len(results) == 1 {
		err = faultOfResult(results[0].Error)
	}
	if err != nil && unanswered(err) {
		return i.trouble(err)
	}
	return nil
}

// need is a request that a relay cannot work without.
type need struct {
	api    int16 // its number in Kafka's protocol
	name   string
	least  int16 // the lowest version that has what the relay needs
	why    string
	fenced bool // needed in fenced mode only
}

// needs are those of a relay, by Kafka's protocol guide.
func needs() []need {
	return []need{
		{api: 0, name: "Produce", least: 3, why: "records with headers"},
		{api: 3, name: "Metadata", least: 4, why: "asking about a topic without creating it"},
		{api: 22, name: "InitProducerId", why: "idempotent producers"},
		{api: 10, name: "FindCoordinator", least: 1, why: "transactions", fenced: true},
		{api: 24, name: "AddPartitionsToTxn", why: "transactions", fenced: true},
		{api: 26, name: "EndTxn", why: "transactions", fenced: true},
	}
}

// Lacks are the requests that a relay needs and the broker does not take, for
// people; with transactions those of fenced mode too. A broker that has not said
// what it takes lacks nothing.
func (b Broker) Lacks(transactions bool) []string {
	var lacks []string
	for _, n := range needs() {
		if b.Versions == nil || n.fenced && !transactions {
			continue
		}
		if taken, has := b.Versions[n.api]; !has || taken.High < n.least {
			lacks = append(lacks, fmt.Sprintf("%s of version %d or later (%s)", n.name, n.least, n.why))
		}
	}
	return lacks
}

// Takes are the versions of the requests that a relay needs, for people: "Produce
// 3-12, Metadata 0-13".
func (b Broker) Takes() []string {
	var takes []string
	for _, n := range needs() {
		if taken, has := b.Versions[n.api]; has && !n.fenced {
			takes = append(takes, fmt.Sprintf("%s %d-%d", n.name, taken.Low, taken.High))
		}
	}
	return takes
}
