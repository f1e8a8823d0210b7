package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/kafka"
)

// brokerChecks are about the cluster as a whole.
type brokerChecks struct {
	settings *settings.Settings
	prefix   string // of transactional ids, in effect

	inspector *kafka.Inspector // nil: absent says why
	absent    error
	cluster   kafka.Cluster
	fault     error // why nothing is known of it

	producer     error // why no producer gets an id; nil: it does
	transactions error // likewise of transactions, in fenced mode
}

// errNoBrokers is why the checks of Kafka are skipped when no brokers are set.
var errNoBrokers = errors.New("no brokers are set: --brokers")

// open makes the client. Nothing is asked yet. The caller closes what was opened.
func (b *brokerChecks) open() {
	if len(b.settings.Kafka.Brokers) == 0 {
		b.absent = errNoBrokers
		return
	}
	b.inspector, b.absent = kafka.OpenInspector(b.settings.Kafka)
}

func (b *brokerChecks) close() {
	if b.inspector != nil {
		b.inspector.Close()
	}
}

func (b *brokerChecks) gather(ctx context.Context) {
	if b.inspector == nil {
		return
	}
	if b.cluster, b.fault = b.inspector.Cluster(ctx); b.fault != nil {
		return
	}
	b.producer = b.inspector.ProducerID(ctx)
	if b.fenced() {
		b.transactions = b.inspector.Transactions(ctx, b.triedID())
	}
}

func (b *brokerChecks) fenced() bool { return b.settings.Relay.Mode == relay.ModeFenced }

// triedID is a transactional id that no bucket has, since those end with its number:
// what a relay holds must not be fenced by a check.
func (b *brokerChecks) triedID() string { return b.prefix + "-doctor" }

// unusable is why topics cannot be asked about; nil when they can.
func (b *brokerChecks) unusable() error {
	if b.absent != nil {
		return b.absent
	}
	if b.fault != nil {
		return errors.New("no broker answers")
	}
	return nil
}

func (b *brokerChecks) judge() []checkDocument {
	const subject = "Kafka"
	switch {
	case errors.Is(b.absent, errNoBrokers):
		return skippedAll(subject, b.absent.Error(), checkBrokers, checkVersions, checkProducer, checkTransactions)
	case b.absent != nil:
		return append([]checkDocument{failed(checkBrokers, subject, b.absent.Error(), "correct the kafka properties")},
			skippedAll(subject, "there is no client", checkVersions, checkProducer, checkTransactions)...)
	case b.fault != nil:
		return append([]checkDocument{b.unreached()}, skippedAll(subject, "no broker answers", checkVersions, checkProducer, checkTransactions)...)
	}
	return slices.Concat(b.reached(), b.versions(), []checkDocument{b.producers(), b.transactional()})
}

func (b *brokerChecks) unreached() checkDocument {
	subject := "brokers " + listed(b.settings.Kafka.Brokers, 5)
	if isTrouble(b.fault, kafka.Denied) {
		return failed(checkBrokers, subject, "refuse the client: "+b.fault.Error(), "correct sasl and security properties of kafka")
	}
	return failed(checkBrokers, subject, "none answers: "+b.fault.Error(),
		"check brokers, the network between, and whether security.protocol is that of their listeners")
}

func isTrouble(err error, kind kafka.TroubleKind) bool {
	var trouble *kafka.Trouble
	return errors.As(err, &trouble) && trouble.Kind == kind
}

func (b *brokerChecks) reached() []checkDocument {
	return eachOf(checkBrokers, "broker", "each answers at the address that it advertises", b.cluster.Brokers, func(broker kafka.Broker) *checkDocument {
		if broker.Fault == nil {
			return nil
		}
		document := failed(checkBrokers, brokerText(broker), "does not answer at the address that it advertises: "+broker.Fault.Error(),
			"check that it runs, that this host resolves and reaches that address, and the broker's advertised.listeners")
		return &document
	})
}

func brokerText(broker kafka.Broker) string {
	return fmt.Sprintf("broker %d (%s)", broker.ID, broker.Address)
}

func (b *brokerChecks) versions() []checkDocument {
	var found []checkDocument
	for _, broker := range b.cluster.Brokers {
		switch lacks := broker.Lacks(b.fenced()); {
		case broker.Versions == nil:
			found = append(found, skipped(checkVersions, brokerText(broker), "has not said which requests it takes"))
		case len(lacks) > 0:
			found = append(found, failed(checkVersions, brokerText(broker), "does not take "+listed(lacks, 5), "relays need Kafka 0.11 or later, or what is compatible with it"))
		default:
			found = append(found, passed(checkVersions, brokerText(broker), "takes "+listed(broker.Takes(), 5)))
		}
	}
	return found
}

func (b *brokerChecks) producers() checkDocument {
	const subject = "idempotent producer"
	switch {
	case b.producer == nil:
		return passed(checkProducer, subject, "the brokers give it an id")
	case isTrouble(b.producer, kafka.Denied):
		return failed(checkProducer, subject, "may not be: "+b.producer.Error(), "grant WRITE on the topics, and before Kafka 2.8 IDEMPOTENT_WRITE on the cluster")
	default:
		return failed(checkProducer, subject, "gets no id: "+b.producer.Error(), "look at the brokers' logs")
	}
}

func (b *brokerChecks) transactional() checkDocument {
	if !b.fenced() {
		return skipped(checkTransactions, "transactions", "mode is "+string(b.settings.Relay.Mode))
	}
	subject := "transactional id " + b.triedID()
	switch {
	case b.transactions == nil:
		return passed(checkTransactions, subject, "its producer is initialized, as those of the buckets would be")
	case isTrouble(b.transactions, kafka.Denied):
		return failed(checkTransactions, subject, "may not be used: "+b.transactions.Error(),
			fmt.Sprintf("grant WRITE and DESCRIBE on transactional ids that begin with %s-", b.prefix))
	default:
		return failed(checkTransactions, subject, "is not initialized: "+b.transactions.Error(),
			"look at the brokers' __transaction_state: its replicas and transaction.state.log.min.isr")
	}
}
